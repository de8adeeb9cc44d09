"""Starts Ray and Dask with two workers each, and uses them as their documentation recommends."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

from chiron.evaluation.runtime.tasks import Tasks

WORKERS = 2
_HERE = "127.0.0.1"
#: Room for several objects of 100 MB at once.
_STORE_BYTES = 1_000_000_000


class System(NamedTuple):
    """A system: ``call(worker, function, *given)`` makes a task, ``answers`` waits for results.

    `worker`, 0 or 1, places the task on systems that support it; others ignore it.
    """

    name: str
    call: Callable[..., Any]
    answers: Callable[[list[Any]], list[Any]]


@contextmanager
def ray_systems() -> Iterator[list[System]]:
    """Yield Ray tasks, which Ray places, and calls of two actors."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would report its usage
    import ray

    ray.init(
        num_cpus=WORKERS,
        object_store_memory=_STORE_BYTES,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        _node_ip_address=_HERE,
    )
    try:
        functions = (Tasks.noop, Tasks.give, Tasks.array, Tasks.count)
        remote = {function.__name__: ray.remote(function) for function in functions}
        actors = [ray.remote(Tasks).remote() for _ in range(WORKERS)]

        def task(_: int, function: Callable[..., Any], *given: Any) -> Any:
            return remote[function.__name__].remote(*given)

        def method(worker: int, function: Callable[..., Any], *given: Any) -> Any:
            return getattr(actors[worker], function.__name__).remote(*given)

        yield [System("Ray tasks", task, ray.get), System("Ray actors", method, ray.get)]
    finally:
        ray.shutdown()


@contextmanager
def dask_systems() -> Iterator[list[System]]:
    """Yield Dask tasks of one graph, placed by Dask (near their data) and by `worker`."""
    import dask
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            host=_HERE,
            dashboard_address=None,
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        addresses = [worker.worker_address for worker in cluster.workers.values()]

        def task(_: int, function: Callable[..., Any], *given: Any) -> Any:
            return dask.delayed(function, pure=False)(*given)

        def placed(worker: int, function: Callable[..., Any], *given: Any) -> Any:
            with dask.annotate(workers=addresses[worker]):
                return task(worker, function, *given)

        def answers(outputs: list[Any]) -> list[Any]:
            found: list[Any] = client.gather(client.compute(outputs))
            return found

        yield [System("Dask", task, answers), System("Dask, told where", placed, answers)]


#: Library -> the function that starts its systems.
STARTED: Mapping[str, Callable[[], AbstractContextManager[list[System]]]] = {
    "Ray": ray_systems,
    "Dask": dask_systems,
}
