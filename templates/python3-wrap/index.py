"""What the watchdog or the gateway starts: serves the wrap in this folder."""

import sys
from pathlib import Path

from wrap.main import main

if __name__ == "__main__":
    main(sys.argv[1:], Path(__file__).resolve().parent)
