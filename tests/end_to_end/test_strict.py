"""On a gateway that behaves as faasd or Kubernetes: what is measured is kept, nothing stays."""

from __future__ import annotations

import os

import pytest

from chiron.cli.place import build_local
from chiron.deployment.deployed import deployed
from chiron.deployment.launcher import Launcher
from chiron.openfaas.client import Gateway
from chiron.profiler.solo import solo_plan, solo_workflow
from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule
from chiron.workflow.errors import ChironError
from tests.imitated import ImitatedGateway

KILLS_S = 2.0


@pytest.fixture(scope="module")
def launcher(home):
    """On a gateway that kills what takes longer to end."""
    with (
        ImitatedGateway("faasd", KILLS_S) as embedded,
        Gateway(embedded.url) as gateway,
    ):
        yield Launcher(gateway, build_local)


@pytest.fixture
def launch(launcher, small, profile_of, platform):
    """Deploys the small workflow for the length of a block."""
    plan = schedule(
        small.workflow, profile_of(small.workflow), platform, 50.0, Choices(planner="sand")
    )
    return lambda: launcher.launch(small.workflow, small, plan)


@pytest.fixture
def sleepless(monkeypatch):
    """Wraps whose watchdog sleeps for longer than the gateway waits."""
    monkeypatch.setattr("chiron.generator.settings.WATCHDOG_SLEEP", f"{KILLS_S + 60:g}s")


def names(launcher):
    return {function.name for function in launcher.gateway.functions()}


def test_replicas_are_counted_and_a_wrap_is_removed_at_the_first_attempt(launcher, launch):
    """Though the list does not say which replicas are ready."""
    with launch() as deployment:
        (found,) = deployed(launcher.gateway).deployments
        (name,) = deployment.names
        launcher.gateway.remove(name)
    assert (found.available, found.replicas) == (1, 1)
    assert names(launcher) == set()


def test_a_removal_that_fails_is_tried_again_and_discards_nothing(launcher, launch, sleepless):
    with launch():
        pass
    assert names(launcher) == launcher.left == set()


@pytest.mark.slow
def test_on_kubernetes_wraps_with_more_cpus_than_there_are_run_side_by_side_and_again(home, small):
    alone = solo_workflow(small.workflow)
    plan = solo_plan(alone)
    with ImitatedGateway("kubernetes") as embedded, Gateway(embedded.url) as gateway:
        launcher = Launcher(gateway, build_local)
        for _ in range(2):
            with launcher.launch(alone, small, plan) as deployment:
                assert names(launcher) == set(deployment.names)
            assert names(launcher) == set()


def test_on_kubernetes_what_finds_no_room_is_called_pending(
    home, write_folder, tmp_path, monkeypatch
):
    monkeypatch.setattr("chiron.deployment.deploy._READY_TIMEOUT_S", 1.0)
    asks = {"requests": {"cpu": str(len(os.sched_getaffinity(0)) + 1)}}
    one = {"name": "good", "tasks": {"t": "wave"}}
    folder = write_folder(tmp_path / "f", one, fields={"wave": asks})
    plan = solo_plan(folder.workflow)
    with (
        ImitatedGateway("kubernetes", KILLS_S) as embedded,
        Gateway(embedded.url) as gateway,
    ):
        launcher = Launcher(gateway, build_local)
        with (
            pytest.raises(ChironError, match="it is pending: no node has room") as raised,
            launcher.launch(folder.workflow, folder, plan),
        ):
            pass
        assert names(launcher) == set()
    assert "kubectl -n openfaas-fn get events | grep " in raised.value.message


@pytest.mark.parametrize("strict", [pytest.param(None, marks=pytest.mark.slow), "faasd"])
def test_of_a_build_that_does_not_start_the_one_before_is_not_taken(
    home, write_folder, tmp_path, monkeypatch, strict
):
    one = {"tasks": {"t": "wave"}}
    good = write_folder(tmp_path / "good" / "wave", one)
    code = "raise ValueError('broken')\n\ndef handle(req):\n    return req\n"
    broken = write_folder(tmp_path / "broken" / "wave", one, {"wave": code}, {})
    plan = solo_plan(good.workflow)
    with (
        ImitatedGateway(strict, KILLS_S) as embedded,
        Gateway(embedded.url) as gateway,
    ):
        launcher = Launcher(gateway, build_local)
        with launcher.launch(good.workflow, good, plan):
            monkeypatch.setattr("chiron.deployment.deploy._READY_TIMEOUT_S", 10.0)
            with (
                pytest.raises(ChironError, match="broken") as raised,
                launcher.launch(broken.workflow, broken, plan),
            ):
                pass
            assert raised.value.code == "not-ready"
            with launcher.launch(good.workflow, good, plan) as again:
                assert again.invoke(b"{}", trace=True).timeline
