"""What cannot be predicted is refused with the path to the field, by the service and the verb."""

from __future__ import annotations

import copy
import json
import math
import signal
from collections.abc import Callable
from typing import Any

import pytest

from chiron.cli.main import main
from tests.rows import each_row

Artefacts = dict[str, Any]


def period(start_ms: float, duration_ms: float) -> Artefacts:
    return {"kind": "cpu", "start_ms": start_ms, "duration_ms": duration_ms}


def periods(*times: tuple[float, float], latency_ms: float = 10.0) -> Callable[[Artefacts], None]:
    """Gives the function `first` other periods."""

    def change(of: Artefacts) -> None:
        function = of["profile"]["functions"]["first"]
        function |= {"latency_ms": latency_ms, "periods": [period(*each) for each in times]}

    return change


def plan(*processes: list[str], cpus: int = 1) -> Callable[[Artefacts], None]:
    """Gives the plan's only wrap other processes and CPUs."""

    def change(of: Artefacts) -> None:
        of["plan"]["wraps"][0] |= {"cpus": cpus, "processes": processes}
        of["plan"]["cpus"] = cpus

    return change


#: Of each file, and of what its parser, its model and its workflow refuse.
BAD = {
    "an overlap": (
        periods((0, 6), (5, 5)), "profile.functions.first.periods", "period 1 overlaps"
    ),
    "NaN": (
        periods((0, math.nan)), "profile.functions.first.periods[0].duration_ms", "NaN"
    ),
    "no core": (lambda of: of["platform"].update(cpus=0), "platform.cpus", "greater than"),
    "a missing task": (plan(["First"]), "plan.wraps", "leaves out Second"),
}  # fmt: skip


@pytest.fixture
def artefacts(workflow, profile, platform) -> Artefacts:
    """The body of a prediction that can be made."""
    wrap = {"name": "demo-wrap1", "cpus": 1, "memory_mib": 64, "mechanism": "fork",
            "processes": [["First", "Second"]]}  # fmt: skip
    made = {"format": 2, "workflow": "demo", "planner": "pgp", "wraps": [wrap], "cpus": 1}
    return {"workflow": workflow, "profile": profile, "platform": platform, "plan": made}


@pytest.fixture
def predict(artefacts, tmp_path, monkeypatch, capsys) -> Callable[..., tuple[Any, str]]:
    """Runs the verb on the artefacts as they are then; its exit status and what stderr says."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # the test's own stay as they are

    def run(*arguments: str) -> tuple[Any, str]:
        folder = tmp_path / "demo"
        folder.mkdir()
        for name, document in artefacts.items():
            place = folder if name == "workflow" else tmp_path
            (place / f"{name}.json").write_text(json.dumps(document))
        monkeypatch.chdir(tmp_path)
        with pytest.raises(SystemExit) as ended:
            main(["predict", "demo", *(arguments or ("--plan", "plan.json"))])
        return ended.value.code, capsys.readouterr().err

    return run


def test_what_is_right_is_predicted(client, artefacts, predict):
    assert client.post("/predictor/predict", json=artefacts).json["latency_ms"] > 0
    assert predict()[0] == 0


@each_row(("change", "path", "words"), BAD.values(), ids=BAD)
def test_the_service_names_the_field(change, path, words, artefacts, refused):
    changed = copy.deepcopy(artefacts)
    change(changed)
    status, error = refused("/predictor/predict", json=changed)
    assert (status, error["path"]) == (400, path)
    assert words in error["message"]


@pytest.mark.parametrize(("change", "path", "words"), BAD.values(), ids=BAD)
def test_the_verb_names_the_file_and_the_field(change, path, words, artefacts, predict):
    change(artefacts)
    status, said = predict()
    file, _, field = path.partition(".")
    assert status == 2
    assert said.count("\n") == 1
    assert file in said
    assert f"(at {field})" in said
    assert words in said


def test_the_service_counts_the_plans(artefacts, refused):
    good = artefacts.pop("plan")
    bad = json.loads(json.dumps(good))
    bad["wraps"][0]["processes"][0].pop()
    _, error = refused("/predictor/predict", json=artefacts | {"plans": [good, bad]})
    assert (error["code"], error["path"]) == ("missing-task", "plans[1].wraps")


def test_the_verb_counts_the_lines(artefacts, predict, tmp_path):
    plan(["First"])(artefacts)
    (tmp_path / "plans.jsonl").write_text("\n" + json.dumps(artefacts["plan"]) + "\n")
    status, said = predict("--plans", "plans.jsonl")
    assert status == 2
    assert "line 2 of plans.jsonl: the plan leaves out Second (at wraps)" in said
