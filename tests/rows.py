"""One test over all rows of a table: to set up a test for each takes longer than to run it."""

from __future__ import annotations

import functools
import inspect
import reprlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

_NAMED = type(pytest.param())
#: The name of a row, or nothing, and its values.
_Row = tuple[str, tuple[Any, ...]]


def each_row(
    names: str | Sequence[str],
    rows: Iterable[Any],
    ids: Iterable[str] | Callable[[Any], str] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As ``pytest.mark.parametrize``, but one test, which names each row that fails.

    For tests whose rows change nothing that another one sees, as they share their fixtures. An
    iterator of `rows` is read when the test runs.
    """
    fields = [names] if isinstance(names, str) else names

    @functools.cache
    def read() -> list[_Row]:
        table = [_read(row, is_one=isinstance(names, str)) for row in rows]
        if callable(ids):
            return [(ids(values[0]), values) for _, values in table]
        if ids is not None:
            return [(name, values) for name, (_, values) in zip(ids, table, strict=True)]
        return table

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def over_all(**fixtures: Any) -> None:
            failed: list[BaseException] = []
            table = read()
            for name, values in table:
                try:
                    test(**dict(zip(fields, values, strict=True)), **fixtures)
                except Exception as error:
                    failed.append(_told(error, name, values))
                except pytest.fail.Exception as error:  # of a time limit too: there is no other
                    failed.append(_told(error, name, values))
                    break
            if failed:
                raise BaseExceptionGroup(f"rows that fail, of {len(table)}", failed)

        signature = inspect.signature(test)
        others = [each for name, each in signature.parameters.items() if name not in fields]
        vars(over_all).pop("__wrapped__")
        vars(over_all)["__signature__"] = signature.replace(parameters=others)
        return over_all

    return decorate


def _read(row: Any, *, is_one: bool) -> _Row:
    if isinstance(row, _NAMED):
        assert not row.marks, "all rows are one test"
        return str(row.id or ""), tuple(row.values)
    return "", (row,) if is_one else tuple(row)


def _told(error: BaseException, name: str, values: tuple[Any, ...]) -> BaseException:
    error.add_note(f"in the row {name or reprlib.repr(values)}")
    return error
