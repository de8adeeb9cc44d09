"""Streams that are read while they are written, as additional work of their tasks.

A reader starts with its writers. It awaits their first pieces when it starts to read, and their
ends after its last pieces; the rest of its work comes after that. In between both compute at the
same time, and neither leads by more than the buffers hold: the writer waits until its reader has
read all but that. It does so only if no reader reads another stream too: of several, a stream may
go to disk, see `wrap.pipes.outlets`.

References
----------
Floki: tasks that run at the same time, with streams of bounded buffers between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from chiron.predictor.moments import Beside, given_by, stands_for
from chiron.predictor.paths import way_of
from chiron.workflow.model import Workflow, giver_of, names_in, output_name
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile
from chiron.workflow.streaming import live_in

#: Bytes read and written at once, as in wraps.
_PIECE = 1 << 16
#: Bytes that a writer may lead its reader: the buffers of files, and of the socket between.
_AHEAD = 200_000


class _Written(NamedTuple):
    """The start and the end of writing an output, as parts of its task's latency, and its size."""

    begins: float
    ends: float
    size_bytes: int

    @property
    def is_whole(self) -> bool:
        """Whether it is written at once."""
        return self.begins >= self.ends

    def all_but(self, size_bytes: int, begins: float, ends: float) -> float:
        """Return when all but `size_bytes` has passed, at an even rate from `begins` to `ends`."""
        return begins + (ends - begins) * max(0.0, 1.0 - size_bytes / max(1, self.size_bytes))


class Streams:
    """The streams of a workflow that are read while they are written.

    Args:
        live: output -> the tasks that read it while it is written.
        ms_per_mb: the time that each end of a stream computes for a megabyte.
    """

    def __init__(
        self,
        workflow: Workflow,
        profile: Profile,
        live: Mapping[str, tuple[str, ...]],
        ms_per_mb: float,
    ) -> None:
        self.live, self._workflow, self._functions = live, workflow, profile.functions
        self._ms_per_mb = ms_per_mb
        #: The outputs that are needed as a whole too.
        self._kept = {*names_in(workflow.output)}
        for task in workflow.tasks:
            outputs = filter(None, (output for _, output in task.streams))
            self._kept.update(
                names_in(task.source), (e for e in outputs if task.name not in live.get(e, ()))
            )
        self._read = dict[str, list[str]]()
        for output, readers in live.items():
            for reader in readers:
                self._read.setdefault(reader, []).append(output)

    def add_to(self, beside: Beside) -> None:
        """Add the outputs and awaits of a task's streams."""
        task = self._workflow.by_name[beside.task]
        function, read = self._functions[task.function], self._read.get(task.name, [])
        total = sum(self._written(output).size_bytes for output in read)
        until = function.reads_until
        if until is None:
            until = max(0.0, 1.0 - _PIECE / max(1, total))
        begins = min(function.reads_from or 0.0, until)
        if read:
            beside.wait("first", begins, map(self._first_of, read))
            beside.spend("native", begins, sum(map(self._sends_ms, read)))
        for output in self.live:
            if giver_of(output) == task.name:
                self._write(beside, output)
        if read and self._may_hold_up(task.name):
            (written,) = map(self._written, read)
            beside.give("taken", written.all_but(_AHEAD, begins, until))
        if read:
            beside.wait("last", until, map(stands_for, read))

    def _write(self, beside: Beside, output: str) -> None:
        written, readers = self._written(output), self.live[output]
        if not written.is_whole:
            beside.give(_first(output), written.begins)
        # Alone, the task kept its output, which takes as long as sending it to one reader.
        was_kept = not written.is_whole and output not in self._kept
        sends_ms = (len(readers) - was_kept) * self._sends_ms(output)
        beside.spend("native", written.begins, sends_ms)
        if written.is_whole:
            return
        takers = [given_by(each, "taken") for each in readers if self._may_hold_up(each)]
        if takers:
            held_up = written.all_but(_AHEAD, written.begins, written.ends)
            beside.wait(output_name(output), held_up, takers)

    def _sends_ms(self, output: str) -> float:
        return self._written(output).size_bytes / 1e6 * self._ms_per_mb

    def _may_hold_up(self, reader: str) -> bool:
        """Return whether a task can hold up the writer of its stream."""
        (first, *others) = map(self._written, self._read[reader])
        return not others and not first.is_whole and first.size_bytes > _AHEAD

    def _first_of(self, output: str) -> str:
        """Return the task that ends when an output has its first piece."""
        if self._written(output).is_whole:
            return stands_for(output)
        return given_by(giver_of(output), _first(output))

    def _written(self, output: str) -> _Written:
        task, name = giver_of(output), output_name(output)
        function = self._functions[self._workflow.function_of(task)]
        if output == task:
            begins = function.writes_from
            return _Written(1.0 if begins is None else begins, 1.0, function.output_bytes)
        emission = function.emits[name]
        begins = emission.after if emission.writes_from is None else emission.writes_from
        return _Written(min(begins, emission.after), emission.after, emission.bytes)


def _first(output: str) -> str:
    return f"first {output_name(output)}"


def streams_of(plan: Plan, workflow: Workflow, profile: Profile, platform: Platform) -> Streams:
    """Return the streams that are read while they are written if `plan` runs on `platform`."""
    live = live_in(plan, workflow) if workflow.streaming else {}
    way = way_of(plan.path, workflow, platform, plan.orchestrator)
    if len(plan.wraps) > 1 and not way.straight:
        live = {}
    # Within a wrap it is a socket too; the time to connect a socket between wraps is ignored.
    direct = platform.paths.get("direct")
    ms_per_mb = direct.ms_per_mb if direct is not None else platform.shared_ms_per_mb
    return Streams(workflow, profile, live, ms_per_mb)
