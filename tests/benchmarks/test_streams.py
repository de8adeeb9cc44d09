"""The workflows with streams answer what their inputs have, run one task after another."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chiron.evaluation.reference.sources import reference_run
from chiron.generator.generate import Sources
from chiron.workflow.folder import WorkflowFolder


def answered(folder: Path, **request: Any) -> Any:
    """Return what the workflow of `folder` answers."""
    sources = Sources.read(WorkflowFolder.open(folder))
    return json.loads(
        reference_run(sources, json.dumps(request).encode(), "http://127.0.0.1:9").output
    )


@pytest.fixture
def streams(benchmarks: Path) -> Path:
    return benchmarks / "streams"


def test_lines_of_errors_are_counted(streams: Path, functions: SimpleNamespace) -> None:
    write = functions.load(streams / "lines" / "functions" / "write-lines")
    written = b"".join(write.handle('{"megabytes": 0.3}'))
    found = [line for line in written.split(b"\n") if b"error" in line]
    assert len(written) == 300_000
    assert answered(streams / "lines", megabytes=0.3) == {
        "lines": len(found),
        "bytes": sum(len(line) + 1 for line in found),
    }
