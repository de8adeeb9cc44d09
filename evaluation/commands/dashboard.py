"""`chiron evaluate dashboard`: times the dashboard in a browser."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from chiron.cli import options
from chiron.cli.artefacts import measured
from chiron.cli.output import emit, progress
from chiron.evaluation.commands.options import begin, command_line
from chiron.evaluation.commands.runtime import show
from chiron.evaluation.dashboard import measure_dashboard
from chiron.evaluation.runtime.rounds import RuntimeReport
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder

_ADDRESS, _POLL_S = re.compile(r"http://127\.0\.0\.1:\d+"), 0.1
_ROUNDS, _QUICK_ROUNDS = 20, 2


@click.command("dashboard")
@options.workflow_folder
@options.profile
@options.platform
@click.option("--quick", is_flag=True, help=f"{_QUICK_ROUNDS} rounds instead of {_ROUNDS}.")
@options.output("out")
@options.as_json
def command(
    folder: Path,
    profile: Path | None,
    platform: Path | None,
    quick: bool,
    output: Path,
    as_json: bool,
) -> None:
    """Measure in Chromium how fast the dashboard loads, and plans DIR and 1,000 tasks.

    \b
    Example:
      chiron evaluate dashboard benchmarks/finra
    """
    machine, opened = begin(output), WorkflowFolder.open(folder)
    functions, place = measured(opened, profile, platform)
    documents = {
        "workflow": json.loads(opened.text),
        "profile": functions.model_dump(mode="json"),
        "platform": place.model_dump(mode="json"),
    }
    tasks, rounds = len(opened.workflow.tasks), _QUICK_ROUNDS if quick else _ROUNDS
    with _services() as url:
        found = measure_dashboard(url, documents, tasks, rounds, progress)
    report = RuntimeReport(machine=machine, command=command_line(), figures=found)
    emit(report, output / "dashboard.json", as_json)
    show(report)


@contextmanager
def _services() -> Iterator[str]:
    """Run `chiron serve` without a gateway during the block; yield its URL."""
    program = Path(sys.executable).with_name("chiron")
    with tempfile.TemporaryDirectory() as home, (Path(home) / "log").open("w+") as log:
        command = [str(program), "serve", "predictor", "scheduler", "--port=0", f"--root={home}"]
        environment = {**os.environ, "CHIRON_HOME": home}
        with subprocess.Popen(command, env=environment, stderr=log) as process:
            try:
                yield _address(Path(log.name), process)
            finally:
                process.terminate()


def _address(log: Path, process: subprocess.Popen[bytes]) -> str:
    """Wait for the URL in the services' log and return it; raises ``died``."""
    while process.poll() is None:
        if found := _ADDRESS.search(log.read_text()):
            return found[0]
        time.sleep(_POLL_S)
    raise ChironError("died", f"chiron serve has ended: {log.read_text().strip()}", status=500)
