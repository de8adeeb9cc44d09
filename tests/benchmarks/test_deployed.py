"""Deployed on the embedded gateway, the benchmarks answer as the reference executor does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from chiron.deployment.launcher import Launcher
from chiron.evaluation.reference.sources import reference_run
from chiron.gateway.embedded import EmbeddedGateway
from chiron.generator.generate import Sources
from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile

ProfileOf = Callable[[Workflow], Profile]
#: What functions need that the profile, which is made up, has too little of.
MEMORY_MIB = {"video": 200.0}
STORES = {"social-network", "movie-review"}


@pytest.fixture
def plan_of(profile_of: ProfileOf, platform: Platform) -> Callable[..., Plan]:
    """Makes the plan of a folder's workflow by a planner."""

    def make(folder: WorkflowFolder, planner: str, mechanism: str) -> Plan:
        workflow = folder.workflow
        profile = profile_of(workflow)
        if memory_mib := MEMORY_MIB.get(workflow.name):
            functions = {
                name: each.model_copy(update={"memory_mib": memory_mib})
                for name, each in profile.functions.items()
            }
            profile = profile.model_copy(update={"functions": functions})
        return schedule(
            workflow, profile, platform, 12.0, Choices(planner=planner, mechanism=mechanism)
        )

    return make


def servers(gateway: EmbeddedGateway) -> set[psutil.Process]:
    """Return the Redis servers below the gateway."""
    found = set()
    for process in psutil.Process(gateway.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # forked for a request, and gone with it
            if process.name() == "redis-server":
                found.add(process)
    return found


def none_left(started: set[psutil.Process]) -> bool:
    """Wait for Redis servers to end; tell whether all have."""
    return not psutil.wait_procs(started, timeout=60)[1]


@pytest.mark.parametrize(
    ("name", "planner", "mechanism"),
    [
        pytest.param("video", "pgp", "fork", marks=[pytest.mark.ffmpeg, pytest.mark.slow]),
        pytest.param("movie-review", "pgp", "pool", marks=[pytest.mark.redis, pytest.mark.slow]),
    ],
)
def test_deployed_workflow_answers_as_the_reference_does(
    name: str,
    planner: str,
    mechanism: str,
    benchmarks: Path,
    embedded: EmbeddedGateway,
    launcher: Launcher,
    plan_of: Callable[..., Plan],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)  # the workflow's own Redis
    folder = WorkflowFolder.open(benchmarks / name)
    plan = plan_of(folder, planner, mechanism)
    with launcher.launch(folder.workflow, folder, plan) as deployment:
        for payload in folder.payloads():
            body = payload.content
            expected = reference_run(Sources.read(folder), body, embedded.url).output
            assert [deployment.invoke(body).output for _ in range(3)] == [expected] * 3
        started = servers(embedded)
        assert len(started) == (name in STORES)
    assert none_left(started)


@pytest.mark.redis
def test_another_deployment_leaves_the_store_and_its_data_alone(
    benchmarks: Path,
    embedded: EmbeddedGateway,
    launcher: Launcher,
    plan_of: Callable[..., Plan],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    folder = WorkflowFolder.open(benchmarks / "social-network")
    body = folder.payloads()[0].content
    first, second = (plan_of(folder, planner, "fork") for planner in ("pgp", "sand"))
    with launcher.launch(folder.workflow, folder, first) as running:
        expected = running.invoke(body).output
        started = servers(embedded)
        with launcher.launch(folder.workflow, folder, second) as other:
            assert running.invoke(body).output == expected
            assert other.invoke(body).output == expected
            assert servers(embedded) == started
        assert running.invoke(body).output == expected
        assert servers(embedded) == started
    assert none_left(started)
