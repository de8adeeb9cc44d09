"""Requirements that no version of a package satisfies together: a wrap has one of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scheduler.conflicts import Pair
from workflow.errors import ChironError
from workflow.profile import Profile

if TYPE_CHECKING:
    from packaging.requirements import Requirement

#: Appended to a version, the next one that any bound can tell from it.
_NEXT = ".0.0.0.1"
#: A version that is below every bound that anybody sets.
_FIRST = "0"


def requirement_conflicts(names: Sequence[str], profile: Profile) -> dict[Pair, str]:
    """The pairs of `names` that need versions of a package which exclude each other.

    Raises
    ------
    ChironError
        ``bad-requirement`` where a requirement is not of the form ``name==1.0``.
    """
    if not any(profile.functions[name].requirements for name in names):
        return {}
    from packaging.utils import canonicalize_name  # loaded only where there is something to compare

    needs: dict[str, dict[str, list[Requirement]]] = {}
    for name in names:
        for text in profile.functions[name].requirements:
            requirement = _parsed(text, name)
            if requirement.marker is None or requirement.marker.evaluate():
                package = canonicalize_name(requirement.name)
                needs.setdefault(package, {}).setdefault(name, []).append(requirement)
    return {
        (a, b): f"{a} needs {one} and {b} needs {other}"
        for users in needs.values()
        for a in users
        for b in users
        if a < b
        for one in users[a]
        for other in users[b]
        if not _satisfiable(one, other)
    }


def _satisfiable(one: Requirement, other: Requirement) -> bool:
    """Whether some version suits both; that it exists is left to the installer.

    Between two neighbouring bounds all versions are alike, so that one of each will do.
    """
    if one.url and other.url:
        return one.url == other.url
    if one.specifier == other.specifier:
        return True
    named = [s for r in (one, other) for s in r.specifier if s.operator != "==="]
    bounds = {s.version.removesuffix(".*") for s in named}
    candidates = {_FIRST, *bounds, *(bound + _NEXT for bound in bounds if bound[-1].isdigit())}
    return any(
        one.specifier.contains(version, prereleases=True)
        and other.specifier.contains(version, prereleases=True)
        for version in candidates
    )


def _parsed(text: str, function: str) -> Requirement:
    from openfaas.handler_folder import parse_line

    try:
        return parse_line(text)
    except ValueError as error:
        raise ChironError(
            "bad-requirement",
            f"{text[:60]!a} of function {function} {error}",
            path=f"functions.{function}.requirements",
            functions=[function],
        ) from None
