"""Requirements that no version of a package satisfies together: a wrap has one of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

from scheduler.conflicts import Pair
from workflow.errors import ChironError

if TYPE_CHECKING:
    from packaging.requirements import Requirement

#: A function, and one of the packages that it asks for.
Need: TypeAlias = "tuple[str, Requirement]"
#: Appended to a version, the next one that any bound can tell from it.
_NEXT = ".0.0.0.1"
#: A version that is below every bound that anybody sets.
_FIRST = "0"


def excluding(needs: Sequence[Need]) -> Iterator[tuple[Pair, str]]:
    """The pairs of functions that need versions of a package which exclude each other, and why.

    They come in the order of `needs`; a function may be in a pair with itself.
    """
    if not needs:
        return
    from packaging.utils import canonicalize_name  # loaded only where there is something to compare

    by_package: dict[str, list[Need]] = {}
    for function, requirement in needs:
        if requirement.marker is None or requirement.marker.evaluate():
            package = canonicalize_name(requirement.name)
            by_package.setdefault(package, []).append((function, requirement))
    for asking in by_package.values():
        for (a, one), (b, other) in combinations(asking, 2):
            if not _satisfiable(one, other):
                yield (a, b), f"{a} needs {one} and {b} needs {other}"


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


def parsed(text: str, function: str) -> Requirement:
    """One requirement of `function`; ``bad-requirement`` unless it is as ``name==1.0``."""
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
