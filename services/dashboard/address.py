"""The addresses of pages: ``/`` is the overview, ``/workflow/NAME`` is the page of a workflow."""

from __future__ import annotations

from urllib.parse import quote, unquote

_PREFIX = "/workflow/"


def page_of(workflow: str) -> str:
    return _PREFIX + quote(workflow, safe="")


def workflow_at(path: str | None) -> str | None:
    """Return the workflow whose page is at `path`; None for the overview."""
    name = unquote((path or "").removeprefix(_PREFIX)).strip("/")
    return name if name and (path or "").startswith(_PREFIX) else None
