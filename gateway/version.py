"""Who this gateway says it is."""

from __future__ import annotations

from importlib import metadata

PROVIDER = "chiron-embedded"
VERSION = metadata.version("chiron-openfaas")
