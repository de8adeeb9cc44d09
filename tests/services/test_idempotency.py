"""A request with an Idempotency-Key is one job, however often it is sent."""

from __future__ import annotations

import io
import json

import pytest

KEY = {"Idempotency-Key": "deploy-demo-1"}


def test_the_same_request_is_answered_with_the_same_job(client, deployment, config):
    first, second = (
        client.post("/deployments", json=deployment, headers=KEY).json for _ in range(2)
    )

    assert first == second
    assert len(client.get("/jobs").json["jobs"]) == 1
    assert [folder.name for folder in (config.state / "jobs").iterdir()] == [first["id"]]


def test_an_upload_is_the_same_however_the_form_is_delimited(
    client, packed, root, deployment, config
):
    archive = packed(root / "demo")

    def post():
        form = {"slo": "1s", "archive": (io.BytesIO(archive), "demo.tar.gz")}
        form["profile"] = json.dumps(deployment["profile"])
        return client.post("/deployments", data=form, headers=KEY).json["id"]

    assert post() == post()
    assert len(list((config.state / "jobs").iterdir())) == 1


def test_another_request_with_the_same_key_is_refused(client, deployment):
    client.post("/deployments", json=deployment, headers=KEY)

    answer = client.post("/deployments", json=deployment | {"slo": "1s"}, headers=KEY)

    assert (answer.status_code, answer.json["code"]) == (409, "key-reused")
    assert client.post("/profiler/calibrate", headers=KEY).status_code == 409


def test_requests_without_a_key_are_jobs_of_their_own(client):
    ids = {client.post("/profiler/calibrate").json["id"] for _ in range(2)}

    assert len(ids) == 2


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 256, "ü"])
def test_a_key_that_is_none_is_refused(client, key):
    answer = client.post("/profiler/calibrate", headers={"Idempotency-Key": key})

    assert (answer.status_code, answer.json["code"]) == (400, "bad-request")
