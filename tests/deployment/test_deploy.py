"""A stack is deployed whole, or what it created is gone; what was there before stays."""

from __future__ import annotations

import signal
import threading

import pytest

from chiron.deployment.deploy import deploy_stack, remove_all, remove_outdated
from chiron.openfaas.stack import StackFile, StackFunction, write_stack
from chiron.workflow.errors import ChironError

NAMES = ("w1", "w2", "w3")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr("chiron.deployment.deploy._PAUSE_S", 0.0)


@pytest.fixture
def stack_file(tmp_path):
    """A stack.yaml of three wraps of workflow finra, planner pgp."""
    annotations = {"chiron.workflow": "finra", "chiron.planner": "pgp"}
    functions = {
        name: StackFunction(image=name, annotations=annotations, environment={"A": "$B"})
        for name in NAMES
    }
    write_stack(tmp_path / "stack.yaml", StackFile(functions=functions))
    return tmp_path / "stack.yaml"


def test_all_functions_are_deployed_and_awaited_and_said_to_be_created(fake, stack_file):
    assert deploy_stack(fake, stack_file) == list(NAMES)
    assert set(fake.deployed) == set(NAMES)
    assert {call for call in fake.calls if call.startswith("wait")} == {f"wait {n}" for n in NAMES}
    assert fake.deployed["w1"].env_vars == {"A": "$B"}


def test_what_was_merely_updated_is_not_said_to_be_created(fake, stack_file):
    fake.add("w2", workflow="finra", planner="pgp")
    assert deploy_stack(fake, stack_file) == ["w1", "w3"]


def test_what_is_new_is_ready_before_what_calls_it_is_updated(fake, stack_file):
    fake.add("w1", workflow="finra", planner="pgp")
    deploy_stack(fake, stack_file)
    update = fake.calls.index("deploy w1")
    assert max(fake.calls.index("wait w2"), fake.calls.index("wait w3")) < update


@pytest.mark.parametrize(
    ("whose", "says"),
    [
        ({"workflow": "fin", "planner": "pgp"}, "of workflow fin as pgp: run chiron remove fin "),
        ({"workflow": "finra", "planner": "sand"}, "of workflow finra as sand: run chiron remove"),
        ({}, "of no workflow: run faas-cli remove w2, or rename workflow finra"),
    ],
)
def test_a_function_of_somebody_else_is_not_replaced(whose, says, fake, stack_file):
    fake.add("w2", **whose)
    with pytest.raises(ChironError, match=says) as refused:
        deploy_stack(fake, stack_file)
    assert (refused.value.code, refused.value.functions) == ("name-taken", ("w2",))
    assert (set(fake.deployed), fake.calls) == ({"w2"}, [])


def test_a_function_that_wraps_call_does_not_replace_a_wrap(fake, tmp_path):
    write_stack(tmp_path / "s.yaml", StackFile(functions={"w1": StackFunction(image="h")}))
    fake.add("w1", workflow="finra", planner="pgp")
    with pytest.raises(ChironError, match="or rename function w1"):
        deploy_stack(fake, tmp_path / "s.yaml")


@pytest.mark.parametrize("failing", ["deploy w3", "wait w2"])
def test_a_failure_removes_what_was_created_and_nothing_else(failing, fake, stack_file):
    fake.add("other")
    fake.add("w2", workflow="finra", planner="pgp")
    fake.failing[failing] = "gateway-error"
    with pytest.raises(ChironError, match=f"{failing} failed"):
        deploy_stack(fake, stack_file)
    assert set(fake.deployed) == {"other", "w2"}


def test_a_function_whose_creation_timed_out_is_removed_too(fake, stack_file):
    fake.failing["deploy w2"] = "timeout"
    with pytest.raises(ChironError):
        deploy_stack(fake, stack_file)
    assert fake.deployed == {}


def test_the_first_error_is_told_even_if_cleaning_up_fails(fake, stack_file):
    fake.failing |= {"deploy w3": "gateway-error", "remove w1": "no-gateway"}
    with pytest.raises(ChironError) as raised:
        deploy_stack(fake, stack_file)
    assert raised.value.message == (
        "deploy w3 failed; remove w1 failed; not removed: w1; "
        "remove with faas-cli remove -g http://fake w1"
    )
    assert set(fake.deployed) == {"w1"}  # w2 was removed all the same


def test_an_interruption_waits_for_what_is_being_deployed_and_removes_it(
    fake, stack_file, monkeypatch
):
    begun, interrupted, deploy = threading.Event(), threading.Event(), fake.deploy

    def slow(spec):
        begun.set()
        assert interrupted.wait(60)
        deploy(spec)

    def interrupt():
        begun.wait()
        signal.raise_signal(signal.SIGINT)
        interrupted.set()

    monkeypatch.setattr(fake, "deploy", slow)
    interruption = threading.Thread(target=interrupt)
    interruption.start()
    with pytest.raises(KeyboardInterrupt):
        deploy_stack(fake, stack_file)
    interruption.join()
    assert fake.calls == ["deploy w1", "remove w1"]


def test_wraps_that_the_new_plan_no_longer_has_are_removed(fake, stack_file):
    fake.add("w4", workflow="finra", planner="pgp")
    fake.add("sand-wrap1", workflow="finra", planner="sand")
    fake.add("slapp-wrap1", workflow="slapp", planner="pgp")
    fake.add("helper")
    deploy_stack(fake, stack_file)
    assert "w4" in fake.deployed  # until the new ones are known to work
    remove_outdated(fake, stack_file)
    assert set(fake.deployed) == {*NAMES, "sand-wrap1", "slapp-wrap1", "helper"}


def test_functions_that_are_no_wraps_remove_nothing(fake, tmp_path):
    write_stack(tmp_path / "s.yaml", StackFile(functions={"helper": StackFunction(image="h")}))
    fake.add("plain")
    fake.add("w4", workflow="finra", planner="pgp")
    deploy_stack(fake, tmp_path / "s.yaml")
    remove_outdated(fake, tmp_path / "s.yaml")
    assert set(fake.deployed) == {"helper", "plain", "w4"}


def test_removing_skips_what_is_not_there_and_goes_on_after_a_failure(fake):
    for name in NAMES:
        fake.add(name)
    fake.failing["remove w1"] = "gateway-error"
    with pytest.raises(ChironError, match="remove w1 failed; not removed: w1; remove with"):
        remove_all(fake, ["absent", *NAMES])
    assert set(fake.deployed) == {"w1"}


def test_a_removal_that_fails_is_tried_again(fake, monkeypatch):
    fake.add("w1")
    fake.failing["remove w1"] = "gateway-error"
    monkeypatch.setattr("time.sleep", lambda _: fake.failing.clear())
    remove_all(fake, ["w1"])
    assert fake.deployed == {}


def test_what_somebody_else_removed_meanwhile_is_no_error(fake):
    fake.add("w1")
    fake.failing["remove w1"] = "not-found"
    remove_all(fake, ["w1"])
