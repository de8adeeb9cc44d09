"""Measures in rounds, in which all variants take turns, and keeps a journal line of each round."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from chiron.deployment.background_load import mean_share, others_share
from chiron.evaluation.bench.bench import Bench, DeployedVariant
from chiron.evaluation.bench.settings import Scale
from chiron.profiler.cpu_speed import mean_probe_ms
from chiron.workflow.documents import Document, parse_json, validate

Sample = TypeVar("Sample")
Row = TypeVar("Row", bound=Document)


@dataclass(frozen=True)
class Journal(Generic[Row]):
    """The rows of type `row` in the file `path`; a stopped run resumes after the last row."""

    path: Path
    row: type[Row]

    def rows(self) -> list[Row]:
        """Return the rows of the file, if it exists; an incomplete last line is ignored.

        Raises ``bad-json`` or ``bad-document`` if a complete line is no valid row.
        """
        if not self.path.exists():
            return []
        found = []
        for number, line in enumerate(self.path.read_bytes().split(b"\n")[:-1], start=1):
            what = f"line {number} of {self.path}"
            found.append(validate(self.row, parse_json(line, what), what))
        return found

    def append(self, row: Row) -> None:
        """Add a row durably: it survives a crash of the process or the machine after the return."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            # Cut off the incomplete line of a process that was killed while it wrote.
            content = os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
            os.ftruncate(file.fileno(), content.rfind(b"\n") + 1)
            file.write(row.model_dump_json(exclude_none=True).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


class Round(Document, Generic[Sample]):
    """One turn of every variant of a group.

    ``probe_ms`` is the time of the CPU-speed probe right before: it shows a slow machine.
    ``others`` is the share of the cores that other programs used then, None if unknown.
    ``took_s`` is the duration of the round.
    """

    number: int
    group: int
    probe_ms: float
    others: float | None = None
    took_s: float
    samples: dict[str, Sample]


@dataclass(frozen=True)
class Session:
    """A bench, how much to measure on it, and the folder `out` of the workflow's journals.

    ``round`` is the number of the current round.
    """

    bench: Bench
    group: int
    scale: Scale
    out: Path
    round: int = 0


@dataclass(frozen=True)
class Measurement(Generic[Sample]):
    """A quantity measured in rounds, each a line of type `row` in the journal `name`."""

    name: str
    row: type[Round[Sample]]
    #: Returns the number of rounds.
    rounds: Callable[[Scale], int]
    #: Returns the time limit of all rounds for a number of variants. No round begins after it, so
    #: a slow machine measures less, not longer.
    seconds: Callable[[Scale, int], float]
    #: Measures a variant's sample in its turn.
    sample: Callable[[Session, DeployedVariant], Sample]
    #: Returns the usual duration of all rounds, if it may be less than the limit.
    expected_s: Callable[[Scale, int], float] | None = None

    def journal(self, out: Path) -> Journal[Round[Sample]]:
        """Return the journal in the folder `out` of a workflow."""
        return Journal(out / f"{self.name}.jsonl", self.row)

    def missing(self, out: Path, group: int, scale: Scale, variants: int) -> range:
        """Return the numbers of the rounds of `group` still to measure."""
        done = [row for row in self.journal(out).rows() if row.group == group]
        if done and sum(row.took_s for row in done) >= self.seconds(scale, variants):
            return range(0)
        return range(len(done), self.rounds(scale))

    def run(self, session: Session, say: Callable[[str], None]) -> None:
        """Measure the missing rounds; append each to the journal before the next one begins."""
        scale, variants = session.scale, session.bench.variants
        took_s = None
        while left := self.missing(session.out, session.group, scale, variants):
            rest = f", about {took_s * len(left):.0f} s left" if took_s else ""
            say(f"{self.name}: round {left.start + 1} of {left.stop}{rest}")
            begin = time.perf_counter()
            others, probe_ms = mean_share([others_share()]), mean_probe_ms()
            turns = session.bench.turns(left.start)
            now = replace(session, round=left.start)
            samples = {label: self.sample(now, deployed) for label, deployed in turns}
            took_s = time.perf_counter() - begin
            row = self.row(
                number=left.start,
                group=session.group,
                probe_ms=round(probe_ms, 4),
                others=others,
                took_s=round(took_s, 3),
                samples=samples,
            )
            self.journal(session.out).append(row)


def by_label(rows: Sequence[Round[Sample]]) -> dict[str, list[Sample]]:
    """Return the samples of every variant by its label, in the order of the rounds."""
    found: dict[str, list[Sample]] = {}
    for row in sorted(rows, key=lambda row: row.number):
        for label, sample in row.samples.items():
            found.setdefault(label, []).append(sample)
    return found
