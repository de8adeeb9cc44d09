"""The engines of a plan's wraps, in virtual time: the oracle of `predictor.wiring` and the kernel.

They go by the triggers that wraps go by, and start tasks in the processes of `oracle`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from itertools import takewhile

from oracle import Cores, Gil, Simulation

from predictor.mechanisms import mechanism_of
from predictor.simulator import Interpreter, Span, Work
from workflow.model import Task, Workflow
from workflow.plan import Plan, Wrap
from workflow.platform import Platform
from workflow.profile import Profile
from workflow.triggers import BySet, buckets, groups

#: After all else that happens at an instant.
_LAST = 1 << 30


def request_ms(
    plan: Plan,
    workflow: Workflow,
    profile: Profile,
    platform: Platform,
    record: Callable[[Span], None] | None = None,
) -> float:
    """When the client of one execution has its answer."""
    engines = Engines(plan, workflow, profile, platform, record)
    engines.simulation.run()
    assert engines.replied_ms is not None
    return engines.replied_ms


class Sandbox:
    """A wrap with its processes, and what its engine knows of them."""

    def __init__(self, wrap: Wrap, cores: Cores, simulation: Simulation, place: Platform) -> None:
        self.simulation, self.cores = simulation, cores
        self.costs = mechanism_of(wrap.mechanism).costs(place)
        self.lasting = mechanism_of(wrap.mechanism).lasting
        self.gils = [simulation.add_process(cores) for _ in wrap.processes]
        for gil in self.gils[1:]:
            gil.starter.position = -1  # it is not there yet
        self.alive = {0}
        self.gathered = set[str]()
        self.known = set[int]()  # the processes that have given a result
        self.free_ms = 0.0
        self.forked_last: Gil | None = None

    def gathering_ms(self, results: Iterable[tuple[str, int]]) -> float:
        """Equation (3), for results of tasks that ended in some processes."""
        new = {(t, p) for t, p in results if p and t not in self.gathered}
        self.gathered |= {task for task, _ in new}
        processes = {process for _, process in new}
        first = bool(processes - self.known)
        self.known |= processes
        return len(processes) * self.costs.gather_ms + first * self.costs.first_gather_ms

    def delays_ms(self, leading_ms: dict[int, float]) -> dict[int, float]:
        """Equation (4): start processes that are to run what computes so long at first.

        How long each has to wait that is there when it begins to wait.
        """
        costs, now = self.costs, self.simulation.now
        new = [process for process in sorted(leading_ms) if process not in self.alive]
        if not new:
            return dict.fromkeys(leading_ms, 0.0)
        wait_ms = 0.0
        if 0 in leading_ms:
            wait_ms = min(costs.core_wait_ms, leading_ms[0], max(leading_ms[p] for p in new))
        turn_ms = max(now, self.free_ms)
        for number, process in enumerate(new):
            block_ms = costs.block_ms + (costs.first_block_ms if number == 0 else 0.0)
            self._fork(self.gils[process], turn_ms + wait_ms, block_ms)
            turn_ms += block_ms
        self.free_ms = turn_ms
        self.alive.update(new)
        waits = dict.fromkeys(leading_ms, 0.0)
        if 0 in waits:
            waits[0] = wait_ms + (costs.main_ms if costs.main_ms >= 0 else turn_ms - now)
        return waits

    def _fork(self, gil: Gil, turn_ms: float, block_ms: float) -> None:
        costs, before = self.costs, self.forked_last
        if not costs.blocks_computing:
            self.simulation.fork(gil, turn_ms + costs.ready_ms, 0.0, costs.computing_ms)
            return
        alive_ms: float | None = self.simulation.now + costs.ready_ms
        if before is not None and before.being_forked:
            before.follower, alive_ms = gil, None
        self.simulation.fork(gil, alive_ms, block_ms, costs.computing_ms - block_ms)
        self.forked_last = gil


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
        self._begin()

    def _begin(self) -> None:
        """Have all engines wait for what they will start tasks by."""
        inner = groups(self.buckets, self.place)
        seen = {task: self._seen(task) for task in self.place}
        self.group = groups(self.buckets, seen)
        members = defaultdict[Hashable, list[str]](list)
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
                    map(_ended, bucket.awaits),
                    index,
                    partial(self._taking_in_ms, wrap, gathers),
                    partial(self._start, wrap, tasks),
                )
            part = any(self.place[task][0] == self.home for task in bucket.starts)
            if at_home or calls:
                ordered = sorted(calls.items(), key=lambda call: call[0][0])
                fire = partial(
                    self._fire, index, at_home, [(w, its) for (w, _), its in ordered], int(part)
                )
                if bucket.awaits:
                    self._at_home(index, bucket.awaits, self._stage_ms(), fire)
                else:
                    begins_ms = 0.0 if self.home is None else self.platform.request_ms
                    self.simulation.later(begins_ms, index, fire)
        for group, tasks in members.items():
            self._expect(
                map(_ended, tasks),
                group.bucket,
                partial(self._gathering_ms, group.place[0], tasks),
                partial(self._came, group),
            )
        self._at_home(len(self.buckets), list(self.place), 0.0, self._reply)

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
        key: int,
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
            self._expect(map(_ended, own), key, gathered, partial(self._came, key))
            self._expect([key, *returned], key, lambda: delay_ms, action)
        else:
            self._expect([*map(_ended, own), *returned], key, after_ms, action)

    def _taking_in_ms(self, wrap: int, tasks: Sequence[str]) -> float:
        return self._gathering_ms(wrap, tasks) + self.platform.stage_ms

    def _gathering_ms(self, wrap: int, tasks: Sequence[str]) -> float:
        return self.sandboxes[wrap].gathering_ms([(t, self.place[t][1]) for t in tasks])

    def _fire(
        self, key: int, own: list[str], calls: Sequence[tuple[int, list[str]]], place: int
    ) -> None:
        """Equation (2)."""
        platform, now = self.platform, self.simulation.now
        call_ms, invoke_ms = platform.rpc_ms, platform.invoke_ms
        computing_ms = min(platform.rpc_ms, invoke_ms * platform.cpus) if self.crowded else 0.0
        if self.home is None:
            call_ms = max(call_ms, platform.request_ms)
            computing_ms = min(computing_ms, call_ms)
            invoke_ms = 0.0 if self.crowded else invoke_ms
        for number, (wrap, tasks) in enumerate(calls, start=place):
            leaves_ms = max(now + number * invoke_ms, self.called_ms + invoke_ms)
            self.called_ms = leaves_ms
            begin = partial(self._start, wrap, tasks)
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
        for task in tasks:
            process = self.place[task][1]
            leads_ms = _leading_ms(self._work(task, forked=False))
            leading_ms[process] = max(leading_ms.get(process, 0.0), leads_ms)
        waits_ms = sandbox.delays_ms(leading_ms)
        for task in tasks:
            process = self.place[task][1]
            number = self.plan.wraps[wrap].processes[process].index(task)
            work = self._work(task, forked=process > 0 and not sandbox.lasting)
            ended = partial(self._came, _ended(task))
            self.simulation.start(
                sandbox.gils[process], number, work, ended, waits_ms.get(process, 0.0)
            )

    def _work(self, task: str, *, forked: bool) -> Work:
        """What a task does whose function starts no helpers."""
        function = self.profile.functions[self.workflow.function_of(task)]
        work: Work = tuple((period.kind, period.duration_ms) for period in function.periods)
        if forked and function.further_ms:
            work = (("cpu", function.further_ms), *work)
        megabytes = function.output_bytes / 1e6
        if megabytes and any(self._is_handed_over(task, other) for other in self.workflow.tasks):
            work = (*work, ("native", megabytes * self.platform.shared_ms_per_mb))
        return work

    def _is_handed_over(self, task: str, consumer: Task) -> bool:
        """Whether the output goes to another process of its wrap, perhaps on its way to others."""
        (wrap, process), (other, its) = self.place[task], self.place[consumer.name]
        return task in consumer.predecessors and process != (its if wrap == other else 0)


def _nothing() -> None:
    """What happens when a call has computed that arrives all the same."""


def _ended(task: str) -> Hashable:
    return "ended", task


def _leading_ms(work: Work) -> float:
    return sum(ms for _, ms in takewhile(lambda part: part[0] != "block", work))
