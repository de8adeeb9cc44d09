"""An error is one line for people and the same fields for programs."""

from __future__ import annotations

import json

from chiron.workflow.errors import ChironError
from tests.rows import each_row


def test_programs_get_code_message_path_and_functions():
    error = ChironError("cycle", "a cycle", path="States.B.Next", functions=["a", "b"])
    assert error.as_dict() == {
        "code": "cycle",
        "message": "a cycle",
        "path": "States.B.Next",
        "functions": ["a", "b"],
    }
    assert error.status == 400


def test_people_get_the_message_and_the_place():
    assert str(ChironError("x", "what to do", path="a.b")) == "what to do (at a.b)"
    assert str(ChironError("x", "what to do")) == "what to do"


@each_row("text", ["a\nb", "a\0b", "\ud800", "\x1b[31mred", "a\u2028b"])
def test_no_text_from_outside_leaves_the_line(text):
    error = ChironError("x", f"wrong: {text}", path=text)
    assert str(error).isprintable()
    assert str(error).encode()
    assert json.loads(json.dumps(error.as_dict()))["path"] == error.path


def test_letters_of_any_language_stay_as_they_are():
    assert ChironError("x", "größe 数据").message == "größe 数据"


def test_a_text_of_megabytes_is_cut():
    error = ChironError("x", "y" * 5_000_000, path="z" * 5_000_000)
    assert len(str(error)) < 5000
