"""A state machine answers in wraps what it does in the reference executor, wherever its tasks run.

Machines and plans are random. The long form (``-m soak``) tries two hundred with each trigger and
mechanism.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from state_machines import HANDLERS, given, run, state_machine

from chiron.generator.declaration import declare
from chiron.generator.render import render_handler
from chiron.predictor.mechanisms import EVERYWHERE, mechanisms_with
from chiron.scheduler.choices import Choices
from chiron.scheduler.planners import PLANNERS
from chiron.scheduler.schedule import schedule
from chiron.workflow.answer import ExpectedAnswer
from chiron.workflow.asl import parse_states
from chiron.workflow.execute import execute
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan, Wrap
from chiron.workflow.platform import Platform
from chiron.workflow.profile import PayloadProfile

TRIGGERS = ("data", "stage")
Given = tuple[Workflow, list[str]]


def drawn(seed: int) -> Given:
    """A machine that has tasks, with some requests; one in four tries again, which takes time."""
    order = Random(seed)
    workflow = parse_states(state_machine(order, retries=seed % 4 == 0), "demo")
    return workflow, [json.dumps(given(order)) for _ in range(3)]


def expected(workflow: Workflow, request: str) -> tuple[str, str | None]:
    done = execute(workflow, request.encode(), run)
    return ("error", done.error.name) if done.error else ("output", done.output)


def found(answer: Any) -> tuple[str, str | None]:
    if answer.status == 200:
        return "output", answer.text
    return "error", answer.json["message"].partition(":")[0]


def at_random(workflow: Workflow, order: Random, trigger: str, mechanism: str) -> Plan:
    """A plan of up to three wraps of up to three processes, in some of which each task may be."""
    shape = [order.randint(1, 3) for _ in range(order.randint(1, 3))]
    places = [(w, p) for w, count in enumerate(shape) for p in range(count)]
    where = {task: order.sample(places, order.randint(1, len(places))) for task in workflow.by_name}
    if not any(w == 0 for its in where.values() for w, _ in its):
        next(iter(where.values())).append((0, 0))
    wraps = []
    for w, count in enumerate(shape):
        main, *further = (
            tuple(task for task, its in where.items() if (w, p) in its) for p in range(count)
        )
        processes = (main, *filter(None, further))
        if any(processes):
            wraps.append(
                Wrap(
                    name=f"demo-random-wrap{w + 1}",
                    cpus=1,
                    memory_mib=256,
                    mechanism=mechanism,
                    processes=processes,
                )
            )
    return Plan(
        format=2,
        workflow="demo",
        planner="random",
        trigger=trigger,
        wraps=tuple(wraps),
        cpus=len(wraps),
    )


@pytest.fixture
def serve(
    tmp_path: Path, start: Any, gateway: Any, empty_image: Any
) -> Callable[[Workflow, Plan], Any]:
    """Starts the wraps of a plan; the first one is returned."""

    def serve(workflow: Workflow, plan: Plan) -> Any:
        servers = []
        for index, wrap in enumerate(plan.wraps):
            image = empty_image(tmp_path / f"{len(list(tmp_path.iterdir()))}")
            functions = {workflow.function_of(task) for task in wrap.tasks}
            for function in functions:
                folder = image / "function" / "functions" / function / "function"
                folder.mkdir(parents=True)
                (folder / "handler.py").write_text(HANDLERS[function])
            declared = declare(plan, index, workflow, dict.fromkeys(functions, "flask"), 60.0)
            (image / "function" / "handler.py").write_text(render_handler(declared))
            servers.append(start(image, gateway_url=gateway.url))
            gateway.ports[wrap.name] = servers[-1].port
        return servers

    return serve


def go_through(seeds: range, trigger: str, mechanism: str, serve: Any) -> None:
    for seed in seeds:
        workflow, requests = drawn(seed)
        plan = at_random(workflow, Random(seed), trigger, mechanism)
        servers = serve(workflow, plan)
        for request in requests:
            answer = servers[0].request(body=request)
            assert found(answer) == expected(workflow, request), (seed, request, plan, answer)
        for server in servers:
            log = server.log.read_text()  # in which functions' own lines are marked
            assert not [line for line in log.splitlines() if line.startswith("Traceback")], log
            assert server.terminate() == 0


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_planners_plan_of_a_machine_can_be_declared(
    planner: str, platform: Platform, profile_of: Any
) -> None:
    """As those at random can, which answer right."""
    for seed in range(3):
        workflow, requests = drawn(seed)
        trace = tuple(execute(workflow, requests[0].encode(), run).trace)
        answer = ExpectedAnswer.learned(b"", ["{}"])
        payloads = (PayloadProfile(name="payload.json", answer=answer, trace=trace),)
        profile = profile_of(workflow).model_copy(update={"payloads": payloads})
        plan = schedule(workflow, profile, platform, 6.0, Choices(planner=planner))
        plan.check_against(workflow)
        for index in range(len(plan.wraps)):
            declare(plan, index, workflow, dict.fromkeys(workflow.functions, "flask"), 60.0)


@pytest.mark.parametrize(("trigger", "mechanism"), [*zip(TRIGGERS, EVERYWHERE, strict=True)])
def test_a_machine_answers_what_it_does_in_the_reference_executor(
    trigger: str, mechanism: str, serve: Any
) -> None:
    go_through(range(1, 4), trigger, mechanism, serve)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize("mechanism", mechanisms_with(sys.version_info))
def test_very_many_machines_do(trigger: str, mechanism: str, serve: Any) -> None:
    machines = int(os.environ.get("CHIRON_SOAK_MACHINES", "200"))
    go_through(range(machines), trigger, mechanism, serve)
