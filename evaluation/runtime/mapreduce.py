"""How soon reducers get the mappers' output, by dynamic-group and through stores.

References
----------
Pheromone (NSDI'23), figure 20: its MapReduce sort beside PyWren, whose functions shuffle through a
store.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from functools import partial
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from zlib import crc32

from chiron.deployment.launcher import Launcher
from chiron.evaluation.runtime.deployed import (
    BENCHMARKS,
    Client,
    DeployedWorkflow,
    buckets,
    direct,
    handler,
)
from chiron.evaluation.runtime.rounds import Figure, Quantity, Round
from chiron.evaluation.runtime.servers import SERVERS, missing
from chiron.generator.stores import NO_STORE, StorePlace
from chiron.workflow.errors import ChironError

#: Default input in megabytes.
_MB = 64.0
#: Megabytes of a mapper, more if this gives too many mappers. Reducers are as many as mappers.
_PART_MB, _MOST_PARTS = 8.0, 32
_OURS = "dynamic-group"
#: Handlers that cannot be imported here, as they import `original` beside them.
_HANDLERS = Path(__file__).with_name("handlers")
#: Memory of a wrap, and more for each megabyte: the mapped and the joined data, and their texts.
_MEMORY_MIB, _MIB_A_MB = 2048, 8
#: Divisor of the number of rounds, which suits requests of a millisecond.
_SLOWER = 25


class _Job(NamedTuple):
    """A benchmark: its functions, and a check of the reducers' answers."""

    name: str
    cut: str
    map: str
    reduce: str
    #: The field with the amount of data in a part.
    amount: str
    check: Callable[[Sequence[dict[str, Any]], Counter[str]], bool]
    #: A part's contribution to the expected counts, from the content that its mapper generates.
    counts: Callable[[list[str]], Counter[str]]


def _is_sorted(ranges: Sequence[dict[str, Any]], expected: Counter[str]) -> bool:
    filled = [each for each in ranges if each["records"]]
    found = Counter[str]()
    for each in ranges:
        found.update(records=each["records"], sum=each["sum"])
    in_order = all(a["first"] <= a["last"] <= b["first"] for a, b in pairwise(filled))
    return in_order and found == expected


def _are_counts(shares: Sequence[dict[str, Any]], expected: Counter[str]) -> bool:
    found = Counter[str]()
    for each in shares:
        found.update(each["counts"])
    return found == expected


def _of_records(records: list[str]) -> Counter[str]:
    return Counter(records=len(records), sum=sum(map(crc32, map(str.encode, records))))


def _of_pages(pages: list[str]) -> Counter[str]:
    found = Counter[str]()
    for page, times in Counter(pages).items():
        for word, count in Counter(page.split()).items():
            found[word] += times * count
    return found


_JOBS = (
    _Job(
        name="mapreduce-sort",
        cut="cut-records",
        map="sort-records",
        reduce="merge-records",
        amount="records",
        check=_is_sorted,
        counts=_of_records,
    ),
    _Job(
        name="mapreduce-count",
        cut="cut-pages",
        map="count-words",
        reduce="add-counts",
        amount="pages",
        check=_are_counts,
        counts=_of_pages,
    ),
)


def measure_mapreduce(
    launcher: Launcher, rounds: int, megabytes: float | None, progress: Callable[[str], None]
) -> tuple[Figure, ...]:
    """Measure sort and word count of `megabytes` (default 64), by dynamic-group and by every
    installed store.

    Raises ``wrong-output`` if the reducers' answers differ from the expected counts of all parts.
    """
    megabytes = megabytes or _MB
    count = max(2, rounds // _SLOWER)
    parts = min(math.ceil(megabytes / _PART_MB), _MOST_PARTS)
    body = json.dumps({"megabytes": megabytes, "parts": parts, "groups": parts}).encode()
    found = list[Figure]()
    for job in _JOBS:
        progress(f"{job.name}: {megabytes:g} MB, {parts} mappers, {count} rounds")
        expected = _expected(job, body)
        with ExitStack() as stack:
            probes = dict[str, Callable[[], Round]]()
            for system in (_OURS, *(name for name in SERVERS if missing(name) is None)):
                here = system == _OURS
                place = NO_STORE if here else stack.enter_context(SERVERS[system].start())
                deployed = stack.enter_context(_deployed(launcher, job, system, place, megabytes))
                client = direct(launcher.gateway.url, deployed.entry)
                stack.enter_context(closing(client))
                probes[system] = partial(_asked, job, client, deployed.trace_key, body, expected)
            taken = {system: list[Round]() for system in probes}
            for number in range(count):
                for system, probe in probes.items() if number % 2 else [*probes.items()][::-1]:
                    taken[system].append(probe())
        found += [q.figure(taken[q.system]) for q in _quantities(job.name, list(taken))]
    return tuple(found)


def _deployed(
    launcher: Launcher, job: _Job, system: str, place: StorePlace, megabytes: float
) -> AbstractContextManager[DeployedWorkflow]:
    """Deploy a job as one wrap whose mappers and reducers run on workers of a pool."""
    code = {
        function: {
            "original.py": _text(BENCHMARKS / job.name / "functions" / function / "handler.py"),
            "handler.py": _text(_HANDLERS / file),
        }
        for function, file in ((job.map, "mapping.py"), (job.reduce, "reducing.py"))
    }
    return buckets(
        launcher,
        job.name,
        ((job.cut,), (job.map, job.reduce)),
        mechanism="pool",
        memory_mib=_MEMORY_MIB + round(_MIB_A_MB * megabytes),
        changes={"name": f"{job.name}-{system.lower()}"},
        code=code,
        variables={"OBJECTS_STORE": place.url, "OBJECTS_PASSWORD": place.password},
    )


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _expected(job: _Job, body: bytes) -> Counter[str]:
    """Return the expected counts of all parts, whose content is generated here again."""
    cut = handler(job.name, job.cut).handle(SimpleNamespace(body=body), None)["body"]
    made, found = handler(job.name, job.map).made, Counter[str]()
    for part in json.loads(cut):
        found.update(job.counts(made(part["part"], part[job.amount])))
    return found


def _asked(job: _Job, client: Client, trace_key: str, body: bytes, expected: Counter[str]) -> Round:
    traced, latency_ms = client.traced(body, trace_key)
    results = json.loads(traced.output)[job.reduce]
    if not job.check(sorted(results, key=lambda each: str(each["group"])), expected):
        raise ChironError("wrong-output", f"{job.name} is answered wrongly", status=500)
    tasks = traced.timeline.tasks
    ends = [task.end_ms for task in tasks if task.function == job.map]
    begins = [task.start_ms for task in tasks if task.function == job.reduce]
    had, made = min(each["had"] for each in results), max(each["made"] for each in results)
    return {"whole": latency_ms, "begins": min(begins) - max(ends), "has": (had - made) * 1000}


def _quantities(job: str, systems: Sequence[str]) -> Iterator[Quantity]:
    """Yield each quantity for all systems, then the next one."""
    for name, column in (
        ("from the last mapper's end to the first reducer's begin", "begins"),
        ("from the last mapper's result to the first reducer's data", "has"),
        ("the whole request", "whole"),
    ):
        for system in systems:
            yield Quantity(f"{job}: {name}", itemgetter(column), system=system)
