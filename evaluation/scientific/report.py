"""The report of a run: rows of workflows and variants, alone and together."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from chiron.deployment.background_load import mean_share
from chiron.deployment.measure import Measurement, percentile
from chiron.evaluation.bench.machine import Measured
from chiron.evaluation.bench.rounds import by_label
from chiron.evaluation.intervals import Interval, Rounds, ratio
from chiron.evaluation.measurements.load import CLOSED, Closed
from chiron.evaluation.measurements.single import MEMORY, held
from chiron.evaluation.scientific.alone import Plans, Turn, turns
from chiron.evaluation.scientific.folder import Scaling
from chiron.evaluation.scientific.together import TogetherRound, journal_in
from chiron.evaluation.scientific.variants import BASELINE
from chiron.generator.stores import NO_STORE
from chiron.workflow.documents import Document, read_document

_FILE = Path(__file__).parent.parent / "data" / "published_dataflower.json"
Range = tuple[float, float]


class Published(Document):
    """Figures as multiples of FaaSFlow's: lowest and highest of four workflows; and wordcount's.

    ``memory_time`` is the containers' memory times its duration, ``held`` the memory of objects in
    a node.
    """

    source: str
    of: str
    latency_p99: Range
    memory_time: Range
    throughput: Range
    held: Range
    throughput_of_wordcount: dict[str, float]


def published() -> Published:
    """Read the figures and their source."""
    return read_document(Published, _FILE, "published figures")


class LoadRow(Document):
    """The closed loop with the number of ``clients`` at which a variant answered most.

    ``per_s`` has the answers/s of each round; ``ratios`` are multiples of the other variants'.
    ``cores`` is how many cores sandboxes, client and gateway used; None if not visible.
    """

    clients: int
    per_s: tuple[float, ...]
    p50_ms: float | None
    answered: int
    failed: int
    cores: float | None
    ratios: dict[str, Interval]


class VariantRow(Document):
    """One variant of one workflow, alone on the machine; a figure is None if it was not visible.

    ``overhead_ms`` is the median latency less the critical path of solo latencies. It includes the
    time that tasks wait for the few cores. ``beyond_cores_ms`` is the median less the tasks' time
    on these cores if nothing else cost. Each ``_cut`` is the share of the baseline's figure that
    the variant saves, in the same rounds. ``ratios`` has its median latency as a multiple of each
    other variant's. ``between_mb`` is the data that tasks pass to other wraps, by any path. It,
    ``gateway_mb`` and the rest are per request. ``memory_gb_s`` is the memory of all sandboxes
    while requests run, times the median latency. ``held_mb`` is the mean size of objects in wraps
    and store meanwhile.
    """

    workflow: str
    variant: str
    wraps: int
    processes: int
    latency: Measurement
    p99_ms: float
    predicted_ms: float | None
    overhead_ms: float
    overhead_cut: Interval | None
    beyond_cores_ms: float
    beyond_cores_cut: Interval | None
    ratios: dict[str, Interval]
    between_mb: float
    gateway_mb: float | None
    store_mb: float | None
    cpu_ms: float | None
    memory_mib: float | None
    memory_gb_s: float | None = None
    held_mb: float | None = None
    load: LoadRow | None = None


class WorkflowRow(Document):
    """A workflow: its critical path, and the time that its tasks compute together.

    ``unhindered_ms`` is the tasks' time on these cores if nothing else cost. ``others`` is the
    share of the cores that other programs had. ``warnings`` tell why predictions are unreliable.
    """

    workflow: str
    stages: tuple[int, ...]
    critical_path_ms: float
    computing_ms: float
    unhindered_ms: float
    variants: tuple[VariantRow, ...]
    others: float | None
    warnings: tuple[str, ...]


class TogetherRow(Document):
    """Median latencies of a workflow's variant in milliseconds, and the median ratio of rounds."""

    workflow: str
    variant: str
    alone_ms: float
    together_ms: float
    slower: float
    failed: int


class WorkflowsReport(Measured):
    """The report of one run."""

    scaling: Scaling
    workflows: tuple[WorkflowRow, ...]
    together: tuple[TogetherRow, ...]


def workflow_row(name: str, plans: Plans, out: Path) -> WorkflowRow:
    """Return the row of the workflow `name` from the journals in `out`."""
    rounds = turns().journal(out).rows()
    found = by_label(rounds)
    memory = by_label(MEMORY.journal(out).rows())
    busy = {label: [m.busy_mib for m in each if m.busy_mib] for label, each in memory.items()}
    looks = by_label(held(NO_STORE).journal(out).rows())
    objects = {
        label: [h.mean_mb for h in each if h.mean_mb is not None] for label, each in looks.items()
    }
    loads = by_label(CLOSED.journal(out).rows())
    predictions = filter(None, (plan.predicted for plan in plans.plans.values()))
    return WorkflowRow(
        workflow=name,
        stages=plans.stages,
        critical_path_ms=plans.critical_path_ms,
        computing_ms=plans.computing_ms,
        unhindered_ms=plans.unhindered_ms,
        variants=tuple(
            _variant_row(name, label, plans, found, busy.get(label, ())).model_copy(
                update={
                    "held_mb": _mean(objects.get(label, ())),
                    "load": _load_row(label, loads) if label in loads else None,
                }
            )
            for label in plans.plans
            if label in found
        ),
        others=mean_share(row.others for row in rounds),
        warnings=tuple(dict.fromkeys(chain.from_iterable(p.warnings for p in predictions))),
    )


def _variant_row(
    name: str,
    label: str,
    plans: Plans,
    found: Mapping[str, Sequence[Turn]],
    busy_mib: Sequence[float],
) -> VariantRow:
    plan, own = plans.plans[label], found[label]
    rounds = {other: [turn.latencies_ms for turn in each] for other, each in found.items()}
    latencies = list(chain.from_iterable(rounds[label]))
    latency = Measurement.of(latencies)
    cpu = [turn.cpu_s for turn in own if turn.cpu_s is not None]
    return VariantRow(
        workflow=name,
        variant=label,
        wraps=len(plan.wraps),
        processes=sum(len(wrap.processes) for wrap in plan.wraps),
        latency=latency,
        p99_ms=round(percentile(latencies, 0.99), 3),
        predicted_ms=plan.predicted.latency_ms if plan.predicted else None,
        overhead_ms=round(latency.p50_ms - plans.critical_path_ms, 3),
        overhead_cut=_cut(rounds, label, plans.critical_path_ms),
        beyond_cores_ms=round(latency.p50_ms - plans.unhindered_ms, 3),
        beyond_cores_cut=_cut(rounds, label, plans.unhindered_ms),
        ratios={
            other: multiple
            for other in plans.plans
            if other in found
            and other != label
            and (multiple := ratio(rounds[label], rounds[other]))
        },
        between_mb=round(plans.between_bytes[label] / 1e6, 4),
        gateway_mb=_typical_mb(turn.gateway_bytes for turn in own),
        store_mb=_typical_mb(turn.store_bytes for turn in own),
        cpu_ms=round(1000 * statistics.fmean(cpu), 1) if cpu else None,
        memory_mib=round(max(busy_mib), 1) if busy_mib else None,
        memory_gb_s=round(max(busy_mib) * 2**20 / 1e9 * latency.p50_ms / 1000, 5)
        if busy_mib
        else None,
    )


def _load_row(label: str, loads: Mapping[str, Sequence[Closed]]) -> LoadRow:
    per_s = {
        other: [[max(sample.per_s for sample in levels)] for levels in rounds]
        for other, rounds in loads.items()
    }
    best = [max(levels, key=lambda sample: sample.per_s) for levels in loads[label]]
    used = [sum(each.cpu_ms.values()) / 1000 * each.per_s for each in best if each.cpu_ms]
    return LoadRow(
        clients=best[0].clients,
        per_s=tuple(each.per_s for each in best),
        p50_ms=best[0].p50_ms,
        answered=sum(each.answered for each in best),
        failed=sum(sample.errors for levels in loads[label] for sample in levels),
        cores=_mean(used),
        ratios={
            other: multiple
            for other in loads
            if other != label and (multiple := ratio(per_s[label], per_s[other]))
        },
    )


def _mean(values: Sequence[float]) -> float | None:
    return round(statistics.fmean(values), 4) if values else None


def _typical_mb(sizes: Iterable[float | None]) -> float | None:
    known = [size for size in sizes if size is not None]
    return round(statistics.median(known) / 1e6, 4) if known else None


def _cut(rounds: Mapping[str, Rounds], label: str, least_ms: float) -> Interval | None:
    """Return the share of the baseline's time beyond `least_ms` that the variant saves.

    None for the baseline, and if `ratio` returns None.
    """
    if label == BASELINE or BASELINE not in rounds:
        return None
    own, whole = (
        [[ms - least_ms for ms in row] for row in rounds[each]] for each in (label, BASELINE)
    )
    left = ratio(own, whole)
    return left and Interval(value=1 - left.value, low=1 - left.high, high=1 - left.low)


def together_rows(out: Path) -> tuple[TogetherRow, ...]:
    """Return a row for each variant and workflow in the journal in `out`."""
    rows: dict[str, list[TogetherRound]] = {}
    for row in journal_in(out).rows():
        rows.setdefault(row.variant, []).append(row)
    return tuple(
        found
        for variant, rounds in rows.items()
        for name in rounds[0].alone
        for found in _together_row(name, variant, rounds)
    )


def _together_row(
    name: str, variant: str, rounds: Sequence[TogetherRound]
) -> Iterator[TogetherRow]:
    pairs = [
        (alone, at_once)
        for each in rounds
        if (alone := each.alone[name].p50_ms) and (at_once := each.together[name].p50_ms)
    ]
    if pairs:
        alone_ms, together_ms = (statistics.median(side) for side in zip(*pairs, strict=True))
        yield TogetherRow(
            workflow=name,
            variant=variant,
            alone_ms=round(alone_ms, 3),
            together_ms=round(together_ms, 3),
            slower=round(statistics.median(late / early for early, late in pairs), 3),
            failed=sum(each.alone[name].errors + each.together[name].errors for each in rounds),
        )
