"""Which functions must not share a process or a wrap, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from scheduler.wishes import Wishes
from workflow.errors import ChironError
from workflow.profile import Profile

#: Two functions, in the order of their names.
Pair = tuple[str, str]


@dataclass(frozen=True)
class Conflicts:
    """Pairs of functions that must not share a wrap, or a process, each with its reason.

    ``wrap`` pairs must not share a process either, since a process is in one wrap; ``process``
    has them too. ``together`` are functions that have to share a wrap.
    """

    functions: tuple[str, ...]
    process: Mapping[Pair, str] = field(default_factory=dict)
    wrap: Mapping[Pair, str] = field(default_factory=dict)
    together: tuple[tuple[str, ...], ...] = ()

    def apart(self, function: str) -> frozenset[str]:
        """The functions that must not share a process with `function`."""
        return frozenset(
            other
            for pair in self.process
            if function in pair
            for other in pair
            if other != function
        )

    def groups(self) -> dict[str, int]:
        """A group for every function so that those of one group can share a wrap.

        Functions that conflict with many choose first, each the lowest group that it gets on
        with; so group 0, that of the entry wrap, has the most.

        Raises
        ------
        ChironError
            ``impossible-wishes`` where functions that have to share a wrap must not.
        """
        units = self._units()
        unit_of = {function: unit for unit in units for function in unit}
        enemies: dict[tuple[str, ...], set[tuple[str, ...]]] = {unit: set() for unit in units}
        for (a, b), reason in self.wrap.items():
            if unit_of[a] == unit_of[b]:
                raise ChironError(
                    "impossible-wishes",
                    f"{a} and {b} have to share a wrap by wishes.json, but {reason}: "
                    "take them out of together",
                    path="together",
                    functions=(a, b),
                )
            enemies[unit_of[a]].add(unit_of[b])
            enemies[unit_of[b]].add(unit_of[a])
        group: dict[tuple[str, ...], int] = {}
        for unit in sorted(units, key=lambda unit: (-len(enemies[unit]), unit)):
            taken = {group[enemy] for enemy in enemies[unit] if enemy in group}
            group[unit] = next(g for g in range(len(units)) if g not in taken)
        return {function: group[unit] for function, unit in unit_of.items()}

    def _units(self) -> list[tuple[str, ...]]:
        """The functions, those that have to share a wrap as one."""
        unit_of = {function: {function} for function in self.functions}
        for wish in self.together:
            merged = set().union(*(unit_of[function] for function in wish))
            for function in merged:
                unit_of[function] = merged
        return sorted({tuple(sorted(unit)) for unit in unit_of.values()})


def find_conflicts(functions: Iterable[str], profile: Profile, wishes: Wishes) -> Conflicts:
    """What the profiles of `functions` and the user's `wishes` forbid.

    Raises
    ------
    ChironError
        ``unknown-function`` where a wish names none of `functions`; ``bad-requirement``.
    """
    names = tuple(sorted(functions))
    wishes.check_functions(names)
    wrap = {
        **_isolated(names, wishes, "wrap"),
        **_files(names, profile),
        **_requirements(names, profile),
        **_runtimes(names, profile),
    }
    process = {**_isolated(names, wishes, "process"), **wrap}
    return Conflicts(names, process, wrap, wishes.together)


def _isolated(names: Sequence[str], wishes: Wishes, level: str) -> dict[Pair, str]:
    return {
        _pair(name, other): f"wishes.json wants {name} in a {level} of its own"
        for name in sorted(wishes.isolate)
        if wishes.isolate[name] == level
        for other in names
        if other != name
    }


def _runtimes(names: Sequence[str], profile: Profile) -> dict[Pair, str]:
    """A wrap has one interpreter. A profile that does not say which one gets on with any."""
    runtime = {name: profile.functions[name].runtime for name in names}
    known = [name for name in names if runtime[name]]
    return {
        (a, b): f"{a} needs {runtime[a]} and {b} {runtime[b]}"
        for a, b in combinations(known, 2)
        if runtime[a] != runtime[b]
    }


def _files(names: Sequence[str], profile: Profile) -> dict[Pair, str]:
    """The processes of a wrap share its file system; alone, each function had its own."""
    touching: dict[str, set[str]] = {}
    for name in names:
        function = profile.functions[name]
        for path in {*function.files_read, *function.files_written}:
            touching.setdefault(path, set()).add(name)
    return {
        _pair(name, other): f"{name} writes {path}, which {other} opens too"
        for name in names
        for path in profile.functions[name].files_written
        for other in sorted(touching[path])
        if other != name and not path.startswith(("/dev/", "/proc/"))
    }


def _requirements(names: Sequence[str], profile: Profile) -> dict[Pair, str]:
    """A wrap has one version of a package: a pin has to suit all who need the package."""
    needs: dict[str, list[tuple[str, Requirement]]] = {}
    for name in names:
        for text in profile.functions[name].requirements:
            requirement = _parsed(text, name)
            if requirement.marker is None or requirement.marker.evaluate():
                package = canonicalize_name(requirement.name)
                needs.setdefault(package, []).append((name, requirement))
    return {
        _pair(a, b): f"{a} needs {one} and {b} needs {other}"
        for users in needs.values()
        for a, one in users
        for b, other in users
        if a != b and any(not other.specifier.contains(pin, prereleases=True) for pin in _pins(one))
    }


def _pins(requirement: Requirement) -> list[str]:
    exact = [s.version for s in requirement.specifier if s.operator == "=="]
    return [version for version in exact if not version.endswith(".*")]


def _parsed(text: str, function: str) -> Requirement:
    try:
        return Requirement(text)
    except InvalidRequirement:
        raise ChironError(
            "bad-requirement",
            f"{text[:60]!a} of function {function} is no plain requirement (name==1.0)",
            path=f"functions.{function}.requirements",
            functions=[function],
        ) from None


def _pair(a: str, b: str) -> Pair:
    return (a, b) if a < b else (b, a)
