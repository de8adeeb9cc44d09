"""Tests whether the functions of a finished deployment disturb each other.

Requests one after another rarely show it. Concurrent requests mix up state that functions share as
threads of one process. An answer that should vary, such as a random number, is wrong only if it is
the same in every request.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from chiron.deployment.measure import Invokable, answer_of, check_of
from chiron.workflow.answer import ExpectedAnswer
from chiron.workflow.model import Workflow
from chiron.workflow.payloads import Payload
from chiron.workflow.plan import Plan

#: A payload, and the answer of the functions run alone.
KnownAnswer = tuple[Payload, ExpectedAnswer]
#: The pause before answers that must vary are requested again: a clock in seconds advances.
_PAUSE_S = 1.1


def verify(target: Invokable, workflow: Workflow, plan: Plan, known: Sequence[KnownAnswer]) -> None:
    """Send each payload twice at once and at once with the next payload, and compare the answers.

    Raises ``wrong-output`` if an answer differs from that of the functions alone. Raises
    ``constant-output`` if a value that varied there in each run is the same in all answers.
    """
    outputs: dict[str, list[str]] = {payload.name: [] for payload, _ in known}

    def invoke(each: KnownAnswer) -> None:
        payload, expected = each
        check = check_of(workflow, expected, payload.name)
        output = answer_of(target, payload.content, check).output
        outputs[payload.name].append(output)

    following = [*known[1:], *known[:1]]
    with ThreadPoolExecutor(2) as threads:
        for one, other in zip(known, following, strict=True):
            for pair in ((one, one), (one, other)) if one is not other else ((one, one),):
                list(threads.map(invoke, pair))
    if any(expected.constant(outputs[payload.name]) for payload, expected in known):
        time.sleep(_PAUSE_S)
        for each in known:
            invoke(each)
    for payload, expected in known:
        suspects = partial(_suspects, workflow=workflow, plan=plan)
        expected.check_varying(outputs[payload.name], workflow, suspects, payload.name)


def _suspects(task: str, *, workflow: Workflow, plan: Plan) -> list[str]:
    """Return the functions that run in the processes of `task` and of its ancestors."""
    before = {task, *workflow.ancestors.get(task, ())}
    processes = [each for wrap in plan.wraps for each in wrap.processes if before & {*each}]
    tasks = [each for process in processes for each in process] or list(workflow.by_name)
    return list(dict.fromkeys(map(workflow.function_of, tasks)))
