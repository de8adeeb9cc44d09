"""profile.json: what each function does while it runs alone."""

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
#: What saw the periods: the probe of the GIL inside the process, strace from outside.
Source = Literal["probe", "strace"]

#: No function of a latency-bound workflow runs for longer than an hour.
LONGEST_MS = 3_600_000.0
#: Times are stored rounded to microseconds, so neighbours may miss each other by two of them.
ROUNDING_MS = 0.002

#: Stands for a file of a folder that has another name in each run.
ANY_NAME = "**"
#: Of what a function names: its folder in a container, which only a wrap with no other one has.
IN_CONTAINER = "a path below /home/app/function"
#: More cores than any machine has.
MOST_PARALLELISM = 4096.0

Milliseconds = Annotated[float, Field(ge=0, le=LONGEST_MS)]


class Period(Document):
    """A stretch of time in which a function does one kind of thing.

    ``cpu`` computes and holds the GIL, ``native`` computes with the GIL released, ``block``
    waits in a system call (Chiron §3.2 knows the first and the last). A system call that computes
    has its name in `syscall` too.

    `parallelism` is how many cores a period that computes keeps busy on average: more than one
    where other threads of the function, or processes that it started, compute at the same time.
    """

    kind: PeriodKind
    start_ms: Milliseconds
    duration_ms: Milliseconds
    syscall: str | None = None
    parallelism: Annotated[float, Field(ge=1, le=MOST_PARALLELISM)] = 1.0


def rising(quantiles: tuple[float, ...]) -> tuple[float, ...]:
    """`quantiles`, if none is less than the one before; raises ``ValueError`` where one is."""
    if any(high < low for low, high in pairwise(quantiles)):
        raise ValueError("quantiles have to rise")
    return quantiles


def in_a_row(periods: Sequence[Period], lengths_ms: Sequence[float]) -> tuple[Period, ...]:
    """`periods` with other lengths, one after another."""
    starts = accumulate(lengths_ms, initial=0.0)
    return tuple(
        period.model_copy(update={"start_ms": start_ms, "duration_ms": length_ms})
        for period, start_ms, length_ms in zip(periods, starts, lengths_ms, strict=False)
    )


#: Longer than any SLO: what a plan takes that cannot work.
_NEVER_MS = 1e8
#: A part of a function's latency.
Part = Annotated[float, Field(ge=0, le=1)]


class Emission(Document):
    """An output emitted `after` a part of the latency; written in pieces from `writes_from` on."""

    after: Part
    bytes: Annotated[int, Field(ge=0)]
    writes_from: Part | None = None


class FunctionProfile(Document):
    """One function's solo run: its latency and the periods that cover it without gap or overlap.

    Attributes:
        spread_ms: the interquartile range of the untraced samples.
        variation: how many times as long as its latency a run takes, at one speed of the machine,
            in quantiles that stand for as many runs each.
        forked_ms: the latency in a process that was forked for the request: memory that the
            function writes to is copied first, and what it keeps between requests, a connection for
            example, is not there. None where that was not measured.
        varies: whether its answers to the same request differ.
        unforkable: why it cannot run in a process that was forked for the request, as a clause;
            empty where it can.
        cpu_probe_ms: what a fixed loop took beside the samples: how fast the machine was meanwhile.
        sources: what saw the periods. Without strace they have nothing shorter than the probe sees,
            and the profile no files and no ports.
        memory_mib: the peak over the idle process, with the largest process that the function
            starts.
        runtime_mib: what of that the process of Node.js or the JVM takes without any function, once
            for all functions that run in it.
        idle_mib: the process when it has imported the function and runs nothing. None where that
            was not measured.
        forked_mib: what a process takes that was forked for the request and shares with no other,
            at its peak, with the largest process that the function starts: what the function takes,
            what it imports in its first call, and the memory that it writes to. None where that was
            not measured.
        files_read, files_written, ports: files as the function names them; ports that it takes for
            itself.
        unshareable: what its runs change of what the whole process shares, such as ``sys.stdout``:
            what was seen when it ran, and calls in its code that do so, such as ``os.chdir``.
        set_at_import: what the import of its code sets of that. A wrap with other functions takes
            it back, and sets it again in processes that run the function.
        patched_at_import: what the import of its code changes in every process of its wrap.
        runtime, cooperative, parallel: what it runs in, such as ``python3.11``; whether others of
            its process run while it waits and never while it computes; and whether they always do.
        optional_imports: packages that its code uses where they are installed, and does without
            elsewhere.
        input_bytes, output_bytes: the size of its request and of its answer; medians where it had
            several.
        emits: what it emits before its end and others in the workflow need, by name.
        writes_from: after which part of its latency it began to write its answer, piece by piece to
            its end. None where it gave that at once.
        reads_from, reads_until: after which parts of its latency it began to read its streams, and
            had got their last pieces. None where it reads none, or that was not seen.
    """

    latency_ms: Milliseconds
    periods: tuple[Period, ...]
    samples: Annotated[int, Field(ge=1)] = 1
    spread_ms: tuple[Milliseconds, Milliseconds] | None = None
    variation: Annotated[tuple[NonNegativeFloat, ...], AfterValidator(rising)] = ()
    forked_ms: Milliseconds | None = None
    varies: bool = False
    unforkable: str = ""
    cpu_probe_ms: Milliseconds | None = None
    sources: tuple[Source, ...] = ()
    memory_mib: Annotated[float, Field(ge=0)] = 0.0
    runtime_mib: Annotated[float, Field(ge=0)] = 0.0
    idle_mib: Annotated[float, Field(ge=0)] | None = None
    forked_mib: Annotated[float, Field(ge=0)] | None = None
    files_read: tuple[str, ...] = ()
    files_written: tuple[str, ...] = ()
    ports: tuple[Annotated[int, Field(ge=1, le=65535)], ...] = ()
    unshareable: tuple[str, ...] = ()
    set_at_import: tuple[str, ...] = ()
    patched_at_import: tuple[str, ...] = ()
    input_bytes: Annotated[int, Field(ge=0)] | None = None
    output_bytes: Annotated[int, Field(ge=0)] = 0
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
        latency_ms = known.data.get("latency_ms", end)  # absent where it is refused itself
        if abs(end - latency_ms) > ROUNDING_MS:
            raise ValueError(
                f"periods end at {end:.3f} ms, latency_ms is {latency_ms:.3f}: "
                "they have to cover it exactly"
            )
        return periods

    def time_ms(self, kind: PeriodKind) -> float:
        """How long the function does `kind`, in all."""
        return sum(period.duration_ms for period in self.periods if period.kind == kind)

    @property
    def given_bytes(self) -> int:
        """The size of all that it gives."""
        return self.output_bytes + sum(each.bytes for each in self.emits.values())

    @property
    def further_ms(self) -> float:
        """How much longer it takes in a forked process, as far as that is known."""
        return max(0.0, (self.forked_ms or 0.0) - self.latency_ms)

    @property
    def new_process_ms(self) -> float:
        """What a plan has to reckon with where it puts the function in a forked process.

        That is so much where it cannot run there that a plan without that is better.
        """
        return _NEVER_MS if self.unforkable else self.further_ms

    @property
    def core_ms(self) -> float:
        """How long it keeps cores busy, with all its threads and processes."""
        computing = (period for period in self.periods if period.kind != "block")
        return sum(period.duration_ms * period.parallelism for period in computing)


class PayloadProfile(Document):
    """What a workflow does with one of its payloads.

    Attributes:
        name, weight: its file in the workflow folder, and how often it comes relative to the
            others.
        answer: what the workflow answers to it: from several runs of its functions, each alone.
        trace: what a workflow that decides while it runs did with it.
        functions: its functions' profiles with this payload alone; empty where there is no other
            payload.
    """

    name: str
    weight: Annotated[float, Field(gt=0)] = 1.0
    answer: ExpectedAnswer
    trace: tuple[Instance, ...] = ()
    functions: dict[str, FunctionProfile] = Field(default_factory=dict)


class Profile(Document):
    """The profiles of a workflow's functions.

    Attributes:
        functions: of several payloads that of their mix: latencies are means, by weight.
        payloads: what is known of each payload.
        source, place: a short name for the code and the payloads that were profiled, and where that
            was. Empty where that is not known.
        warnings: why the profile is not to be relied on, a line each; every prediction that uses it
            has them too.
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
        """What the workflow answers to `request`, if it was profiled with it."""
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
        """Raise ``unknown-function`` for those of `functions` that were not profiled."""
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
    """A payload's file, its weight among the payloads, and the profile with it alone."""

    payload: str
    weight: float
    profile: Profile
