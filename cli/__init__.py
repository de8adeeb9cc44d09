"""The command `chiron`: each verb has a module."""

import gc
import os
import signal

# Looking for pydantic's plugins, of which chiron uses none, takes a sixth of the time to begin.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def start() -> None:
    """Run the command line; an interruption while its modules load ends the process silently."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()  # to look for garbage takes a tenth of the import; `main` enables it
    from chiron.cli.main import main

    main()
