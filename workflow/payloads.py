"""The example requests of a workflow: payload.json, payloads/*.json, and how often each comes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chiron.workflow.constraints import CONSTRAINTS_FILE
from chiron.workflow.documents import FILE_LIMIT, read_file
from chiron.workflow.errors import ChironError

PAYLOAD_FILE, PAYLOADS_FOLDER = "payload.json", "payloads"


@dataclass(frozen=True)
class Payload:
    """A request: its file in the workflow folder, its content, its weight among the others."""

    name: str
    content: bytes
    weight: float = 1.0


def payload_files(folder: Path, weights: Mapping[str, float]) -> dict[str, Path]:
    """payload.json of `folder`, if it is there, and every ``payloads/*.json``, by name.

    Raises ``missing-file`` where `weights` has a file that is not there.
    """
    files = [folder / PAYLOAD_FILE, *sorted((folder / PAYLOADS_FOLDER).glob("*.json"))]
    found = {str(file.relative_to(folder)): file for file in files if file.exists()}
    unknown = [name for name in weights if name not in found]
    if unknown:
        raise ChironError(
            "missing-file",
            f"{CONSTRAINTS_FILE} weighs {', '.join(unknown[:8])}, which is not in {folder}: "
            f"it has {', '.join(list(found)[:8]) or 'no payload'}",
            path="weights",
        )
    return found


def read_payloads(folder: Path, weights: Mapping[str, float]) -> tuple[Payload, ...]:
    """The payloads of `folder`; ``{}`` where there is none.

    A list in a file is one request that is a list: no request can be mistaken for several.

    Raises ``missing-file`` if one cannot be read, ``too-large``, and what `payload_files` raises.
    """
    return tuple(
        Payload(name, read_file(file, f"payload {file}", FILE_LIMIT), weights.get(name, 1.0))
        for name, file in payload_files(folder, weights).items()
    ) or (Payload(PAYLOAD_FILE, b"{}"),)


def turns(payloads: Sequence[Payload]) -> Iterator[Payload]:
    """Which payload comes next, for ever: at any time each came as often as its weight says.

    Each has its turn when it is furthest behind its share (smooth weighted round-robin).
    """
    total = sum(payload.weight for payload in payloads)
    behind = [0.0] * len(payloads)
    while True:
        behind = [due + payload.weight for due, payload in zip(behind, payloads, strict=True)]
        index = max(range(len(payloads)), key=behind.__getitem__)
        behind[index] -= total
        yield payloads[index]
