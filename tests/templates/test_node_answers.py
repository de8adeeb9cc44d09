"""Node.js handlers in a wrap get and answer the same as on the OpenFaaS templates."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.templates import node_answers

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js: install node 20")
RECORDED = json.loads(node_answers.ANSWERS.read_text())["answers"]
#: An error with a status below 400 fails the task, where the templates send its text.
FAILED = {
    "throw": "OrderError: no stock",
    "throw text": "Error: no stock",
    "throw object": "Error: [object Object]",
    "reject": "Error: undefined",
    "callback text": "Error: no stock",
    "fail 201": "Error: no",
    "a function": "TypeError: a handler cannot answer a function",
    "a bigint": "TypeError: a handler cannot answer a bigint",
    "a symbol": "TypeError: a handler cannot answer a symbol",
    "a circle": "TypeError: Converting circular structure to JSON",
    "no header": "TypeError: Header name must be a valid HTTP token",
    "lines in a header": "TypeError: Invalid character in header content",
}
#: What only Express 4 takes for a status, and refuses.
NO_STATUS = {
    "a small number": "RangeError: a handler cannot answer the status 7",
    "NaN": "RangeError: a handler cannot answer the status NaN",
}


@pytest.mark.parametrize("style", RECORDED)
def test_a_handler_gets_and_answers_the_same_as_on_its_template(style, start, wrap_image, tmp_path):
    name, _, raw = style.partition(" ")
    image = wrap_image(
        {"run": {"handler.js": node_answers.HANDLER}}, styles={"run": name}, entry={"output": 0}
    )
    server = start(image, **({"RAW_BODY": "true"} if raw else {}))
    (tmp_path / "handler.js").write_text(node_answers.HANDLER)
    failed = FAILED | (NO_STATUS if name == "node" else {})
    differ = {}
    for named, request in (node_answers.requests() | node_answers.ways(tmp_path)).items():
        if named not in RECORDED[style]:
            continue
        found = node_answers.asked(server.port, request)
        if named in failed:
            told = json.loads(found[3])
            same = found[0] == 500 and told["code"] == "raised" and failed[named] in told["message"]
        else:
            same = found == RECORDED[style][named]
        if not same:
            differ[named] = (RECORDED[style][named], found)
    assert not differ, "\n".join(f"{name}: {how}" for name, how in differ.items())


def test_every_request_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "handler.js").write_text(node_answers.HANDLER)
    requests = node_answers.requests()
    for style in node_answers.STYLES:
        assert RECORDED[style].keys() == (requests | node_answers.ways(tmp_path)).keys()
        assert RECORDED[f"{style} raw"].keys() == requests.keys()
