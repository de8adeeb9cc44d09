"""JSONata by jlens: expressions are compiled once, and bounded in time, depth and memory.

Imports are relative: chiron has the module too, under another name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.statemachine.expressions import UndefinedError
from ..core.statemachine.values import identity, size_of

if TYPE_CHECKING:
    from jlens import Expression

#: Bounds of one evaluation: seconds, nested calls, characters and items of any value, and bytes of
#: the result. 256 KiB of JSON, the most on AWS, have no more items. jlens checks the time after
#: some 50 values, so values must be small: 50 values of a few megabytes fill a replica.
_MOST_S, _MOST_CALLS = 60.0, 400
_MOST_CHARACTERS, _MOST_ITEMS, _MOST_BYTES = 1 << 22, 1 << 17, 1 << 22
#: Seconds for which an evaluation may hold the GIL; then it starts again without the GIL.
_HELD_S = 0.02
#: jlens bounds each value, but not their sum. So a longer evaluation starts again and again, with
#: this factor more time each time. It fails when the process has grown by so many bytes. Its input,
#: which jlens then copies, has the same bound.
_LONGER, _MOST_GROWTH = 4, 1 << 27
_PEAK = re.compile(rb"VmHWM:\s*(\d+) kB")
#: The number of values up to which each may be compared with every other.
_FEW = 1000
#: Compiled expressions to cache; a workflow has far fewer.
_KEPT = 4096
#: The error code of jlens for an evaluation that takes too long.
_TIMEOUT = "D1012"
#: The module of the exception class for a panic of jlens.
_OF_PANICS = "pyo3_runtime"
_NAME = r"[^\W\d]\w*"
_VARIABLE = re.compile(rf"\$({_NAME})")
#: A variable and names of fields in it, as most expressions are.
_PATH = re.compile(rf"\s*\$({_NAME})((?:\.{_NAME})*)\s*")


def _replaceable(text: str, pattern: str, by: str, limit: float | None = None) -> None:
    """Raise ValueError if replacing `pattern` in `text` makes it too long."""
    times = text.count(pattern) if pattern else 0
    if limit is not None:
        times = min(times, max(0, int(limit)))
    if len(text) + times * (len(by) - len(pattern)) > _MOST_CHARACTERS:
        raise ValueError(f"$replace would exceed the size limit of {_MOST_CHARACTERS} characters")


def _distinct(values: Any) -> list[Any] | None:
    """Return many values, each once; None if they are few or all equal, which is fast in jlens."""
    if not isinstance(values, list) or len(values) <= _FEW:
        return None
    found: dict[Any, Any] = {}
    for value in values:
        found.setdefault(identity(value), value)
    return list(found.values()) if len(found) > 1 else None


def _keys(value: Any) -> list[str] | None:
    """Return the keys of objects with many keys, each once; None for any other value."""
    holders = value if isinstance(value, list) else [value]
    if not all(isinstance(each, dict) for each in holders) or sum(map(len, holders)) <= _FEW:
        return None
    found = list(dict.fromkeys(chain.from_iterable(holders)))
    return found if len(found) > 1 else None


#: The bounds of a replacement: characters of the new text, and matches of a regular expression.
#: jlens checks the time after some 50 matches, and in $replace and $split not at all while it
#: searches for matches.
_LONG, _SEVERAL = 1 << 16, 8
_TOO_OFTEN = f"$replace takes {_LONG} characters at most for {_SEVERAL} matches and more"
#: A long text takes milliseconds, and jlens checks the time after 50 values: check it first.
_LOOK = f"$length($s) > {_LONG} ? $look();"


def _many_refused(function: str) -> str:
    """Return code that raises an error if the matches would keep `function` beyond its time."""
    message = f"${function} takes fewer than {_MOST_ITEMS} matches of a regular expression"
    condition = f"$type($p) != 'string' and $length($s) >= {_MOST_ITEMS}"
    return _matches_refused(condition, _MOST_ITEMS, message)


def _matches_refused(condition: str, most: int, message: str) -> str:
    """Return code that raises `message` if `condition` holds and there are `most` matches."""
    return (
        f"{condition} and ($exists($n) ? $n : {most}) >= {most}"
        f" and $count($match($s, $p, {most})) = {most} ? $error('{message}');"
    )


def _timed(signature: str, parameters: str = "$s") -> str:
    return f"function({parameters})<{signature}> {{({_LOOK} $own({parameters}))}}"


#: Functions that take much memory or time, and for which jlens checks no limit -> the code that
#: replaces each, and the Python function that this code calls as ``$checked``, if any. The code
#: calls `Jsonata.look` as ``$look``.
_GUARDS: dict[str, tuple[str, Callable[..., Any] | None]] = {
    **dict.fromkeys(
        [
            *("base64decode", "base64encode", "encodeUrl", "encodeUrlComponent"),
            *("lowercase", "trim", "uppercase"),
        ],
        (_timed("s-:s"), None),
    ),
    "pad": (_timed("s-ns?:s", "$s, $n, $by"), None),
    "split": (
        f"function($s, $p, $n)<s-(sf)n?:a<s>> {{({_LOOK}"
        + _many_refused("split")
        + "$own($s, $p, $n))}",
        None,
    ),
    "substring": (_timed("s-nn?:s", "$s, $from, $n"), None),
    **dict.fromkeys(("substringAfter", "substringBefore"), (_timed("s-s:s", "$s, $p"), None)),
    # It always returns a value: jlens returns nothing for null, as Python makes no value of it.
    "parse": ("function($s) {($found := $own($s); $exists($found) ? $found : null)}", None),
    "replace": (
        f"function($s, $p, $by, $n)<s-(sf)(sf)n?:s> {{({_LOOK}"
        "($type($s) & $type($p) & $type($by)) = 'stringstringstring' ? $checked($s, $p, $by, $n);"
        + _matches_refused(
            f"$type($by) = 'string' and $length($by) > {_LONG}", _SEVERAL, _TOO_OFTEN
        )
        + _many_refused("replace")
        + "$own($s, $p, $by, $n))}",
        _replaceable,
    ),
    "distinct": (
        "function($x)<x:x> {($found := $checked($x); $exists($found) ? $found : $own($x))}",
        _distinct,
    ),
    "keys": (
        "function($x)<x-:x> {($found := $checked($x); $exists($found) ? $found : $own($x))}",
        _keys,
    ),
}


class Jsonata:
    """Evaluates expressions.

    Args:
        left_s: returns how many seconds an evaluation may take.
    """

    def __init__(self, left_s: Callable[[], float] = lambda: _MOST_S) -> None:
        self._left_s = left_s

    def evaluate(
        self,
        expression: str,
        names: Mapping[str, Any],
        functions: Mapping[str, Callable[..., Any]],
        now: float,
        seed: int,
    ) -> Any:
        """Return the value of `expression`, as `wrap.core.statemachine.expressions` specifies."""
        path = _path(expression)
        if path is not None:
            found, value = _at(path, names)
            if found:
                return value
        mentioned = _mentioned(expression)
        bound = tuple(name for name in mentioned if name in names)
        called = {name: functions[name] for name in mentioned if name in functions}
        for name in mentioned:
            if name in _GUARDS:
                called |= {f"checked_{name}": _GUARDS[name][1] or self.look, "look": self.look}
        data = {name: names[name] for name in bound}
        with _no_panic():
            result = self._result(_compiled(expression, bound), data, called, now, seed)
        if "value" not in result:
            raise UndefinedError("it has no value")
        return result["value"]

    def look(self) -> None:
        """Raise ValueError if an evaluation has no time left."""
        if self._left_s() <= 0:
            raise ValueError("it takes too long")

    def _result(
        self,
        compiled: Expression,
        data: dict[str, Any],
        functions: dict[str, Any],
        now: float,
        seed: int,
    ) -> Any:
        from jlens import Document, JlensError

        left_s = min(_MOST_S, self._left_s())
        limits: Any = {
            "max_depth": _MOST_CALLS,
            "max_string_length": _MOST_CHARACTERS,
            "max_array_length": _MOST_ITEMS,
            "max_result_size": _MOST_BYTES,
            "now": int(now * 1000),
            "seed": seed,
        }
        try:
            return compiled.evaluate(
                data, functions, timeout=max(0.0, min(_HELD_S, left_s)), **limits
            )
        except JlensError as error:
            if error.code != _TIMEOUT or left_s <= _HELD_S:
                raise ValueError(str(error)) from None
        if (size := size_of(data)) > _MOST_GROWTH:
            raise ValueError(f"what it reads is about {size} bytes")
        document, attempt_s = Document(data), _HELD_S
        before = _peak()
        while _peak() - before <= _MOST_GROWTH:
            attempt_s *= _LONGER
            self.look()
            left_s = max(0.0, min(_MOST_S, self._left_s()))
            timeout = min(attempt_s, left_s)
            try:
                return compiled.evaluate_document(document, functions, timeout=timeout, **limits)
            except JlensError as error:
                if error.code != _TIMEOUT or left_s <= attempt_s:
                    raise ValueError(str(error)) from None
        raise ValueError(f"its values take more than {_MOST_GROWTH >> 20} MiB of memory")


@contextmanager
def _no_panic() -> Iterator[None]:
    """Turn a panic of jlens, which is no Exception of Python, into ValueError."""
    try:
        yield
    except BaseException as error:
        if type(error).__module__ != _OF_PANICS:
            raise
        raise ValueError(f"jlens cannot evaluate it: {error}") from None


def _peak() -> int:
    """Return the most bytes of memory that this process has had; 0 if the system reports none."""
    try:
        found = _PEAK.search(Path("/proc/self/status").read_bytes())
    except OSError:
        return 0
    return 1024 * int(found[1]) if found else 0


def check_expression(expression: str, functions: Iterable[str]) -> None:
    """Raise ValueError, with one line, unless `expression` can be evaluated in a state.

    Args:
        functions: the names of functions besides those of JSONata.
    """
    from jlens import Expression, JlensError

    try:
        with _no_panic():
            compiled = Expression(expression)
        for name in functions:
            compiled.register_function(name, lambda *_: None)
        reads = compiled.reads()
    except JlensError as error:
        raise ValueError(f"{error} (at character {(error.position or 0) + 1})") from None
    if "eval" in _mentioned(expression):
        raise ValueError("$eval is not available: read JSON with $parse")
    found = reads.get("input")
    if isinstance(found, dict) and found:
        name = next(iter(found))
        raise ValueError(f"{name} stands alone: write $states.input.{name} or a variable")


@lru_cache(_KEPT)
def _path(expression: str) -> tuple[str, ...] | None:
    """Return the names of an expression that is only a path; None for any other expression."""
    found = _PATH.fullmatch(expression)
    return (found[1], *found[2].split(".")[1:]) if found else None


def _at(path: tuple[str, ...], value: Any) -> tuple[bool, Any]:
    """Return whether `path` leads to a value by names alone, and the value, not copied."""
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return False, None
        value = value[name]
    return True, value


@lru_cache(_KEPT)
def _mentioned(expression: str) -> tuple[str, ...]:
    """Return the names after a ``$``, of variables, functions and parameters, each once."""
    return tuple(dict.fromkeys(_VARIABLE.findall(expression)))


@lru_cache(_KEPT)
def _compiled(expression: str, bound: tuple[str, ...]) -> Expression:
    """Compile an expression that reads variables from its input; jlens converts only what is read.

    Its value is a field of an object, which lacks the field if there is no value. Without the
    object, jlens returns None for this and for null. Nothing else of the input is visible inside.
    """
    from jlens import Expression, JlensError

    try:
        Expression(expression)  # alone, as its brackets may not close those around it
        guards = [name for name in _mentioned(expression) if name in _GUARDS]
        given = "".join(
            f"${name} := ($own := ${name}; $checked := $checked_{name}; {_GUARDS[name][0]});"
            for name in guards
        )
        given += "".join(f"${name} := `{name}`;" for name in bound)
        return Expression(f"({given} (null).{{'value': (\n{expression}\n)}})")
    except JlensError as error:
        raise ValueError(str(error)) from None
