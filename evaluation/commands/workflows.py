"""`chiron evaluate workflows`: measures scientific workflows, as FaaSFlow's evaluation does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click

from chiron.cli import options
from chiron.cli.artefacts import read_platform
from chiron.cli.output import emit, progress, table, warn
from chiron.cli.place import Place, place
from chiron.deployment.background_load import busy_line
from chiron.evaluation.bench.machine import target_of
from chiron.evaluation.bench.settings import open_run
from chiron.evaluation.bench.setup import PLATFORM_FILE, PROFILE_FILE, place_of, require_profiles
from chiron.evaluation.commands.options import begin, command_line
from chiron.evaluation.report.tables import number, percentages, with_interval
from chiron.evaluation.runtime.deployed import BENCHMARKS
from chiron.evaluation.runtime.servers import redis
from chiron.evaluation.scientific.alone import Part
from chiron.evaluation.scientific.changed import changed, changed_name
from chiron.evaluation.scientific.folder import NAMES, Scaling, facts_of, write_folder
from chiron.evaluation.scientific.report import (
    LoadRow,
    TogetherRow,
    VariantRow,
    WorkflowRow,
    WorkflowsReport,
    published,
)
from chiron.evaluation.scientific.run import FULL_AMOUNT, QUICK_AMOUNT, measure_all
from chiron.evaluation.scientific.variants import BY_STAGE, DATAFLOWER, FAASFLOW, OURS, VARIANTS
from chiron.workflow.documents import dump, write_atomically
from chiron.workflow.folder import WorkflowFolder

#: The workflows beside the scientific workflows: FaaSFlow's illegal-recognizer, and replacements
#: of its video-ffmpeg, file-processing and wordcount.
_BESIDE = ("illegal-recognizer", "finra", "slapp", "slapp-v")
_DEFAULT = Scaling()
_COLUMNS = [
    "variant", "wraps, processes", "latency ms (quartiles)", "p99", "predicted", "overhead ms",
    "cut", "beyond cores ms", "cut", "MB between wraps", "through the gateway",
    "through the store", "CPU ms", "MiB", "GB s", "MB held",
]  # fmt: skip
_NOTES = (
    "overhead: median latency less the critical path of solo latencies",
    "beyond cores: less what the tasks would take on these cores if nothing else cost: unhindered",
    "cut: what part of one-to-one's there is not; intervals are 95 %, of the same rounds",
    "MB, CPU ms and MiB are of one request; GB s: MiB in GB, times the median latency",
    "MB held: objects in wraps and store, on average while requests run one after another",
)
_share = options.FiniteRange(min=0, max=1, min_open=True)


@click.command("workflows")
@click.argument("names", nargs=-1, metavar=f"[{'|'.join(NAMES)}|FOLDER]...")
@click.option("--quick", is_flag=True, help="Few samples, wide intervals.")
@click.option(
    "--part",
    "chosen",
    type=click.Choice(get_args(Part)),
    multiple=True,
    help="Measure this part only: each workflow alone, request by request, or with as many "
    "requests as it answers; or four more beside, each against all.",
)
@click.option(
    "--variant",
    "labels",
    type=click.Choice([*VARIANTS]),
    multiple=True,
    help="Measure this one only; may be repeated.",
)
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    default=_DEFAULT.nodes,
    show_default=True,
    help="Make nodes so small that FaaSFlow's groups need so many.",
)
@click.option(
    "--request",
    "requests",
    metavar="FIELD=VALUE[,FIELD=VALUE]...",
    multiple=True,
    help="A folder's workflow with other fields of payload.json; may be repeated, for a workflow "
    "each.",
)
@click.option(
    "--emits",
    is_flag=True,
    help="A folder's workflow of DataFlower's form as a graph whose first task emits its parts.",
)
@click.option("--time", type=_share, default=_DEFAULT.time, show_default=True, help="Of run times.")
@click.option("--size", type=_share, default=_DEFAULT.size, show_default=True, help="Of sizes.")
@click.option(
    "--computing",
    type=options.FiniteRange(0, 1),
    default=_DEFAULT.computing,
    show_default=True,
    help="Of what is left of run times; the rest is waiting.",
)
@click.option("--platform", type=click.Path(path_type=Path), help="Instead of measuring it.")
@place(options.local)
@options.output("out")
@options.as_json
def command(
    names: tuple[str, ...],
    quick: bool,
    chosen: tuple[Part, ...],
    labels: tuple[str, ...],
    nodes: int,
    requests: tuple[str, ...],
    emits: bool,
    time: float,
    size: float,
    computing: float,
    platform: Path | None,
    place: Place,
    output: Path,
    as_json: bool,
) -> None:
    """Measure cycles, epigenomics, genome and soykb, 50 tasks each, as planners deploy them.

    Their tasks take --time of the traced run times, --computing of it on a core, and give --size
    of the traced sizes. Any other workflow's folder is measured as it is. A run that was stopped
    goes on where it was.

    \b
    Example:
      chiron evaluate workflows --local --quick
    """
    machine = begin(output)
    scaling = Scaling(time=time, size=size, computing=computing, nodes=nodes)
    run, parts = output / "workflows", chosen or get_args(Part)
    traced = [
        folder
        for name in names or NAMES
        for folder in (
            [write_folder(facts_of(name), scaling, run / name / "folder")]
            if name in NAMES
            else _as_asked(WorkflowFolder.open(Path(name)), requests, emits, run)
        )
    ]
    beside = [WorkflowFolder.open(BENCHMARKS / name) for name in _BESIDE * ("together" in parts)]
    require_profiles(run / each.workflow.name / PROFILE_FILE for each in (*traced, *beside))
    if platform:
        write_atomically(run / PLATFORM_FILE, dump(read_platform(platform)))
    with redis() as store, place.connect() as connected:
        launcher = replace(connected, store=store)
        open_run(run, scaling, machine, target_of(launcher.gateway), command_line())
        here, amount = place_of(launcher, run, progress), QUICK_AMOUNT if quick else FULL_AMOUNT
        rows, together = measure_all(
            traced, beside, here, run, amount, parts, labels or tuple(VARIANTS), nodes
        )
    report = WorkflowsReport(
        machine=machine,
        command=command_line(),
        scaling=scaling,
        workflows=rows,
        together=together,
    )
    emit(report, output / "workflows.json", as_json)
    _show(report)


def _as_asked(
    folder: WorkflowFolder, requests: Sequence[str], emits: bool, run: Path
) -> list[WorkflowFolder]:
    """Return the workflow of `folder`, changed for each of `requests`, and by `emits`, if given."""
    if not requests and not emits:
        return [folder]
    made = []
    for request in requests or [""]:
        fields = dict(map(_field, filter(None, request.split(","))))
        name = changed_name(folder, fields, emits)
        made.append(changed(folder, fields, run / name / "folder", emits=emits))
    return made


def _field(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        raise click.UsageError(f"--request {text!a}: {value!a} is no JSON") from None


def _show(report: WorkflowsReport) -> None:
    for row in report.workflows:
        title = (
            f"{row.workflow}: critical path {row.critical_path_ms:.1f} ms, unhindered "
            f"{row.unhindered_ms:.1f} ms; {row.variants[0].latency.samples} requests"
        )
        table(title, _COLUMNS, map(_cells, row.variants), _NOTES)
        warn(filter(None, (*row.warnings, busy_line(row.others))))
    ours = [v for row in report.workflows for v in row.variants if v.variant == OURS]
    if ours:
        others = list(ours[0].ratios)
        table(
            f"latency of {OURS} as a multiple of others', of the same rounds",
            ["workflow", *others],
            [[v.workflow, *(with_interval(v.ratios.get(each)) for each in others)] for v in ours],
        )
    _show_load(report.workflows)
    _show_multiples(report.workflows)
    if report.together:
        table(
            "each workflow alone, and all at once: medians",
            ["workflow", "variant", "alone ms", "at once ms", "ratio", "failed"],
            map(_together_cells, report.together),
            keys=2,
            words=(0, 1),
        )


def _show_load(rows: Sequence[WorkflowRow]) -> None:
    cells = [_load_cells(v, v.load) for row in rows for v in row.variants if v.load]
    columns = ["workflow", "variant", "clients", "per s, by round", f"of {FAASFLOW}'s"]
    columns += ["p50 ms", "cores", "failed"]
    if cells:
        table("as many requests as are answered", columns, cells, keys=2, words=(0, 1))


def _show_multiples(rows: Sequence[WorkflowRow]) -> None:
    cells = [
        [row.workflow, own.variant, other.variant, *_multiples(own, other)]
        for row in rows
        for own in row.variants
        for other in row.variants
        if own.variant in (DATAFLOWER, OURS) and other.variant in (FAASFLOW, BY_STAGE)
    ]
    if not cells:
        return
    known = published()
    ranges = known.latency_p99, known.memory_time, known.throughput, known.held
    cells.append(["four", "DataFlower", "FaaSFlow", *(f"{low} to {high}" for low, high in ranges)])
    table(
        "as a multiple of another one",
        ["workflow", "variant", "of", "latency", "GB s", "per s", "MB held"],
        cells,
        [f"the last row is published, of 99th percentiles of latencies: {known.source}"],
        keys=3,
        words=(0, 1, 2),
    )


def _cells(row: VariantRow) -> list[str]:
    latency = row.latency
    return [
        row.variant,
        f"{row.wraps}, {row.processes}",
        f"{latency.p50_ms:.1f} ({latency.low_ms:.1f}-{latency.high_ms:.1f})",
        f"{row.p99_ms:.1f}",
        number(row.predicted_ms),
        f"{row.overhead_ms:.1f}",
        percentages(row.overhead_cut),
        f"{row.beyond_cores_ms:.1f}",
        percentages(row.beyond_cores_cut),
        number(row.between_mb),
        number(row.gateway_mb),
        number(row.store_mb),
        number(row.cpu_ms),
        number(row.memory_mib),
        number(row.memory_gb_s),
        number(row.held_mb),
    ]


def _multiples(row: VariantRow, base: VariantRow) -> list[str]:
    ours, theirs = row.load, base.load
    pairs = (row.memory_gb_s, base.memory_gb_s), (row.held_mb, base.held_mb)
    memory, objects = (f"{own / its:.2f}" if own and its else "-" for own, its in pairs)
    per_s = ours.ratios.get(base.variant) if ours and theirs else None
    return [with_interval(row.ratios.get(base.variant)), memory, with_interval(per_s), objects]


def _load_cells(row: VariantRow, load: LoadRow) -> list[str]:
    return [
        row.workflow,
        row.variant,
        str(load.clients),
        " ".join(f"{each:.2f}" for each in load.per_s),
        with_interval(load.ratios.get(FAASFLOW)),
        number(load.p50_ms),
        number(load.cores),
        str(load.failed),
    ]


def _together_cells(row: TogetherRow) -> list[str]:
    times = [f"{row.alone_ms:.1f}", f"{row.together_ms:.1f}", f"{row.slower:.2f}"]
    return [row.workflow, row.variant, *times, str(row.failed)]
