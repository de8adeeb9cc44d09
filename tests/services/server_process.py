"""A server for tests of its end: jobs hang in deploying until they are interrupted.

Usage: server_process.py FOLDER [TOKEN]; everything of the server is kept in FOLDER; prints its
port. Asks for the token where there is one.
"""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from chiron.generator.stores import NO_STORE
from chiron.openfaas.credentials import Credentials
from chiron.services.app import Config, create_app
from chiron.services.serve import listen, serve


class HangingLauncher:
    """Deploys nothing, and never ends; notes in `removed` that it removed it again."""

    store = NO_STORE

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def launch(self, *_: Any) -> None:
        try:
            while True:  # a wait without end can miss a signal that comes right before it
                time.sleep(0.02)
        finally:
            (self._folder / "removed").touch()


def main(folder: Path, token: str | None = None) -> None:
    """Serve until a signal says otherwise."""
    launcher: Any = HangingLauncher(folder)
    secret = Credentials.bearer(token) if token else None
    config = Config(
        partial(nullcontext, launcher),
        "http://127.0.0.1:9",
        root=folder,
        state=folder / "state",
        components=["profiler"],
        secret=secret,
    )
    with listen(port=0) as listener:
        print(listener.getsockname()[1], flush=True)
        serve(listener, create_app(config), secret)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
