"""Enters states: one function for each type of state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any

from . import map_states
from .errors import FailStateError, StatesError
from .values import Text, instant, number_of, shown
from .visits import MOST_SECONDS, Following, Visit, chosen_task

if TYPE_CHECKING:
    from .machine import Machine


def _enter_pass(machine: Machine, visit: Visit) -> Following:
    return machine.left(visit, visit.state.get("Next"), machine.flows.of(visit).passed(visit))


def _enter_succeed(machine: Machine, visit: Visit) -> Following:
    return machine.left(visit, None, machine.flows.of(visit).unchanged(visit, visit.state))


def _enter_fail(machine: Machine, visit: Visit) -> None:
    flow = machine.flows.of(visit)
    name, cause = flow.field(visit, "Error", ""), flow.field(visit, "Cause", "")
    for field, value in (("Error", name), ("Cause", cause)):
        if not isinstance(value, str):
            message = f"{field} of state {visit.name!a} is {shown(value)}: no string"
            raise StatesError(flow.unfit, message)
    machine.fail_scope(visit.scope, FailStateError(name, cause), visit.after)


def _enter_choice(machine: Machine, visit: Visit) -> Following:
    rule = machine.flows.of(visit).chosen(visit)
    name = visit.state.get("Default") if rule is None else rule["Next"]
    if name is None:
        message = f"state {visit.name!a} has no choice for its input, and no Default"
        raise StatesError("States.NoChoiceMatched", message)
    holder = visit.state if rule is None else rule
    return machine.left(visit, name, machine.flows.of(visit).unchanged(visit, holder))


def _enter_wait(machine: Machine, visit: Visit) -> None:
    flow = machine.flows.of(visit)
    moment = flow.field(visit, "Timestamp", None)
    if moment is not None:
        instant_s = instant(moment)
        if instant_s is None:
            message = f"state {visit.name!a} has {shown(moment)} where a timestamp has to be"
            raise StatesError(flow.unfit, message)
        seconds = float(instant_s) - machine.contexts.now
        if seconds > MOST_SECONDS:
            message = f"state {visit.name!a} waits until {moment}: more than {MOST_SECONDS} s"
            raise StatesError(flow.unfit, message)
    else:
        seconds = _seconds_of(flow.field(visit, "Seconds", None), visit, 0, flow.unfit)
    machine.delay(visit, max(0.0, seconds), visit.after)


def _enter_task(machine: Machine, visit: Visit) -> None:
    flow = machine.flows.of(visit)
    given = flow.given(visit)
    _check_role(machine, visit)
    total_s = _limit_s(machine, visit, "TimeoutSeconds")
    heartbeat_s = _limit_s(machine, visit, "HeartbeatSeconds")
    visit.beats = heartbeat_s < total_s
    least_s = min(total_s, heartbeat_s)
    timeout_s = least_s if least_s < inf else None
    task = None
    if "Invoke" in visit.state:
        call = given if isinstance(given, dict) else {}
        task = _chosen(visit, call.get("FunctionName")) if "Functions" in visit.state else None
        payload = {} if call.get("Payload") is None else call["Payload"]  # null is {}, as on AWS
        given = Text(payload) if isinstance(payload, str) else payload
    machine.begin_task(visit, given, timeout_s, task)


def _check_role(machine: Machine, visit: Visit) -> None:
    """Raise StatesError if a Task's RoleArn is not a string; the role is not assumed."""
    if "Credentials" not in visit.state:
        return
    flow = machine.flows.of(visit)
    role = flow.field(visit, "RoleArn", None, visit.state["Credentials"])
    if not isinstance(role, str):
        message = f"RoleArn of state {visit.name!a} is {shown(role)}: no string"
        raise StatesError(flow.unfit, message)


def _chosen(visit: Visit, called: object) -> str:
    """Return the task for a function that a Task chooses from its table by name."""
    function = visit.state["Functions"].get(called) if isinstance(called, str) else None
    if function is None:
        message = f"state {visit.name!a} calls {shown(called)}: no function in functions.json"
        raise StatesError("Lambda.ResourceNotFoundException", message)
    return chosen_task(visit.name, function)


def _limit_s(machine: Machine, visit: Visit, field: str) -> float:
    """Return a time limit of a task in seconds; infinite without the field."""
    if field not in visit.state and f"{field}Path" not in visit.state:
        return inf
    flow = machine.flows.of(visit)
    return _seconds_of(flow.field(visit, field, None), visit, 1, flow.unfit)


def _seconds_of(value: Any, visit: Visit, least: int, unfit: str) -> float:
    """Return whole seconds from `least` on. Raises StatesError with the name `unfit`."""
    seconds = number_of(value)
    if seconds is None or not least <= seconds <= MOST_SECONDS or seconds != int(seconds):
        message = (
            f"state {visit.name!a} has {shown(value)} seconds: "
            f"no whole number from {least} to {MOST_SECONDS}"
        )
        raise StatesError(unfit, message)
    return float(seconds)


def _enter_parallel(machine: Machine, visit: Visit) -> None:
    visit.given = machine.flows.of(visit).given(visit)
    machine.spread(visit, [visit.given] * len(visit.state["Branches"]), inf)


#: Type of state -> its function, which returns the next state; None if the state waits or failed.
ENTER: Mapping[str, Callable[[Machine, Visit], Following | None]] = {
    "Pass": _enter_pass,
    "Task": _enter_task,
    "Choice": _enter_choice,
    "Wait": _enter_wait,
    "Succeed": _enter_succeed,
    "Fail": _enter_fail,
    "Parallel": _enter_parallel,
    "Map": map_states.enter,
}
