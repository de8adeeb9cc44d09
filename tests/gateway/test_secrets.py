"""A function reads its secrets, and only its own, from files."""

from __future__ import annotations

import pytest
import requests

from chiron.gateway.secret_store import SecretStore
from chiron.workflow.errors import ChironError

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


def test_a_changed_secret_reaches_a_running_function(deploy, secret):
    secret("api-key", "old")
    secret("of-others", "hidden")
    function = deploy(READER, secrets=["api-key"])
    assert function.post().json() == {"api-key": ["old", "0o400"]}
    secret("api-key", "new", method="PUT")
    assert function.post().json() == {"api-key": ["new", "0o400"]}


def test_a_secret_that_is_missing_is_told_with_the_place_of_its_file():
    with pytest.raises(ChironError, match=r"a file \.secrets/api-key in the current folder"):
        SecretStore().check(["api-key"])
