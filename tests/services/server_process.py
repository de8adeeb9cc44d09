"""A server for tests of its end: jobs hang in deploying until a file named `go` appears.

Usage: server_process.py FOLDER, where everything of the server is kept; prints its port.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from services.app import Config, create_app
from services.serve import listen, serve


class HangingLauncher:
    """Deploys nothing, and takes its time; notes in `removed` that it removed it again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def launch(self, *_: Any) -> Iterator[None]:
        try:
            while not (self._folder / "go").exists():
                time.sleep(0.02)
            yield
        finally:
            (self._folder / "removed").touch()


def main(folder: Path) -> None:
    """Serve until a signal says otherwise."""
    launcher: Any = HangingLauncher(folder)
    config = Config(
        partial(nullcontext, launcher),
        "http://127.0.0.1:9",
        root=folder,
        state=folder / "state",
        components=["profiler"],
    )
    with listen(port=0) as listener:
        print(listener.getsockname()[1], flush=True)
        serve(listener, create_app(config))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
