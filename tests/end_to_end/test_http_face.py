"""A workflow is called as a function is, and answers as one, also through a gateway."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import requests

from chiron.deployment.launcher import Deployment
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder

TIMEOUT_S = 60
HANDLERS = {
    "look": """
        import json

        def handle(event, context):
            key = event.headers.get("X-Key")
            said = [event.method, event.path, event.query.getlist("a"), key]
            answer = {"seen": said, "to": event.body.decode()}
            return {"statusCode": 200, "body": json.dumps(answer)}
    """,
    "show": """
        import json
        import time
        from pathlib import Path

        from flask import Response, jsonify, make_response, redirect

        def pieces(file):
            yield "begin\\n"
            while not Path(file).exists():
                time.sleep(0.01)
            yield "end\\n"

        def handle(req):
            to = json.loads(req)["to"]
            if to == "elsewhere":
                return redirect("/there")
            if to == "nowhere":
                return jsonify(error="no such order"), 404
            if to == "cookies":
                response = make_response("", 204)
                response.set_cookie("a", "1")
                response.set_cookie("b", "2")
                return response
            if to.startswith("/"):
                return Response(pieces(to), mimetype="text/event-stream")
            return req, 201
    """,
}


@pytest.fixture(scope="module")
def folder(write_folder: Any, tmp_path_factory: pytest.TempPathFactory) -> WorkflowFolder:
    tasks = {"tasks": {"look": "look", "show": "show"}, "edges": [["look", "show"]]}
    handlers = {name: dedent(source) for name, source in HANDLERS.items()}
    return write_folder(tmp_path_factory.mktemp("face"), tasks | {"name": "face"}, handlers, {})


@pytest.fixture(scope="module")
def deployed(place, folder, plan_by_hand):
    """Both tasks in wraps of their own, of which the last one has a process."""
    wraps = {"face-0": [["look"]], "face-1": [[], ["show"]]}
    with place.deployed(folder, [plan_by_hand(wraps, workflow="face")]) as (deployment,):
        yield deployment, f"{place.gateway.url}/function/face-0"


def test_the_request_and_the_answer_pass_unchanged(deployed: tuple[Deployment, str]) -> None:
    _, url = deployed
    answer = requests.put(
        f"{url}/orders/7?a=1&a=2", data="x", headers={"X-Key": "k"}, timeout=TIMEOUT_S
    )
    assert answer.status_code == 201
    assert answer.json() == {"seen": ["PUT", "/orders/7", ["1", "2"], "k"], "to": "x"}
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    moved = requests.post(url, data="elsewhere", allow_redirects=False, timeout=TIMEOUT_S)
    assert (moved.status_code, moved.headers["Location"]) == (302, "/there")
    empty = requests.post(url, data="cookies", timeout=TIMEOUT_S)
    cookies = empty.raw.headers.getlist("Set-Cookie")
    assert (empty.status_code, cookies) == (204, ["a=1; Path=/", "b=2; Path=/"])
    assert requests.get(url, timeout=TIMEOUT_S).json()["seen"][:2] == ["GET", "/"]


def test_an_answer_of_failure_is_the_clients_and_fails_an_invocation(
    deployed: tuple[Deployment, str],
) -> None:
    deployment, url = deployed
    answer = requests.post(url, data="nowhere", timeout=TIMEOUT_S)
    assert (answer.status_code, answer.json()) == (404, {"error": "no such order"})
    with pytest.raises(ChironError, match=r"status 404.*no such order"):
        deployment.invoke(b"nowhere")
    assert json.loads(deployment.invoke(b"x").output)["to"] == "x"  # although it answers 201


def test_an_answer_comes_piece_by_piece(deployed: tuple[Deployment, str], tmp_path: Path) -> None:
    _, url = deployed
    file = tmp_path / "go-on"
    with requests.post(url, data=str(file), stream=True, timeout=TIMEOUT_S) as answer:
        lines = answer.iter_lines(chunk_size=1)
        assert next(lines) == b"begin"  # although the last task waits for us
        file.touch()
        assert list(lines) == [b"end"]
    assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
