"""Runs index.py as a program, and says which files its event loop opens: it may open none."""

import os
import runpy
import sys
import threading
from pathlib import Path

#: What the log of a wrap says whose loop has opened a file.
OPENED = "the event loop opened"


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and threading.current_thread().name == "loop":
        os.write(2, f"{OPENED} {arguments[0]!r}\n".encode())


if __name__ == "__main__":
    sys.addaudithook(_note)
    sys.argv[:] = ["index.py"]
    sys.path[0] = str(Path.cwd())
    runpy.run_path("index.py", run_name="__main__")
