"""What handlers change of what their process shares, found as the profiler finds it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

TEMPLATE = Path(__file__).resolve().parents[2] / "templates" / "python3-wrap"
#: Runs each handler folder of the arguments in a process of its own, three times, as the profiler.
RUNS = """
    import gc, json, os, sys, traceback
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path
    from types import SimpleNamespace
    import asyncio, csv, decimal, numpy, urllib.request, xml.etree.ElementTree
    from wrap.functions.function_runner import Place
    from wrap.functions.python import PythonHandler
    from wrap.observe import log
    log.install()
    gc.freeze()
    results = open(sys.argv[1], 'w')
    for folder in map(Path, sys.argv[2:]):
        read, write = os.pipe()
        if os.fork() == 0:
            os.close(read)
            told = None
            try:
                name = folder.name
                alone = {"functions": {name: "flask"}, "tasks": {0: name}, "processes": [[0]]}
                wrap = SimpleNamespace(**alone, forked=[])
                function = PythonHandler(name, "flask", Place(wrap, folder.parent, "", 0))
                function.prepare()
                def run():
                    with function.observed():
                        return function.call("in")
                with ThreadPoolExecutor(1) as thread:
                    for _ in range(3):
                        assert thread.submit(run).result() == "in"
                told = function.changes
            except BaseException:
                told = traceback.format_exc()
            finally:
                with os.fdopen(write, "w") as file:
                    json.dump([folder.name, told], file)
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as file:
            results.write(file.read() + chr(10))
"""


def changes_of(functions: Mapping[str, Mapping[str, str]], place: Path) -> dict[str, Any]:
    """What each function changes in runs, at its import, and everywhere; or how it failed.

    `functions` maps names to texts of files, which are written to `place`.
    """
    for name, files in functions.items():
        folder = place / name / "function"
        for file, text in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
    results = place / "told"
    command = [
        sys.executable,
        "-c",
        dedent(RUNS),
        str(results),
        *(str(place / n) for n in functions),
    ]
    subprocess.run(command, cwd=TEMPLATE, check=True)
    return dict(map(json.loads, results.read_text().splitlines()))
