"""Stored rows are predicted again, held against baselines, listed and drawn."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from chiron.evaluation.commands.prediction import command
from chiron.evaluation.prediction.comparison import compare_stored, slos_kept
from chiron.evaluation.prediction.plans import random_plans
from chiron.evaluation.prediction.rows import MeasuredRow, TimedRequest, keep_workflow, read_rows
from chiron.predictor.predict import predict
from chiron.workflow.documents import dump, write_atomically
from chiron.workflow.errors import ChironError


def silent(line: str) -> None:
    """Progress that nobody reads."""


@pytest.fixture
def stored(write_folder, profile_of, platform, tmp_path):
    """Rows of two workflows, measured by hand as half as long again as predicted."""
    path = tmp_path / "rows"
    write_atomically(path / "platform.json", dump(platform))
    for name, count in (("three", 3), ("four", 4)):
        tasks = {f"t{n}": "greet" for n in range(count)}
        document = {"name": name, "tasks": tasks, "edges": []}
        code = {"greet": "def handle(req):\n    return req\n"}
        folder = write_folder(tmp_path / name, document, code, {})
        profile, journal = keep_workflow(path, folder, lambda of=folder: profile_of(of.workflow))
        for mechanism in ("fork", "pool"):
            drawn = random_plans(
                folder.workflow, profile, mechanism, count=4, most_processes=3, seed=1
            )
            for index, plan in enumerate(drawn):
                latency_ms = predict(plan, folder.workflow, profile, platform).latency_ms * 1.5
                request = TimedRequest(latency_ms=latency_ms, probe_ms=1.0)
                again = () if index else (request,)
                journal.append(MeasuredRow(plan=plan, requests=(request,), again=again))
    return path


def test_an_slo_is_kept_where_its_cheapest_plan_was_measured_within_it(stored):
    (four, *_) = compare_stored(stored, silent, held_out=None).workflows
    rows = [
        row.model_copy(
            update={
                "predicted": row.predicted.model_copy(
                    update={"high_ms": 2 * row.predicted.latency_ms}
                )
            }
        )
        for row in four.rows
    ]
    found = slos_kept(rows)
    assert found.met == 1
    assert found.kept is not None and 0 < found.kept < 1
    assert found.missed_by == pytest.approx(0.5)  # the first SLO is the fastest prediction


def test_rows_of_another_workflow_of_that_name_are_not_gone_on_with(stored, tmp_path, write_folder):
    document = {"name": "four", "tasks": {"a": "greet"}, "edges": []}
    code = {"greet": "def handle(req):\n    return req\n"}
    folder = write_folder(tmp_path / "other", document, code, {})
    with pytest.raises(ChironError) as error:
        keep_workflow(stored, folder, pytest.fail)
    assert error.value.code == "other-run"


def test_rows_are_predicted_again(stored):
    compared = compare_stored(stored, silent, held_out=None)
    assert compared.baselines is None
    assert [(each.workflow, each.mechanism) for each in compared.workflows] == [
        ("four", "fork"), ("four", "pool"), ("three", "fork"), ("three", "pool")
    ]  # fmt: skip
    for each in compared.workflows:
        assert each.errors.mean_absolute == pytest.approx(1 / 3, abs=1e-3)
        assert each.noise == pytest.approx(0.0, abs=1e-3)
        assert each.inside == 0.0


@pytest.mark.parametrize(
    ("file", "text", "code"),
    [
        ("platform.json", None, "missing-file"),
        ("four.profile.json", None, "missing-file"),
        ("four.workflow.json", None, "missing-file"),
        ("four.rows.jsonl", "", "missing-file"),
        ("four.rows.jsonl", "{}\n", "bad-document"),
        ("four.rows.jsonl", "{\n", "bad-json"),
    ],
)
def test_a_folder_that_lacks_something_is_refused(stored, file, text, code):
    (stored / file).unlink()
    if text is not None:
        (stored / file).write_text(text)
    with pytest.raises(ChironError) as error:
        read_rows(stored)
    assert error.value.code == code
    assert file in error.value.message


def test_the_verb_evaluates_stored_rows_into_files(stored, tmp_path):
    out = tmp_path / "out"
    ran = CliRunner().invoke(
        command, ["--rows", str(stored), "-o", str(out), "--json", "--no-baselines"]
    )
    assert ran.exit_code == 0, ran.output
    written = json.loads((out / "prediction.json").read_text())
    assert json.loads(ran.stdout) == written
    assert [each["workflow"] for each in written["workflows"]] == ["four", "four", "three", "three"]
    assert (out / "prediction.csv").read_text().count("\n") == 17
