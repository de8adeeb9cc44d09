"""What a run measures and how much of it; kept in run.json, so that a run goes on as it began."""

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
    """What is compared with what, and how.

    ``trigger`` is that of all plans but those whose tasks the client calls. ``slo_ms`` is None
    where it is Faastlane's mean and 10 ms (Chiron §6.2); ``percentile`` is how many percent of the
    requests it is for; ``check`` is whether answers are compared with
    those of the functions alone.
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
    """How much is measured for every variant of a workflow."""

    #: Requests one at a time, how many of them in a row before the next variant's turn, and
    #: seconds after which no further round of them is begun.
    requests: int
    block: int
    requests_s: float
    #: Requests of Faastlane's for the SLO.
    baseline: int
    #: Clients of the closed loop, seconds for each number of them, and how often.
    clients: tuple[int, ...]
    closed_s: float
    closed_rounds: int
    #: Arrival rates as shares of the highest throughput of all variants, and the same.
    rates: tuple[float, ...]
    open_s: float
    open_rounds: int
    #: Seconds that a window of either loop goes on at most until it has enough requests.
    most_s: float
    #: Looks at the memory: how often, and seconds each while requests run.
    memory_rounds: int
    memory_s: float
    #: Seconds of looks at what objects take.
    held_s: float
    #: Traced requests.
    traces: int
    #: Requests a second that a variant is taken to answer, for the forecast: a mean of the stored
    #: runs. How long a round really takes is known after the first one.
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
    """One run: its settings, where it ran, and the command lines that it was run with."""

    format: int = 1
    settings: Chosen
    machine: Machine
    target: Target
    commits: tuple[str, ...]
    commands: tuple[str, ...]


def open_run(
    out: Path, settings: Chosen, machine: Machine, target: Target, command: str
) -> Run[Chosen]:
    """The run in the folder `out`, begun or gone on with.

    Raises ``other-run`` where the folder has a run of other settings, or of another machine.
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
