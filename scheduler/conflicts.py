"""Functions that must not share a process or a wrap, and the groups of wraps that follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

from chiron.workflow.apart import Apart
from chiron.workflow.errors import ChironError

#: Two functions in the order of their names; or one twice, for conflicts of its own tasks.
Pair = tuple[str, str]


@dataclass(frozen=True)
class Conflicts:
    """Pairs of functions that must not share a wrap, or a process, each with its reason.

    ``wrap`` pairs must not share a process either, since a process is in one wrap; ``process``
    includes them. ``together`` are functions that have to share a wrap.
    """

    functions: tuple[str, ...]
    process: Mapping[Pair, str] = field(default_factory=dict)
    wrap: Mapping[Pair, str] = field(default_factory=dict)
    together: tuple[tuple[str, ...], ...] = ()

    def apart(self, function: str) -> frozenset[str]:
        """Return the functions whose tasks must not share a process with tasks of `function`."""
        return frozenset(b if a == function else a for a, b in self.process if function in (a, b))

    def get_on(self, functions: Iterable[str], others: Iterable[str]) -> bool:
        """Return whether a process that runs `functions` may run tasks of `others` too."""
        return not self.process or not any(
            (min(pair), max(pair)) in self.process for pair in product(functions, others)
        )

    @property
    def rules(self) -> tuple[Apart, ...]:
        """A rule for every reason, which may keep one function apart from many."""
        pairs: dict[tuple[Literal["wrap", "process"], str], list[Pair]] = {}
        for pair, reason in self.process.items():
            pairs.setdefault(("wrap" if pair in self.wrap else "process", reason), []).append(pair)
        rules = []
        for (level, reason), alike in pairs.items():
            one = min(frozenset.intersection(*map(frozenset, alike)))
            others = tuple(b if a == one else a for a, b in alike)
            rules.append(Apart(level=level, function=one, others=others, reason=reason))
        return tuple(rules)

    def groups(self) -> dict[str, int]:
        """Return a group number for every function; functions of one group can share a wrap.

        Functions with most conflicts choose first, each the lowest group without a conflict. Group
        0 has the most functions: it is the entry wrap's, which need not be called.

        Raises ``impossible-constraints`` if functions that have to share a wrap conflict.
        """
        units = self.units()
        unit_of = {function: unit for unit in units for function in unit}
        enemies: dict[tuple[str, ...], set[tuple[str, ...]]] = {unit: set() for unit in units}
        for (a, b), reason in self.wrap.items():
            if unit_of[a] == unit_of[b]:
                raise ChironError(
                    "impossible-constraints",
                    f"{a} and {b} have to share a wrap by constraints.json, but {reason}: "
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
        sizes = Counter(group[unit] for unit in unit_of.values())
        number = {g: place for place, (g, _) in enumerate(sizes.most_common())}
        return {function: number[group[unit]] for function, unit in unit_of.items()}

    def units(self) -> list[tuple[str, ...]]:
        """Return the functions, grouped by those that have to share a wrap."""
        unit_of = {function: {function} for function in self.functions}
        for constraint in self.together:
            merged = set().union(*(unit_of[function] for function in constraint))
            for function in merged:
                unit_of[function] = merged
        return sorted({tuple(sorted(unit)) for unit in unit_of.values()})


#: No conflicts: all functions may share a process.
NO_CONFLICTS = Conflicts(())
