"""Figures and report of a run that is made by hand, with some of it missing."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from chiron.evaluation.bench.machine import Target, this_machine
from chiron.evaluation.bench.settings import Run, Settings
from chiron.evaluation.bench.setup import Setup
from chiron.evaluation.experiments.metrics import LATENCY, THROUGHPUT
from chiron.evaluation.experiments.recorded import read_run
from chiron.evaluation.experiments.results import EXPERIMENTS, load, slo
from chiron.evaluation.measurements.breakdown import BREAKDOWN, break_down
from chiron.evaluation.measurements.load import CLOSED, OPEN, ClosedSample, OpenSample
from chiron.evaluation.measurements.single import MEMORY, REQUESTS, MemorySample, RequestsSample
from chiron.evaluation.report.glance import averages, cell
from chiron.evaluation.report.page import write_report
from chiron.evaluation.report.tables import table_of
from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule
from chiron.workflow.documents import dump, write_atomically
from chiron.workflow.plan import Plan
from chiron.workflow.timeline import Span, Timeline

#: Label -> latency in ms, CPU in s a request, memory in MiB, requests per second.
KNOWN = {
    "one-to-one": (40.0, 0.02, 200.0, 50.0),
    "sand fork": (80.0, 0.04, 50.0, 25.0),
    "faastlane fork": (20.0, 0.03, 60.0, 40.0),
    "pgp fork": (20.0, 0.01, 40.0, 100.0),
    "A/A replicate of pgp fork": (20.2, 0.01, 40.0, 100.0),
}
SPANS = (Span(kind="start", wrap="w", start_ms=1.0, end_ms=4.0),
         Span(kind="task", wrap="w", start_ms=3.0, end_ms=13.0, wait_core_ms=1.5),
         Span(kind="task", wrap="w", start_ms=6.0, end_ms=16.0))  # fmt: skip
TRACED = Timeline(workflow="w", source="measured", arrived_ms=1.0, latency_ms=20.0, spans=SPANS)


@pytest.fixture(scope="module")
def plans(write_folder, profile_of, platform, tmp_path_factory) -> dict[str, Plan]:
    """The plan of each planner for the small workflow."""
    workflow = write_folder(tmp_path_factory.mktemp("small")).workflow
    profile = profile_of(workflow)
    plans = {
        label: schedule(workflow, profile, platform, 30.0, Choices(planner=label.split()[0]))
        for label in KNOWN
        if not label.startswith("A/A")
    }
    plans["pgp fork"] = plans["pgp fork"].model_copy(
        update={"wraps": tuple(w.model_copy(update={"memory_mib": 999}) for w in
                               plans["pgp fork"].wraps)}
    )  # another plan than that of any other planner, whatever the search has found  # fmt: skip
    return plans


@pytest.fixture
def run_folder(plans, platform, tmp_path) -> Path:
    """A run that is set up, of one workflow, of which nothing is measured yet."""
    out = tmp_path / "run"
    settings = Settings(planners=("one-to-one", "sand", "faastlane", "pgp"), mechanisms=("fork",))
    run = Run[Settings](
        settings=settings, machine=this_machine(), target=Target(provider="by-hand"),
        commits=("abc",), commands=("chiron evaluate all <now>",),
    )  # fmt: skip
    setup = Setup(workflow="finra", stages=(1, 2, 2, 1), payload_bytes=9, slo_ms={"fork": 30.0},
                  baseline_ms={"fork": 20.0}, plans=plans)  # fmt: skip
    write_atomically(out / "run.json", dump(run))
    write_atomically(out / "platform.json", dump(platform))
    write_atomically(out / "finra" / "setup.json", dump(setup))
    return out


@pytest.fixture
def undrawn(monkeypatch) -> None:
    """A report has no pictures, which take longer than all else of it."""
    monkeypatch.setattr("chiron.evaluation.report.page.pictures", lambda *_: {})


def write_rounds(out: Path, measurement, sample_of, count: int = 6, others=None) -> None:
    for number in range(count):
        samples = {label: sample_of(*known) for label, known in KNOWN.items()}
        row = measurement.row(
            number=number, group=0, probe_ms=1.0 + number / 10, took_s=1.0, samples=samples,
            others=others,
        )  # fmt: skip
        measurement.journal(out / "finra").append(row)


def requests_sample(ms: float, cpu_s: float, *_: float) -> RequestsSample:
    return RequestsSample(latencies_ms=(ms, ms, ms + 15), cpu_s=3 * cpu_s)


@pytest.fixture
def measured(run_folder) -> Path:
    """A run of which all is measured."""
    write_rounds(run_folder, REQUESTS, requests_sample)
    write_rounds(run_folder, MEMORY,
                 lambda *k: MemorySample(idle_mib=k[2] - 5, busy_mib=k[2]))  # fmt: skip
    write_rounds(run_folder, CLOSED, lambda *k: tuple(
        ClosedSample(clients=n, per_s=k[3] * share, answered=9, p50_ms=1.0, p95_ms=2.0, errors=0,
                     cpu_ms={"sandboxes": 10.0, "client": 2.0})
        for n, share in ((4, 0.5), (8, 1.0))))  # fmt: skip
    write_rounds(run_folder, OPEN, lambda *k: (
        OpenSample(per_s=5.0, arrived=150, dropped=50, errors=0, latencies_ms=(k[0],) * 100),
    ), 1)  # fmt: skip
    write_rounds(run_folder, BREAKDOWN, lambda *_: (break_down(20.0, [TRACED]),), 1)
    return run_folder


def test_ratios_are_of_ours_to_the_others(measured):
    result = LATENCY.of(read_run(measured))
    row = result.row("finra", "one-to-one")
    assert (row.value.value, row.against["pgp fork"].value) == (40.0, 0.5)
    assert result.row("finra", "pgp fork").against == {}
    assert result.noise["finra"].value == pytest.approx(1.01)
    assert result.drift["finra"].trend > 1
    assert row.details["requests"] == 18


def test_a_table_has_percentages_ranges_and_what_its_words_mean(measured):
    shown = table_of(LATENCY.of(read_run(measured)))
    row = dict(zip(shown.columns, next(r for r in shown.rows if r[0] == "pgp fork"), strict=True))
    assert row["error"].endswith("%")
    assert row["over_slo"] == "33.3%"
    assert re.fullmatch(r"[\d.]+ \([\d.]+ to [\d.]+\)", row["predicted_ms"])
    assert "remark" not in shown.columns  # there is none
    explained = {note.partition(":")[0] for note in shown.notes}
    assert {"error", "over_slo", "95 % interval", "pgp fork ÷ it"} <= explained
    (asked,) = [note for note in shown.notes if "planned for" in note]
    assert asked.startswith("pgp fork of finra: planned for 30 ms; measured: 66.7 % of 18 within ")


@pytest.mark.usefixtures("undrawn")
def test_what_others_had_meanwhile_stands_beside_the_errors_of_predictions(run_folder):
    write_rounds(run_folder, REQUESTS, requests_sample, others=0.45)
    result = LATENCY.of(read_run(run_folder))
    assert result.drift["finra"].others == 0.45
    assert "45% of the cores" in table_of(result).notes[-1]
    write_report(run_folder)
    assert "45% of the cores" in (run_folder / "report.html").read_text()


def test_below_100_requests_a_window_there_is_no_figure_but_the_word(run_folder):
    write_rounds(run_folder, CLOSED, lambda *k: (
        ClosedSample(clients=4, per_s=k[3], answered=120, counted=99, p50_ms=1.0, p95_ms=2.0,
                     errors=0),))  # fmt: skip
    write_rounds(run_folder, OPEN, lambda *k: (
        OpenSample(per_s=5.0, arrived=100, dropped=1, errors=0, latencies_ms=(k[0],) * 99),
    ), 1)  # fmt: skip
    folder = read_run(run_folder)
    result = THROUGHPUT.of(folder)
    row = result.row("finra", "one-to-one")
    assert (row.value, row.against, row.details) == (None, {}, {})
    assert row.note == "too few requests: below 100 a window"
    assert row.note in table_of(result).rows[0]
    assert table_of(load(folder)).rows[0][-3:] == ("too few",) * 3


def test_violations_are_counted_against_both_slos(measured):
    rows = {row.variant: row for row in slo(read_run(measured)).rows}
    assert rows["one-to-one"].violations.value == 1.0
    ours = rows["pgp fork"]
    assert ours.violations.value == pytest.approx(1 / 3)  # 35 ms of 20, 20 and 35
    assert ours.same_run_slo_ms == 35.0
    assert ours.same_run_violations.value == 0.0


def test_a_variant_that_the_gateway_refused_is_a_row_that_says_so(run_folder):
    refused = {"one-to-one": "the gateway holds 15 functions"}
    (run_folder / "finra" / "refused.json").write_text(json.dumps(refused))
    known = {label: value for label, value in KNOWN.items() if label != "one-to-one"}
    samples = {label: requests_sample(*value) for label, value in known.items()}
    row = REQUESTS.row(number=0, group=0, probe_ms=1.0, took_s=1.0, samples=samples)
    REQUESTS.journal(run_folder / "finra").append(row)
    result = LATENCY.of(read_run(run_folder))
    assert result.row("finra", "one-to-one").note == "the gateway holds 15 functions"
    assert result.row("finra", "pgp fork").value.value == 20.0


def test_what_wins_and_what_is_even(measured):
    folder = read_run(measured)
    throughput = cell(THROUGHPUT.of(folder), "finra", ["pgp fork"])
    assert (throughput.best, throughput.standing) == ("pgp fork", "wins")
    latency = LATENCY.of(folder)
    assert cell(latency, "finra", ["pgp fork"]).standing == "even"  # with faastlane
    found = averages([latency], ["pgp fork"])
    assert found["sand fork", "pgp fork"][0].better == 1
    assert found["faastlane fork", "pgp fork"][0].even == 1
    other = cell(latency, "finra", ["one-to-one"])
    assert (other.ours, other.standing) == ("one-to-one", "even")  # nothing is compared with it


def test_the_report_has_everything_in_one_file(measured):
    pytest.importorskip("matplotlib")
    page = write_report(measured).read_text()
    assert page.count("data:image/png;base64,") >= 8
    assert 'src="http' not in page
    assert "chiron evaluate all &lt;now&gt;" in page
    for name in ("latency", "cpu", "memory", "throughput", "cost", "slo", "load", "breakdown"):
        assert f'id="{name}"' in page
        assert json.loads((measured / f"{name}.json").read_text())["experiment"] == name
    rows = list(csv.DictReader(io.StringIO((measured / "latency.csv").read_text())))
    assert {row["variant"] for row in rows} == {*KNOWN} - {"A/A replicate of pgp fork"}
    assert (measured / "latency.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("measurement", [None, REQUESTS, MEMORY, CLOSED])
def test_the_report_leaves_out_what_was_not_measured(measurement, run_folder, measured, tmp_path):
    for each in (REQUESTS, MEMORY, CLOSED, OPEN, BREAKDOWN):
        if each is not measurement:
            each.journal(measured / "finra").path.unlink()
    page = write_report(measured).read_text()
    present = [name for name in EXPERIMENTS if f'id="{name}"' in page]
    assert present == {None: [], REQUESTS: ["latency", "slo", "cpu"], MEMORY: ["memory"],
                       CLOSED: ["throughput"]}[measurement]  # fmt: skip


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("commit", ["", "abc-dirty-123"])
def test_a_run_that_nobody_can_repeat_is_called_no_evidence(commit, run_folder):
    assert "No evidence" not in write_report(run_folder).read_text()
    file = run_folder / "run.json"
    write_atomically(file, json.dumps(json.loads(file.read_text()) | {"commits": ["abc", commit]}))
    assert "No evidence" in write_report(run_folder).read_text()
    assert "no commit" in read_run(run_folder).warnings[0]
