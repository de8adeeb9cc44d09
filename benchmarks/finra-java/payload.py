"""Generates the request of the workflow: the same as finra's."""

from pathlib import Path
from runpy import run_path

payload = run_path(str(Path(__file__).parents[1] / "finra" / "payload.py"))["payload"]
