"""Every benchmark is a complete workflow folder whose functions run alone, the same every time."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from chiron.workflow.folder import WorkflowFolder

WORKFLOWS = [
    "finra",
    "slapp",
    "slapp-v",
    pytest.param("social-network", marks=pytest.mark.redis),
    pytest.param("movie-review", marks=pytest.mark.redis),
    "illegal-recognizer",
    "orders",
    "wordcount",
    "svd",
    "recognition",
    pytest.param("video", marks=pytest.mark.ffmpeg),
    "advertising",
    "query",
    "redundant",
    "mapreduce-sort",
    "mapreduce-count",
]
ALL = [*WORKFLOWS, "slapp-java", "finra-java"]
#: The function beside those of the tasks.
SERVICES = {
    "finra": "finra-quotes",
    "slapp": "slapp-peer",
    "slapp-v": "slapp-peer",
    "slapp-java": "slapp-peer",
    "finra-java": "finra-quotes",
    "social-network": "social-network-store",
    "movie-review": "movie-review-store",
}
RUN = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from conftest import run
print(run(Path(sys.argv[2]), sys.stdin.read()), end="")
"""


@pytest.mark.parametrize("name", ALL)
def test_stack_yaml_holds_the_tasks_functions_and_the_service(name: str, benchmarks: Path) -> None:
    stack = yaml.safe_load((benchmarks / name / "stack.yaml").read_text())
    tasks = set(WorkflowFolder.open(benchmarks / name).workflow.functions)
    assert set(stack["functions"]) == tasks | ({SERVICES[name]} if name in SERVICES else set())
    assert stack["provider"] == {"name": "openfaas", "gateway": "http://127.0.0.1:8080"}


def arguments(file: Path) -> int:
    """How many arguments its `handle` has; to import what some handlers import takes seconds."""
    (handle,) = (
        each
        for each in ast.parse(file.read_text()).body
        if isinstance(each, ast.FunctionDef) and each.name == "handle"
    )
    return len(handle.args.args)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_lang_in_stack_yaml_is_the_style_of_the_handler(name: str, benchmarks: Path) -> None:
    stack = yaml.safe_load((benchmarks / name / "stack.yaml").read_text())
    styles = {1: "python3-flask", 2: "python3-http"}
    langs = {function: entry["lang"] for function, entry in stack["functions"].items()}
    if set(langs.values()) == {"command"}:  # each of a script that is there
        for entry in stack["functions"].values():
            assert (benchmarks / name / entry["handler"] / entry["fprocess"].split()[-1]).is_file()
        return
    found = {
        function: styles[arguments(benchmarks / name / entry["handler"] / "handler.py")]
        for function, entry in stack["functions"].items()
    }
    assert found == langs
    assert set(found.values()) == set(styles.values())


@pytest.mark.slow
@pytest.mark.usefixtures("services")
@pytest.mark.parametrize("name", WORKFLOWS)
def test_output_is_json_and_the_same_under_another_hash_seed(
    name: str, benchmarks: Path, functions: SimpleNamespace
) -> None:
    payload = functions.load(benchmarks, "payload").payload_text(name, "test")
    expected = functions.run(benchmarks / name, payload)
    json.loads(expected)
    again = subprocess.run(
        [sys.executable, "-c", RUN, str(Path(__file__).parent), str(benchmarks / name)],
        input=payload,
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert again.stdout == expected


@pytest.mark.parametrize("name", ALL)
def test_functions_ask_nobody_outside_this_machine(name: str, benchmarks: Path) -> None:
    folder = benchmarks / name / "functions"
    code = [path.read_text() for end in ("py", "java") for path in folder.rglob(f"*.{end}")]
    hosts = {host for text in code for host in re.findall(r"https?://([\w.-]+)", text)}
    assert hosts <= {"gateway.openfaas", "short"}  # a cluster's own gateway; a made-up link
