"""Find the steps at which forked paths in a graph of steps join again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from chiron.workflow.errors import ChironError
from chiron.workflow.names import shown

_EXIT = object()


@dataclass(frozen=True)
class Fork:
    """Branches that run in parallel, each as its first steps, and the step that joins them."""

    branches: tuple[tuple[str, ...], ...]
    join: str | None


class Regions:
    """A graph of steps by their successors; raises ``cycle`` if it has a cycle."""

    def __init__(self, successors: Mapping[str, Iterable[str]]) -> None:
        import networkx as nx  # loaded on use: it costs more than all other imports of a command

        self._graph: Any = nx.DiGraph()
        self._graph.add_nodes_from(successors)
        self._graph.add_edges_from((a, b) for a, after in successors.items() for b in after)
        try:
            order = list(nx.lexicographical_topological_sort(self._graph, list(successors).index))
        except nx.NetworkXUnfeasible:
            cycle = [edge[0] for edge in nx.find_cycle(self._graph)]
            raise ChironError(
                "cycle",
                f"steps form a cycle: {' -> '.join([*cycle, cycle[0]])}: remove one of these edges",
                functions=cycle,
            ) from None
        self.order = {name: index for index, name in enumerate(order)}
        self._after: dict[str, set[str]] = {
            name: nx.descendants(self._graph, name) for name in order
        }
        backwards = self._graph.reverse()
        backwards.add_edges_from((_EXIT, name) for name in order if not self._graph[name])
        self._next_common = nx.immediate_dominators(backwards, _EXIT)

    @property
    def first(self) -> tuple[str, ...]:
        """The steps without predecessors."""
        return tuple(name for name in self.order if not self._graph.in_degree(name))

    def reduced(self, targets: Iterable[str]) -> tuple[str, ...]:
        """Return `targets` without those that come after other targets anyway."""
        given = list(dict.fromkeys(targets))
        return tuple(t for t in given if not any(t in self._after[other] for other in given))

    def fork(self, targets: tuple[str, ...]) -> Fork:
        """Return the fork that begins with several steps at once.

        Raises ``not-series-parallel`` if the branches depend on each other's steps.
        """
        join = next(each for each in self._chain(targets[0]) if self._in_all(each, targets))
        branches: list[tuple[list[str], set[str]]] = []
        for target in targets:
            mine = [target], self._until(target, join)
            for other in [each for each in branches if each[1] & mine[1]]:
                branches.remove(other)
                mine = other[0] + mine[0], other[1] | mine[1]
            branches.append(mine)
        for starts, inside in branches:
            if len(starts) > 1 and len(branches) == 1:
                shared = [s for s in inside if all(s in self._after[start] for start in starts)]
                listed = ", ".join(shown(s) for s in sorted(shared, key=self.order.__getitem__)[:6])
                raise ChironError(
                    "not-series-parallel",
                    f"{' and '.join(shown(s) for s in starts[:6])} run side by side and are joined "
                    f"in more ways than one ({listed}): a state machine would run some later than "
                    "needed. Join them in one step",
                    functions=[*starts, *shared],
                )
        return Fork(tuple(tuple(s) for s, _ in branches), None if join is _EXIT else join)

    def _chain(self, name: str) -> list[Any]:
        """Return the steps after `name` common to all paths, nearest first, and the exit."""
        found: list[Any] = [name]
        while found[-1] is not _EXIT:
            found.append(self._next_common[found[-1]])
        return found[1:]

    def _in_all(self, step: Any, targets: tuple[str, ...]) -> bool:
        return all(step in self._chain(target) for target in targets)

    def _until(self, name: str, join: Any) -> set[str]:
        """Return `name` and the steps after it, before `join`."""
        after: set[str] = set() if join is _EXIT else {join} | self._after[join]
        return ({name} | self._after[name]) - after
