"""What the gateway starts: serves one unmodified python3-flask or python3-http handler."""

import os
import sys
from pathlib import Path

import serving
from app import create_app


def main() -> None:
    """Import the handler, in the folder ``function`` beside this file, and serve it."""
    # Last: what the handler ships is found by `import util`, and hides nothing installed.
    sys.path.append(str(Path(__file__).resolve().parent / "function"))
    try:
        with serving.OneProcess():
            app = create_app(os.environ.get("handler_style", "flask"))  # noqa: SIM112 (OpenFaaS's)
        listener = serving.listen(os.environ)
    except (ImportError, ValueError, OSError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
    serving.serve(app, listener, int(os.environ.get("WAITRESS_THREADS", "4")))


if __name__ == "__main__":
    main()
