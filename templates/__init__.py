"""The OpenFaaS templates that are shipped: python3-wrap, and the runner of plain handlers."""

from pathlib import Path

#: The folder that holds one sub-folder a template, named as ``lang`` in stack.yaml names it.
TEMPLATES = Path(__file__).resolve().parent
