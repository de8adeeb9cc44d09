"""Rows of measured and predicted plans, and the folders that store them.

A folder of rows has ``platform.json`` and, for every workflow, ``NAME.workflow.json``,
``NAME.profile.json`` and ``NAME.rows.jsonl`` with plans of both mechanisms. ``run.json`` has the
settings, so that a stopped run continues with them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from chiron.deployment.measure import percentile
from chiron.evaluation.bench.rounds import Journal
from chiron.evaluation.bench.setup import PLATFORM_FILE, kept
from chiron.predictor.predict import predict
from chiron.scheduler.chance import surprise
from chiron.workflow.documents import Document, read_document, read_json, write_atomically
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder, parse_workflow
from chiron.workflow.model import Workflow
from chiron.workflow.payloads import PAYLOAD_FILE
from chiron.workflow.plan import Plan, Prediction
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile

_ROWS = ".rows.jsonl"


class TimedRequest(Document):
    """One request: its latency on the client's clock, and its payload's file name.

    The CPU-speed probe ran right beside the request.
    """

    latency_ms: float
    probe_ms: float
    payload: str = PAYLOAD_FILE


class MeasuredRow(Document):
    """One plan and all of its measured requests.

    ``again`` has the requests of a second deployment (an A/A replicate), for one plan a batch.
    ``others`` is the share of the cores that other programs had during the batch; None if unknown.
    """

    plan: Plan
    requests: tuple[TimedRequest, ...]
    again: tuple[TimedRequest, ...] = ()
    others: float | None = None

    @property
    def measured_ms(self) -> float:
        """The median latency of all requests."""
        return _typical_ms(self.requests)

    @property
    def p95_ms(self) -> float:
        """The 95th percentile of the latencies of all requests."""
        return percentile([each.latency_ms for each in self.requests], 0.95)

    @property
    def probe_ms(self) -> float:
        """The median of the CPU-speed probes beside the requests."""
        return round(median(each.probe_ms for each in self.requests), 4)

    @property
    def noise(self) -> float | None:
        """The difference of two deployments of this plan, relative to their mean."""
        if not self.again:
            return None
        again_ms = _typical_ms(self.again)
        return abs(self.measured_ms - again_ms) / ((self.measured_ms + again_ms) / 2)


class PredictedRow(MeasuredRow):
    """A measured plan, and its prediction from a profile and a platform measured before.

    ``predicted`` is the prediction that a user gets. ``at_speed_ms`` is predicted, in hindsight, at
    the CPU speed measured beside the requests: it shows the error's share from machine drift.
    """

    predicted: Prediction
    at_speed_ms: float

    @classmethod
    def of(
        cls, row: MeasuredRow, workflow: Workflow, profile: Profile, platform: Platform
    ) -> PredictedRow:
        """Return `row` with its predictions."""
        now = platform.model_copy(update={"cpu_probe_ms": row.probe_ms})
        return cls(
            **dict(row),
            predicted=predict(row.plan, workflow, profile, platform, 95),
            at_speed_ms=predict(row.plan, workflow, profile, now).latency_ms,
        )

    @property
    def error(self) -> float:
        """The error (P̂ - P) / P against the median of all requests (Chiron §6.1)."""
        return self.predicted.latency_ms / self.measured_ms - 1

    @property
    def p95_error(self) -> float:
        """The error against the 95th percentile of all requests."""
        return self.predicted.judged_ms / self.p95_ms - 1

    @property
    def error_at_speed(self) -> float:
        """The error of `at_speed_ms` against the median."""
        return self.at_speed_ms / self.measured_ms - 1

    @property
    def inside(self) -> bool:
        """Whether the predicted range contains the measured median."""
        return self.predicted.low_ms <= self.measured_ms <= self.predicted.high_ms

    @property
    def surprise(self) -> float:
        """The excess of the median over the prediction, in halves of the range."""
        found = self.predicted
        return surprise(self.measured_ms, found.latency_ms, found.low_ms, found.high_ms)

    @property
    def half_width(self) -> float:
        """Half of the range's width, relative to the prediction."""
        found = self.predicted
        return (found.high_ms - found.low_ms) / 2 / found.latency_ms


def _typical_ms(requests: tuple[TimedRequest, ...]) -> float:
    return round(median(each.latency_ms for each in requests), 4)


class RowSettings(Document):
    """The settings of a folder of rows: requests for each plan, and the seed of the plans."""

    samples: int
    seed: int


class StoredWorkflow(NamedTuple):
    """One workflow with at least one measured plan."""

    name: str
    workflow: Workflow
    profile: Profile
    rows: tuple[MeasuredRow, ...]


def profile_file(path: Path, workflow: str) -> Path:
    """Return the file of a workflow's profile."""
    return path / f"{workflow}.profile.json"


def keep_workflow(
    path: Path, folder: WorkflowFolder, measure: Callable[[], Profile]
) -> tuple[Profile, Journal[MeasuredRow]]:
    """Store a workflow in `path`; return its profile and the journal of its rows.

    `measure` makes the profile unless it is stored already.
    Raises ``other-run`` if `path` has rows of another workflow of that name.
    """
    name = folder.workflow.name
    file = path / f"{name}.workflow.json"
    text = folder.text
    if file.exists() and file.read_text(encoding="utf-8") != text:
        message = f"{path} has rows of another {name}: name another folder with -o, or remove it"
        raise ChironError("other-run", message)
    write_atomically(file, text)
    profile = kept(profile_file(path, name), Profile, measure)
    return profile, Journal(path / f"{name}{_ROWS}", MeasuredRow)


def read_rows(path: Path) -> tuple[Platform, list[StoredWorkflow]]:
    """Return the platform and all workflows of the folder at `path`, sorted by name.

    Raises ``missing-file`` without rows, and ``bad-json`` or ``bad-document`` with file, line and
    path. Plans of other tasks and functions without profile also raise.
    """
    platform = read_document(Platform, path / PLATFORM_FILE, "platform")
    files = sorted(path.glob("*" + _ROWS))
    if not files:
        raise ChironError("missing-file", f"{path} has no NAME{_ROWS}: name a folder of rows")
    return platform, [_read(path, file) for file in files]


def _read(path: Path, file: Path) -> StoredWorkflow:
    name = file.name.removesuffix(_ROWS)
    workflow = parse_workflow(read_json(path / f"{name}.workflow.json", "workflow"), name)
    profile = read_document(Profile, profile_file(path, name), "profile")
    profile.require(workflow.functions)
    rows = tuple(Journal(file, MeasuredRow).rows())
    if not rows:
        raise ChironError("missing-file", f"{file} has no row: measure again")
    for row in rows:
        row.plan.check_against(workflow)
    return StoredWorkflow(name, workflow, profile, rows)
