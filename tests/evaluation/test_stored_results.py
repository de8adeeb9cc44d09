"""Every stored result can be measured again, and documents say of each what it says.

A document names a result with its commit: ``NAME`` at ``COMMIT``, both as code. Each number of a
table below such a name stands in that result, but for rows and columns that are called
"not stored" or "published", goals, and what is computed of others.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from chiron.evaluation.bench.machine import RESULTS, no_evidence
from tests.rows import each_row

ROOT = RESULTS.parents[1]
DOCUMENTS = [
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(RESULTS.glob("*.md")),
    *sorted(ROOT.glob("*/README.md")),
    ROOT / "README.md",
]
#: Results to measure again, and what documents say beside their commit until then.
MEASURE_AGAIN = {
    "prediction-streams": "dirty",  # takes a quarter of an hour
    "runtime-paths.json": "dirty",  # needs MinIO
    "scheduler/published.json": "dirty",  # needs the published testbed
}
_CITED = re.compile(
    r"`(?:evaluation/results/)?([\w./-]+)`\s+at\s+`([0-9a-f]{7})`(?:,\s+(dirty|not\s+on\s+main))?"
)
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
#: Columns of a table that are no measurement of the result.
_OTHERS = {"all", "goal", "held", "memory × time", "worst share, points"}  # noqa: RUF001


class Citation(NamedTuple):
    """Where a document names a result, its commit, and what is wrong with that."""

    document: Path
    result: str
    commit: str
    fault: str | None


class Table(NamedTuple):
    """The results that the paragraph above a table names, and its cells below the header."""

    name: str
    results: list[str]
    cells: list[str]


def _commits(document: Any) -> list[str]:
    """The commits that a stored JSON names; none for a part of another result."""
    if not isinstance(document, dict):
        return []
    own = document.get("machine", document)
    named = document.get("commits") or [own.get("commit", "")]
    return [*named] if "machine" in document or "command" in document else []


def _results() -> dict[str, list[str]]:
    """Each result, a file or a folder with a run.json, and its commits."""
    found = {}
    for file in sorted(RESULTS.rglob("*.json")):
        if commits := _commits(json.loads(file.read_text())):
            name = file.relative_to(RESULTS)
            found[name.parts[0] if file.name == "run.json" else str(name)] = commits
    return found


def _citations() -> Iterator[Citation]:
    for document in DOCUMENTS:
        for name, commit, fault in _CITED.findall(document.read_text()):
            yield Citation(document, name, commit, " ".join(fault.split()) or None)


def _tables() -> Iterator[Table]:
    for document in DOCUMENTS:
        blocks = document.read_text().split("\n\n")
        for above, block in pairwise(blocks):
            named = [name for name, *_ in _CITED.findall(above)]
            if named and block.startswith("|") and not above.startswith("|"):
                yield Table(f"{document.name}: {named[0]}", named, list(_measured(block)))


def _measured(table: str) -> Iterator[str]:
    """The cells that a result should have."""
    lines = table.strip().split("\n")
    (_, *header), _, *rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines
    ]
    for label, *cells in rows:
        for column, cell in zip(header, cells, strict=True):
            if not re.search("not stored|published", label + column) and column not in _OTHERS:
                yield cell


def _values(document: Any) -> Iterator[float]:
    if isinstance(document, bool):
        return
    if isinstance(document, int | float):
        yield abs(float(document))
    elif isinstance(document, dict | list):
        for each in document.values() if isinstance(document, dict) else document:
            yield from _values(each)


def _is_rounded(text: str, values: list[float]) -> bool:
    """Whether `text` is one of `values`, also as a percentage or in thousands."""
    digits = len(text.partition(".")[2])
    wanted = float(text.replace(",", ""))
    least = 0.51 * 10**-digits
    return any(abs(value * by - wanted) <= least for value in values for by in (1, 100, 0.001))


STORED = _results()


def test_every_stored_file_belongs_to_a_result() -> None:
    files = [
        file.relative_to(RESULTS)
        for file in RESULTS.rglob("*")
        if file.is_file() and file not in DOCUMENTS
    ]
    assert [str(f) for f in files if str(f) not in STORED and f.parts[0] not in STORED] == []


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def history() -> None:
    """Skips where the history of this code is not there."""
    if shutil.which("git") is None or _git("ls-files", "--error-unmatch", __file__).returncode:
        pytest.skip("needs a checkout by git")
    if _git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        pytest.skip("needs the whole history: git fetch --unshallow")


@pytest.mark.usefixtures("history")
@each_row("name", sorted(STORED))
def test_a_stored_result_can_be_measured_again(name: str) -> None:
    """Those that cannot are in the list, and nothing else is."""
    commits = STORED[name]
    lost = any(_git("merge-base", "--is-ancestor", each, "HEAD").returncode for each in commits)
    fault = "dirty" if no_evidence(filter(None, commits)) else "not on main" if lost else None
    assert fault == MEASURE_AGAIN.get(name)


@each_row("name", sorted(STORED))
def test_a_stored_result_is_cited_with_its_commit(name: str) -> None:
    cited = [each for each in _citations() if each.result == name]
    assert cited, "no document names it: delete it"
    for each in cited:
        assert each.commit in {commit[:7] for commit in STORED[name]}, each.document
        assert each.fault == MEASURE_AGAIN.get(name), each.document


def test_every_cited_result_is_stored() -> None:
    assert [each for each in _citations() if each.result not in STORED] == []
    for document in DOCUMENTS:
        for path in re.findall(r"evaluation/results/[\w./-]*\w", document.read_text()):
            assert (ROOT / path).exists(), f"{document}: {path}"


@each_row("table", _tables(), ids=lambda table: table.name)
def test_the_numbers_of_a_table_are_those_of_the_results_that_it_cites(table: Table) -> None:
    files = [RESULTS / name for name in table.results]
    found = [f for file in files for f in ([file] if file.is_file() else file.glob("*.json"))]
    values = [value for file in found for value in _values(json.loads(file.read_text()))]
    cells = {cell: _NUMBER.findall(cell) for cell in table.cells}
    wrong = {
        cell: number
        for cell, numbers in cells.items()
        for number in numbers
        if not _is_rounded(number, values)
    }
    assert wrong == {}
