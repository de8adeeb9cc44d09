"""The requests that a workflow is profiled with: payload.json, and more in payloads/."""

from __future__ import annotations

from workflow.folder import WorkflowFolder


def payloads(folder: WorkflowFolder) -> list[bytes]:
    """The content of payload.json, then of every ``payloads/*.json`` by name.

    A list in payload.json is one request that is a list: no request can be mistaken for several.
    """
    further = sorted((folder.path / "payloads").glob("*.json"))
    return [folder.payload(), *(file.read_bytes() for file in further)]
