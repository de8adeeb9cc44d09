"""Basic auth guards the management API and nothing else."""

from __future__ import annotations

import io
import json

import pytest
import requests

from chiron.gateway.__main__ import _credentials
from chiron.gateway.access import Credentials
from chiron.gateway.embedded import EmbeddedGateway
from chiron.workflow.errors import ChironError

TIMEOUT_S = 60
PASSWORD = "pässword:1"  # noqa: S105


@pytest.fixture(scope="module")
def guarded(store, make_image):
    """A gateway that asks for a password."""
    make_image("echo")
    with EmbeddedGateway(images=store.root, user="admin", password=PASSWORD) as gateway:
        yield gateway


@pytest.mark.parametrize("path", ["functions", "info", "secrets", "namespaces", "logs?name=echo"])
def test_the_management_api_refuses_who_has_no_or_the_wrong_password(guarded, path):
    url = f"{guarded.url}/system/{path}"
    refused = requests.get(url, timeout=TIMEOUT_S)
    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"].startswith("Basic")
    wrong = requests.get(url, auth=("admin", "other"), timeout=TIMEOUT_S)
    assert wrong.status_code == 401


def test_functions_and_healthz_ask_for_nothing(guarded):
    auth = (b"admin", PASSWORD.encode())
    body = {"service": "echo", "image": "echo"}
    url = f"{guarded.url}/system/functions"
    assert requests.put(url, json=body, auth=auth, timeout=TIMEOUT_S).status_code == 404
    assert requests.post(url, json=body, auth=auth, timeout=TIMEOUT_S).status_code == 202
    assert requests.get(f"{guarded.url}/healthz", timeout=TIMEOUT_S).status_code == 200
    assert requests.post(f"{guarded.url}/function/echo", timeout=TIMEOUT_S).status_code == 200
    accepted = requests.post(f"{guarded.url}/async-function/echo", timeout=TIMEOUT_S)
    assert accepted.status_code == 202


@pytest.mark.parametrize(("user", "password"), [("admin", None), ("admin", ""), (None, "pass")])
def test_half_of_the_credentials_is_refused(user, password, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps([user, password]) + "\n"))
    with pytest.raises(ChironError, match="credentials need both"):
        _credentials(from_stdin=True)


@pytest.mark.parametrize(
    "header", [None, "", "Basic", "Basic !!!", "Bearer YTpi", "Basic YTpj", "Basic YTpiYg=="]
)
def test_only_the_exact_credentials_are_admitted(header):
    assert Credentials("a", "b").admit("Basic YTpi")
    assert not Credentials("a", "b").admit(header)
