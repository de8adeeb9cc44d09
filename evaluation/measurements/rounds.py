"""What all measurements have in common: rounds in which every variant has its turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from evaluation.bench.bench import Bench
from evaluation.bench.journal import Journal
from evaluation.bench.settings import Scale
from profiler.reference_loop import machine_ms
from workflow.documents import Document

Sample = TypeVar("Sample")


class Round(Document, Generic[Sample]):
    """One turn of every variant of a group.

    ``loop_ms`` is what a fixed loop took right before, so that a slow spell of the machine shows;
    ``took_s`` is what the round took.
    """

    number: int
    group: int
    loop_ms: float
    took_s: float
    samples: dict[str, Sample]


@dataclass(frozen=True)
class Session:
    """A bench, how much to measure on it, and the folder that has the workflow's journals."""

    bench: Bench
    group: int
    scale: Scale
    out: Path


@dataclass(frozen=True)
class Measurement(Generic[Sample]):
    """Something that is measured in rounds.

    Attributes
    ----------
    name
        Of the journal's file.
    row
        The type of its lines.
    rounds
        How many of them there are.
    seconds
        How long they may take for so many variants: no round is begun after that, so that a slow
        machine measures less and not longer.
    sample
        Every variant's sample of the round of a number.
    """

    name: str
    row: type[Round[Sample]]
    rounds: Callable[[Scale], int]
    seconds: Callable[[Scale, int], float]
    sample: Callable[[Session, int], dict[str, Sample]]

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
        while left := self.missing(session.out, session.group, scale, variants):
            say(f"{self.name}: round {left.start + 1} of {left.stop}")
            begin, loop_ms = time.perf_counter(), machine_ms()
            samples = self.sample(session, left.start)
            row = self.row(
                number=left.start,
                group=session.group,
                loop_ms=round(loop_ms, 4),
                took_s=round(time.perf_counter() - begin, 3),
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
