"""DataFlower's workflows run as many parts as is asked, and answer the same whatever that is."""

import base64
import json
import subprocess
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chiron.generator.generate import Sources
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.reference import ReferenceRun

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
    run = sources.reference(body, "http://127.0.0.1:9")
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


@pytest.mark.slow
def test_singular_values_are_those_of_the_whole_matrix(
    benchmarks: Path, functions: SimpleNamespace
) -> None:
    numpy = pytest.importorskip("numpy")
    answer, _ = answered(benchmarks, "svd", parts=3)
    start = functions.load(benchmarks / "svd" / "functions" / "svd-start")
    matrix = start.matrix(round(MEGABYTES * 1e6 / (8 * start.COLUMNS)))
    whole = numpy.linalg.svd(matrix, compute_uv=False)
    assert answer["singular_values"] == pytest.approx(whole, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "reviews"), [(0, 0), (90, 1)])
def test_only_doubtful_pictures_are_reviewed(noise: int, reviews: int, benchmarks: Path) -> None:
    answer, run = answered(benchmarks, "recognition", parts=2, noise=noise, megabytes=0.1)
    assert ran(run)["recognition-review"] == reviews
    assert len(answer["digits"]) == round(0.1e6 / 64**2)


@pytest.mark.ffmpeg
@pytest.mark.slow
@pytest.mark.parametrize("parts", [2, 10])
def test_a_video_of_parts_has_all_pictures_in_order(
    parts: int, benchmarks: Path, tmp_path: Path
) -> None:
    answer, run = answered(benchmarks, "video", parts=parts)
    assert ran(run)[EACH["video"]] == parts
    file = tmp_path / "video.mp4"
    file.write_bytes(base64.b64decode(answer["video"]))
    shown = ["-show_entries", "packet=pts_time", "-of", "csv=p=0"]
    found = subprocess.check_output(["ffprobe", "-loglevel", "error", *shown, file], text=True)
    assert sorted(map(float, found.split())) == [n / 25 for n in range(10)]
    assert base64.b64decode(answer["picture"]).startswith(b"\xff\xd8")
