"""Puts on the path what hardening alone imports."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path += [str(Path(__file__).with_name("soak")), str(Path(__file__).parent)]
