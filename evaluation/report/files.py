"""Writes every result as JSON, CSV and PNG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from evaluation.experiments.catalogue import Result
from evaluation.experiments.recorded import RunFolder
from evaluation.report.csv_text import as_csv
from evaluation.report.pictures import pictures
from workflow.documents import dump, write_atomically

NO_PICTURES = "no pictures without matplotlib: pip install 'chiron-openfaas[evaluation]'"


def write_results(
    results: Sequence[Result], folder: RunFolder, out: Path, say: Callable[[str], None]
) -> dict[str, bytes]:
    """Write EXPERIMENT.json, .csv and .png of each result to `out`; the pictures by their names."""
    for result in results:
        write_atomically(out / f"{result.experiment}.json", dump(result))
        write_atomically(out / f"{result.experiment}.csv", as_csv(result.rows))
    drawn = _drawn(results, folder, say)
    for name, content in drawn.items():
        (out / f"{name}.png").write_bytes(content)
    return drawn


def _drawn(
    results: Sequence[Result], folder: RunFolder, say: Callable[[str], None]
) -> dict[str, bytes]:
    try:
        return {k: v for result in results for k, v in pictures(result, folder).items()}
    except ImportError:
        say(NO_PICTURES)
        return {}
