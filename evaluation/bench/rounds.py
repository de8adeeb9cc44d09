"""Rounds, in which every variant has its turn, and the journal on disk that has a line of each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from chiron.deployment.background_load import mean_share, others_share
from chiron.evaluation.bench.bench import Bench, Placed
from chiron.evaluation.bench.settings import Scale
from chiron.profiler.cpu_speed import mean_probe_ms
from chiron.workflow.documents import Document, parse_json, validate

Sample = TypeVar("Sample")
Row = TypeVar("Row", bound=Document)


@dataclass(frozen=True)
class Journal(Generic[Row]):
    """The rows of type `row` in the file `path`: a stopped run goes on after the last of them."""

    path: Path
    row: type[Row]

    def rows(self) -> list[Row]:
        """What is written so far, none where there is no file; half a last line does not count.

        Raises ``bad-json`` or ``bad-document`` where a whole line is none of `row`.
        """
        if not self.path.exists():
            return []
        found = []
        for number, line in enumerate(self.path.read_bytes().split(b"\n")[:-1], start=1):
            what = f"line {number} of {self.path}"
            found.append(validate(self.row, parse_json(line, what), what))
        return found

    def append(self, row: Row) -> None:
        """Add a row; once this returns, no end of the process or the machine takes it away."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            # What a process that was killed while it wrote has left after the last line's end.
            content = os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
            os.ftruncate(file.fileno(), content.rfind(b"\n") + 1)
            file.write(row.model_dump_json(exclude_none=True).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


class Round(Document, Generic[Sample]):
    """One turn of every variant of a group.

    ``probe_ms`` is what the CPU-speed probe took right before: a slow spell of the machine shows;
    ``others`` is the share of the cores that other programs had then, None where that is not known;
    ``took_s`` is what the round took.
    """

    number: int
    group: int
    probe_ms: float
    others: float | None = None
    took_s: float
    samples: dict[str, Sample]


@dataclass(frozen=True)
class Session:
    """A bench, how much to measure on it, and the folder that has the workflow's journals.

    ``round`` is the number of the round that is measured.
    """

    bench: Bench
    group: int
    scale: Scale
    out: Path
    round: int = 0


@dataclass(frozen=True)
class Measurement(Generic[Sample]):
    """Something that is measured in rounds, each a line of type `row` in the journal `name`."""

    name: str
    row: type[Round[Sample]]
    #: How many of them there are.
    rounds: Callable[[Scale], int]
    #: How long they may take for so many variants: no round is begun after that, so that a slow
    #: machine measures less and not longer.
    seconds: Callable[[Scale, int], float]
    #: A variant's sample in its turn.
    sample: Callable[[Session, Placed], Sample]
    #: How long they usually take, where that may be less.
    expected_s: Callable[[Scale, int], float] | None = None

    def journal(self, out: Path) -> Journal[Round[Sample]]:
        """The journal in the folder `out` of a workflow."""
        return Journal(out / f"{self.name}.jsonl", self.row)

    def missing(self, out: Path, group: int, scale: Scale, variants: int) -> range:
        """The numbers of the rounds of `group` that are still to be measured."""
        done = [row for row in self.journal(out).rows() if row.group == group]
        if done and sum(row.took_s for row in done) >= self.seconds(scale, variants):
            return range(0)
        return range(len(done), self.rounds(scale))

    def run(self, session: Session, say: Callable[[str], None]) -> None:
        """Measure the rounds that are missing, and write each down before the next begins."""
        scale, variants = session.scale, session.bench.variants
        took_s = None
        while left := self.missing(session.out, session.group, scale, variants):
            rest = f", about {took_s * len(left):.0f} s left" if took_s else ""
            say(f"{self.name}: round {left.start + 1} of {left.stop}{rest}")
            begin = time.perf_counter()
            others, probe_ms = mean_share([others_share()]), mean_probe_ms()
            turns = session.bench.turns(left.start)
            now = replace(session, round=left.start)
            samples = {label: self.sample(now, placed) for label, placed in turns}
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
    """The samples of every variant by its label, in the order of the rounds."""
    found: dict[str, list[Sample]] = {}
    for row in sorted(rows, key=lambda row: row.number):
        for label, sample in row.samples.items():
            found.setdefault(label, []).append(sample)
    return found
