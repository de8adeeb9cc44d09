"""What is deployed for the length of a block is gone after it, and nothing else is."""

from __future__ import annotations

import pytest

from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule
from chiron.workflow.errors import ChironError

THERE = {"lone": "def handle(req):\n    return 'I was here before'\n"}
LONE = {"tasks": {"only": "lone"}, "name": "lone"}
FAILING = {
    "Name": "doomed",
    "StartAt": "A",
    "States": {
        "A": {"Type": "Task", "Resource": "wave", "Next": "B"},
        "B": {"Type": "Fail", "Error": "Sunk", "Cause": "no {{ boat }}"},
    },
}


@pytest.fixture
def planned(profile_of, platform):
    """Plans a workflow folder with a planner."""

    def plan(folder, planner="sand"):
        workflow = folder.workflow
        return schedule(workflow, profile_of(workflow), platform, 50.0, Choices(planner=planner))

    return plan


@pytest.fixture
def there(place, planned, write_folder, tmp_path):
    """A deployed function that has nothing to do with the workflows of the tests."""
    folder = write_folder(tmp_path / "lone", LONE, THERE, {})
    with place.launcher.launch(folder.workflow, folder, planned(folder)) as deployment:
        yield deployment


def test_an_error_in_the_block_is_raised_and_all_that_it_deployed_is_gone(
    there, place, small, planned, all_gone
):
    names, processes = place.names(), place.processes()
    plans = [planned(small, planner) for planner in ("sand", "pgp")]
    with pytest.raises(ZeroDivisionError), place.deployed(small, plans):
        assert len(place.names()) == len(names) + 2
        started = place.processes() - processes
        assert len(started) >= 2
        raise ZeroDivisionError
    assert place.names() == names
    assert all_gone(started) == set()
    assert there.invoke(b"").output == "I was here before"


def test_what_a_killed_command_left_is_gone_after_the_next(place, small, planned):
    names, plan = place.names(), planned(small)
    with place.deployed(small, [plan]):  # which a kill would not end
        with place.deployed(small, [plan]) as [deployment]:
            assert deployment.invoke(b"{}").output
        assert place.names() == names


def test_a_deployment_that_fails_leaves_nothing(there, place, write_folder, planned, tmp_path):
    folder = write_folder(tmp_path / "small", fields={"join": {"secrets": ["never-made"]}})
    names = place.names()
    with (
        pytest.raises(ChironError, match="never-made"),
        place.deployed(folder, [planned(folder, "one-to-one")]),
    ):
        pytest.fail("it was deployed")
    assert place.names() == names


@pytest.mark.parametrize("planner", ["one-to-one", "sand"])
def test_a_workflow_that_ends_in_fail_fails_with_its_cause(
    planner, place, planned, write_folder, tmp_path
):
    folder = write_folder(tmp_path / "doomed", FAILING)
    with (
        place.deployed(folder, [planned(folder, planner)]) as [deployment],
        pytest.raises(ChironError) as failed,
    ):
        deployment.invoke(b"{}")
    assert failed.value.code == "workflow-failed"
    assert failed.value.message.endswith("Sunk: no {{ boat }}")
    assert failed.value.status == 500
