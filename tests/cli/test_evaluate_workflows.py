"""`chiron evaluate workflows` shows what each variant takes beyond the critical path."""

from __future__ import annotations

from pathlib import Path

from chiron.deployment.measure import Measurement
from chiron.evaluation.bench.machine import this_machine
from chiron.evaluation.commands import workflows
from chiron.evaluation.intervals import Interval
from chiron.evaluation.scientific.folder import Scaling
from chiron.evaluation.scientific.report import (
    LoadRow,
    TogetherRow,
    VariantRow,
    WorkflowRow,
    WorkflowsReport,
)


def test_a_workflow_that_was_not_traced_is_refused(chiron):
    assert chiron("evaluate", "workflows", "wordcount", "--local").status == 2


def test_a_field_of_a_request_has_to_be_json(chiron):
    folder = str(Path(__file__).parents[2] / "benchmarks" / "wordcount")
    result = chiron("evaluate", "workflows", folder, "--local", "--request", "parts=x")
    assert result.status == 2
    assert "--request 'parts=x': 'x' is no JSON" in result.stderr


def test_variants_are_shown_beside_the_baseline(capsys):
    row = VariantRow(
        workflow="cycles",
        variant="pgp",
        wraps=1,
        processes=3,
        latency=Measurement.of([20.0, 22.0, 24.0]),
        p99_ms=24.0,
        predicted_ms=21.0,
        overhead_ms=10.0,
        overhead_cut=Interval(value=0.75, low=0.7, high=0.8),
        beyond_cores_ms=5.0,
        beyond_cores_cut=Interval(value=0.9, low=0.85, high=0.95),
        ratios={"one-to-one": Interval(value=0.4, low=0.3, high=0.5)},
        between_mb=0.0,
        gateway_mb=0.5,
        store_mb=None,
        cpu_ms=4.0,
        memory_mib=None,
        load=LoadRow(
            clients=4,
            per_s=(10.0, 12.0),
            p50_ms=333.0,
            answered=120,
            failed=0,
            cores=1.5,
            ratios={"faasflow": Interval(value=1.25, low=1.2, high=1.3)},
        ),
    )
    together = TogetherRow(
        workflow="cycles", variant="pgp", alone_ms=20.0, together_ms=60.0, slower=3.0, failed=0
    )
    workflows._show(
        WorkflowsReport(
            machine=this_machine(),
            command="chiron",
            scaling=Scaling(),
            workflows=(
                WorkflowRow(
                    workflow="cycles",
                    stages=(2, 1),
                    critical_path_ms=12.0,
                    computing_ms=9.0,
                    unhindered_ms=17.0,
                    variants=(row,),
                    others=None,
                    warnings=("profile of cycles: taken on a busy machine",),
                ),
            ),
            together=(together,),
        )
    )
    shown = capsys.readouterr().err
    assert "cycles: critical path 12.0 ms, unhindered 17.0 ms; 3 requests" in shown
    assert "taken on a busy machine" in shown
    for cell in ("1, 3", "22.0 (20.0-24.0)", "75.0% (70.0% to 80.0%)", "0.40 (0.30 to 0.50)"):
        assert cell in shown
    assert any(line.split()[:5] == ["cycles", "pgp", "4", "10.00", "12.00"]
               for line in shown.splitlines())  # fmt: skip
    assert "1.25 (1.20 to 1.30)" in shown
    assert "ASPLOS'23" not in shown  # there is nothing to hold against it
    assert any(line.split() == ["cycles", "pgp", "20.0", "60.0", "3.00", "0"]
               for line in shown.splitlines())  # fmt: skip
