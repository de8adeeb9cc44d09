"""Threads that parse Python code at once all get its tree."""

from __future__ import annotations

import ast
import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from chiron.workflow.python_code import syntax_tree

CODE = "\n".join(f"def f{number}(a, b=(1, [2])): return {{a: [b, -a]}}" for number in range(40))


class Yields:
    """Garbage that has another thread run when it is collected, even while code is parsed."""

    def __init__(self) -> None:
        self.cycle = self

    def __del__(self) -> None:
        time.sleep(0)


@pytest.fixture
def collections() -> Iterator[None]:
    """Has garbage collected all the time."""
    before = gc.get_threshold()
    gc.set_threshold(50)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("collections")
def test_a_collection_that_has_another_thread_parse_breaks_none() -> None:
    def parsed(_: int) -> str:
        Yields()
        return ast.dump(syntax_tree(CODE))

    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(parsed, range(100))) == {ast.dump(ast.parse(CODE))}


@pytest.mark.usefixtures("collections")
def test_another_thread_that_parses_by_itself_breaks_none() -> None:
    """As Python does for a traceback."""

    def parsed(number: int) -> str:
        Yields()
        if number % 2:
            with suppress(SystemError):
                ast.parse(CODE)
            return ""
        return ast.dump(syntax_tree(CODE))

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(parsed, range(200)))
    assert set(found[::2]) == {ast.dump(ast.parse(CODE))}
