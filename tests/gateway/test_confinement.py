"""A function's process has no privilege that it does not need, and nothing of the gateway's."""

from __future__ import annotations

import json
import os
import pwd
import re
import secrets
import shutil
import site
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import requests

from chiron.gateway.build import FunctionSource, build
from chiron.gateway.embedded import EmbeddedGateway
from chiron.gateway.function_user import FunctionUser
from chiron.gateway.images import ImageStore
from chiron.workflow.errors import ChironError

TIMEOUT_S = 30
ROOT = Path(__file__).resolve().parents[2]
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


@pytest.fixture
def python_for_all(open_folder) -> Path:
    """An interpreter that every user may run."""
    nobody = FunctionUser.choose("nobody")
    for each in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        path = Path(each)
        if path.exists() and not (nobody and nobody.barred(path, path.resolve())):
            return path
    pytest.skip("no Python here is for every user")


@pytest.fixture
def image_for_all(open_folder, python_for_all, minimal_templates):
    """Build an image that every user may run; returns its store."""

    def make(name: str, code: str) -> ImageStore:
        handler = open_folder / "handler"
        handler.mkdir()
        (handler / "handler.py").write_text(textwrap.dedent(code))
        (handler / "requirements.txt").touch()
        images = ImageStore(open_folder / "images")
        source = FunctionSource(name, name, "python3-flask", handler)
        image = build(source, minimal_templates, images, open_folder / "venvs")
        replace(image, python=python_for_all).write()
        return images

    return make


@needs_root
def test_root_s_gateway_runs_functions_as_nobody(image_for_all):
    nobody = FunctionUser.choose("nobody")
    images = image_for_all("look", LOOK)
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


SPY = """
    import json, os
    from pathlib import Path

    def handle(request):
        outside, secret = json.loads(request.body)
        found = []
        for pid in (each.name for each in Path("/proc").iterdir() if each.name.isdigit()):
            for file in ("environ", "cmdline"):
                try:
                    if secret in Path("/proc", pid, file).read_text(errors="replace"):
                        found.append(f"{pid}/{file}")
                except OSError:
                    pass
        parent = os.getppid()
        while parent != outside:
            try:
                open(f"/proc/{parent}/mem", "rb").close()
                found.append(f"{parent}/mem")
            except OSError:
                pass
            stat = Path("/proc", str(parent), "stat").read_text()
            parent = int(stat[stat.rindex(")") + 2 :].split()[1])
        return json.dumps(found)
"""


@pytest.mark.parametrize(
    "program",
    [
        ["-m", "chiron.gateway", "--port=0"],
        ["-c", "from chiron.cli.main import main; main()", "serve", "gateway", "--gateway-port=0"],
    ],
    ids=["gateway", "chiron serve"],
)
def test_a_function_of_the_gateway_s_own_user_reads_no_credentials(
    program, image_for_all, python_for_all
):
    images = image_for_all("spy", SPY)
    nobody = FunctionUser.choose("nobody")
    variables = ("CHIRON_GATEWAY_PASSWORD", "AWS_SECRET_ACCESS_KEY", "DOCKER_AUTH_CONFIG")
    secret = f"s3cret-{secrets.token_hex()}"  # of this gateway, and of none that runs beside it
    with subprocess.Popen(
        [str(python_for_all), *program],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *site.getsitepackages()]),
            "CHIRON_HOME": str(images.root.parent),
            "CHIRON_GATEWAY_USER": "admin",
            **dict.fromkeys(variables, secret),
        },
        user=nobody and nobody.uid,
        group=nobody and nobody.gid,
        extra_groups=() if nobody else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            url = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())[0]
            deploy = partial(
                requests.post,
                f"{url}/system/functions",
                json={"service": "spy", "image": "spy"},
                timeout=TIMEOUT_S,
            )
            assert deploy().status_code == 401
            assert deploy(auth=("admin", secret)).status_code == 202
            asked = json.dumps([os.getpid(), secret])
            found = requests.post(f"{url}/function/spy", asked, timeout=TIMEOUT_S)
        finally:
            process.terminate()

    assert found.json() == []


@needs_root
def test_an_image_that_the_user_cannot_get_at_still_runs(deploy, tmp_path):
    assert FunctionUser.choose("nobody").barred(tmp_path), "pytest's folder is root's alone"

    assert deploy(LOOK).post().json()["uids"] == [0] * 3


@needs_root
def test_that_functions_run_as_root_is_told_once(store, make_image, wait_until):
    make_image("as-root")
    said, names = list[str](), ("as-root-1", "as-root-2")
    with EmbeddedGateway(images=store.root, say=said.append) as gateway:
        for name in names:
            body = {"service": name, "image": "as-root"}
            requests.post(f"{gateway.url}/system/functions", json=body, timeout=TIMEOUT_S)
            requests.post(f"{gateway.url}/function/{name}", timeout=TIMEOUT_S)
        wait_until(lambda: said)
    (line,) = said
    assert line.startswith("functions run as root, as nobody may not enter /")


@needs_root
def test_an_unknown_user_is_one_line():
    with pytest.raises(ChironError, match="nobody-at-all: name another with --user of python"):
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
