"""A function's process has no privilege that it does not need, and nothing of the gateway's."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from gateway.build import FunctionSource, build
from gateway.embedded import EmbeddedGateway
from gateway.errors import GatewayError
from gateway.function_user import FunctionUser
from gateway.images import ImageStore

TIMEOUT_S = 30
LOOK = """
    import json, os
    from pathlib import Path

    def handle(request):
        status = dict(line.split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
        folder = Path(os.environ["secrets_dir"])
        return json.dumps({
            "uids": os.getresuid(), "gids": os.getresgid(), "groups": os.getgroups(),
            "no_new_privileges": status["NoNewPrivs"].strip(),
            "leads": os.getsid(0) == os.getpgid(0) == os.getpid(),
            "secrets": {
                path.name: [path.read_text(), path.stat().st_mode & 0o777, path.stat().st_uid]
                for path in folder.iterdir()
            },
            "writable": [
                name for name in ("HOME", "TMPDIR") if os.access(os.environ[name], os.W_OK)
            ],
        })
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who may be another user")


def test_a_function_gains_no_privileges_and_leads_a_session_of_its_own(deploy):
    seen = deploy(LOOK).post().json()

    assert (seen["no_new_privileges"], seen["leads"]) == ("1", True)


@pytest.fixture
def open_folder():
    """A folder that every user may enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="chiron-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@needs_root
def test_root_s_gateway_runs_functions_as_nobody(open_folder, minimal_templates):
    handler = open_folder / "handler"
    handler.mkdir()
    (handler / "handler.py").write_text(textwrap.dedent(LOOK))
    (handler / "requirements.txt").touch()
    images = ImageStore(open_folder / "images")
    source = FunctionSource("look", "look", "python3-flask", handler)
    image = build(source, minimal_templates, images, open_folder / "venvs")
    nobody = FunctionUser.choose("nobody")
    pythons = [image.python, Path("/usr/bin/python3"), Path("/usr/local/bin/python3")]
    free = [each for each in pythons if each.exists() and not nobody.barred(each, each.resolve())]
    if not free:
        pytest.skip("no Python here is for every user")
    replace(image, python=free[0]).write()

    with EmbeddedGateway(images=images.root) as gateway:
        secret = {"name": "key", "value": "s3cret"}
        requests.post(f"{gateway.url}/system/secrets", json=secret, timeout=TIMEOUT_S)
        body = {"service": "look", "image": "look", "secrets": ["key"]}
        requests.post(f"{gateway.url}/system/functions", json=body, timeout=TIMEOUT_S)
        seen = requests.post(f"{gateway.url}/function/look", timeout=TIMEOUT_S).json()

    assert seen["uids"] == [nobody.uid] * 3
    assert seen["gids"] == [nobody.gid] * 3
    assert seen["groups"] == []
    assert seen["secrets"] == {"key": ["s3cret", 0o400, nobody.uid]}
    assert seen["writable"] == ["HOME", "TMPDIR"]


@needs_root
def test_an_image_that_the_user_cannot_get_at_still_runs(deploy, tmp_path):
    assert FunctionUser.choose("nobody").barred(tmp_path), "pytest's folder is root's alone"

    assert deploy(LOOK).post().json()["uids"] == [0] * 3


@needs_root
def test_an_unknown_user_is_one_line():
    with pytest.raises(GatewayError, match="there is no user nobody-at-all: name another one"):
        FunctionUser.choose("nobody-at-all")
    assert FunctionUser.choose("root") is None


def test_who_is_not_root_runs_functions_as_themselves(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert FunctionUser.choose("nobody") is None


@needs_root
@pytest.mark.parametrize(("mode", "barred"), [(0o755, False), (0o711, False), (0o700, True)])
def test_a_folder_is_barred_where_others_may_not_enter(open_folder, mode, barred):
    entry = pwd.getpwnam("nobody")
    inner = open_folder / "inner"
    inner.mkdir(mode)
    user = FunctionUser("nobody", entry.pw_uid, entry.pw_gid)

    assert user.barred(inner) == (inner if barred else None)
