"""Streams that are read while they are written, as what their tasks do at moments of their runs.

What reads streams begins with what writes them. It awaits their first pieces where it begins to
read, and their ends where it has got the last pieces: the rest of its work comes after that. In
between both compute beside each other, and neither is ahead of the other by more than what is
buffered: the writer awaits, in turn, that its reader has taken all but that. It does so only where
nobody reads another stream too: of several, one may go to disk, see `wrap.pipes.outlets`.

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

#: Bytes that are read and written at once, as wraps have it.
_PIECE = 1 << 16
#: Bytes that a writer may be ahead of its reader: what files, and the socket between them, buffer.
_AHEAD = 200_000


class _Written(NamedTuple):
    """From when to when an output is written, as parts of its task's latency, and its size."""

    begins: float
    ends: float
    size_bytes: int

    @property
    def is_whole(self) -> bool:
        """Whether it is written at once."""
        return self.begins >= self.ends

    def all_but(self, size_bytes: int, begins: float, ends: float) -> float:
        """When all but so much of it has passed by, from when to when it does so evenly."""
        return begins + (ends - begins) * max(0.0, 1.0 - size_bytes / max(1, self.size_bytes))


class Streams:
    """The streams of a workflow that are read while they are written.

    Args:
        live: output -> the tasks that read it while it is written.
        ms_per_mb: what each end of one computes for a megabyte.
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
        #: What is needed as a whole too.
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
        """What its streams have a task give and await."""
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
        # Alone, it kept what it wrote, which takes as long as to send that to one reader.
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
        """Whether what a task reads is held up by it."""
        (first, *others) = map(self._written, self._read[reader])
        return not others and not first.is_whole and first.size_bytes > _AHEAD

    def _first_of(self, output: str) -> str:
        """What ends when there is something of an output."""
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
    """Those that are read while they are written where `plan` is run on `platform`."""
    live = live_in(plan, workflow) if workflow.streaming else {}
    way = way_of(plan.path, workflow, platform, plan.orchestrator)
    if len(plan.wraps) > 1 and not way.straight:
        live = {}
    # It is a socket within a wrap too; what it takes to connect one between wraps is not seen.
    direct = platform.paths.get("direct")
    ms_per_mb = direct.ms_per_mb if direct is not None else platform.shared_ms_per_mb
    return Streams(workflow, profile, live, ms_per_mb)
