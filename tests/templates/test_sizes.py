"""The wrap stays readable: its modules, classes and functions are small."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

WRAP = Path(__file__).resolve().parents[2] / "templates" / "python3-wrap" / "wrap"
LINES, METHODS, FUNCTION_LINES = 500, 25, 60


def too_large(text: str) -> Iterator[str]:
    """What is above a bound in the text of a module."""
    lines = len(text.splitlines())
    if lines > LINES:
        yield f"{lines} lines"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            if length > FUNCTION_LINES:
                yield f"{node.name}: {length} lines"
        elif isinstance(node, ast.ClassDef):
            methods = sum(isinstance(each, ast.FunctionDef) for each in node.body)
            if methods > METHODS:
                yield f"{node.name}: {methods} methods"


def test_nothing_in_the_wrap_is_above_a_bound():
    modules = sorted(WRAP.rglob("*.py"))
    assert len(modules) > 100
    found = {each: list(too_large(each.read_text())) for each in modules}
    assert {str(each): what for each, what in found.items() if what} == {}


@pytest.mark.parametrize(
    "text, found",
    [
        ("x = 1\n" * 500, []),
        ("x = 1\n" * 501, ["501 lines"]),
        ("def f():\n" + "    x = 1\n" * 59, []),
        ("def f():\n" + "    x = 1\n" * 60, ["f: 61 lines"]),
        ("class C:\n" + "    def f(self): ...\n" * 25, []),
        ("class C:\n" + "    def f(self): ...\n" * 26, ["C: 26 methods"]),
    ],
)
def test_what_is_above_a_bound_is_found(text, found):
    assert list(too_large(text)) == found
