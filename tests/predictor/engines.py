"""The engines of a plan's wraps, in virtual time: they call each other through the home.

They go by the triggers that wraps go by, and start tasks in the processes of `oracle`.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from itertools import takewhile
from typing import Any

from oracle import Simulation, Thread
from sandboxes import Sandbox

from chiron.predictor.moments import Flow, Moment, work_with
from chiron.predictor.paths import taken_by
from chiron.predictor.simulator import Interpreter, Span, Work
from chiron.workflow.model import Task, Workflow, names_in
from chiron.workflow.plan import Plan
from chiron.workflow.platform import PathCost, Platform
from chiron.workflow.profile import Profile
from chiron.wrap.core.triggers import BySet, Group, buckets, groups

Action = Callable[[], None]
#: After all else that happens at an instant.
_LAST = 1 << 30
FREE = PathCost(ms=0.0, ms_per_mb=0.0)


class Engines:
    """Those of all wraps; ``replied_ms`` is when the client has its answer."""

    def __init__(
        self,
        plan: Plan,
        workflow: Workflow,
        profile: Profile,
        platform: Platform,
        record: Callable[[Span], None] | None,
    ) -> None:
        self.plan, self.workflow, self.platform = plan, workflow, platform
        self.profile = profile
        self.replied_ms: float | None = None
        interpreter = Interpreter(
            platform.switch_interval_ms,
            platform.switch_cost_ms,
            platform.thread_startup_ms,
            platform.thread_ready_ms,
            platform.short_release_ms,
        )
        self.simulation = Simulation(interpreter, record, platform.contention_overhead)
        self.moments: dict[str, tuple[Moment, ...]] = {}
        self.threads = dict[str, Thread]()
        self.started = Counter[str]()  # what is awaited
        self.crowded = platform.one_node and plan.cpus > platform.cpus
        if self.crowded:
            node = self.simulation.add_cores(min(plan.cpus, platform.cpus))
            cores = [node] * len(plan.wraps)
        else:
            own = (min(wrap.cpus, platform.cpus) for wrap in plan.wraps)
            cores = [self.simulation.add_cores(count) for count in own]
        self.sandboxes = [
            Sandbox(wrap, shared, self.simulation, platform)
            for wrap, shared in zip(plan.wraps, cores, strict=True)
        ]
        self.place = {
            task: (w, p)
            for w, wrap in enumerate(plan.wraps)
            for p, process in enumerate(wrap.processes)
            for task in process
        }
        self.home = None if plan.orchestrator == "client" else 0
        needs = {task.name: task.predecessors for task in workflow.tasks}
        self.buckets = buckets(needs, workflow.stages, plan.trigger)
        self.watchers = defaultdict[Hashable, list](list)
        self.called_ms = -float("inf")
        self.queues = dict[Hashable, deque[Callable[[], None]]]()
        path = plan.path
        if path == "auto":
            path = "direct" if self.home == 0 and "direct" in platform.paths else "gateway"
        self.path, self.stored, self.cost = path, path == "store", platform.paths.get(path, FREE)
        self.rpc_ms = platform.rpc_ms
        if path == "gateway" and "direct" in platform.paths:
            slower_ms = 2 * (self.cost.ms - platform.paths["direct"].ms)
            self.rpc_ms = max(0.0, platform.rpc_ms + slower_ms)
        self._begin()

    def _begin(self) -> None:
        """Have all engines wait for what they will start tasks by."""
        inner = groups(self.buckets, self.place)
        seen = {task: self._seen(task) for task in self.place}
        self.group = groups(self.buckets, seen)
        self.members = members = defaultdict[Hashable, list[str]](list)
        for index, bucket in enumerate(self.buckets):
            at_home, calls = list[str](), defaultdict[tuple[int, str], list[str]](list)
            evaluated = defaultdict[tuple[int, int | None], list[str]](list)
            for task in sorted(bucket.starts, key=list(self.place).index):
                wrap, process = self.place[task]
                if process and inner[task].bucket != index:
                    evaluated[wrap, process].append(task)
                elif wrap == self.home:
                    at_home.append(task)
                elif self.group[task].bucket != index:
                    evaluated[wrap, None].append(task)
                else:
                    calls[wrap, task if self.home is None else ""].append(task)
                if wrap != self.home:
                    members[self.group[task]].append(task)
            for (wrap, process), tasks in evaluated.items():
                gathers = bucket.awaits if process is None else ()
                self._expect(
                    map(ended, bucket.awaits),
                    index,
                    partial(self._taking_in_ms, wrap, gathers),
                    partial(self._start, wrap, tasks),
                )
            part = any(self.place[task][0] == self.home for task in bucket.starts)
            if at_home or calls:
                ordered = sorted(calls.items(), key=lambda call: call[0][0])
                begins = [partial(self._called, index, w, its) for (w, _), its in ordered]
                fire = partial(self._fire, index, at_home, begins, int(part))
                if bucket.awaits:
                    self._at_home(index, bucket.awaits, self._stage_ms(), fire)
                else:
                    begins_ms = 0.0 if self.home is None else self._request_ms()
                    self.simulation.later(begins_ms, index, fire)
        for group, tasks in members.items():
            self._expect(
                map(ended, tasks),
                self._turn(group),
                partial(self._gathering_ms, group.place[0], tasks),
                partial(self._give_back, group),
            )
        self._at_home(len(self.buckets), list(self.place), 0.0, self._reply)

    def await_flows(self, flows: Iterable[Flow]) -> None:
        """Have what tasks await as they run come from where it is given."""
        for key, (awaited, awaits) in enumerate(flows, start=len(self.buckets) + 1):
            wraps = {self.place[each][0] for each in (awaited, *awaits)}
            delay_ms = self.cost.ms if len(wraps) > 1 else 0.0
            action = partial(self._start_awaited, awaited)
            self._expect(map(ended, awaits), key, partial(float, delay_ms), action)

    def _start_awaited(self, awaited: str) -> None:
        """What a task awaits is there when it began, and what it awaits has come."""
        self.started[awaited] += 1
        if self.started[awaited] == 2:
            self._came(ended(awaited))
            task = awaited.partition(" ")[0]
            process = self._process_of(task)
            number = process.index(awaited) - process.index(task)
            self.simulation.came(self.threads[task], number)

    def _process_of(self, task: str) -> Sequence[str]:
        wrap, process = self.place[task]
        return self.plan.wraps[wrap].processes[process]

    def _gives(self, task: str, number: int) -> None:
        process = self._process_of(task)
        self._came(ended(process[process.index(task) + number]))

    def _seen(self, task: str) -> tuple[int, Hashable]:
        """Where a task runs as the home sees it; a client calls for every task alone."""
        wrap, process = self.place[task]
        if self.home is None:
            return wrap, task
        return wrap, process if wrap == self.home else None

    def _reply(self) -> None:
        self.replied_ms = self.simulation.now

    def _stage_ms(self) -> float:
        return 0.0 if self.home is None else self.platform.stage_ms

    def _expect(
        self,
        objects: Iterable[Hashable],
        key: float,
        after_ms: Callable[[], float],
        action: Callable[[], None],
    ) -> None:
        """When all `objects` have come, do something so much later."""
        awaited = list(objects)
        trigger = BySet(awaited)
        for each in awaited:
            self.watchers[each].append((trigger, key, after_ms, action))

    def _came(self, what: Hashable) -> None:
        for trigger, key, after_ms, action in self.watchers[what]:
            if trigger.on_object(what):
                self.simulation.later(self.simulation.now + after_ms(), key, action)

    def _at_home(
        self, key: int, awaits: Sequence[str], delay_ms: float, action: Callable[[], None]
    ) -> None:
        """When the home, or the client, has the objects of all of some tasks."""
        own = [task for task in awaits if self.place[task][0] == self.home]
        returned = {self.group[t] for t in awaits if self.place[t][0] != self.home}

        def after_ms() -> float:
            return self._gathering_ms(0, own) + delay_ms

        if own and returned:
            gathered = partial(self._gathering_ms, 0, own)
            self._expect(map(ended, own), key, gathered, partial(self._came, key))
            self._expect([key, *returned], key, lambda: delay_ms, action)
        else:
            self._expect([*map(ended, own), *returned], key, after_ms, action)

    def _taking_in_ms(self, wrap: int, tasks: Sequence[str]) -> float:
        return self._gathering_ms(wrap, tasks) + self.platform.stage_ms

    def _gathering_ms(self, wrap: int, tasks: Sequence[str]) -> float:
        return self.sandboxes[wrap].gathering_ms([(t, self.place[t][1]) for t in tasks])

    def _called(self, key: int, wrap: int, tasks: list[str]) -> None:
        """A call has come: its tasks begin when what they need from elsewhere has, too."""
        group, shares = self.group[tasks[0]], list[tuple[float, int]]()
        if self.workflow.decided:
            shares = [(1.0, self._input_bytes(task)) for task in self.members[group]]
        else:
            read = [self.workflow.by_name[task] for task in self.members[group]]
            if not self.stored and any(task.source is None for task in read):
                shares.append((1.0, self.request_bytes()))
            for name in {name for task in read for name in taken_by(task)}:
                if self.group[name] != group:
                    put = self.stored and self.place[name][0] != self.home
                    shares.append((0.5 if put else 1.0, self._output_bytes(name)))
        begin = partial(self._start, wrap, tasks)
        then = partial(self.simulation.later, 0.0, key, begin)
        self._bring(key, shares, (self.home, wrap), then, begin)

    def _give_back(self, group: Group[Any]) -> None:
        """A group has ended: the home has what is needed of it when that has come."""
        inside, shares = self.members[group], list[tuple[float, int]]()
        for task in inside:
            users = {t.name for t in self.workflow.tasks if task in taken_by(t)} - {*inside}
            at_home = task in names_in(self.workflow.output)
            at_home |= any(self.place[user][0] == self.home for user in users)
            if self.workflow.decided or users or at_home:
                get = self.stored and not at_home and not self.workflow.decided
                shares.append((0.5 if get else 1.0, self._output_bytes(task)))
        wrap, came = group.place[0], partial(self._came, group)
        self._bring(self._turn(group), shares, (wrap, self.home), came, came)

    def _bring(
        self,
        key: float,
        shares: Sequence[tuple[float, int]],
        ends: tuple[int | None, int | None],
        then: Action,
        at_once: Action,
    ) -> None:
        """Do something when objects are there, or `at_once` where that takes no time."""
        delay_ms = max([0.0, *(share * self.cost.ms for share, _ in shares)]) * self.stored
        megabytes = sum(share * size for share, size in shares) / 1e6
        if not delay_ms and not megabytes * self.cost.ms_per_mb:
            at_once()
            return
        send = partial(self.send, key, megabytes, ends, then)
        self.simulation.later(self.simulation.now + delay_ms, key, send)

    def send(
        self, key: float, megabytes: float, ends: tuple[int | None, int | None], then: Action
    ) -> None:
        """Do something when an object is there, for which the wraps at both ends have computed.

        A connection between wraps sends one after another.
        """
        waiting = self.queues.setdefault(ends, deque()) if self.path == "direct" else None

        def begin() -> None:
            left = {wrap for wrap in ends if wrap is not None} if duration_ms else set[int]()

            def done(wrap: int) -> None:
                left.remove(wrap)
                if not left:
                    over()

            for wrap in [*left]:
                cores = self.sandboxes[wrap].cores
                self.simulation.compute_beside(cores, duration_ms, partial(done, wrap))
            if not left:
                over()

        def over() -> None:
            self.simulation.later(self.simulation.now, key, then)
            if waiting is not None:
                waiting.popleft()
                if waiting:
                    waiting[0]()

        duration_ms = megabytes * self.cost.ms_per_mb
        if waiting is None and not duration_ms:
            then()
        elif waiting is None:
            begin()
        else:
            waiting.append(begin)
            if len(waiting) == 1:
                begin()

    def _number(self, task: str) -> int:
        return list(self.place).index(task)

    def _turn(self, group: Group[Any]) -> float:
        """What ends at one instant comes in the order in which it was called."""
        return group.bucket + min(map(self._number, self.members[group])) / 1000

    def _input_bytes(self, task: str) -> int:
        return self.profile.functions[self.workflow.function_of(task)].input_bytes or 0

    def _output_bytes(self, task: str) -> int:
        return self.profile.functions[self.workflow.function_of(task)].output_bytes

    def _request_ms(self) -> float:
        """The request's own way, and its answer's, which may have to be joined."""
        answer_mb = sum(map(self._output_bytes, names_in(self.workflow.output))) / 1e6
        bodies_mb = self.request_bytes() / 1e6 + answer_mb
        joined_mb = answer_mb if isinstance(self.workflow.output, tuple) else 0.0
        platform = self.platform
        more_ms = bodies_mb * platform.body_ms_per_mb + joined_mb * platform.joined_ms_per_mb
        return platform.request_ms + more_ms

    def request_bytes(self) -> int:
        reading = (task.name for task in self.workflow.tasks if task.source is None)
        return max(map(self._input_bytes, reading), default=0)

    def _fire(
        self,
        key: int,
        own: list[str],
        calls: Sequence[Callable[[], None]],
        place: int,
        ways: int = 2,
    ) -> None:
        """Equation (2); each call is what it does there, when it has gone one of its two `ways`."""
        platform, now = self.platform, self.simulation.now
        call_ms, invoke_ms = self.rpc_ms * ways / 2, platform.invoke_ms
        computing_ms = min(self.rpc_ms, invoke_ms * platform.cpus) if self.crowded else 0.0
        computing_ms *= ways / 2
        if self.home is None:
            call_ms = max(call_ms, platform.request_ms)
            if self.crowded:
                computing_ms, invoke_ms = call_ms, 0.0
        for number, begin in enumerate(calls, start=place):
            leaves_ms = max(now + number * invoke_ms, self.called_ms + invoke_ms)
            self.called_ms = leaves_ms
            arrives_ms = leaves_ms + call_ms
            delays = self.home is None and computing_ms > 0
            if not delays:
                self.simulation.later(arrives_ms, key, begin)
            if computing_ms > 0:
                then = partial(self.simulation.later, 0.0, key, begin) if delays else _nothing
                computes_ms = max(now, arrives_ms - computing_ms)
                compute = partial(
                    self.simulation.compute_beside, self.sandboxes[0].cores, computing_ms, then
                )
                self.simulation.later(computes_ms, _LAST, compute)
        sending_ms = platform.send_ms * len(calls)
        if sending_ms and own:
            self.simulation.later(now + sending_ms, key, partial(self._start, 0, own))
        else:
            self._start(0, own)

    def _start(self, wrap: int, tasks: Sequence[str]) -> None:
        sandbox, leading_ms = self.sandboxes[wrap], dict[int, float]()
        all_tasks, tasks = tasks, [task for task in tasks if " " not in task]
        for task in tasks:
            process = self.place[task][1]
            leads_ms = _leading_ms(self._work(task, forked=False))
            leading_ms[process] = max(leading_ms.get(process, 0.0), leads_ms)
        waits_ms = sandbox.delays_ms(leading_ms)
        for task in all_tasks:
            if " awaits " in task:
                self._start_awaited(task)
            if " " in task:
                continue
            process = self.place[task][1]
            number = self.plan.wraps[wrap].processes[process].index(task)
            work = self._work(task, forked=process > 0 and not sandbox.lasting)
            comes = partial(self._came, ended(task))
            self.threads[task] = self.simulation.start(
                sandbox.gils[process],
                number,
                work,
                comes,
                waits_ms.get(process, 0.0),
                partial(self._gives, task),
            )

    def _work(self, task: str, *, forked: bool) -> Work:
        """What a task does whose function starts no helpers; what takes no time it does not do."""
        name = self.workflow.function_of(task)
        function = self.profile.functions[name]
        parts: list[Work] = [((period.kind, period.duration_ms),) for period in function.periods]
        work = work_with(function, parts, self.moments.get(name, ()))
        platform, megabytes = self.platform, (function.input_bytes or 0) / 1e6
        instances = self.workflow.decided and self.plan.orchestrator == "wrap"
        before: Work = (
            ("cpu", function.further_ms * forked),
            ("cpu", platform.instance_ms * instances),
            ("cpu", megabytes * platform.joined_ms_per_mb * self._joins(task)),
        )
        megabytes = function.output_bytes / 1e6
        answers = task in names_in(self.workflow.output) and self.place[task][1] != 0
        handed_over = (self._is_handed_over(task, other) for other in self.workflow.tasks)
        after_ms = megabytes * (answers or any(handed_over)) * platform.shared_ms_per_mb
        return (*_lasting(before), *work, *_lasting((("native", after_ms),)))

    def _joins(self, task: str) -> bool:
        """Whether it is the first in its process with an input of several that the wraps join."""
        if self.plan.orchestrator == "client":
            return False
        beside = [each for each, place in self.place.items() if place == self.place[task]]
        source = self.workflow.by_name[task].source
        same = [each for each in beside if self.workflow.by_name[each].source == source]
        return isinstance(source, tuple) and same[0] == task

    def _is_handed_over(self, task: str, consumer: Task) -> bool:
        """Whether the output goes to another process of its wrap, perhaps on its way to others."""
        (wrap, process), (other, its) = self.place[task], self.place[consumer.name]
        return task in taken_by(consumer) and process != (its if wrap == other else 0)


def _nothing() -> None:
    """What happens when a call has computed that arrives all the same."""


def _lasting(work: Work) -> Work:
    return tuple(part for part in work if part[1])


def ended(task: str) -> Hashable:
    return "ended", task


def _leading_ms(work: Work) -> float:
    leading = takewhile(lambda part: part[0] not in ("block", "await"), work)
    return sum(ms for kind, ms in leading if kind != "emit")
