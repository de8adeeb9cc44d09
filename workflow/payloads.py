"""The example requests of a workflow: payload.json, payloads/*.json, and their weights."""

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
    """A request: its file in the workflow folder, its content, and its relative weight."""

    name: str
    content: bytes
    weight: float = 1.0


def payload_files(folder: Path, weights: Mapping[str, float]) -> dict[str, Path]:
    """Return payload.json of `folder`, if it exists, and every ``payloads/*.json``, by name.

    Raises ``missing-file`` if a file in `weights` does not exist.
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


def unread_payloads(folder: Path) -> list[Path]:
    """Return the files of payloads/ that are no payload, as their names do not end with .json."""
    others = set((folder / PAYLOADS_FOLDER).glob("[!.]*")) - set(payload_files(folder, {}).values())
    return sorted(each for each in others if each.is_file())


def read_payloads(folder: Path, weights: Mapping[str, float]) -> tuple[Payload, ...]:
    """Return the payloads of `folder`; ``{}`` if there is none.

    A list in a file is one request that is a list, so it cannot be mistaken for several requests.

    Raises ``missing-file`` for an unreadable file, ``too-large``, and as `payload_files`.
    """
    return tuple(
        Payload(name, read_file(file, f"payload {file}", FILE_LIMIT), weights.get(name, 1.0))
        for name, file in payload_files(folder, weights).items()
    ) or (Payload(PAYLOAD_FILE, b"{}"),)


def turns(payloads: Sequence[Payload]) -> Iterator[Payload]:
    """Yield payloads forever; at any time, their frequencies match their weights.

    The next payload is the one furthest behind its share (smooth weighted round-robin).
    """
    total = sum(payload.weight for payload in payloads)
    behind = [0.0] * len(payloads)
    while True:
        behind = [due + payload.weight for due, payload in zip(behind, payloads, strict=True)]
        index = max(range(len(payloads)), key=behind.__getitem__)
        behind[index] -= total
        yield payloads[index]
