"""Mechanism ``interpreters``: kept sub-interpreters of the main process, each with its own GIL."""

from __future__ import annotations

from collections.abc import Mapping

from chiron.predictor.mechanisms.mechanism import Costs, NoopTimes
from chiron.predictor.mechanisms.pool import Pool
from chiron.workflow.errors import ChironError
from chiron.workflow.platform import Platform
from chiron.workflow.profile import IN_CONTAINER, FunctionProfile
from chiron.wrap.functions.leftovers import THREADS_RUN_ON

#: State that belongs to an interpreter, by the beginnings of its names.
_OWN = ("sys.", "random.", "gc.", "logging.", "warnings.", THREADS_RUN_ON)


class Interpreters(Pool):
    """As in a pool only dispatching remains; a process has one of all that the kernel gives it."""

    name = "interpreters"
    python = (3, 13)
    is_tried = True
    processes = "sub-interpreters"
    #: Each imports the wrap's modules for itself: 14 MiB measured.
    further_mib = 16

    def is_on(self, platform: Platform) -> bool:
        return platform.interpreters_dispatch_ms is not None

    def costs(self, platform: Platform) -> Costs:
        """Return the costs. Raises ``no-interpreters`` if the platform's Python lacks them."""
        if platform.interpreters_dispatch_ms is None:
            raise ChironError(
                "no-interpreters",
                f"mechanism {self.name} needs wraps with Python 3.13 or later, which platform "
                f"{platform.name} was calibrated without: calibrate with it, or plan with pool",
            )
        return Costs(
            ready_ms=platform.interpreters_dispatch_ms,
            main_ms=platform.interpreters_dispatch_ms,
            core_wait_ms=platform.interpreters_core_wait_ms,
            gather_ms=platform.ipc_ms,
        )

    def refusal(self, function: FunctionProfile) -> str:
        changes = (*function.unshareable, *function.set_at_import)
        shared = [each for each in changes if not each.startswith((*_OWN, IN_CONTAINER))]
        if shared:
            return f"it changes what interpreters share ({', '.join(shared)})"
        return function.tried.get(self.name, "it was not run in one")

    def start_in_words(self, platform: Platform) -> str:
        return f"a dispatch of {platform.interpreters_dispatch_ms or 0.0:.1f} ms"

    def constants(
        self, one: NoopTimes, few: NoopTimes, many: NoopTimes, further: int, ipc_ms: float
    ) -> Mapping[str, float]:
        pool = super().constants(one, few, many, further, ipc_ms)
        return {name.replace(Pool.name, self.name, 1): value for name, value in pool.items()}
