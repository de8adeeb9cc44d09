"""What the functions of a wrap share: one requirements.txt, one environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from openfaas.handler_folder import parse_line
from openfaas.handlers import read_requirements
from scheduler.conflict_rules import excluding, variable_conflicts
from scheduler.folder_settings import wanted
from workflow.errors import ChironError
from workflow.reference import HandlerStyle


def merge_environments(
    wrap: str,
    functions: Mapping[str, Mapping[str, str]],
    styles: Mapping[str, HandlerStyle],
    own: Mapping[str, str],
) -> dict[str, str]:
    """The union of the variables of `functions` (name -> variables), below the wrap's `own`.

    Raises ``environment-conflict`` where two functions need different values of one variable. One
    that does not set a variable takes any: see `scheduler.conflict_rules`.
    """
    needed = {name: wanted(variables, styles[name]) for name, variables in functions.items()}
    for pair, reason in variable_conflicts(needed).items():
        raise ChironError(
            "environment-conflict",
            f"{reason} in wrap {wrap}: give both the same, or keep them in different wraps",
            functions=pair,
        )
    merged = {key: value for given in functions.values() for key, value in given.items()}
    return merged | dict(own)


def merge_requirements(folders: Mapping[str, Path], own: Iterable[str] = ()) -> list[str]:
    """All requirements of the functions in `folders` (name -> handler folder), each once, sorted.

    Those that the wrap itself has, `own`, are among them.

    Raises ``bad-requirement`` where a line is no requirement; ``requirements-conflict`` where no
    version of a package suits two functions: they cannot share a wrap.
    """
    needs = [
        (function, requirement)
        for function, folder in sorted(folders.items())
        for requirement in read_requirements(function, folder)
    ]
    needs += [("the store", parse_line(line)) for line in own]
    for pair, reason in excluding(needs):
        raise ChironError(
            "requirements-conflict",
            f"{reason}: pin one version, or keep them in different wraps",
            functions=pair,
        )
    return sorted({str(requirement) for _, requirement in needs})
