"""What a folder has of a run, by workflow: setups, and the samples of every variant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from evaluation.bench.settings import RUN_FILE, Run, Settings
from evaluation.bench.setup import PLATFORM_FILE, SETUP_FILE, Setup
from evaluation.bench.variants import TWIN, distinct, our_labels
from evaluation.measurements.rounds import Measurement, by_label
from evaluation.measurements.run import refused
from workflow.documents import read_document
from workflow.platform import Platform

Sample = TypeVar("Sample")


@dataclass(frozen=True)
class Recorded:
    """One workflow of a run.

    Attributes
    ----------
    first
        Label -> the label under which the same plan was measured.
    refused
        Label -> why the gateway does not have it.
    """

    out: Path
    setup: Setup
    first: Mapping[str, str]
    refused: Mapping[str, str]
    ours: tuple[str, ...]

    @property
    def name(self) -> str:
        """The workflow's."""
        return self.setup.workflow

    def samples(self, measurement: Measurement[Sample]) -> dict[str, list[Sample]]:
        """The samples by label, in the order of the rounds; that of the twin is among them."""
        return by_label(measurement.journal(self.out).rows())

    def loops_ms(self, measurement: Measurement[Sample]) -> list[float]:
        """What the reference loop took in every round."""
        return [row.loop_ms for row in measurement.journal(self.out).rows()]

    @property
    def twin(self) -> tuple[str, str] | None:
        """The label of what is deployed twice, and that of its second deployment."""
        labels = [self.first[label] for label in self.ours if label in self.first]
        return (labels[0], f"{TWIN}{labels[0]}") if labels else None


@dataclass(frozen=True)
class RunFolder:
    """A run on disk."""

    run: Run[Settings]
    platform: Platform
    workflows: tuple[Recorded, ...]


def read_run(out: Path) -> RunFolder:
    """The run in the folder `out`, with the workflows that are set up so far.

    Raises
    ------
    ChironError
        ``missing-file`` where there is none, ``bad-document`` where it cannot be understood.
    """
    run = read_document(Run[Settings], out / RUN_FILE, "run")
    platform = read_document(Platform, out / PLATFORM_FILE, "platform")
    ours = tuple(our_labels(run.settings.mechanisms)) if "pgp" in run.settings.models else ()
    found = []
    for file in sorted(out.glob(f"*/{SETUP_FILE}")):
        setup = read_document(Setup, file, "setup")
        folder = file.parent
        first = distinct(setup.plans)
        found.append(Recorded(folder, setup, first, refused(folder), ours))
    return RunFolder(run, platform, tuple(found))
