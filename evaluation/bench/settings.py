"""The settings and the scale of a run; run.json keeps the settings, so that a run can resume."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from chiron.evaluation.bench.machine import Machine, Target
from chiron.scheduler.choices import Strategy
from chiron.workflow.documents import Document, dump, read_document, write_atomically
from chiron.workflow.errors import ChironError
from chiron.workflow.plan import DEFAULT_PERCENTILE, DEFAULT_TRIGGER
from chiron.wrap.core.triggers import TriggerKind

RUN_FILE = "run.json"

Chosen = TypeVar("Chosen", bound=Document)


class Settings(Document):
    """The compared planners and mechanisms, and the options of their plans.

    ``trigger`` is the trigger of all plans whose tasks the client does not call. ``slo_ms`` is None
    for Faastlane's mean plus 10 ms (Chiron §6.2). ``percentile`` is the percentage of requests that
    the SLO is for. ``check`` compares answers with those of the functions alone.
    """

    planners: tuple[str, ...]
    mechanisms: tuple[str, ...]
    trigger: TriggerKind = DEFAULT_TRIGGER
    strategy: Strategy = "cost"
    percentile: float = DEFAULT_PERCENTILE
    check: bool = True
    slo_ms: float | None = None
    quick: bool = False


@dataclass(frozen=True)
class Scale:
    """The amount of measuring for every variant of a workflow."""

    #: Requests one at a time, requests in a row before the next variant's turn, and the seconds
    #: after which no further round begins.
    requests: int
    block: int
    requests_s: float
    #: Requests to each Faastlane plan, to set the SLO.
    baseline: int
    #: Closed loop: numbers of clients, seconds for each number, and rounds.
    clients: tuple[int, ...]
    closed_s: float
    closed_rounds: int
    #: Open loop: rates as shares of the highest throughput of all variants, seconds, and rounds.
    rates: tuple[float, ...]
    open_s: float
    open_rounds: int
    #: The most seconds of a window of either loop, which is extended until it has enough requests.
    most_s: float
    #: Memory: rounds, and seconds of sampling in each while requests run.
    memory_rounds: int
    memory_s: float
    #: Seconds of sampling the memory of objects.
    held_s: float
    #: Traced requests.
    traces: int
    #: Whether one plan is deployed twice (A/A), which shows the noise.
    replicate: bool = True
    #: For the forecast, a variant's requests per second: the mean of stored runs. After the first
    #: round, its measured duration replaces the forecast.
    per_s: float = 20.0


QUICK = Scale(
    requests=50,
    block=3,
    requests_s=9.0,
    baseline=20,
    clients=(4,),
    closed_s=0.7,
    closed_rounds=2,
    rates=(0.5,),
    open_s=0.6,
    open_rounds=1,
    most_s=10.0,
    memory_rounds=2,
    memory_s=0.15,
    held_s=1.0,
    traces=3,
)
FULL = Scale(
    requests=500,
    block=5,
    requests_s=300.0,
    baseline=100,
    clients=(4, 8, 16),
    closed_s=1.5,
    closed_rounds=3,
    rates=(0.25, 0.5, 0.75),
    open_s=3.0,
    open_rounds=1,
    most_s=15.0,
    memory_rounds=5,
    memory_s=0.8,
    held_s=2.0,
    traces=20,
)


class Run(Document, Generic[Chosen]):
    """One run: its settings, machine and gateway, and the commits and command lines used."""

    format: int = 1
    settings: Chosen
    machine: Machine
    target: Target
    commits: tuple[str, ...]
    commands: tuple[str, ...]


def open_run(
    out: Path, settings: Chosen, machine: Machine, target: Target, command: str
) -> Run[Chosen]:
    """Begin the run in the folder `out`, or resume it.

    Raises ``other-run`` if the folder has a run with other settings, machine or gateway.
    """
    file = out / RUN_FILE
    kind: type[Run[Chosen]] = Run[type(settings)]  # type: ignore[assignment, misc]
    commits, commands = [machine.commit], [command]
    if file.exists():
        before = read_document(kind, file, "run")
        pairs = [
            *((name, getattr(before.settings, name), now) for name, now in settings),
            ("machine", (before.machine.cpu, before.machine.cores), (machine.cpu, machine.cores)),
            ("gateway", before.target, target),
        ]
        for name, then, now in pairs:
            if then != now:
                message = (
                    f"{out} has a run with {name} {_shown(then)}, not {_shown(now)}: "
                    "name another folder with -o, or remove it"
                )
                raise ChironError("other-run", message)
        machine = before.machine
        commits = [*before.commits, *commits]
        commands = [*before.commands, *commands]
    run = kind(
        settings=settings,
        machine=machine,
        target=target,
        commits=tuple(dict.fromkeys(commits)),
        commands=tuple(dict.fromkeys(commands)),
    )
    write_atomically(file, dump(run))
    return run


def _shown(value: object) -> str:
    if isinstance(value, Target):
        return f"{value.provider} {value.release} {value.orchestration}".strip()
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
