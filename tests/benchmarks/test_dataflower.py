"""DataFlower's workflows run as many parts as is asked, and answer the same whatever that is."""

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chiron.evaluation.reference.executor import ReferenceRun
from chiron.evaluation.reference.sources import reference_run
from chiron.generator.generate import Sources
from chiron.workflow.folder import WorkflowFolder

#: The function that runs for each part.
EACH = {
    "wordcount": "wordcount-count",
    "svd": "svd-compute",
    "recognition": "recognition-classify",
    "video": "video-transcode",
}
MEGABYTES = 0.2


def answered(benchmarks: Path, name: str, **request: Any) -> tuple[dict[str, Any], ReferenceRun]:
    """Return what the workflow `name` answers, and its run."""
    sources = Sources.read(WorkflowFolder.open(benchmarks / name))
    body = json.dumps({"megabytes": MEGABYTES, "noise": 60} | request).encode()
    run = reference_run(sources, body, "http://127.0.0.1:9")
    return json.loads(run.output), run


def ran(run: ReferenceRun) -> Counter[str]:
    """Return how often each function was run."""
    return Counter(name.rpartition("#")[0].removesuffix("_foreach") for name in run.inputs)


@pytest.mark.parametrize(
    "name",
    ["wordcount", *(pytest.param(n, marks=pytest.mark.slow) for n in ("svd", "recognition"))],
)
def test_parts_are_as_many_as_asked_and_the_answer_is_the_same(name: str, benchmarks: Path) -> None:
    answers = {}
    for parts in (2, 5):
        answers[parts], run = answered(benchmarks, name, parts=parts)
        assert ran(run)[EACH[name]] == parts
    assert answers[2] == answers[5]


def test_every_word_is_counted_once(benchmarks: Path, functions: SimpleNamespace) -> None:
    answer, _ = answered(benchmarks, "wordcount", parts=3)
    start = functions.load(benchmarks / "wordcount" / "functions" / "wordcount-start")
    assert answer["words"] == Counter(start.text_of(round(MEGABYTES * 1e6)).split())
