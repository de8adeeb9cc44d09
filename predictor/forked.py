"""Functions that a plan runs in further processes although its mechanism refuses them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from chiron.predictor.mechanisms import mechanism_of
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan


def wrongly_forked(plan: Plan, workflow: Workflow) -> Iterator[str]:
    """Yield a line for each function in a further process whose mechanism refuses it."""
    for wrap in plan.wraps:
        further = set(map(workflow.function_of, chain(*wrap.processes[1:])))
        for each in plan.unforkable:
            if each.function in further and each.mechanism == wrap.mechanism:
                yield (
                    f"wrap {wrap.name}: {each.function} runs in "
                    f"{mechanism_of(wrap.mechanism).processes}, although {each.reason}: have it in "
                    "the main process, the first one, or give the wrap the mechanism pool"
                )
