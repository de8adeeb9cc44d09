"""Mechanism ``fork``: a fresh process for each further process of each request."""

from __future__ import annotations

from collections.abc import Mapping

from chiron.predictor.mechanisms.mechanism import Costs, Mechanism, NoopTimes
from chiron.workflow.platform import Platform
from chiron.workflow.profile import FunctionProfile


class Fork(Mechanism):
    """Processes are forked one after another; each fork delays the next by T_Block.

    A process is ready T_Startup after its fork. The first fork may block longer, which the paper
    does not distinguish: on the published testbed it takes 5 ms and later forks 3. If another
    process forks for the main process, that does not wait for all of it.
    """

    name = "fork"
    processes = "processes that are forked for each request"
    lasting = False

    def costs(self, platform: Platform) -> Costs:
        """Return the costs; T_Block of equation (4) is computing if a start computes at least that.

        The forking process then shares the cores with its earlier forks. Otherwise forking takes
        its time independently of other computing.
        """
        blocks_ms = platform.process_first_block_ms + platform.process_block_ms
        return Costs(
            ready_ms=platform.process_startup_ms - platform.process_compute_ms,
            first_block_ms=platform.process_first_block_ms,
            block_ms=platform.process_block_ms,
            blocks_computing=0 < blocks_ms <= platform.process_compute_ms,
            computing_ms=platform.process_compute_ms,
            main_ms=-1.0 if platform.main_wait_ms is None else platform.main_wait_ms,
            gather_ms=platform.ipc_ms,
            first_gather_ms=platform.process_gather_ms,
        )

    def refusal(self, function: FunctionProfile) -> str:
        return function.unforkable

    def further_ms(self, function: FunctionProfile) -> float:
        """Return the extra latency: such a process has yet to copy the memory that it writes to."""
        return super().further_ms(function) or function.further_ms

    def stagger_ms(self, platform: Platform) -> float | None:
        return platform.process_block_ms

    def start_in_words(self, platform: Platform) -> str:
        return f"a fork of {platform.process_startup_ms:.1f} ms"

    def stagger_in_words(self, platform: Platform) -> str:
        return f"a fork {platform.process_block_ms:.1f} ms for those after it"

    def constants(
        self, one: NoopTimes, few: NoopTimes, many: NoopTimes, further: int, ipc_ms: float
    ) -> Mapping[str, float]:
        """Return the constants: a process begins T_Startup late, each further one T_Block later.

        All of a start counts as computing: it copies memory.
        """
        startup_ms = few.begins_ms[1] - one.begins_ms[0]
        waits = [plan.begins_ms[0] - one.begins_ms[0] for plan in (few, many)]
        return {
            "process_gather_ms": few.tail_ms - one.tail_ms - ipc_ms,
            "process_startup_ms": startup_ms,
            "process_block_ms": (many.begins_ms[-1] - many.begins_ms[1]) / further,
            "process_compute_ms": startup_ms,
            "main_wait_ms": sum(waits) / len(waits),
        }
