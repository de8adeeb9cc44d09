"""Bodies are strict, of a known type, and no larger than they need to be."""

from __future__ import annotations

import io
import json

from tests.rows import each_row


@each_row(
    ("change", "path"),
    [
        ({"slo": 200}, "slo"),
        ({"slo": None}, "slo"),
        ({"planner": "fastest"}, "planner"),
        ({"mechanism": "mpk"}, "mechanism"),
        ({"samples": 0}, "samples"),
        ({"colour": "red"}, "colour"),
        ({"platform": {"format": 2}}, "platform.format"),
    ],
)
def test_a_field_that_is_wrong_is_named(refused, deployment, change, path):
    status, error = refused("/deployments", json=deployment | change)

    assert (status, error["code"], error["path"]) == (400, "bad-request", path)


def test_predict_takes_a_plan_or_plans(refused, workflow, profile, platform):
    body = {"workflow": workflow, "profile": profile, "platform": platform}

    status, error = refused("/predictor/predict", json=body)

    assert (status, error["code"]) == (400, "bad-request")
    assert "plan" in error["message"]


@each_row(
    ("body", "code"),
    [
        (b"", "bad-json"),
        (b"{", "bad-json"),
        (b"\xff", "bad-json"),
        (b'{"slo": NaN}', "bad-json"),
        (b'{"slo": "1s", "slo": "2s"}', "duplicate-key"),
        (b"[" * 100_000, "bad-json"),
        (b'"{}"', "bad-request"),
        (b"[]", "bad-request"),
    ],
)
def test_a_body_is_strict_json(refused, body, code):
    status, error = refused("/deployments", data=body, content_type="application/json")

    assert (status, error["code"]) == (400, code)


def test_a_part_of_a_form_is_sent_once(refused):
    form = {"slo": ["1s", "2s"], "directory": "demo"}

    status, error = refused("/deployments", data=form, content_type="multipart/form-data")

    assert (status, error["code"]) == (400, "duplicate-key")


def test_another_content_type_is_refused(refused):
    for content_type in ("text/plain", "application/x-www-form-urlencoded", None):
        status, error = refused("/deployments", data="{}", content_type=content_type)
        assert (status, error["code"]) == (415, "unsupported-media-type")


def test_json_above_one_mebibyte_is_too_large(refused, deployment):
    large = json.dumps(deployment | {"slo": "1" * 1024 * 1024})

    status, error = refused("/deployments", data=large, content_type="application/json")

    assert (status, error["code"]) == (413, "too-large")


def test_a_form_above_64_mebibytes_is_too_large(refused):
    archive = io.BytesIO(bytes(64 * 1024 * 1024))

    status, error = refused("/deployments", data={"slo": "1s", "archive": (archive, "a.zip")})

    assert (status, error["code"]) == (413, "too-large")
