"""Functions that a plan forks for each request although they cannot run so."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from chiron.predictor.mechanisms import mechanism_of
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan


def wrongly_forked(plan: Plan, workflow: Workflow) -> Iterator[str]:
    """Yield a line for each function that `plan` marks as unforkable and forks for each request."""
    for wrap in plan.wraps:
        if mechanism_of(wrap.mechanism).lasting:
            continue
        forked = set(map(workflow.function_of, chain(*wrap.processes[1:])))
        for each in plan.unforkable:
            if each.function in forked:
                yield (
                    f"wrap {wrap.name}: {each.function} runs in processes that are forked for each "
                    f"request, although {each.reason}: have it in the main process, the first one, "
                    "or give the wrap the mechanism pool"
                )
