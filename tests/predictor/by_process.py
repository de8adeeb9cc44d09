"""The product's simulator with the oracle's arguments: processes by what their threads do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oracle import Process

from chiron.predictor.execution import Execution, Node
from chiron.predictor.mechanisms.mechanism import Costs
from chiron.predictor.simulator import Interpreter, Simulator, Span, Work


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
    sizes, nodes = [], []
    for number, process in enumerate(processes):
        names = [f"{number}.{thread}" for thread in range(len(process.threads))]
        nodes.append(
            Node(process.start_ms, number, starts=range(len(works), len(works) + len(names)))
        )
        works.update(zip(names, process.threads, strict=True))
        sizes.append((number, len(names)))
    wraps = [(0, Costs(0.0))] * len(processes)
    simulator = Simulator(works, interpreter, contention_overhead)
    image = simulator.image(Execution([cores], wraps, sizes, nodes))
    if record is not None:
        for span in simulator.recorded(image, list(works))[1]:
            record(span)
    return simulator.run(image, works).ends_ms()
