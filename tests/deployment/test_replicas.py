"""A plan for a load is measured once its replicas are there."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from chiron.deployment.replicas import await_replicas
from chiron.openfaas.objects import MIN_LABEL, FunctionStatus
from chiron.workflow.errors import ChironError
from chiron.workflow.load import Load


def plan_of(*names, per_s=50.0):
    load = SimpleNamespace(load=Load(per_s=per_s)) if per_s else None
    return SimpleNamespace(wraps=[SimpleNamespace(name=name) for name in names], under_load=load)


class Gateway:
    """One that starts a replica at each look, up to as many as were asked for."""

    def __init__(self, least="3", begins_with=3, allows=20):
        self.labels = {MIN_LABEL: least} if least else {}
        self.wanted, self.allows, self.there = begins_with, allows, 0
        self.asked = []

    def describe(self, name):
        self.there = min(self.there + 1, self.wanted)
        return FunctionStatus(
            name=name,
            labels=self.labels,
            replicas=self.wanted,
            available_replicas=self.there,
        )

    def scale(self, name, replicas):
        self.asked.append((name, replicas))
        self.wanted = min(self.allows, replicas)


@pytest.mark.parametrize(("begins_with", "asked"), [(3, []), (1, [("w", 3)])])
def test_it_waits_for_as_many_as_the_label_has_and_asks_for_them_once(begins_with, asked):
    gateway, looks = Gateway(begins_with=begins_with), []
    await_replicas(gateway, plan_of("w"), sleep=looks.append)
    assert (gateway.there, gateway.asked, len(looks)) == (3, asked, 2)


@pytest.mark.parametrize("least", ["", "1", "many"])
def test_any_number_will_do_where_the_label_says_none(least):
    gateway = Gateway(least, begins_with=0)
    await_replicas(gateway, plan_of("w"), sleep=pytest.fail)
    assert gateway.asked == []


def test_a_plan_for_no_load_is_not_looked_at():
    await_replicas(None, plan_of("w", per_s=None))


def test_a_gateway_that_runs_fewer_is_named_with_what_mends_it():
    gateway = Gateway(begins_with=1, allows=1)
    with pytest.raises(ChironError, match=r"1 of the 3 replicas for 50/s.*lower rate") as error:
        await_replicas(gateway, plan_of("w"), limit_s=-math.inf, sleep=lambda _: None)
    assert (error.value.code, error.value.functions) == ("too-few-replicas", ("w",))
