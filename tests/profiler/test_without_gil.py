"""Functions on a CPython without a GIL: who holds none, and who enables it again."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from chiron.openfaas.handlers import Handler
from chiron.profiler import noop_handler
from chiron.profiler.cpu_speed import CpuSpeed
from chiron.profiler.function_profile import function_profile, mixed
from chiron.profiler.invocation import Changes
from chiron.profiler.probe_run import ProbeRun, Stretch
from chiron.profiler.sampling import Samples, Untraced
from chiron.templates import TEMPLATES
from chiron.wrap.functions.leftovers import GIL_ENABLED

PYTHON = shutil.which("python3.14t") or shutil.which("python3.13t")
needs_python = pytest.mark.skipif(PYTHON is None, reason="no CPython without a GIL: python3.14t")
#: Computes in Python for 15 of 35 ms.
SAMPLES = Samples(
    (Untraced(35.0, CpuSpeed(1.0, 0.0)),) * 6,
    (),
    (ProbeRun(35.0, (Stretch("cpu", 0.0, 15.0), Stretch("block", 15.0, 35.0, "poll"))),),
    *(0.0, 0.0, 0, 0),
)


@pytest.mark.parametrize(
    ("runtime", "enabled", "found", "kinds"),
    [
        ("python3.14t", (), ("python3.14t", True), ["native", "block"]),
        ("python3.14t", (GIL_ENABLED,), ("python3.14", False), ["cpu", "block"]),
        ("python3.14", (), ("python3.14", False), ["cpu", "block"]),
    ],
)
def test_a_function_computes_beside_others_unless_a_module_enables_the_gil(
    runtime: str,
    enabled: tuple[str, ...],
    found: tuple[str, bool],
    kinds: list[str],
    tmp_path: Path,
) -> None:
    taken = replace(SAMPLES, changes=Changes(everywhere=(*enabled, "signal.signal")))
    function = function_profile(taken, runtime, Handler("f", tmp_path, "flask"))
    assert (function.runtime, function.parallel) == found
    assert [period.kind for period in function.periods] == kinds
    assert function.patched_at_import == ("signal.signal",)


def test_another_runtime_has_its_own_lock(tmp_path: Path) -> None:
    node = Handler("f", tmp_path, "node", runtime="node", cooperative=True)
    function = function_profile(SAMPLES, "python3.14t", node)
    assert (function.runtime, function.parallel) == ("node", False)


def test_one_payload_whose_run_enables_the_gil_is_enough(tmp_path: Path) -> None:
    handler = Handler("f", tmp_path, "flask")
    enabling = replace(SAMPLES, changes=Changes(everywhere=(GIL_ENABLED,)))
    free, held = (function_profile(each, "python3.14t", handler) for each in (SAMPLES, enabling))
    for pair in ([free, held], [held, free]):
        function = mixed(pair, [1.0, 1.0])
        assert (function.runtime, function.parallel) == ("python3.14", False)


def answer(program: str, environment: Mapping[str, str]) -> object:
    command = [str(PYTHON), "-c", program]
    folder = TEMPLATES / "python3-wrap"
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    return json.loads(ran.stdout)


@needs_python
@pytest.mark.parametrize(("environment", "gil"), [({}, False), ({"PYTHON_GIL": "1"}, True)])
def test_a_wrap_tells_whether_its_gil_is_enabled(environment: dict[str, str], gil: bool) -> None:
    path = str(Path(noop_handler.__file__))
    calibrating = f"import runpy; print(runpy.run_path({path!r})['handle']('measure'))"
    asked = answer(calibrating, environment)
    assert isinstance(asked, dict)
    assert asked["gil"] is gil
    profiling = (
        "import json; from wrap.functions.process_state import ProcessState; "
        "print(json.dumps(ProcessState().changes.everywhere))"
    )
    assert answer(profiling, environment) == ([GIL_ENABLED] if gil else [])
