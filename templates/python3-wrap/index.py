"""What the watchdog or the gateway starts: serves the wrap in this folder."""

import gc
import os
import sys
from pathlib import Path

from wrap.http import server


def main() -> None:
    """Serve the wrap. What ends that ends the process, which waits for no handler's thread."""
    try:
        _serve()
    except BaseException as error:
        server.end(error)


def _serve() -> None:
    """Listen, then import the rest, which takes ten times as long; requests wait meanwhile."""
    arguments = sys.argv[1:]
    del sys.argv[1:]  # they are none of the functions'
    try:
        # A fork server takes no requests.
        sockets = [] if "--fork-server" in arguments else server.listen(os.environ)
    except OSError as error:
        sys.exit(f"{type(error).__name__}: {error}")
    gc.disable()  # to look for garbage takes a tenth of the import; `wrap.bootstrap` enables it
    from wrap.bootstrap import main as serve

    serve(arguments, Path(__file__).resolve().parent, sockets)


if __name__ == "__main__":
    main()
