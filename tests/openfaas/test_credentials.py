"""URL and credentials are those that faas-cli would use."""

import base64
import subprocess

import pytest

from chiron.openfaas.client import Gateway
from chiron.openfaas.credentials import (
    Credentials,
    config_file,
    credentials_for,
    gateway_url,
)
from chiron.workflow.errors import ChironError
from tests.rows import each_row

URL = "http://127.0.0.1:8080"


@pytest.mark.parametrize(
    ("flag", "variables", "url"),
    [
        (None, {}, "http://127.0.0.1:8080"),
        (None, {"OPENFAAS_URL": "gw:8080"}, "http://gw:8080"),
        (None, {"OPENFAAS_URL": ""}, "http://127.0.0.1:8080"),
        ("other:8080", {"OPENFAAS_URL": "gw:8080"}, "http://other:8080"),
        ("https://GW.Example.com//", {}, "https://gw.example.com"),
        ("http://gw/openfaas/", {}, "http://gw/openfaas"),
    ],
)
def test_the_flag_wins_over_the_variable_over_loopback(flag, variables, url):
    assert gateway_url(flag, variables) == url


@each_row("url", ["ftp://gw", "tcp://gw:8080", "httpx://gw", "://gw"])
def test_a_url_of_another_scheme_is_refused(url):
    with pytest.raises(ChironError, match=r"begin it with http:// or https://"):
        gateway_url(url, {})


@pytest.mark.parametrize(
    ("variables", "file"),
    [
        ({"OPENFAAS_CONFIG": "/etc/faas"}, "/etc/faas/config.yml"),
        ({"OPENFAAS_CONFIG": "/etc/faas", "CI": "true"}, "/etc/faas/config.yml"),
        ({"CI": "1"}, ".openfaas/config.yml"),
        ({"CI": "false"}, "/home/u/.openfaas/config.yml"),
        ({}, "/home/u/.openfaas/config.yml"),
    ],
)
def test_the_config_is_where_faas_cli_keeps_it(variables, file, monkeypatch):
    monkeypatch.setenv("HOME", "/home/u")
    assert str(config_file(variables)) == file


@pytest.fixture
def configured(tmp_path, write):
    def configured(text: str) -> dict[str, str]:
        write("config.yml", text)
        return {"OPENFAAS_CONFIG": str(tmp_path)}

    return configured


def token(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_basic_credentials_are_decoded(configured):
    variables = configured(
        f"auths:\n- gateway: http://other\n  auth: basic\n  token: {token('x:y')}\n"
        f"- gateway: {URL}\n  auth: basic\n  token: {token('admin:pa:ss')}\n  options: []\n"
    )
    assert credentials_for(URL, variables) == Credentials.basic("admin", "pa:ss")


def test_any_other_kind_is_a_token(configured):
    variables = configured(f"auths:\n- {{gateway: '{URL}', auth: oauth2, token: abc}}\n")
    assert credentials_for(URL, variables) == Credentials.bearer("abc")


@pytest.mark.parametrize("text", ["", "auths: []\n", "auths:\n- gateway: http://other\n"])
def test_a_gateway_without_login_has_no_credentials(configured, text):
    assert credentials_for(URL, configured(text)) is None


def test_no_file_means_no_credentials(tmp_path):
    assert credentials_for(URL, {"OPENFAAS_CONFIG": str(tmp_path)}) is None


@pytest.mark.parametrize(
    "text",
    [
        "auths: [",
        "auths: text\n",
        f"auths:\n- {{gateway: '{URL}', auth: basic, token: '***'}}\n",
        f"auths:\n- {{gateway: '{URL}', auth: basic, token: {token('nocolon')}}}\n",
    ],
)
def test_a_broken_file_is_named_with_the_mend(configured, text, tmp_path):
    with pytest.raises(ChironError) as raised:
        credentials_for(URL, configured(text))

    assert raised.value.code == "bad-config"
    assert str(tmp_path / "config.yml") in raised.value.message
    assert "faas-cli login" in raised.value.message


def test_secrets_are_not_shown():
    assert "hidden" not in repr(Credentials.basic("admin", "hidden")) + repr(
        Credentials.bearer("hidden")
    )


@pytest.mark.faas_cli
def test_what_faas_cli_login_saves_lets_the_client_in(gateway, faas_cli, tmp_path):
    gateway.answer("GET /system/functions", (200, []))
    variables = {"OPENFAAS_CONFIG": str(tmp_path), "HOME": str(tmp_path), "PATH": ""}
    subprocess.run(
        [faas_cli, "login", "-g", gateway.url, "-u", "admin", "--password-stdin"],
        input=b"pa:ss$word",
        env=variables,
        check=True,
        capture_output=True,
        timeout=60,
    )

    with Gateway(gateway.url, credentials_for(gateway.url, variables)) as client:
        client.functions()

    theirs, ours = (call.headers["authorization"] for call in gateway.calls)
    assert ours == theirs
