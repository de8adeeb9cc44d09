"""Stored rows are predicted again, held against baselines, listed and drawn."""

from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner

from chiron.evaluation.commands.prediction import command
from chiron.evaluation.prediction.comparison import as_csv, compare_stored, slos_kept
from chiron.evaluation.prediction.errors import OURS, Distribution, by_place, error_boxes
from chiron.evaluation.prediction.plans import random_plans
from chiron.evaluation.prediction.rows import MeasuredRow, TimedRequest, keep_workflow, read_rows
from chiron.predictor.predict import predict
from chiron.workflow.documents import dump, write_atomically
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder

PNG = b"\x89PNG\r\n\x1a\n"


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


def test_what_was_stored_is_read_back(stored, platform):
    place, (four, three) = read_rows(stored)
    assert place == platform
    assert (four.name, three.name) == ("four", "three")
    assert [row.plan.mechanisms for row in four.rows] == ["fork"] * 4 + ["pool"] * 4
    assert len(four.workflow.tasks) == 4


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


def test_a_workflow_is_profiled_once(stored, tmp_path):
    def profile_again():
        raise AssertionError("it was profiled already")

    folder = WorkflowFolder.open(tmp_path / "four")
    profile, journal = keep_workflow(stored, folder, profile_again)
    assert set(profile.functions) == {"greet"}
    assert len(journal.rows()) == 8


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


def test_other_constants_may_be_tried_on_stored_rows(stored, platform):
    slow = platform.model_copy(update={"request_ms": 100.0})
    compared = compare_stored(stored, silent, held_out=None, platform=slow)
    assert all(each.errors.bias > 0 for each in compared.workflows)


@pytest.mark.soak
def test_every_predictor_has_an_error_for_every_row(stored):
    compared = compare_stored(stored, silent, held_out="workflow")
    assert compared.baselines is not None
    ran = {each.predictor for each in compared.baselines.distributions}
    assert ran | set(compared.baselines.not_run) == {"RFR", "LSTM", "GNN"}
    lines = list(csv.DictReader(io.StringIO(as_csv(compared))))
    assert len(lines) == 16
    for each in compared.distributions():
        column = "error" if each.predictor == OURS else f"{each.predictor}_error"
        listed = [
            float(line[column])
            for line in lines
            if (line["workflow"], line["mechanism"]) == each.place
        ]
        assert listed == pytest.approx(each.errors)


def test_predictors_of_one_workflow_and_mechanism_stand_side_by_side():
    errors = [
        Distribution(workflow=workflow, mechanism="fork", predictor=name, errors=(0.1, -0.2))
        for name in ("chiron", "RFR")
        for workflow in ("a", "b")
    ]
    places = by_place(errors)
    assert [[each.predictor for each in place] for place in places] == [["chiron", "RFR"]] * 2
    assert [place[0].workflow for place in places] == ["a", "b"]


def test_the_picture_is_a_png_and_the_same_each_time(stored):
    pytest.importorskip("matplotlib", reason="the extra evaluation draws")
    drawn = compare_stored(stored, silent, held_out=None).distributions()
    picture = error_boxes(drawn, "errors")
    assert picture.startswith(PNG)
    assert picture == error_boxes(drawn, "errors")


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


def test_a_folder_without_rows_is_refused(stored):
    for file in stored.glob("*.rows.jsonl"):
        file.unlink()
    with pytest.raises(ChironError) as error:
        read_rows(stored)
    assert error.value.code == "missing-file"


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


@pytest.mark.parametrize("arguments", [[], ["--rows", "a", "--testbed", "b"], ["a", "--rows", "b"]])
def test_the_verb_takes_one_source_of_rows(arguments):
    ran = CliRunner().invoke(command, arguments)
    assert ran.exit_code == 2
    assert "either workflow folders, --testbed or --rows" in ran.output
