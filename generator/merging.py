"""What the functions of a wrap share: one requirements.txt, one environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from packaging.requirements import Requirement

from openfaas.handler_folder import Style
from openfaas.handlers import read_requirements
from workflow.errors import ChironError

#: What python3-flask looks at to choose between text and bytes for its handler.
_RAW_BODY = "RAW_BODY"


def merge_environments(
    wrap: str,
    functions: Mapping[str, Mapping[str, str]],
    styles: Mapping[str, Style],
    own: Mapping[str, str],
) -> dict[str, str]:
    """The union of the variables of `functions` (name -> variables), below the wrap's `own`.

    Raises
    ------
    ChironError
        ``environment-conflict`` where two functions need different values of one variable. One
        that does not set a variable takes any, but for RAW_BODY: not to set it asks for text.
    """
    merged: dict[str, str] = {}
    given_by: dict[str, str] = {}
    for name, variables in functions.items():
        for variable, value in variables.items():
            if merged.get(variable, value) != value and variable not in own:
                raise _conflict(wrap, variable, given_by[variable], name)
            merged[variable], given_by[variable] = value, name
    raw = {n: _is_raw(v) for n, v in functions.items() if styles[n] == "flask"}
    if len(set(raw.values())) > 1:
        first, second = (next(n for n, wants in raw.items() if wants is w) for w in (True, False))
        raise _conflict(wrap, _RAW_BODY, first, second)
    return merged | dict(own)


def _is_raw(variables: Mapping[str, str]) -> bool:
    return variables.get(_RAW_BODY, "").lower() in ("1", "true")


def _conflict(wrap: str, variable: str, first: str, second: str) -> ChironError:
    return ChironError(
        "environment-conflict",
        f"{first} and {second} want different values of {variable} in wrap {wrap}: "
        "give both the same, or keep them in different wraps",
        functions=(first, second),
    )


def merge_requirements(folders: Mapping[str, Path]) -> list[str]:
    """All requirements of the functions in `folders` (name -> handler folder), each once, sorted.

    Raises
    ------
    ChironError
        ``bad-requirement`` where a line is no requirement; ``requirements-conflict`` where one
        function pins a version that another does not allow: they cannot share a wrap.
    """
    needs = [
        (function, requirement)
        for function, folder in sorted(folders.items())
        for requirement in read_requirements(function, folder)
    ]
    for function, requirement in needs:
        for pin in _pins(requirement):
            _check_pin(function, requirement, pin, needs)
    return sorted({str(requirement) for _, requirement in needs})


def _pins(requirement: Requirement) -> list[str]:
    """The version that `requirement` pins, if it does so where it applies here."""
    if requirement.marker and not requirement.marker.evaluate():
        return []
    exact = [s.version for s in requirement.specifier if s.operator == "=="]
    return [version for version in exact if not version.endswith(".*")]


def _check_pin(
    function: str, pinned: Requirement, version: str, needs: list[tuple[str, Requirement]]
) -> None:
    for other, requirement in needs:
        applies = requirement.marker is None or requirement.marker.evaluate()
        if (
            applies
            and requirement.name == pinned.name
            and not requirement.specifier.contains(version, prereleases=True)
        ):
            raise ChironError(
                "requirements-conflict",
                f"{function} needs {pinned.name}=={version} and {other} needs "
                f"{requirement.name}{requirement.specifier}: pin one version, or keep them in "
                "different wraps",
                functions=(function, other),
            )
