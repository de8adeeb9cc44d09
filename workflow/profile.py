"""The document profile.json: the behaviour of each function when it runs alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field, NonNegativeFloat, ValidationInfo, field_validator

from chiron.workflow.answer import ExpectedAnswer
from chiron.workflow.documents import Document
from chiron.workflow.errors import ChironError
from chiron.workflow.payloads import PAYLOAD_FILE
from chiron.workflow.trace import Instance

PeriodKind = Literal["cpu", "native", "block"]
#: The observer of the periods: the GIL probe inside the process, or strace outside it.
Source = Literal["probe", "strace"]

#: No function of a latency-bound workflow runs for longer than an hour.
LONGEST_MS = 3_600_000.0
#: Stored times are rounded to microseconds, so adjacent periods may differ by two microseconds.
ROUNDING_MS = 0.002

#: Placeholder for a file whose name differs in each run.
ANY_NAME = "**"
#: A path that a function names: its own folder in a container. Only a wrap of one function has it.
IN_CONTAINER = "a path below /home/app/function"
#: More cores than any machine has.
MOST_PARALLELISM = 4096.0

#: More bytes than any machine has.
MOST_BYTES = 1 << 50

Milliseconds = Annotated[float, Field(ge=0, le=LONGEST_MS)]
Bytes = Annotated[int, Field(ge=0, le=MOST_BYTES)]
Mebibytes = Annotated[float, Field(ge=0, le=MOST_BYTES >> 20)]


class Period(Document):
    """A time span in which a function does one kind of work.

    ``cpu`` computes and holds the GIL. ``native`` computes without the GIL. ``block`` waits in a
    system call. Chiron §3.2 has only ``cpu`` and ``block``. `syscall` also names a system call that
    computes.

    `parallelism` is the mean number of cores that a computing period keeps busy. It exceeds 1 if
    other threads, or processes that the function started, compute at the same time.
    """

    kind: PeriodKind
    start_ms: Milliseconds
    duration_ms: Milliseconds
    syscall: str | None = None
    parallelism: Annotated[float, Field(ge=1, le=MOST_PARALLELISM)] = 1.0


def rising(quantiles: tuple[float, ...]) -> tuple[float, ...]:
    """Return `quantiles`; raise ``ValueError`` if a quantile is less than its predecessor."""
    if any(high < low for low, high in pairwise(quantiles)):
        raise ValueError("quantiles have to rise")
    return quantiles


def in_a_row(periods: Sequence[Period], lengths_ms: Sequence[float]) -> tuple[Period, ...]:
    """Return `periods` with new lengths, one after another."""
    starts = accumulate(lengths_ms, initial=0.0)
    return tuple(
        period.model_copy(update={"start_ms": start_ms, "duration_ms": length_ms})
        for period, start_ms, length_ms in zip(periods, starts, lengths_ms, strict=False)
    )


#: The latency of a plan that cannot work: longer than any SLO.
NEVER_MS = 1e8
#: A fraction of a function's latency.
Part = Annotated[float, Field(ge=0, le=1)]


class Emission(Document):
    """An output emitted `after` a fraction of the latency, in pieces from `writes_from` on."""

    after: Part
    bytes: Bytes
    writes_from: Part | None = None


class FunctionProfile(Document):
    """A function's solo run: its latency and the periods that cover it without gap or overlap.

    Attributes:
        spread_ms: the interquartile range of the untraced samples.
        variation: quantiles of the latency relative to `latency_ms`, at one speed of the machine.
            Each quantile represents equally many runs.
        forked_ms: the latency in a process forked for the request. It includes copying the memory
            that the function writes to. State kept between requests, such as a connection, is
            missing. None if not measured.
        varies: whether answers to the same request differ.
        unforkable: the reason, as a clause, why the function cannot run in a process forked for the
            request; empty if it can.
        tried: the reason, as a clause, why the function cannot run in the processes of a mechanism,
            by the mechanism; empty if it ran there. Without an entry it was not run there.
        cpu_probe_ms: the time of a fixed loop run beside the samples, a measure of the machine's
            speed.
        sources: the observers of the periods. Without strace, the periods are no shorter than the
            probe resolves, and the profile lacks files and ports.
        memory_mib: the peak over the idle process, including the largest process that the function
            starts.
        runtime_mib: the part of `memory_mib` that Node.js or the JVM uses without any function,
            counted once for all functions in it.
        idle_mib: the idle process with the function imported. None if not measured.
        forked_mib: the peak private memory of a process forked for the request, including the
            largest process that the function starts. It comprises the function's own memory, its
            imports on the first call, and the memory that it writes to. None if not measured.
        files_read, files_written, ports: files as the function names them; ports that it binds.
        unshareable: changes to process-wide state, such as ``sys.stdout``: those observed in runs,
            and calls in its code that make such changes, such as ``os.chdir``.
        set_at_import: process-wide state that importing the code sets. A wrap with other functions
            undoes it, and sets it again in processes that run the function.
        patched_at_import: changes that importing the code makes in every process of its wrap.
        runtime, cooperative, parallel: the runtime, such as ``python3.11``; whether other functions
            of its process run while it waits but never while it computes; and whether they always
            do.
        optional_imports: packages that the code uses if installed and can do without.
        input_bytes, output_bytes: the size of its request and of its answer; the median of several.
        emits: outputs that it emits before its end and other tasks need, by name.
        writes_from: the fraction of its latency after which it began to write its answer in pieces.
            None if it returned the answer at once.
        reads_from, reads_until: the fractions of its latency at which it began to read its streams
            and had received their last pieces. None if it reads no stream, or no read was observed.
    """

    latency_ms: Milliseconds
    periods: tuple[Period, ...]
    samples: Annotated[int, Field(ge=1)] = 1
    spread_ms: tuple[Milliseconds, Milliseconds] | None = None
    variation: Annotated[tuple[NonNegativeFloat, ...], AfterValidator(rising)] = ()
    forked_ms: Milliseconds | None = None
    varies: bool = False
    unforkable: str = ""
    tried: dict[str, str] = Field(default_factory=dict)
    cpu_probe_ms: Milliseconds | None = None
    sources: tuple[Source, ...] = ()
    memory_mib: Mebibytes = 0.0
    runtime_mib: Mebibytes = 0.0
    idle_mib: Mebibytes | None = None
    forked_mib: Mebibytes | None = None
    files_read: tuple[str, ...] = ()
    files_written: tuple[str, ...] = ()
    ports: tuple[Annotated[int, Field(ge=1, le=65535)], ...] = ()
    unshareable: tuple[str, ...] = ()
    set_at_import: tuple[str, ...] = ()
    patched_at_import: tuple[str, ...] = ()
    input_bytes: Bytes | None = None
    output_bytes: Bytes = 0
    emits: dict[str, Emission] = Field(default_factory=dict)
    writes_from: Part | None = None
    reads_from: Part | None = None
    reads_until: Part | None = None
    runtime: str = ""
    cooperative: bool = False
    parallel: bool = False
    requirements: tuple[str, ...] = ()
    optional_imports: tuple[str, ...] = ()

    @field_validator("periods")
    @classmethod
    def _cover_the_latency(
        cls, periods: tuple[Period, ...], known: ValidationInfo
    ) -> tuple[Period, ...]:
        end = 0.0
        for index, period in enumerate(periods):
            gap = period.start_ms - end
            if abs(gap) > ROUNDING_MS:
                fault = "leaves a gap before it" if gap > 0 else "overlaps the one before it"
                raise ValueError(f"period {index} {fault} ({abs(gap):.3f} ms)")
            end = period.start_ms + period.duration_ms
        latency_ms = known.data.get("latency_ms", end)  # absent if latency_ms itself is invalid
        if abs(end - latency_ms) > ROUNDING_MS:
            raise ValueError(
                f"periods end at {end:.3f} ms, latency_ms is {latency_ms:.3f}: "
                "they have to cover it exactly"
            )
        return periods

    def time_ms(self, kind: PeriodKind) -> float:
        return sum(period.duration_ms for period in self.periods if period.kind == kind)

    @property
    def given_bytes(self) -> int:
        """The size of the answer and all emitted outputs."""
        return self.output_bytes + sum(each.bytes for each in self.emits.values())

    @property
    def further_ms(self) -> float:
        """The extra latency in a forked process; 0 if not measured."""
        return max(0.0, (self.forked_ms or 0.0) - self.latency_ms)

    @property
    def core_ms(self) -> float:
        """The core time of all its threads and processes."""
        computing = (period for period in self.periods if period.kind != "block")
        return sum(period.duration_ms * period.parallelism for period in computing)


class PayloadProfile(Document):
    """The behaviour of a workflow with one of its payloads.

    Attributes:
        name, weight: the payload's file in the workflow folder, and its relative frequency.
        answer: the workflow's answer, learned from several runs of its functions, each alone.
        trace: the decisions of a workflow that decides at run time.
        functions: the functions' profiles with this payload alone; empty if it is the only payload.
    """

    name: str
    weight: Annotated[float, Field(gt=0)] = 1.0
    answer: ExpectedAnswer
    trace: tuple[Instance, ...] = ()
    functions: dict[str, FunctionProfile] = Field(default_factory=dict)


class Profile(Document):
    """The profiles of a workflow's functions.

    Attributes:
        functions: for several payloads, the profiles of their mix: latencies are weighted means.
        payloads: the profile of each payload.
        source, place: a short identifier of the profiled code and payloads, and the place of the
            measurement. Empty if unknown.
        others: the share of the cores that other programs used meanwhile; None if unknown.
        warnings: why the profile is unreliable, a line each; every prediction from it repeats them.
    """

    format: Literal[1]
    workflow: str
    source: str = ""
    place: str = ""
    functions: dict[str, FunctionProfile]
    payloads: tuple[PayloadProfile, ...] = ()
    others: Annotated[float, Field(ge=0)] | None = None
    warnings: tuple[str, ...] = ()

    def answer_to(self, request: bytes) -> ExpectedAnswer | None:
        """Return the workflow's answer to `request`; None if it was not profiled with it."""
        answers = (each.answer for each in self.payloads)
        return next((answer for answer in answers if answer.answers(request)), None)

    @property
    def mix(self) -> tuple[Share, ...]:
        """The profile with each payload alone."""
        if len(self.payloads) < 2:
            return (Share(PAYLOAD_FILE, 1.0, self),)
        return tuple(Share(each.name, each.weight, self._with(each)) for each in self.payloads)

    def _with(self, payload: PayloadProfile) -> Profile:
        functions = {**self.functions, **payload.functions}
        return self.model_copy(update={"functions": functions, "payloads": (payload,)})

    def require(self, functions: Iterable[str]) -> None:
        """Raise ``unknown-function`` if any of `functions` was not profiled."""
        missing = [name for name in functions if name not in self.functions]
        if missing:
            raise ChironError(
                "unknown-function",
                f"the profile lacks {', '.join(missing)}: run chiron profile on the workflow's "
                "folder, with a payload for which each of them answers",
                path="functions",
                functions=missing,
            )


class Share(NamedTuple):
    """A payload's file, its weight among the payloads, and the profile with that payload alone."""

    payload: str
    weight: float
    profile: Profile
