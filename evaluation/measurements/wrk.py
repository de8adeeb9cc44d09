"""The closed loop by wrk, where it is installed: what another client says of the same function.

wrk calls one URL, so it can only check variants whose request is one call; the figures that are
compared are those of the one client that does for all.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

from evaluation.bench.bench import Placed
from evaluation.bench.rounds import Measurement, Round, Session
from evaluation.bench.settings import Scale
from evaluation.measurements.client import TIMEOUT_S
from evaluation.measurements.load import ClosedSample, closed_window_s
from workflow.documents import validate
from workflow.errors import ChironError

PROGRAM = "wrk"
#: How much longer than it measures it may take to start and to end.
_PATIENCE_S = 30.0
#: What a sample takes longer, for the forecast: until it has begun and ended.
_MORE_S = 0.5
#: Body and expected answer are files, so that nothing of them is Lua code.
_SCRIPT = """
local function content(name)
  local file = assert(io.open(os.getenv("CHIRON_CHECK") .. "/" .. name, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = content("body")
local expected = content("expected")
local any = content("any") == "yes"
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init(arguments) wrong = 0 end
function response(status, headers, body)
  if status ~= 200 or (body ~= expected and not any) then wrong = wrong + 1 end
end
function done(summary, latency, requests)
  local failed = summary.errors
  local lost = failed.connect + failed.read + failed.write + failed.timeout
  local false_answers = 0
  for _, thread in ipairs(threads) do false_answers = false_answers + thread:get("wrong") end
  local answered = summary.requests - false_answers
  io.write(string.format(
    '{"per_s":%.3f,"answered":%d,"counted":%d,"errors":%d,"p50_ms":%.3f,"p95_ms":%.3f}\\n',
    answered / (summary.duration / 1e6), answered, answered, lost + false_answers,
    latency:percentile(50) / 1e3, latency:percentile(95) / 1e3))
end
"""


def installed() -> bool:
    """Whether there is a wrk."""
    return shutil.which(PROGRAM) is not None


def wrk_loop(
    url: str, function: str, body: bytes, expected: str | None, clients: int, seconds: float
) -> ClosedSample:
    """What the function answers while `clients` clients ask it by wrk, in whole seconds.

    Raises ``no-wrk`` where it cannot be run or says nothing of use.
    """
    with tempfile.TemporaryDirectory(prefix="chiron-wrk-") as scratch:
        folder = Path(scratch)
        (folder / "body").write_bytes(body)
        (folder / "expected").write_text(expected or "", encoding="utf-8")
        (folder / "any").write_text("yes" if expected is None else "no", encoding="utf-8")
        (folder / "post.lua").write_text(_SCRIPT, encoding="utf-8")
        whole_s = max(1, round(seconds))
        command = [
            PROGRAM, f"-c{clients}", "-t1", f"-d{whole_s}s", f"--timeout={TIMEOUT_S:g}s",
            "-s", str(folder / "post.lua"), f"{url}/function/{quote(function, safe='')}",
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command,
                env={**os.environ, "CHIRON_CHECK": scratch},
                capture_output=True,
                text=True,
                timeout=whole_s + _PATIENCE_S,
                check=True,
            )
            found = json.loads(done.stdout.splitlines()[-1])
        except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
            message = f"{PROGRAM} does not do its work: {error}"
            raise ChironError("no-wrk", message, status=500) from None
    return validate(ClosedSample, {"clients": clients, **found}, PROGRAM)


def _by_wrk(session: Session, placed: Placed) -> ClosedSample | None:
    """Is our client in the way? wrk calls one URL, so one-to-one is left out."""
    if placed.plan.orchestrator == "client":
        return None
    bench, scale, known = session.bench, session.scale, session.bench.expected
    exact = known.output if known and not (known.varies or known.any_order) else None
    function, clients = placed.plan.wraps[0].name, scale.clients[-1]
    return wrk_loop(bench.url, function, bench.body, exact, clients, closed_window_s(scale))


def _wrk_rounds(scale: Scale) -> int:
    return scale.checks if installed() else 0


def _wrk_seconds(scale: Scale, variants: int) -> float:
    return _wrk_rounds(scale) * variants * (max(1.0, closed_window_s(scale)) + _MORE_S)


CHECK: Measurement[ClosedSample] = Measurement(
    "closed-loop-wrk", Round[ClosedSample], _wrk_rounds, _wrk_seconds, _by_wrk
)
