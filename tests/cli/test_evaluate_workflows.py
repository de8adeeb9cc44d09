"""`chiron evaluate workflows` shows what each variant takes beyond the critical path."""

from __future__ import annotations

from pathlib import Path


def test_a_workflow_that_was_not_traced_is_refused(chiron):
    assert chiron("evaluate", "workflows", "wordcount", "--local").status == 2


def test_a_field_of_a_request_has_to_be_json(chiron):
    folder = str(Path(__file__).parents[2] / "benchmarks" / "wordcount")
    result = chiron("evaluate", "workflows", folder, "--local", "--request", "parts=x")
    assert result.status == 2
    assert "--request 'parts=x': 'x' is no JSON" in result.stderr
