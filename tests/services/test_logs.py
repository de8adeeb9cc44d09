"""The log is lines of JSON that say what was asked and how it went, never what was sent."""

from __future__ import annotations

import json
import logging

import pytest

from chiron.services.logs import JsonLines


@pytest.fixture
def lines(caplog):
    """The lines that the services have logged, as the server writes them."""
    caplog.set_level(logging.INFO, logger="services")
    form = JsonLines()
    return lambda: [json.loads(form.format(record)) for record in caplog.records]


def test_a_request_is_one_line_with_its_id_route_and_status(client, lines):
    answer = client.get("/jobs/0123", headers={"X-Request-Id": "from-the-proxy.1"})

    (line,) = lines()
    assert answer.headers["X-Request-Id"] == "from-the-proxy.1"
    assert line["request_id"] == "from-the-proxy.1"
    assert (line["event"], line["level"], line["method"]) == ("request", "info", "GET")
    assert (line["route"], line["status"]) == ("/jobs/<string:id>", 404)
    assert line["ms"] >= 0


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, '"}', "ü"])
def test_an_id_that_could_disturb_the_log_is_replaced(client, lines, given):
    answer = client.get("/jobs", headers={"X-Request-Id": given})

    assert answer.headers["X-Request-Id"] != given
    assert lines()[0]["request_id"] == answer.headers["X-Request-Id"]


def test_nothing_that_was_sent_is_logged(client, lines, caplog, deployment):
    secret = "hunter2"  # noqa: S105
    headers = {"Authorization": f"Bearer {secret}", "Cookie": secret, "User-Agent": secret}
    client.post("/deployments", json=deployment | {secret: secret}, headers=headers)
    client.get(f"/{secret}?{secret}={secret}", headers=headers)
    client.get(f"/jobs/{secret}?{secret}", headers=headers)
    client.open("/jobs", method=secret)

    assert len(lines()) == 4
    assert secret not in json.dumps(lines())
    assert secret not in caplog.text


def test_a_fault_is_logged_by_where_it_was_and_not_by_what_it_says(lines):
    try:
        raise KeyError("the payload") from ValueError("a secret")
    except KeyError:
        logging.getLogger("services").exception("request failed")

    (line,) = lines()
    assert {"KeyError", "ValueError"} <= set(line["exception"])
    assert any("test_logs.py" in place for place in line["exception"])
    assert "payload" not in json.dumps(line)
    assert "a secret" not in json.dumps(line)


def test_a_job_is_logged_under_the_request_that_submitted_it(
    client, lines, running, ended, wait_until
):
    accepted = client.post("/profiler/calibrate", headers={"X-Request-Id": "r1"})
    ended(accepted.json["location"])

    def logged():
        of_job = [line for line in lines() if line.get("job") == accepted.json["id"]]
        return of_job if len(of_job) == 2 else None

    of_job = wait_until(logged)
    assert [line["event"] for line in of_job] == ["job started", "job failed"]
    assert {line["request_id"] for line in of_job} == {"r1"}
    assert of_job[-1]["code"] == "no-gateway"


def test_answers_allow_no_other_site_anything(client):
    for method in ("GET", "OPTIONS", "POST"):
        answer = client.open("/profiler/calibrate", method=method)
        assert not [name for name, _ in answer.headers if name.startswith("Access-Control")]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
