"""The dashboard is guarded as the API is, and costs nothing until it is asked for."""

from __future__ import annotations

import base64
import subprocess
import sys
from dataclasses import replace

import pytest
from dash import html

from openfaas.credentials import Credentials
from scheduler.choices import NO_CHOICES, Choices
from services.app import create_app
from services.dashboard.options import chosen
from services.dashboard.options import fields as fields_of
from services.dashboard.uploads import Upload
from workflow.errors import ChironError

PATHS = ("/", "/_dash-layout", "/_dash-dependencies", "/assets/dashboard.css")
UPDATE = "/_dash-update-component"


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_nothing_is_told(config, path):
    client = create_app(
        replace(config, secret=Credentials.bearer("long-enough-a-token"))
    ).test_client()

    answer = client.get(path)

    assert (answer.status_code, answer.json["code"]) == (401, "unauthorised")
    assert client.post(UPDATE, json={}).status_code == 401
    admitted = client.get(path, headers={"Authorization": "Bearer long-enough-a-token"})
    assert admitted.status_code == 200


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Host": "evil.example"}])
def test_pages_of_other_sites_are_refused(client, headers):
    for answer in (
        *(client.get(path, headers=headers) for path in PATHS),
        client.post(UPDATE, json={}, headers=headers),
    ):
        assert answer.status_code == 403
        assert answer.json["code"] in ("cross-origin", "unknown-host")


def test_a_page_may_load_nothing_from_elsewhere(client):
    answer = client.get("/")

    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self' 'sha256-")
    assert "unsafe-eval" not in policy
    assert 'src="http' not in answer.text
    assert answer.headers["X-Frame-Options"] == "DENY"


def test_a_broken_callback_tells_nothing_and_the_page_goes_on(client):
    answer = client.post(UPDATE, data=b"{", content_type="application/json")

    assert answer.status_code >= 400
    assert set(answer.json) == {"code", "message", "path", "functions"}
    assert client.get("/").status_code == 200


def test_dash_is_imported_for_the_first_page_only():
    code = "import sys, cli.main, services.app; sys.exit('dash' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("content", [None, "%%%"])
def test_a_file_that_came_in_part_is_refused_by_name(content):
    with pytest.raises(ChironError, match=r"a\.zip") as refusal:
        Upload(names=["a.zip"], contents=[content], size=3).packed()
    assert refusal.value.code == "bad-archive"


def test_an_archive_is_taken_as_it_is():
    content = base64.b64encode(b"PK").decode()

    assert Upload(names=["folder.ZIP"], contents=[content], size=2).packed() == b"PK"


def test_what_is_too_large_is_refused_before_it_is_read():
    with pytest.raises(ChironError, match="41 MiB") as refusal:
        Upload(names=["a.zip"], contents=[], size=41 * 1024 * 1024).packed()
    assert (refusal.value.code, refusal.value.status) == ("too-large", 413)


def test_every_choice_has_a_field_that_stands_for_its_default():
    fields = [part for part in html.Div(fields_of([]))._traverse() if hasattr(part, "value")]
    entries = [part for part in fields if isinstance(getattr(part, "id", None), dict)]

    given = chosen((part.value for part in entries), (part.id for part in entries))

    assert {part.id["field"] for part in entries} == set(Choices.model_fields)
    assert Choices.model_validate(given) == NO_CHOICES
