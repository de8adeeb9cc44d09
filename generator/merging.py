"""Merge what the functions of a wrap share: requirements.txt, environment, and fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from chiron.openfaas.handler_folder import parse_line
from chiron.openfaas.handlers import Handler, read_requirements
from chiron.openfaas.sharing import OF_LOGS, OF_WRAPS, one_valued, united, values_of, with_unset
from chiron.openfaas.stack import StackFunction
from chiron.scheduler.conflict_rules import excluding, variable_conflicts
from chiron.scheduler.folder_settings import wanted
from chiron.workflow.errors import ChironError


def merge_environments(
    wrap: str,
    functions: Mapping[str, Mapping[str, str]],
    styles: Mapping[str, str],
    own: Mapping[str, str],
    places: Mapping[str, Iterable[Path]],
) -> dict[str, str]:
    """Return the union of the variables of `functions` (name -> variables) and the wrap's `own`.

    `own` takes precedence. Variables only of wraps, or of a function's own server, are dropped. So
    are variables of the log unless all functions have the same value. A variable that templates
    read has the value that all of them read alike.

    Raises ``environment-conflict`` if two functions need different values of one variable. A
    function that does not set a variable accepts any value, unless its code, in `places`, reads it:
    see `chiron.scheduler.conflict_rules`.
    """
    needed = {n: wanted(each, styles[n]) for n, each in with_unset(functions, places).items()}
    _check_alike("environment-conflict", wrap, needed)
    merged = {key: value for given in functions.values() for key, value in given.items()}
    asked = (item for each in needed.values() for item in each.items())
    merged |= {key: value for key, value in asked if key in merged}
    dropped = OF_WRAPS | {key for key in OF_LOGS if len(values_of(key, functions)) > 1}
    return {key: merged[key] for key in merged if key not in dropped} | dict(own)


def merge_fields(wrap: str, functions: Mapping[str, StackFunction]) -> StackFunction:
    """Return the wrap's fields from its `functions`' fields; ``stack-conflict`` if they differ."""
    _check_alike("stack-conflict", wrap, one_valued(functions))
    return united(list(functions.values()))


def _check_alike(code: str, wrap: str, needed: Mapping[str, Mapping[str, str]]) -> None:
    for pair, reason in variable_conflicts(needed).items():
        raise ChironError(
            code,
            f"{reason} in wrap {wrap}: give both the same, or keep them in different wraps",
            functions=pair,
        )


def merge_requirements(
    handlers: Iterable[Handler], own: Iterable[tuple[str, str]] = ()
) -> list[str]:
    """Return the distinct requirements of the functions of `handlers` and of the wrap, sorted.

    `own` has the wrap's own requirements: pairs of the part that needs one, and its line.

    Raises ``bad-requirement`` for a line that is no requirement; ``requirements-conflict`` if no
    version of a package suits two functions: they cannot share a wrap.
    """
    needs = [
        (handler.function, requirement)
        for handler in sorted(handlers, key=lambda each: each.function)
        for requirement in read_requirements(handler)
    ]
    needs += [(what, parse_line(line)) for what, line in own]
    for pair, reason in excluding(needs):
        raise ChironError(
            "requirements-conflict",
            f"{reason}: pin one version, or keep them in different wraps",
            functions=pair,
        )
    return sorted({str(requirement) for _, requirement in needs})
