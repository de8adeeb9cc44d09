"""What holds of every execution of a state machine, whatever it does and in whatever order."""

from __future__ import annotations

import copy
import gc
import json
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from state_machines import run, state_machines

from chiron.workflow.asl import parse_states
from chiron.workflow.execute import Execution, execute
from chiron.workflow.model import Workflow
from chiron.workflow.trace import task_of, unrolled
from chiron.wrap.core.statemachine.errors import StatesError
from chiron.wrap.core.statemachine.machine import Machine
from chiron.wrap.core.statemachine.values import dump
from chiron.wrap.core.statemachine.visits import Begin, Delay, Step, Visit
from chiron.wrap.values.jsonata import Jsonata
from tests.examples import FEWER

Given = tuple[dict[str, Any], str]
#: When everything happens, in seconds since 1970.
NOW = 1.7e9


def outcome_of(done: Execution) -> tuple[str, str | None]:
    """What came of an execution, as it is compared: a failure's cause is for people."""
    return ("error", done.error.name) if done.error else ("output", done.output)


class Play:
    """Runs a machine whose tasks and waits end in any order; checks each step."""

    def __init__(self, workflow: Workflow, order: Random) -> None:
        self._workflow = workflow
        self._order = order
        definition = workflow.machine or {}
        self.machine = Machine(definition, self._context, Random(1), evaluator=Jsonata())
        self.open: dict[int, Begin | Delay] = {}
        self.known: set[int] = set()
        self.ended: set[int] = set()
        self.dropped: set[int] = set()

    def _context(self, request: Any, _: float) -> dict[str, Any]:
        name = self._workflow.name
        return {"Execution": {"Input": request}, "StateMachine": {"Id": name, "Name": name}}

    def run(self, request: str) -> tuple[str, str | None]:
        machine = self.machine
        self._take_in(machine.start(request, NOW))
        while not machine.over:
            assert self.open, "it awaits nothing, and goes on"
            number = self._order.choice(list(self.open))
            self.ended.add(number)
            self._take_in(self._end(number, self.open.pop(number)))
        assert not self.open
        self._nothing_more()
        error = machine.outcome if isinstance(machine.outcome, StatesError) else None
        return outcome_of(Execution(None if error else dump(machine.outcome), error))

    def _end(self, number: int, each: Begin | Delay) -> Step:
        if isinstance(each, Delay):
            return self.machine.due(number, NOW)
        try:
            output = run(self._workflow.function_of(each.task), dump(each.given))
        except StatesError as error:
            return self.machine.failed(number, error, NOW)
        return self.machine.ended(number, output, NOW)

    def _take_in(self, step: Step) -> None:
        for dropped in step.dropped:
            assert self.open.pop(dropped, None), "what is dropped was begun before, and not ended"
            self.dropped.add(dropped)
        for each in (*step.begins, *step.delays):
            assert each.number not in self.known, "a number is given once"
            assert each.after <= self.ended
            self.known.add(each.number)
            self.open[each.number] = each

    def _nothing_more(self) -> None:
        machine, outcome = self.machine, repr(self.machine.outcome)
        for number in self.known:
            for step in (machine.ended(number, "1", 0.0), machine.due(number, NOW)):
                assert step == Step([], [], [])
            assert machine.failed(number, StatesError("Late", ""), 0.0) == Step([], [], [])
        assert machine.over
        assert repr(machine.outcome) == outcome


@given(state_machines)
def test_a_machine_is_over_once_and_its_trace_is_a_graph_in_order(drawn: Given) -> None:
    document, request = drawn
    workflow = parse_states(copy.deepcopy(document), "demo")
    before = copy.deepcopy(workflow.machine)
    done = execute(workflow, request.encode(), run)
    assert workflow.machine == before
    assert (done.output is None) == (done.error is not None)
    for place, instance in enumerate(done.trace):
        assert all(0 <= needed < place for needed in instance.after)
    static = unrolled(workflow, done.trace)
    run_ones = {name for name in static.by_name if " " not in static.function_of(name)}
    assert done.inputs.keys() == run_ones
    failed = sum(instance.failed for instance in done.trace)
    assert len(done.outputs) == len(run_ones) - failed
    assert {task_of(name) for name in run_ones} <= workflow.by_name.keys()


@given(state_machines, st.randoms(use_true_random=False))
def test_in_whatever_order_tasks_end_a_machine_answers_the_same(
    drawn: Given, order: Random
) -> None:
    document, request = drawn
    workflow = parse_states(document, "demo")
    expected = outcome_of(execute(workflow, request.encode(), run))
    assert Play(workflow, order).run(request) == expected


@FEWER  # each looks at all objects that there are
@given(state_machines, st.randoms(use_true_random=False))
def test_states_that_were_left_are_gone_without_a_collection(drawn: Given, order: Random) -> None:
    document, request = drawn
    workflow = parse_states(document, "demo")
    gc.collect()
    gc.disable()
    try:
        Play(workflow, order).run(request)
        left = [each.name for each in gc.get_objects() if isinstance(each, Visit)]
    finally:
        gc.enable()
    assert not left


@given(state_machines)
def test_what_was_normalised_is_read_as_it_is(drawn: Given) -> None:
    document, _ = drawn
    machine = parse_states(document, "demo").machine
    assert json.loads(json.dumps(machine)) == machine
