"""Traced workflows become folders that run here, and their variants are measured."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from chiron.evaluation.bench.rounds import Round
from chiron.evaluation.bench.settings import QUICK
from chiron.evaluation.bench.setup import PROFILE_FILE, Place
from chiron.evaluation.reference.sources import reference_run
from chiron.evaluation.runtime.deployed import BENCHMARKS
from chiron.evaluation.scientific.alone import PLANS_FILE, Plans, Turn, prepare, turns
from chiron.evaluation.scientific.changed import changed
from chiron.evaluation.scientific.folder import (
    NAMES,
    Facts,
    Scaling,
    TaskFacts,
    facts_of,
    write_folder,
)
from chiron.evaluation.scientific.report import workflow_row
from chiron.evaluation.scientific.run import Amount, measure_all
from chiron.evaluation.scientific.variants import (
    computing_ms,
    critical_path_ms,
    unhindered_ms,
)
from chiron.generator.generate import Sources
from chiron.workflow.documents import dump, read_document, write_atomically
from chiron.workflow.folder import WorkflowFolder

#: Nothing but the data of the traces.
INSTANT = Scaling(time=1e-6, size=0.01, computing=0)
DIAMOND = Facts(
    name="diamond",
    source="by hand",
    request_bytes=1000,
    tasks={
        "first": TaskFacts(run_s=0.1, output_bytes=5000, after=()),
        "left": TaskFacts(run_s=0.3, output_bytes=100, after=("first",)),
        "right": TaskFacts(run_s=0.2, output_bytes=20_000, after=("first",)),
        "last": TaskFacts(run_s=0.1, output_bytes=300, after=("left", "right")),
    },
)
#: Of these the second is left out where there is no store.
CHOSEN = ["one-to-one", "one-to-one, store", "pgp"]
AMOUNT = Amount(
    replace(
        QUICK, requests=4, block=2, requests_s=60.0, memory_rounds=1, held_s=0.2, closed_rounds=1,
        closed_s=0.3, most_s=0.3,
    ),
    5, 1, 0.2,
)  # fmt: skip


@pytest.fixture
def diamond(tmp_path):
    return write_folder(DIAMOND, Scaling(time=0.01, size=1, computing=0.5), tmp_path / "diamond")


@pytest.mark.parametrize("name", NAMES[:2])
def test_a_traced_workflow_has_its_tasks_edges_and_sizes(name, tmp_path):
    facts = facts_of(name)
    folder = write_folder(facts, INSTANT, tmp_path)
    assert {task.name: task.predecessors for task in folder.workflow.tasks} == {
        name: each.after for name, each in facts.tasks.items()
    }
    used = {before for each in facts.tasks.values() for before in each.after}
    ends = [max(1, round(each.output_bytes * 0.01)) for name, each in facts.tasks.items()
            if name not in used]  # fmt: skip
    answer = _answer(folder, folder.payloads()[0].content)
    around = 1 + 3 * len(ends) if len(ends) > 1 else 0  # a list of texts
    assert len(answer) == sum(ends) + around


def test_an_answer_depends_on_every_output_on_the_way(tmp_path):
    answers = set()
    for task in ("left", "right"):
        changed = DIAMOND.tasks[task].model_copy(update={"output_bytes": 77})
        facts = DIAMOND.model_copy(update={"tasks": {**DIAMOND.tasks, task: changed}})
        answers.add(_answer(write_folder(facts, INSTANT, tmp_path / task), b"one"))
    assert len(answers) == 2


def test_the_critical_path_is_the_longest_way_and_computing_is_that_of_all(diamond, profile_of):
    profile = profile_of(diamond.workflow)  # each computes 1 ms, and waits 3
    slow = profile.functions["right"].model_copy(update={"latency_ms": 10.0})
    profile = profile.model_copy(update={"functions": {**profile.functions, "right": slow}})
    assert critical_path_ms(diamond.workflow, profile) == 4 + 10 + 4
    assert computing_ms(diamond.workflow, profile) == 4


def test_unhindered_tasks_wait_for_their_data_and_for_cores_alone(diamond, profile_of):
    profile = profile_of(diamond.workflow)  # each computes 1 ms, and waits 3
    assert unhindered_ms(diamond.workflow, profile, cores=2) == pytest.approx(12)
    assert unhindered_ms(diamond.workflow, profile, cores=1) == pytest.approx(13)


@pytest.mark.slow
def test_variants_are_measured_alone_and_all_at_once(
    diamond, launcher, profile_of, platform, tmp_path
):
    out, told = tmp_path / "run", []
    profile = profile_of(diamond.workflow)
    sized = {
        name: function.model_copy(update={"output_bytes": DIAMOND.tasks[name].output_bytes})
        for name, function in profile.functions.items()
    }
    profile = profile.model_copy(update={"functions": sized})
    write_atomically(out / "diamond" / PROFILE_FILE, dump(profile))
    place = Place(launcher, platform, told.append)

    def go():
        return measure_all([diamond], [], place, out, AMOUNT, ("alone", "load", "together"), CHOSEN)

    (row,), together = go()
    found = {each.variant: each for each in row.variants}
    assert set(found) == {"one-to-one", "pgp"}
    # Request and answer of every task, against those of the workflow.
    request, sizes = len(diamond.payloads()[0].content), [5000, 100, 20_000, 300]
    joined = len('["",""]') + 20_100
    through_all = request + sum(sizes) + 2 * 5000 + joined
    assert found["one-to-one"].gateway_mb == pytest.approx(through_all / 1e6, abs=1e-4)
    assert found["one-to-one"].between_mb == pytest.approx((2 * 5000 + 20_100) / 1e6, abs=1e-4)
    assert found["pgp"].gateway_mb == pytest.approx((request + 300) / 1e6, abs=1e-4)
    for each in row.variants:
        assert each.memory_gb_s > 0 and each.held_mb >= 0
        assert each.load.failed == 0 and each.load.per_s[0] > 1 and each.load.cores > 0
        assert each.variant == "pgp" or each.load.ratios["pgp"].value > 0
    assert {(each.workflow, each.failed) for each in together} == {("diamond", 0)}
    assert launcher.gateway.functions() == []

    told.clear()
    again = go()
    assert (again[0][0].variants, told) == (row.variants, [])


def test_what_emits_its_parts_answers_as_dataflowers_form_does(tmp_path):
    name = "wordcount"
    folder = WorkflowFolder.open(BENCHMARKS / name)
    asked = {"megabytes": 0.1, "parts": 3}
    plain, emitting = (
        changed(folder, asked, tmp_path / str(emits), emits=emits) for emits in (False, True)
    )
    request = emitting.payloads()[0].content
    assert json.loads(request) == asked == json.loads(plain.payloads()[0].content)
    assert json.loads(_answer(plain, request)) == json.loads(_answer(emitting, request))
    names = {each.workflow.name for each in (folder, plain, emitting)}
    assert names == {name, f"{name}-megabytes-0-1-parts-3", f"{name}-megabytes-0-1-parts-3-emits"}
    _, *each, _ = emitting.workflow.stages
    assert [len(stage) for stage in each] == [3]
    assert plain.workflow.machine is not None and emitting.workflow.machine is None


def test_overhead_is_what_a_request_takes_beyond_its_critical_path(
    diamond, profile_of, platform, tmp_path
):
    place = Place(None, platform, print)
    plans = prepare(diamond, place, tmp_path, profile_of(diamond.workflow))
    assert read_document(Plans, tmp_path / PLANS_FILE, "plans") == plans
    assert plans.critical_path_ms == 12
    for number in range(3):
        samples = {
            label: Turn(latencies_ms=(ms + number,), gateway_bytes=2e6, cpu_s=0.004)
            for label, ms in {"one-to-one": 51.0, "pgp": 21.0, "pgp by stage": 31.0}.items()
        }
        row = Round[Turn](number=number, group=0, probe_ms=1.0, took_s=1.0, samples=samples)
        turns().journal(tmp_path).append(row)
    found = {each.variant: each for each in workflow_row("diamond", plans, tmp_path).variants}
    ours = found["pgp"]
    assert (ours.latency.p50_ms, ours.p99_ms, ours.overhead_ms) == (22.0, 23.0, 10.0)
    assert ours.overhead_cut.value == pytest.approx(1 - 10 / 40)
    assert ours.beyond_cores_ms == pytest.approx(22 - plans.unhindered_ms)
    assert found["one-to-one"].overhead_cut is None
    assert ours.ratios["pgp by stage"].value == pytest.approx(22 / 32, abs=1e-4)
    assert (ours.gateway_mb, ours.cpu_ms, ours.memory_mib) == (2.0, 4.0, None)


def _answer(folder, request: bytes) -> str:
    return reference_run(Sources.read(folder, {}), request, "http://127.0.0.1:9").output
