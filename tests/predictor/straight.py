"""Engines that send each other what they await, and tell the home when all theirs has ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from functools import partial

from engines import Engines, ended

from chiron.predictor.paths import taken_by
from chiron.workflow.model import names_in
from chiron.wrap.core.triggers import groups


class Straight(Engines):
    """The path ``auto`` where all wraps reach each other."""

    def _begin(self) -> None:
        self.rpc_ms = self.platform.rpc_ms
        inner = groups(self.buckets, self.place)
        answer = set(names_in(self.workflow.output))
        #: (task, wrap) that gets it -> whether with its object.
        messages = {(task, 0): True for task in answer if self.place[task][0] != 0}
        waits = defaultdict[tuple[int, int, int | None], set[str]](set)
        starts = defaultdict[tuple[int, int, int | None], list[str]](list)
        for task in sorted(self.place, key=list(self.place).index):
            index = next(i for i, bucket in enumerate(self.buckets) if task in bucket.starts)
            wrap, process = self.place[task]
            seen = process if process and inner[task].bucket != index else None
            starts[index, wrap, seen].append(task)
            needed = set(taken_by(self.workflow.by_name[task]))
            waits[index, wrap, seen] |= needed | set(self.buckets[index].awaits)
            for other in waits[index, wrap, seen]:
                if self.place[other][0] != wrap:
                    with_object = messages.get((other, wrap), False) or other in needed
                    messages[other, wrap] = with_object
        self.leaving = {task for task, _ in messages}
        for task in self.leaving:
            wrap, gathered = self.place[task][0], partial(self._came, ("gathered", task))
            after_ms = partial(self._gathering_ms, wrap, [task])
            self._expect([ended(task)], 0, after_ms, gathered)
        for (task, wrap), with_object in messages.items():
            send = partial(self._tell, task, wrap, with_object)
            self._expect([("gathered", task)], self._number(task), lambda: self.cost.ms, send)
        for place in sorted(starts, key=lambda place: place[0]):
            index, wrap, process = place
            start = partial(self._start, wrap, starts[place])
            if process is not None:
                objects = map(ended, self.buckets[index].awaits)
                self._expect(objects, index, self._stage_ms, start)
            elif index:
                self._in_wrap(index, wrap, waits[place], self._stage_ms(), start)
            elif wrap:
                self._expect([("begun", wrap)], 0, lambda: 0.0, start)
        others = range(1, len(self.plan.wraps))
        begins = [partial(self._told_to_begin, wrap) for wrap in others]
        own = starts[0, 0, None]
        fire = partial(self._fire, 0, own, begins, int(bool(own)), ways=1)
        self.simulation.later(self._request_ms(), 0, fire)
        last = len(self.buckets)
        for wrap in others:
            tasks = set(self.plan.wraps[wrap].tasks)
            end = partial(self._came, ("all ended", wrap))
            self._in_wrap(last, wrap, tasks, self.rpc_ms / 2, end)
        waited = [("at", task, 0) for task, wrap in messages if wrap == 0]
        waited += [("all ended", wrap) for wrap in others]
        self._in_wrap(last, 0, set(self.plan.wraps[0].tasks), 0.0, self._reply, waited)

    def _told_to_begin(self, wrap: int) -> None:
        tasks = (self.workflow.by_name[task] for task in self.plan.wraps[wrap].tasks)
        megabytes = self.request_bytes() / 1e6 * any(task.source is None for task in tasks)
        begun = partial(self._came, ("begun", wrap))
        if megabytes * self.cost.ms_per_mb:
            send = partial(self.send, -1, megabytes, (0, wrap), begun)
            self.simulation.later(self.simulation.now, -1, send)
        else:
            begun()

    def _tell(self, task: str, wrap: int, with_object: bool) -> None:
        own, megabytes = self.place[task][0], self._output_bytes(task) / 1e6 * with_object
        there = partial(self._came, ("at", task, wrap))
        self.send(0, megabytes, (own, wrap), there)

    def _in_wrap(
        self,
        key: int,
        wrap: int,
        tasks: set[str],
        delay_ms: float,
        action: Callable[[], None],
        others: Sequence[Hashable] = (),
    ) -> None:
        """When a wrap has tasks' objects, its own and others', do something so much later.

        What leaves it is gathered for that; the rest is when all of it is there.
        """
        own = [task for task in tasks if self.place[task][0] == wrap]
        staying = [task for task in own if task not in self.leaving]
        awaited = [*others, *(("gathered", task) for task in own if task in self.leaving)]
        awaited += [("at", task, wrap) for task in tasks if task not in own]
        if wrap and not own:
            awaited.append(("begun", wrap))
        gathering = partial(self._gathering_ms, wrap, staying)
        if staying and awaited:
            gathered = ("gathered", key, wrap)
            self._expect(map(ended, staying), key, gathering, partial(self._came, gathered))
            self._expect([*awaited, gathered], key, lambda: delay_ms, action)
        elif staying:
            self._expect(map(ended, staying), key, lambda: gathering() + delay_ms, action)
        else:
            self._expect(awaited, key, lambda: delay_ms, action)
