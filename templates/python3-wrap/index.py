"""The program that the watchdog or the gateway starts: it serves the wrap in this folder."""

import gc
import os
import sys
from pathlib import Path

from wrap.http.server.program import end, listen


def main() -> None:
    """Serve the wrap. An exception ends the process at once, with all threads of handlers."""
    try:
        _serve()
    except BaseException as error:
        end(error)


def _serve() -> None:
    """Listen, then import the rest, which takes ten times as long; requests wait meanwhile."""
    arguments = sys.argv[1:]
    del sys.argv[1:]  # functions must not see them
    try:
        # A fork server takes no requests.
        sockets = [] if "--fork-server" in arguments else listen(os.environ)
    except OSError as error:
        sys.exit(f"{type(error).__name__}: {error}")
    gc.disable()  # collecting takes a tenth of the import; `wrap.bootstrap` enables it
    from wrap.bootstrap import main as serve

    serve(arguments, Path(__file__).resolve().parent, sockets)


if __name__ == "__main__":
    main()
