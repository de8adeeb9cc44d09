"""The code stays readable: its modules, classes and functions are small."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "chiron"  # it links to the folders of the product
WRAP = ROOT / "templates" / "python3-wrap" / "wrap"
METHODS, FUNCTION_LINES = 25, 60
#: Lines of a module of the wrap, which is read as a whole, and of any other.
WRAP_LINES, LINES = 500, 400


def too_large(text: str, lines: int) -> Iterator[str]:
    """What is above a bound in the text of a module that may have so many `lines`."""
    has = len(text.splitlines())
    if has > lines:
        yield f"{has} lines"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            if length > FUNCTION_LINES:
                yield f"{node.name}: {length} lines"
        elif isinstance(node, ast.ClassDef):
            methods = sum(
                isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) for each in node.body
            )
            if methods > METHODS:
                yield f"{node.name}: {methods} methods"


def modules() -> dict[Path, int]:
    """Every module that is shipped, and the lines that it may have."""
    folders = {each.resolve() for each in PACKAGE.iterdir() if each.is_dir()}
    found = {each for folder in folders for each in folder.rglob("*.py")}
    return {each: WRAP_LINES if each.is_relative_to(WRAP) else LINES for each in sorted(found)}


def test_nothing_that_is_shipped_is_above_a_bound():
    bounds = modules()
    assert sum(lines == WRAP_LINES for lines in bounds.values()) > 100
    assert sum(lines == LINES for lines in bounds.values()) > 250
    found = {each: list(too_large(each.read_text(), most)) for each, most in bounds.items()}
    assert {str(each.relative_to(ROOT)): what for each, what in found.items() if what} == {}
