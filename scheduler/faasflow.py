"""The planner `faasflow`: tasks with the largest transfers on the critical path share a wrap.

References
----------
FaaSFlow (ASPLOS'22): Algorithm 1, and the sections on graph partitioning and the storage quota.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from zlib import crc32

from chiron.scheduler.room import Room
from chiron.scheduler.traffic import Traffic
from chiron.workflow.plan import Processes

#: The tasks of a wrap.
Group = tuple[str, ...]
#: Whether a wrap has capacity for some tasks.
Holds = Callable[[Group], bool]


def faasflow(room: Room) -> list[tuple[Processes, int]]:
    """Return the processes of every wrap, and the memory for its objects, in MiB.

    Measured tasks are grouped by transfers (`merges`). The other tasks are grouped by their hash:
    all tasks if no sizes are known, else the tasks that no payload reached. If that makes too many
    wraps, wraps combine several groups, if need be with more processes than cores.
    """
    known = [unit for unit in room.units if any(map(room.is_measured, unit))]
    unknown = [unit for unit in room.units if unit not in known]
    *_, groups = merges(known, room.traffic, room.holds)
    groups = groups or [()] * min(room.limits.wraps, len(unknown))
    groups = hashed(unknown, groups, room.holds)
    most, per_core = room.limits.wraps, 1
    while len(groups) > most and per_core < 2 * len(room.place_of):
        groups = packed(groups, room.traffic, most, partial(room.holds, per_core=per_core))
        per_core *= 2
    first = sorted(groups, key=lambda group: min(map(room.place_of.__getitem__, group)))
    return [(room.processes(group), room.objects_mib(group)) for group in first]


def merges(groups: Sequence[Group], traffic: Traffic, holds: Holds) -> Iterator[list[Group]]:
    """Yield the groups as they are given, and after each merge (Algorithm 1).

    Each merge joins the two groups at the heaviest edge of the critical path that `holds` allows;
    without such an edge, the merging ends. The critical path is computed anew each time, as objects
    within a group take no time.
    """
    found = list(groups)
    while True:
        yield list(found)
        if not found:
            return
        group_of = _numbered(found)
        _, path = traffic.critical_path(group_of)
        pairs = ((group_of[before], group_of[after]) for before, after in path)
        pair = next((pair for pair in pairs if holds(found[pair[0]] + found[pair[1]])), None)
        if pair is None:
            return
        one, other = sorted(pair)
        found[one] += found.pop(other)


def hashed(units: Iterable[Group], groups: Sequence[Group], holds: Holds) -> list[Group]:
    """Return `groups` with each of `units` in the group of its hash, or the next with capacity.

    A unit that fits nowhere is a group of its own. Empty groups are dropped.
    """
    found = list(groups)
    for unit in units:
        first = crc32(unit[0].encode()) % max(1, len(found))
        probed = (*range(first, len(found)), *range(first))
        place = next((each for each in probed if holds(found[each] + unit)), None)
        if place is None:
            found.append(unit)
        else:
            found[place] += unit
    return list(filter(None, found))


def packed(groups: Sequence[Group], traffic: Traffic, most: int, holds: Holds) -> list[Group]:
    """Return `groups` merged into at most `most` wraps, as far as there is capacity.

    The smallest group joins the group with which it exchanges most; of equals, the smallest.
    """
    found, stuck = list(groups), list[Group]()
    while len(found) > most and len(stuck) < len(found):
        small = min((group for group in found if group not in stuck), key=len)
        found.remove(small)
        weights = _exchanged_ms(small, found, traffic)
        others = sorted(range(len(found)), key=lambda other: (-weights[other], len(found[other])))
        other = next((each for each in others if holds(found[each] + small)), None)
        if other is None:
            stuck.append(small)
            found.append(small)
        else:
            found[other] += small
    return found


def _exchanged_ms(group: Group, others: Sequence[Group], traffic: Traffic) -> list[float]:
    """Return the weights of the edges between `group` and each of `others`."""
    number_of, weights_ms = _numbered(others), [0.0] * len(others)
    for task in group:
        for other, ms in traffic.partners_ms.get(task, {}).items():
            if other in number_of:
                weights_ms[number_of[other]] += ms
    return weights_ms


def _numbered(groups: Sequence[Group]) -> dict[str, int]:
    return {task: number for number, group in enumerate(groups) for task in group}
