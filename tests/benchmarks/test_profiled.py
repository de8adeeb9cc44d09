"""Every benchmark can be profiled, planned and deployed; `deploy` compares the answers."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chiron.profiler.profile import profile
from chiron.workflow.platform import Platform
from tests.commands import run_here

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
_JAVA = pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK: install a JDK 17")
#: What needs a program to be installed.
NEEDS = {
    "video": [pytest.mark.ffmpeg],
    "streams/sound": [pytest.mark.ffmpeg],
    "social-network": [pytest.mark.redis],
    "movie-review": [pytest.mark.redis],
    "slapp-java": [_JAVA],
    "finra-java": [_JAVA],
}
#: Like one of the others, which is deployed more often.
ALIKE = {
    *("finra", "finra-java", "mapreduce-count", "movie-review", "recognition", "slapp-v"),
    *("streams/lines", "svd", "video"),
}
_TIERS = (pytest.mark.slow, pytest.mark.soak)
FOLDERS = sorted(
    str(file.parent.relative_to(BENCHMARKS)) for file in BENCHMARKS.rglob("payload.json")
)
#: Of what has no payload.py, requests that take as little as those of its size for tests.
STREAMS: dict[str, dict[str, Any]] = {
    "copies": {"megabytes": 1},
    "lines": {"megabytes": 1},
    "preview": {"rounds": 3000},
    "sound": {"seconds": 1},
}


def small(name: str, place: Path) -> Path:
    """A copy of a benchmark in the folder `place`, with its request for tests."""
    folder = place / name
    shutil.copytree(BENCHMARKS / name, folder)
    for other in {*re.findall(r"\.\./([\w-]+)/", (folder / "stack.yaml").read_text())}:
        shutil.copytree(BENCHMARKS / other, place / other)
    if (folder / "payload.py").exists():
        words = [str(BENCHMARKS / "payload.py"), name, "test", "-o", str(folder / "payload.json")]
        subprocess.run([sys.executable, *words], check=True)
    elif folder.name in STREAMS:
        (folder / "payload.json").write_text(json.dumps(STREAMS[folder.name]))
    return folder


@pytest.mark.timeout(900)  # beside other tests it takes minutes
@pytest.mark.strace
@pytest.mark.usefixtures("home", "briefly_profiled", "briefly_proven")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[*NEEDS.get(name, []), _TIERS[name in ALIKE]]) for name in FOLDERS],
)
def test_a_benchmark_is_profiled_planned_and_deployed(
    name: str, platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    monkeypatch.setattr("chiron.pipeline.deploy.profile_functions", partial(profile, samples=4))
    file = tmp_path / "platform.json"
    file.write_text(platform.model_dump_json())
    # The fewest requests are enough for a median: of the 95th percentile a busy machine has too few
    # in the time of a proof.
    folder = small(name, tmp_path / "in")
    words = ["deploy", str(folder), "--local", "--slo", "600s", "--percentile", "50"]
    options = ["--platform", str(file), "--output", str(tmp_path / "out")]
    done = run_here([*words, *options], b"", dict(os.environ), tmp_path)
    assert done.status == 0, done.stderr
