"""What plans cost in money: by the paper's prices, or by one's own."""

from __future__ import annotations

import pytest

from chiron.evaluation.experiments.published import PAPER_GHZ, held_usd
from chiron.scheduler.choices import Choices
from chiron.scheduler.prices import PAPER_PRICES, Prices
from chiron.scheduler.replicas import schedule_load
from chiron.scheduler.schedule import schedule
from chiron.scheduler.strategies import memory_mib
from chiron.workflow.load import Load
from chiron.workflow.model import Task, Workflow

FLOW = Workflow("demo", (Task("a", "a", None), Task("b", "b", "a")), "b")
WORK = {"a": "cpu 8 block 10", "b": "native 12"}


def test_a_million_requests_one_after_another_cost_what_the_paper_counts(platform, profile):
    plan = schedule(FLOW, profile(**WORK), platform(), 80.0)
    expected = 1e6 * held_usd(plan.predicted.latency_ms, plan.cpus, PAPER_GHZ, memory_mib(plan))
    assert PAPER_PRICES.cost(plan).per_million == pytest.approx(expected, abs=1e-5)


def test_all_replicas_cost_by_the_hour_and_their_requests_share_that(platform, profile):
    load = Load(per_s=150, requests=1000)
    plan = schedule_load(FLOW, profile(**WORK), platform(), 80.0, load, Choices())
    assert plan.allocated_cpus > plan.cpus
    found = Prices(currency="EUR", cpu_hour=0.04, gb_hour=0.0).cost(plan)
    assert (found.currency, found.per_hour) == ("EUR", pytest.approx(0.04 * plan.allocated_cpus))
    assert found.per_million == pytest.approx(found.per_hour / (3600 * 150) * 1e6, abs=1e-5)
    assert found.shown.endswith("EUR a million requests")

    memory = Prices(cpu_hour=0.0, gb_hour=1.0).cost(plan)
    mib = sum(wrap.replicas * wrap.memory_mib for wrap in plan.wraps)
    assert memory.per_hour == pytest.approx(mib * 2**20 / 1e9, abs=1e-6)
