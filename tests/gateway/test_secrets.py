"""A function reads its secrets, and only its own, from files."""

from __future__ import annotations

import pytest
import requests

TIMEOUT_S = 60
READER = """
    import json, os, stat
    from pathlib import Path

    def handle(request):
        return json.dumps({
            path.name: [path.read_text(), oct(stat.S_IMODE(path.stat().st_mode))]
            for path in Path(os.environ["secrets_dir"]).iterdir()
        })
"""


@pytest.fixture
def secret(gateway):
    """Create or change a secret; those created are deleted after the test."""
    created = []
    url = f"{gateway.url}/system/secrets"

    def write(name, value, method="POST"):
        body = {"name": name, "value": value}
        assert requests.request(method, url, json=body, timeout=TIMEOUT_S).status_code == 200
        if method == "POST":
            created.append(name)

    yield write
    for name in created:
        requests.delete(url, json={"name": name}, timeout=TIMEOUT_S)


def test_a_function_sees_its_secrets_as_files_only_its_owner_can_read(deploy, secret):
    secret("api-key", "s3cret")
    secret("of-others", "hidden")
    function = deploy(READER, secrets=["api-key"])
    assert function.post().json() == {"api-key": ["s3cret", "0o400"]}


def test_a_changed_secret_reaches_a_running_function(deploy, secret):
    secret("api-key", "old")
    function = deploy(READER, secrets=["api-key"])
    function.post()
    secret("api-key", "new", method="PUT")
    assert function.post().json() == {"api-key": ["new", "0o400"]}
