"""What all measurements have in common: rounds in which every variant has its turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from evaluation.bench.bench import Bench
from evaluation.bench.journal import Journal
from evaluation.bench.settings import Scale
from profiler.reference_loop import reference_ms
from workflow.documents import Document

Sample = TypeVar("Sample")


class Round(Document, Generic[Sample]):
    """One turn of every variant of a group.

    ``loop_ms`` is what a fixed loop took right before, so that a slow spell of the machine shows.
    """

    number: int
    group: int
    loop_ms: float
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
    sample
        Every variant's sample of the round of a number.
    """

    name: str
    row: type[Round[Sample]]
    rounds: Callable[[Scale], int]
    sample: Callable[[Session, int], dict[str, Sample]]

    def journal(self, out: Path) -> Journal[Round[Sample]]:
        """The journal in the folder `out` of a workflow."""
        return Journal(out / f"{self.name}.jsonl", self.row)

    def done(self, out: Path, group: int) -> int:
        """How many rounds of `group` are measured already."""
        return sum(1 for row in self.journal(out).rows() if row.group == group)

    def run(self, session: Session, say: Callable[[str], None]) -> None:
        """Measure the rounds that are missing, and write each down before the next begins."""
        count, journal = self.rounds(session.scale), self.journal(session.out)
        for number in range(self.done(session.out, session.group), count):
            say(f"{self.name}: round {number + 1} of {count}")
            loop_ms = round(reference_ms(), 4)
            samples = self.sample(session, number)
            journal.append(
                self.row(number=number, group=session.group, loop_ms=loop_ms, samples=samples)
            )


def by_label(rows: Sequence[Round[Sample]]) -> dict[str, list[Sample]]:
    """The samples of every variant by its label, in the order of the rounds."""
    found: dict[str, list[Sample]] = {}
    for row in sorted(rows, key=lambda row: row.number):
        for label, sample in row.samples.items():
            found.setdefault(label, []).append(sample)
    return found
