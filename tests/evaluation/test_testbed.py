"""A published testbed is read whole or refused, and predicted beside what was published."""

from __future__ import annotations

import json

import pytest

from chiron.evaluation.prediction.errors import ErrorSummary
from chiron.evaluation.prediction.published import compare_with_testbed
from chiron.evaluation.testbed import read_platform, read_profile
from chiron.workflow.errors import ChironError

WORKFLOW = {"name": "two", "tasks": {"A": "a", "B": "pbkdf2"}, "edges": []}
BLOCKS = [
    {"syscall": "read", "start_ms": 2.0, "duration_ms": 1.0},
    {"syscall": "poll", "start_ms": 2.5, "duration_ms": 2.0},
    {"syscall": "close", "start_ms": 9.0, "duration_ms": 5.0},
]
PROFILES = {
    "a": {"latency_ms": 10.0, "block_periods": BLOCKS},
    "pbkdf2": {"latency_ms": 4.0, "block_periods": []},
}
#: Two threads of the main process: 2.0 for starting both, of which `pbkdf2` is busy for 4.
ROW = {"stages": [[["A", "B"]]], "measured_ms": 10.0, "artifact_predicted_ms": 12.0}


@pytest.fixture
def testbed(tmp_path):
    """Writes a testbed with these rows."""

    def write(*rows, workflow=WORKFLOW, profiles=PROFILES):
        (tmp_path / "profiles.json").write_text(json.dumps(profiles))
        (tmp_path / "two.workflow.json").write_text(json.dumps(workflow))
        lines = [json.dumps(row) for row in rows]
        (tmp_path / "two.measured.jsonl").write_text("\n".join(lines) + "\n")
        return tmp_path

    return write


def refused(folder) -> ChironError:
    with pytest.raises(ChironError) as error:
        compare_with_testbed(folder, read_platform())
    return error.value


def test_periods_cover_the_latency_and_blocks_are_cut_where_they_overlap(testbed):
    functions = read_profile(testbed(ROW)).functions
    periods = [(p.kind, p.start_ms, p.duration_ms) for p in functions["a"].periods]
    assert periods == [
        ("cpu", 0.0, 2.0),
        ("block", 2.0, 1.0),
        ("block", 3.0, 2.0),
        ("cpu", 5.0, 4.0),
        ("block", 9.0, 1.0),
    ]
    assert [p.kind for p in functions["pbkdf2"].periods] == ["native"]


def test_every_row_is_predicted_beside_what_was_published(testbed):
    (two,) = compare_with_testbed(testbed(ROW), read_platform()).workflows
    (row,) = two.rows
    # A is started by 0.4 and runs from 1.0; its last block ends 10 later.
    assert row.predicted_ms == pytest.approx(11.0)
    assert two.predicted == ErrorSummary(mean_absolute=0.1, bias=0.1, p95_absolute=0.1)
    assert two.published == ErrorSummary(mean_absolute=0.2, bias=0.2, p95_absolute=0.2)


def test_a_summary_has_the_mean_the_bias_and_the_95th_percentile():
    summary = ErrorSummary.of([0.1] * 10 + [-0.1] * 10 + [0.5])
    assert summary.mean_absolute == pytest.approx(2.5 / 21, abs=1e-6)
    assert summary.bias == pytest.approx(0.5 / 21, abs=1e-6)
    assert summary.p95_absolute == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        ({"measured_ms": 0.0}, "bad-document", "measured_ms"),
        ({"measured_ms": "fast"}, "bad-document", "measured_ms"),
        ({"stages": [[["A"], ["A", "B"]]]}, "repeated-task", "wraps[0].processes[1]"),
        ({"stages": [[["A"]]]}, "missing-task", "wraps"),
        ({"extra": 1}, "bad-document", "extra"),
    ],
)
def test_a_row_that_is_wrong_is_refused_with_its_path(testbed, change, code, path):
    error = refused(testbed(ROW | change))
    assert (error.code, error.path) == (code, path)


def test_a_folder_that_is_no_testbed_is_refused(testbed, tmp_path):
    assert refused(tmp_path).code == "missing-file"
    testbed(ROW).joinpath("two.measured.jsonl").unlink()
    assert refused(tmp_path).code == "missing-file"
    assert refused(testbed(ROW, profiles=[])).code == "bad-document"
    assert refused(testbed(ROW, profiles={"a": PROFILES["a"]})).code == "unknown-function"
