"""Rows: what was measured of a plan and predicted before, and the folders that have them.

A folder of rows has ``platform.json`` and, for every workflow, ``NAME.workflow.json``,
``NAME.profile.json`` and ``NAME.rows.jsonl`` with plans of both mechanisms. ``run.json`` says how
they were measured, so that a stopped run goes on as it began.
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
    """One request: its payload's file, its latency on the client's clock, the CPU-speed probe.

    The probe ran right beside it.
    """

    latency_ms: float
    probe_ms: float
    payload: str = PAYLOAD_FILE


class MeasuredRow(Document):
    """One plan and what was measured of it: all of its requests.

    ``again`` are those of the same plan deployed a second time, an A/A replicate: of one plan in
    each batch. ``others`` is the share of the cores that other programs had, in the same batch;
    None where that is not known.
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
        """What 95 % of all requests stayed within."""
        return percentile([each.latency_ms for each in self.requests], 0.95)

    @property
    def probe_ms(self) -> float:
        """What the CPU-speed probe took beside them, the median."""
        return round(median(each.probe_ms for each in self.requests), 4)

    @property
    def noise(self) -> float | None:
        """How far two deployments of this one plan differ, relative to their mean."""
        if not self.again:
            return None
        again_ms = _typical_ms(self.again)
        return abs(self.measured_ms - again_ms) / ((self.measured_ms + again_ms) / 2)


class PredictedRow(MeasuredRow):
    """A measured plan, and its prediction from a profile and a platform measured before.

    ``predicted`` is what a user gets; ``at_speed_ms`` is predicted with the functions as fast as
    the CPU-speed probe was beside the requests: how much of the error is drift of the machine, in
    hindsight.
    """

    predicted: Prediction
    at_speed_ms: float

    @classmethod
    def of(
        cls, row: MeasuredRow, workflow: Workflow, profile: Profile, platform: Platform
    ) -> PredictedRow:
        """`row` with its predictions."""
        now = platform.model_copy(update={"cpu_probe_ms": row.probe_ms})
        return cls(
            **dict(row),
            predicted=predict(row.plan, workflow, profile, platform, 95),
            at_speed_ms=predict(row.plan, workflow, profile, now).latency_ms,
        )

    @property
    def error(self) -> float:
        """(P̂ - P) / P of the median of every request (Chiron §6.1)."""
        return self.predicted.latency_ms / self.measured_ms - 1

    @property
    def p95_error(self) -> float:
        """The same of the 95th percentile of every request."""
        return self.predicted.judged_ms / self.p95_ms - 1

    @property
    def error_at_speed(self) -> float:
        """The same of `at_speed_ms`."""
        return self.at_speed_ms / self.measured_ms - 1

    @property
    def inside(self) -> bool:
        """Whether the measured median lies in the predicted range."""
        return self.predicted.low_ms <= self.measured_ms <= self.predicted.high_ms

    @property
    def surprise(self) -> float:
        """By how many halves of the range it took longer than predicted."""
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
    """How the rows of a folder are measured: requests for each plan, and which plans are drawn."""

    samples: int
    seed: int


class StoredWorkflow(NamedTuple):
    """One workflow with at least one measured plan."""

    name: str
    workflow: Workflow
    profile: Profile
    rows: tuple[MeasuredRow, ...]


def profile_file(path: Path, workflow: str) -> Path:
    """Where the profile of a workflow is kept."""
    return path / f"{workflow}.profile.json"


def keep_workflow(
    path: Path, folder: WorkflowFolder, measure: Callable[[], Profile]
) -> tuple[Profile, Journal[MeasuredRow]]:
    """What the rows of a workflow need, and where they go; profiled by `measure` only once.

    Raises ``other-run`` where the folder has rows of another workflow of that name.
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
    """The platform and all workflows of the folder at `path`, in the order of their names.

    Raises ``missing-file`` where it is no such folder, ``bad-json`` or ``bad-document`` with file,
    line and path, and what plans of other tasks or functions without profile raise.
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
