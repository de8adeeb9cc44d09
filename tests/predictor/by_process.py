"""The product's simulator with the oracle's arguments: processes by what their threads do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oracle import Process

from predictor.execution import Execution, Node
from predictor.mechanisms.mechanism import Costs
from predictor.simulator import Interpreter, Simulator, Span, Work


def simulate(
    processes: Sequence[Process],
    cores: int,
    interpreter: Interpreter,
    record: Callable[[Span], None] | None = None,
    *,
    contention_overhead: float = 0.0,
) -> list[float]:
    """When each process ends, as `oracle.simulate` has it."""
    works: dict[str, Work] = {}
    given, nodes = [], []
    for number, process in enumerate(processes):
        names = [f"{number}.{thread}" for thread in range(len(process.threads))]
        nodes.append(
            Node(process.start_ms, number, starts=range(len(works), len(works) + len(names)))
        )
        works.update(zip(names, process.threads, strict=True))
        given.append((number, names))
    wraps = [(0, Costs(0.0))] * len(processes)
    execution = Execution([cores], wraps, given, nodes)
    simulator = Simulator(works, interpreter, contention_overhead)
    if record is not None:
        for span in simulator.recorded(execution)[1]:
            record(span)
    return simulator.run(execution).ends_ms()
