"""Writes finra with N tasks in parallel, N >= 5: the paper's FINRA-5, -50, -100 and -200.

python benchmarks/finra/sizes.py 50 -o finra-50
"""

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
STAGE = "ValidateTrades"


def sized_workflow(base: dict[str, Any], parallel: int) -> dict[str, Any]:
    """Return `base` with its five checks repeated in turn up to `parallel` tasks.

    The second round's tasks are named MarketData2, LastPx2, ..., and so on.

    Raises:
        ValueError: `parallel` is below the number of checks.
    """
    checks = [(branch["StartAt"], branch) for branch in base["States"][STAGE]["Branches"]]
    if parallel < len(checks):
        raise ValueError(f"finra has {len(checks)} checks in parallel at least, not {parallel}")
    branches = []
    for index in range(parallel):
        turn, (name, branch) = index // len(checks), checks[index % len(checks)]
        task = name if turn == 0 else f"{name}{turn + 1}"
        branches.append({"StartAt": task, "States": {task: branch["States"][name]}})
    stage = base["States"][STAGE] | {"Branches": branches}
    return base | {"Name": f"finra-{parallel}", "States": base["States"] | {STAGE: stage}}


def write_sized(parallel: int, folder: Path) -> None:
    """Write the workflow folder; only its workflow.json differs from finra's.

    Raises:
        ValueError: `parallel` is too small.
        FileExistsError: `folder` exists and is not empty.
    """
    workflow = sized_workflow(json.loads((HERE / "workflow.json").read_text()), parallel)
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty: name a new folder or empty it")
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(HERE / "functions", folder / "functions", ignore=ignore)
    for name in ("stack.yaml", "payload.json"):
        shutil.copy(HERE / name, folder / name)
    (folder / "workflow.json").write_text(json.dumps(workflow, indent=1) + "\n")


def main() -> None:
    """Run the command; wrong arguments give exit status 2."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parallel", type=int, help="tasks in parallel, at least 5")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder to write")
    arguments = parser.parse_args()
    try:
        write_sized(arguments.parallel, arguments.output)
    except (ValueError, FileExistsError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
