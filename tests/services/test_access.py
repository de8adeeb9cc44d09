"""Whoever does not send the secret is refused, whatever is asked for, and learns nothing of it."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from chiron.services.access import basic_auth, bearer_token
from chiron.services.app import create_app
from chiron.workflow.errors import ChironError
from tests.rows import each_row

TOKEN = "correct-horse-battery"  # noqa: S105


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture
def folder(tmp_path):
    """OpenFaaS's secrets: user and password, each in a file."""
    (tmp_path / "basic-auth-user").write_text("admin")
    (tmp_path / "basic-auth-password").write_text("hünter2-hünter2\n")
    return tmp_path


@pytest.fixture
def token_file(tmp_path):
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    return tmp_path / "token"


@pytest.fixture
def serve(config):
    """A client of services that ask for a secret."""
    return lambda secret: create_app(replace(config, secret=secret)).test_client()


@pytest.fixture
def by_token(serve, token_file):
    """A client of services that ask for the token."""
    return serve(bearer_token(token_file))


@pytest.fixture
def by_password(serve, folder):
    """A client of services that ask for user and password."""
    return serve(basic_auth(folder))


@each_row("path", ["/jobs", "/docs", "/openapi.json", "/healthz", "/", "/nowhere"])
def test_every_address_asks_for_the_secret(by_token, path):
    answer = by_token.get(path)

    assert (answer.status_code, answer.json["code"]) == (401, "unauthorised")
    challenges = ['Bearer realm="chiron"', 'Basic realm="chiron"']
    assert answer.headers.getlist("WWW-Authenticate") == challenges


def test_a_person_reads_a_sentence_in_a_browser(by_token):
    answer = by_token.get("/", headers={"Accept": "text/html,*/*"})
    assert (answer.status_code, answer.mimetype) == (401, "text/plain")
    assert answer.text == "the services ask for credentials (Bearer): send the right ones\n"


def test_the_token_admits(serve, token_file):
    client = serve(bearer_token(token_file))

    for header in (f"Bearer {TOKEN}", f"bearer  {TOKEN}"):
        assert client.get("/jobs", headers={"Authorization": header}).status_code == 200


def test_the_token_admits_as_the_password_that_browsers_ask_for(serve, token_file):
    client = serve(bearer_token(token_file))

    def status(header):
        return client.get("/", headers={"Authorization": header}).status_code

    assert [status(basic(user, TOKEN)) for user in ("", "anybody")] == [200, 200]
    for refused in (basic(TOKEN, ""), basic("", f"{TOKEN}x"), f"Basic {TOKEN}", "Basic \xff"):
        assert status(refused) == 401


def test_user_and_password_admit(by_password):
    header = basic("admin", "hünter2-hünter2")
    assert by_password.get("/jobs", headers={"Authorization": header}).status_code == 200


@each_row(
    "header",
    [
        "",
        "Basic",
        "Basic ",
        "Basic !!!",
        basic("admin", ""),
        basic("", ""),
        basic("admin", "hünter2-hünter"),
        basic("ADMIN", "hünter2-hünter2"),
        "Bearer hünter2-hünter2",
        basic("admin", "hünter2-hünter2").replace("Basic", "Bearer"),
        "\xff" * 100,
        "Basic " + "A" * 10_000,
    ],
)
def test_anything_else_does_not(by_password, header):
    answer = by_password.post("/profiler/calibrate", headers={"Authorization": header})

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == 'Basic realm="chiron"'


def test_the_document_says_what_to_send_only_where_it_is_asked_for(client, serve, token_file):
    asking = serve(bearer_token(token_file))
    told = asking.get("/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"}).json

    assert told["components"]["securitySchemes"] == {"Bearer": {"type": "http", "scheme": "bearer"}}
    assert told["security"] == [{"Bearer": []}]
    untold = client.get("/openapi.json").json
    assert "securitySchemes" not in untold["components"]
    assert "security" not in untold


def test_services_with_a_secret_may_be_reached_under_any_name(serve, token_file):
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "chiron.example.com"}

    assert serve(bearer_token(token_file)).get("/jobs", headers=headers).status_code == 200


@pytest.mark.parametrize("text", ["", "short", "two\nlines-of-it", "white space", "schlüssel-ü"])
def test_a_token_that_cannot_be_sent_or_could_be_guessed_is_refused(tmp_path, text):
    file = tmp_path / "token"
    file.write_text(text)

    with pytest.raises(ChironError) as refusal:
        bearer_token(file)
    assert refusal.value.code == "bad-secret"
    assert str(file) in refusal.value.message
    assert not text or text not in refusal.value.message


def test_secrets_that_are_not_there_are_named(tmp_path):
    for read, name in ((basic_auth, "basic-auth-user"), (bearer_token, str(tmp_path))):
        with pytest.raises(ChironError, match=name):
            read(tmp_path)


def test_a_secret_shows_itself_nowhere(token_file, folder):
    for secret in (bearer_token(token_file), basic_auth(folder)):
        assert TOKEN not in repr(secret)
        assert secret._value not in repr(secret)
