"""Reads a run's folder, by workflow: setups, samples by variant, and the machine's drift."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chiron.deployment.background_load import mean_share
from chiron.deployment.measure import percentile
from chiron.evaluation.bench.machine import no_evidence
from chiron.evaluation.bench.rounds import Measurement, Sample, by_label
from chiron.evaluation.bench.settings import RUN_FILE, Run, Settings
from chiron.evaluation.bench.setup import SETUP_FILE, Setup
from chiron.evaluation.bench.variants import OURS, REPLICATE, distinct, our_labels
from chiron.evaluation.measurements.run import refused
from chiron.scheduler.prices import PAPER_GHZ
from chiron.workflow.documents import Document, read_document


class Drift(Document):
    """The changes of the machine's speed, by the CPU-speed probe of every round.

    ``probe_ms``, ``low_ms``, ``high_ms``: median, 5th, 95th percentile. ``trend``: the last third
    divided by the first. ``others``: the other programs' share of the cores, None if unknown.
    """

    probe_ms: float
    low_ms: float
    high_ms: float
    trend: float
    others: float | None = None


@dataclass(frozen=True)
class Recorded:
    """One workflow of a run, on a machine with a clock of `ghz`.

    ``first`` maps each label to the label that has the samples of the same plan. ``refused`` maps
    labels to the reasons why they were left out.
    """

    out: Path
    setup: Setup
    first: Mapping[str, str]
    refused: Mapping[str, str]
    ours: tuple[str, ...]
    ghz: float

    @property
    def name(self) -> str:
        """The name of the workflow."""
        return self.setup.workflow

    def samples(self, measurement: Measurement[Sample]) -> dict[str, list[Sample]]:
        """Return the samples by label, in the order of the rounds, with the A/A replicate's."""
        return by_label(measurement.journal(self.out).rows())

    def drift(self, measurement: Measurement[Any]) -> Drift | None:
        """Return the machine's drift over the rounds; None if there are no rounds."""
        rows = measurement.journal(self.out).rows()
        if not rows:
            return None
        probes_ms, third = [row.probe_ms for row in rows], max(1, len(rows) // 3)
        trend = statistics.median(probes_ms[-third:]) / statistics.median(probes_ms[:third])
        return Drift(
            probe_ms=round(statistics.median(probes_ms), 4),
            low_ms=round(percentile(probes_ms, 0.05), 4),
            high_ms=round(percentile(probes_ms, 0.95), 4),
            trend=round(trend, 4),
            others=mean_share(row.others for row in rows),
        )

    @property
    def replicate(self) -> tuple[str, str] | None:
        """The labels of both deployments of the plan of ours that is deployed twice."""
        labels = [self.first[label] for label in self.ours if label in self.first]
        return (labels[0], f"{REPLICATE}{labels[0]}") if labels else None


@dataclass(frozen=True)
class RunFolder:
    """The records of a run."""

    run: Run[Settings]
    workflows: tuple[Recorded, ...]

    @property
    def ours(self) -> tuple[str, ...]:
        """The labels of our own planner in any workflow."""
        return tuple(dict.fromkeys(label for each in self.workflows for label in each.ours))

    @property
    def warnings(self) -> tuple[str, ...]:
        """The reasons not to rely on the figures or the predictions, each once."""
        plans = [plan for each in self.workflows for plan in each.setup.plans.values()]
        predicted = [line for p in plans if p.predicted for line in p.predicted.warnings]
        reason = no_evidence(self.run.commits)
        return tuple(dict.fromkeys([reason, *predicted] if reason else predicted))


def read_run(out: Path) -> RunFolder:
    """Return the run in the folder `out`, with the workflows that are set up so far.

    Raises ``missing-file`` if there is no run, ``bad-document`` if its file is invalid.
    """
    run = read_document(Run[Settings], out / RUN_FILE, "run")
    ours = tuple(our_labels(run.settings.mechanisms)) if OURS in run.settings.planners else ()
    ghz = run.machine.ghz or PAPER_GHZ
    found = []
    for file in sorted(out.glob(f"*/{SETUP_FILE}")):
        setup, folder = read_document(Setup, file, "setup"), file.parent
        found.append(Recorded(folder, setup, distinct(setup.plans), refused(folder), ours, ghz))
    return RunFolder(run, tuple(found))
