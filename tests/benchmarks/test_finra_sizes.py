"""finra in the paper's sizes: the same functions, more tasks in parallel."""

import json
import subprocess
import sys
from pathlib import Path

CHECKS = ["marketdata", "lastpx", "side", "trddate", "volume"]


def sized(benchmarks: Path, parallel: int, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    script = benchmarks / "finra" / "sizes.py"
    return subprocess.run(
        [sys.executable, str(script), str(parallel), "-o", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_size_5_is_finra_under_another_name(benchmarks: Path, tmp_path: Path) -> None:
    assert sized(benchmarks, 5, tmp_path / "out").returncode == 0
    base = json.loads((benchmarks / "finra" / "workflow.json").read_text())
    made = json.loads((tmp_path / "out" / "workflow.json").read_text())
    assert made == base | {"Name": "finra-5"}


def test_size_50_repeats_the_five_checks_in_turn(benchmarks: Path, tmp_path: Path) -> None:
    assert sized(benchmarks, 50, tmp_path / "out").returncode == 0
    made = json.loads((tmp_path / "out" / "workflow.json").read_text())
    branches = made["States"]["ValidateTrades"]["Branches"]
    names = [branch["StartAt"] for branch in branches]
    assert names[4:7] == ["Volume", "MarketData2", "LastPx2"]
    assert names[-1] == "Volume10"
    assert len(set(names)) == 50
    tasks = [branch["States"][branch["StartAt"]] for branch in branches]
    assert [task["Resource"] for task in tasks] == CHECKS * 10
    assert made["States"]["ValidateTrades"]["Next"] == "CheckMarginBalance"


def test_folder_in_use_is_left_alone(benchmarks: Path, tmp_path: Path) -> None:
    (tmp_path / "workflow.json").write_text("mine")
    refused = sized(benchmarks, 5, tmp_path)
    assert refused.returncode == 2
    assert "is not empty" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["workflow.json"]
