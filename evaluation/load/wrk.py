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

from evaluation.load.client import TIMEOUT_S
from evaluation.load.loops import ClosedSample
from workflow.documents import Document, validate
from workflow.errors import ChironError

PROGRAM = "wrk"
#: How much longer than it measures it may take to start and to end.
_PATIENCE_S = 30.0
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
  io.write(string.format(
    '{"answered":%d,"seconds":%f,"errors":%d,"p50_ms":%f,"p95_ms":%f}\\n',
    summary.requests - false_answers, summary.duration / 1e6, lost + false_answers,
    latency:percentile(50) / 1e3, latency:percentile(95) / 1e3))
end
"""


class _Found(Document):
    answered: int
    seconds: float
    errors: int
    p50_ms: float
    p95_ms: float


def installed() -> bool:
    """Whether there is a wrk."""
    return shutil.which(PROGRAM) is not None


def wrk_loop(
    url: str, function: str, body: bytes, expected: str | None, clients: int, seconds: float
) -> ClosedSample:
    """What the function answers while `clients` clients ask it by wrk, in whole seconds.

    Raises
    ------
    ChironError
        ``no-wrk`` where it cannot be run or says nothing of use.
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
        found = _run(command, folder, whole_s + _PATIENCE_S)
    return ClosedSample(
        clients=clients,
        per_s=round(found.answered / found.seconds, 3),
        answered=found.answered,
        counted=found.answered,
        p50_ms=round(found.p50_ms, 3),
        p95_ms=round(found.p95_ms, 3),
        errors=found.errors,
    )


def _run(command: list[str], folder: Path, timeout_s: float) -> _Found:
    variables = {**os.environ, "CHIRON_CHECK": str(folder)}
    try:
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=timeout_s, check=True
        )
        return validate(_Found, json.loads(done.stdout.splitlines()[-1]), PROGRAM)
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        message = f"{PROGRAM} does not do its work: {error}"
        raise ChironError("no-wrk", message, status=500) from None
