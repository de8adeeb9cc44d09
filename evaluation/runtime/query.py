"""The time between the functions of a real-time query, a chain of three in buckets.

References
----------
Pheromone (NSDI'23), figure 19: the interaction overhead is a query's time beyond its functions'.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from chiron.deployment.launcher import Launcher
from chiron.evaluation.runtime.deployed import ALONE, BENCHMARKS, Client, buckets, direct
from chiron.evaluation.runtime.rounds import Part, Probe, Quantity, Round
from chiron.workflow.errors import ChironError

_NAME = "query"
_FUNCTIONS = ("read-query", "find-value", "format-answer")
#: The handler that adds begin and end times; not imported here, as it imports `original` beside it.
_TIMING = Path(__file__).with_name("handlers") / "timing.py"
_QUESTION = json.dumps("What is quantity 42 at station 7?").encode()
_ANSWER = '"Quantity 42 at station 7 is 405.1."'

_QUANTITIES = (
    Quantity("query of three functions, the whole request", lambda r: r["request"]),
    Quantity("its functions' own time", lambda r: r["own"]),
    Quantity(
        "between them: from the first's begin to the last's end, beyond", lambda r: r["between"]
    ),
)


def query() -> Part:
    """Return the part: requests one at a time, all functions in the wrap's main process."""
    return Part(_NAME, _QUANTITIES, _probes)


@contextmanager
def _probes(launcher: Launcher) -> Iterator[list[Probe]]:
    code = {name: _timing(BENCHMARKS / _NAME / "functions" / name) for name in _FUNCTIONS}
    with (
        buckets(launcher, _NAME, (_FUNCTIONS,), code=code) as deployed,
        closing(direct(launcher.gateway.url, deployed.entry)) as client,
    ):
        yield [partial(_asked, client)]


def _timing(function: Path) -> dict[str, str]:
    """Return the files of a function that also reports when it began and ended."""
    original = (function / "handler.py").read_text(encoding="utf-8")
    return {
        "original.py": original,
        "handler.py": _TIMING.read_text(encoding="utf-8"),
    }


def _asked(client: Client) -> Round:
    content, latency_ms = client.post(_QUESTION, ALONE)
    answer, _, times = json.loads(content)[_FUNCTIONS[-1]][0].partition("\n")
    if answer != _ANSWER:
        raise ChironError("wrong-output", f"a query was answered {answer}", status=500)
    moments = json.loads(times)
    own_s = sum(end - begin for begin, end in zip(moments[::2], moments[1::2], strict=True))
    between_s = moments[-1] - moments[0] - own_s
    return {"request": latency_ms, "own": own_s * 1000, "between": between_s * 1000}
