"""What a function makes of the standard streams of `sys` is its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

#: Runs code that captures in `caught` what `block` prints, before and after another function does.
CAPTURES = """
    import asyncio, contextlib, io, json, logging, pathlib, sys, threading, time, traceback
    import unittest.mock, warnings

    def handle(req):
        way, folder = json.loads(req)
        caught = io.StringIO()
        def block(stream="stdout"):
            print("own", file=getattr(sys, stream))
            pathlib.Path(folder, "captures").touch()
            while not pathlib.Path(folder, "printed").exists():
                time.sleep(0.005)
        exec(way, {**globals(), "block": block, "caught": caught})
        return caught.getvalue()
"""
PRINTS = """
    import json, logging, pathlib, sys, time

    def handle(req):
        folder = json.loads(req)[1]
        while not pathlib.Path(folder, "captures").exists():
            time.sleep(0.005)
        print("another's")
        print("another's", file=sys.stderr)
        sys.stdout.write("another's\\n")
        logging.getLogger("another").error("another's")
        pathlib.Path(folder, "printed").touch()
        return sys.stdout.name
"""
WAYS = {
    "with contextlib.redirect_stdout(caught): block()": "own\n",
    "with contextlib.redirect_stdout(caught): print('a'); block(); print('b')": "a\nown\nb\n",
    "with contextlib.redirect_stderr(caught): block('stderr')": "own\n",
    "with unittest.mock.patch('sys.stdout', caught): block()": "own\n",
    "usual, sys.stdout = sys.stdout, caught; block(); sys.stdout = usual": "own\n",
    "with contextlib.redirect_stderr(caught): block(); logging.lastResort.stream.write('w')": "w",
    "with contextlib.redirect_stdout(caught): t = threading.Thread(target=block);t.start();t.join()": "own\n",  # noqa: E501
    "with contextlib.redirect_stdout(caught): t = threading.Thread(target=print, args='x');t.start();t.join();block()": "x\nown\n",  # noqa: E501
    "with contextlib.redirect_stdout(caught): asyncio.run(asyncio.to_thread(block))": "own\n",
    "with contextlib.redirect_stdout(None): block()": "",
    "with contextlib.redirect_stdout(caught):\n with contextlib.redirect_stdout(None): block()\n print('c')": "c\n",  # noqa: E501
    "usual = sys.stdout\nclass Tee:\n flush = usual.flush\n def write(self, text): usual.write(text); caught.write(text)\nwith contextlib.redirect_stdout(Tee()): block()": "own\n",  # noqa: E501
    "block(); caught.write(str(sys.stdout.name))": "<stdout>",
}


@pytest.mark.parametrize("processes", [[[0, 1]], [[], [0, 1]]])
def test_a_function_captures_no_lines_of_another(
    processes: Any, start: Any, wrap_image: Any, tmp_path: Path
) -> None:
    handlers = {"captures": CAPTURES, "prints": PRINTS}
    server = start(wrap_image(handlers, processes, entry={"output": [0, 1]}))
    for number, (way, expected) in enumerate(WAYS.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        caught, other = server.request(body=json.dumps([way, str(folder)])).json
        assert (caught, other) == (expected, "<stdout>"), way
