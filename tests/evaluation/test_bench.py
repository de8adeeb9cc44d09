"""What a run remembers: rounds, settings, deployed functions; and which variants there are."""

from __future__ import annotations

import pytest

from chiron.evaluation.bench.bench import Bench
from chiron.evaluation.bench.machine import Machine, Target, this_machine
from chiron.evaluation.bench.rounds import Journal
from chiron.evaluation.bench.settings import Settings, open_run
from chiron.evaluation.bench.variants import (
    distinct,
    groups,
    our_labels,
    variants,
)
from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule
from chiron.workflow.documents import Document
from chiron.workflow.errors import ChironError
from chiron.workflow.payloads import Payload

SETTINGS = Settings(planners=("one-to-one", "pgp"), mechanisms=("fork",))
TARGET = Target(provider="here")


class Line(Document):
    """A row of a journal."""

    number: int


@pytest.fixture
def journal(tmp_path) -> Journal[Line]:
    return Journal(tmp_path / "deep" / "lines.jsonl", Line)


def test_half_a_line_of_a_run_that_was_killed_does_not_count_and_does_not_stay(journal):
    journal.append(Line(number=0))
    with journal.path.open("ab") as file:
        file.write(b'{"num')
    assert [row.number for row in journal.rows()] == [0]
    journal.append(Line(number=1))
    assert [row.number for row in journal.rows()] == [0, 1]


def test_a_line_of_something_else_is_refused(journal):
    journal.append(Line(number=0))
    with journal.path.open("ab") as file:
        file.write(b'{"letter":"a"}\n')
    with pytest.raises(ChironError, match=r"lines\.jsonl"):
        journal.rows()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"planners": ("pgp",)}, "planners one-to-one, pgp, not pgp"),
        ({"slo_ms": 5.0}, "slo_ms None, not 5.0"),
        ({"quick": True}, "quick False, not True"),
    ],
)
def test_a_run_of_other_settings_is_not_gone_on_with(change, word, tmp_path):
    open_run(tmp_path, SETTINGS, this_machine(), TARGET, "")
    with pytest.raises(ChironError) as error:
        open_run(tmp_path, SETTINGS.model_copy(update=change), this_machine(), TARGET, "")
    assert error.value.code == "other-run"
    assert word in error.value.message


def test_a_run_of_another_machine_or_gateway_is_not_gone_on_with(tmp_path):
    machine: Machine = this_machine()
    open_run(tmp_path, SETTINGS, machine, TARGET, "")
    other = machine.model_copy(update={"cores": machine.cores + 1})
    with pytest.raises(ChironError, match="machine"):
        open_run(tmp_path, SETTINGS, other, TARGET, "")
    with pytest.raises(ChironError, match="faasd"):
        open_run(tmp_path, SETTINGS, machine, Target(provider="faasd"), "")


def test_planners_without_further_processes_are_one_variant():
    found = variants(("one-to-one", "sand", "faastlane-t", "pgp"), ("fork", "pool"))
    assert [each.label for each in found] == [
        "one-to-one", "sand fork", "sand pool", "faastlane-t", "pgp fork", "pgp pool",
    ]  # fmt: skip
    assert our_labels(("pool",)) == ["pgp pool"]


def test_equal_plans_are_measured_once(small, profile_of, platform):
    plans = {
        label: schedule(
            small.workflow, profile_of(small.workflow), platform, 1e3,
            Choices(planner=planner, mechanism=mechanism)
        )
        for label, planner, mechanism in [
            ("faastlane fork", "faastlane", "fork"),
            ("faastlane+ fork", "faastlane+", "fork"),
            ("faastlane pool", "faastlane", "pool"),
            ("sand fork", "sand", "fork"),
        ]
    }  # fmt: skip
    assert distinct(plans) == {
        "faastlane fork": "faastlane fork",
        "faastlane+ fork": "faastlane fork",  # no stage has more than five tasks
        "faastlane pool": "faastlane pool",
        "sand fork": "sand fork",
    }
    plan = plans["sand fork"]
    other = plan.model_copy(update={"trigger": "stage"})
    assert distinct({"data": plan, "stage": other}) == {"data": "data", "stage": "stage"}


def test_variants_that_do_not_fit_together_stand_in_groups():
    assert groups({"a": 6, "b": 6, "c": 6, "d": 1}, 13) == [["a", "b", "d"], ["c"]]


@pytest.mark.parametrize("count", [1, 3, 5])
def test_over_all_rounds_payloads_come_as_often_as_they_weigh(count):
    small, large = (Payload(name, b"", weight) for name, weight in (("small", 3.0), ("large", 1.0)))
    bench = Bench("", [(each, lambda _: None) for each in (small, large)], {}, {})
    sent = [payload.name for number in range(8) for payload, _ in bench.requests(number, count)]
    assert (sent.count("small"), sent.count("large")) == (6 * count, 2 * count)
