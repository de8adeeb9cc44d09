"""The product's simulator with the oracle's arguments: processes by what their threads do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oracle import Process

from predictor.simulator import Interpreter, Life, Simulator, Span, Work


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
    lives = []
    for number, process in enumerate(processes):
        names = [f"{number}.{thread}" for thread in range(len(process.threads))]
        works.update(zip(names, process.threads, strict=True))
        lives.append(Life(process.start_ms, names, process.computing_ms, process.forking_ms))
    simulator = Simulator(works, interpreter, contention_overhead)
    if record is not None:
        for span in simulator.spans(lives, cores):
            record(span)
    return simulator.ends_ms(lives, cores)
