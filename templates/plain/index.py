"""What the gateway starts: serves one unmodified python3-flask or python3-http handler."""

import os
import sys
from pathlib import Path

from app import create_app
from wrap.config import sandbox
from wrap.core import memory_shares
from wrap.event_loop.threads import ThreadPool
from wrap.http.server import serving
from wrap.http.server.accepting import Hooks
from wrap.http.server.program import OneProcess, end, listen
from wrap.values import malloc


def main() -> None:
    """Serve the handler. What ends that ends the process, which waits for no handler's thread."""
    try:
        _serve()
    except BaseException as error:
        end(error)


def _serve() -> None:
    """Import the handler, in the folder ``function`` beside this file, and serve it."""
    # Last: what the handler ships is found by `import util`, and hides nothing installed.
    sys.path.append(str(Path(__file__).resolve().parent / "function"))
    limit = sandbox.memory_bytes()
    try:
        # First: some gateways send requests as soon as the container runs. They wait here.
        sockets = listen(os.environ)
        with OneProcess():
            app = create_app(os.environ.get("handler_style", "flask"))  # noqa: SIM112 (OpenFaaS's)
    except (ImportError, ValueError, OSError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
    malloc.keep_freed(memory_shares.freed(limit, processes=1))
    threads = int(os.environ.get("WAITRESS_THREADS", "4"))
    serving.serve(app, sockets, lambda: threads, limit, ThreadPool().start, Hooks())


if __name__ == "__main__":
    main()
