"""Handlers answer as on the OpenFaaS templates, whatever they return: alone, and in wraps."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

_FILE = Path(__file__).with_name("handler_answers.py")
_SPEC = importlib.util.spec_from_file_location("handler_answers", _FILE)
assert _SPEC is not None and _SPEC.loader is not None
handler_answers = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(handler_answers)

RECORDED = json.loads(handler_answers.ANSWERS.read_text())["answers"]
LAYOUTS: dict[str, dict[str, Any]] = {
    "thread": {},
    "fork": {"processes": [[], [0]]},
    "pool": {"processes": [[], [0]], "mechanism": "pool"},
}


def test_every_handler_has_a_recorded_answer() -> None:
    for style in handler_answers.STYLES:
        assert list(RECORDED[style]) == list(dict.fromkeys(handler_answers.returned(style)))


@pytest.mark.parametrize("style", RECORDED)
def test_a_handler_alone_answers_as_on_its_template(
    style: str, start: Any, plain_image: Any
) -> None:
    server = start(plain_image(handler_answers.handler(style)), handler_style=style)
    answers = {each: handler_answers.told(server.port, each) for each in RECORDED[style]}
    assert answers == RECORDED[style]


@pytest.mark.each_once
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("style", RECORDED)
def test_a_handler_in_a_wrap_gives_the_body_that_it_answers_alone(
    style: str, layout: str, start: Any, wrap_image: Any
) -> None:
    handlers = {"one": handler_answers.handler(style)}
    image = wrap_image(handlers, styles={"one": style}, entry={"output": 0}, **LAYOUTS[layout])
    server = start(image)
    differ = {}
    for expression, (status, _, body) in RECORDED[style].items():
        found, _, text = handler_answers.told(server.port, expression)
        if status < 400:
            same = (found, text) == (200, body)
        else:
            error = json.loads(text)
            codes = ("status", "bad-output", "raised") if status == 500 else ("status",)
            same = found == 500 and error["code"] in codes
            same = same and (status == 500 or f"answered {status}" in error["message"])
        if not same:
            differ[expression] = (status, body, found, text)
    assert not differ
