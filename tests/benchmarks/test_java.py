"""The workflows in Java answer as those in Python do."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chiron.evaluation.reference.sources import reference_run
from chiron.generator.generate import Sources
from chiron.workflow.folder import WorkflowFolder
from tests.benchmarks.test_finra_checks import ALLOWED, BAD, GOOD, HOLIDAYS, REQUEST
from tests.benchmarks.test_slapp import SMALL

SERVICES = {"slapp": "slapp-peer", "finra": "finra-quotes"}
DAYS = [f"{year}{day}" for year, days in HOLIDAYS.items() for day in days.split()]
CHANGES: list[dict[str, Any]] = [
    {},
    *(change for _, change, _ in BAD),
    *(change for _, change in ALLOWED),
    *({"TradeDate": day, "SettlDate": day} for day in DAYS),
]
REQUESTS: dict[str, dict[str, Any]] = {
    "slapp": {"seed": 'größe "\\\n', "sizes": SMALL},
    "finra": REQUEST
    | {
        "as_of": "2024-12-31",
        "account": {"cash_cents": -1},
        "trades": [GOOD | {"ExecID": f"T{i}"} | change for i, change in enumerate(CHANGES)],
    },
}


@pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK: install a JDK 17")
@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("slapp", marks=pytest.mark.soak), "finra"])
def test_every_task_answers_the_same_bytes(
    name: str, benchmarks: Path, functions: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUOTES_DELAY_MS", "0")
    service = functions.load(benchmarks / name / "functions" / SERVICES[name])
    with functions.serve(service.handle) as url:
        opened = (WorkflowFolder.open(benchmarks / folder) for folder in (name, f"{name}-java"))
        request = json.dumps(REQUESTS[name]).encode()
        python, java = (
            reference_run(Sources.read(folder), request, url).outputs for folder in opened
        )
    assert java == python


def test_they_read_json_alike(benchmarks: Path) -> None:
    one, other = (benchmarks / f"{name}-java" / "Json.java" for name in SERVICES)
    assert one.read_text() == other.read_text()
