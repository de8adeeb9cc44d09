"""Layouts of the same shape with less data between wraps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from chiron.scheduler.layout import Layout, StageLayout
from chiron.workflow.model import Workflow, names_in

#: The most sweeps over all stages, from last to first and back. Each sweep has to reduce the data
#: between wraps.
_SWEEPS = 4
#: The wrap that replies.
_HOME = 0


def closer(
    layout: Layout, workflow: Workflow, size_of: Mapping[str, int], group_of: Callable[[str], int]
) -> Layout:
    """Return `layout` with each stage's processes in the wraps with which they share most data.

    Stage by stage, each process chooses the wrap with which it exchanges most data at present. The
    process with most data chooses first. No wrap runs more processes in a stage than before in its
    widest stage. Wraps without a process are dropped.

    Args:
        size_of: the size of each task's output, in bytes.
        group_of: the group of a task. It stays in wraps that had tasks of its group.
    """
    places = _Places(layout, workflow, size_of, group_of)
    best = places.crossing_bytes, layout
    for _ in range(_SWEEPS):
        for number in (*reversed(range(len(layout))), *range(len(layout))):
            places.rearrange(number)
        if places.crossing_bytes >= best[0]:
            break
        best = places.crossing_bytes, tuple(places.layout)
    used = [any(processes) for processes in zip(*map(places.padded, best[1]), strict=True)]
    return tuple(
        tuple(processes for processes, kept in zip(stage, used, strict=False) if kept)
        for stage in best[1]
    )


class _Places:
    """The wrap of every process in every stage, and the data that it exchanges."""

    def __init__(
        self,
        layout: Layout,
        workflow: Workflow,
        size_of: Mapping[str, int],
        group_of: Callable[[str], int],
    ) -> None:
        self.layout = list(layout)
        self._size_of, self._group_of = size_of, group_of
        self._answer = frozenset(names_in(workflow.output))
        self._users: dict[str, list[str]] = {task: [] for task in workflow.by_name}
        for task in workflow.tasks:
            for needed in task.predecessors:
                self._users[needed].append(task.name)
        self._needs = {task.name: task.predecessors for task in workflow.tasks}
        self._wrap_of = {task: wrap for stage in layout for task, wrap in _tasks(stage)}
        count = max(map(len, layout))
        self._rooms = [max(len(stage[w]) for stage in layout if stage[w:]) for w in range(count)]
        self._groups = {wrap: group_of(task) for task, wrap in self._wrap_of.items()}

    @property
    def crossing_bytes(self) -> int:
        """The bytes sent to other wraps, each object once to each wrap."""
        total = 0
        for task, wrap in self._wrap_of.items():
            targets = {self._wrap_of[user] for user in self._users[task]}
            targets |= {_HOME} if task in self._answer else set()
            total += self._size_of[task] * len(targets - {wrap})
        return total

    def rearrange(self, number: int) -> None:
        """Move the processes of a stage to the best wraps, given the other stages."""
        processes = [(p, w) for w, each in enumerate(self.layout[number]) for p in each]
        choices = sorted(
            (-shared[wrap], wrap != own, wrap, place)
            for place, (process, own) in enumerate(processes)
            for shared in [self._shared(process)]
            for wrap, group in self._groups.items()
            if group == self._group_of(process[0])
        )
        rooms, chosen = [*self._rooms], dict[int, int]()
        for *_, wrap, place in choices:
            if place not in chosen and rooms[wrap]:
                chosen[place] = wrap
                rooms[wrap] -= 1
        found: list[list[tuple[str, ...]]] = [[] for _ in rooms]
        for place, (process, _) in enumerate(processes):
            found[chosen[place]].append(process)
        self.layout[number] = tuple(map(tuple, found))
        self._wrap_of |= dict(_tasks(self.layout[number]))

    def padded(self, stage: StageLayout) -> StageLayout:
        """Return `stage` with all wraps, including wraps without a process."""
        return (*stage, *((),) * (len(self._rooms) - len(stage)))

    def _shared(self, process: Sequence[str]) -> Counter[int]:
        """Return by wrap the bytes that a process exchanges with it."""
        shared = Counter[int]()
        for task in process:
            for needed in self._needs[task]:
                shared[self._wrap_of[needed]] += self._size_of[needed]
            for user in self._users[task]:
                shared[self._wrap_of[user]] += self._size_of[task]
            if task in self._answer:
                shared[_HOME] += self._size_of[task]
        return shared


def _tasks(stage: StageLayout) -> Iterator[tuple[str, int]]:
    """Yield the tasks of a stage, each with its wrap."""
    for wrap, processes in enumerate(stage):
        for process in processes:
            for task in process:
                yield task, wrap
