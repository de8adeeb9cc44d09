"""`chiron evaluate scheduler` says how good plans are and writes it as JSON."""

from __future__ import annotations

import json


def test_small_stages_are_summed_up_and_written(chiron, tmp_path):
    result = chiron("evaluate", "scheduler", "--cases=4", "--no-large", "-o", "figures")
    assert (result.status, result.stdout) == (0, "")
    written = json.loads((tmp_path / "figures" / "scheduler.json").read_text())
    assert len(written["small_stages"]) == 4
    assert "4 small stages: the fewest processes possible in" in result.stderr


def test_a_folder_that_is_no_testbed_is_named(chiron, tmp_path):
    (tmp_path / "empty").mkdir()
    result = chiron("evaluate", "scheduler", "--testbed=empty", "--cases=0", "--no-large")
    assert result.status == 2
    assert "empty/profiles.json" in result.error()
