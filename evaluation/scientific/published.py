"""The published figures of DataFlower beside FaaSFlow."""

from __future__ import annotations

from pathlib import Path

from chiron.workflow.documents import Document, read_document

_FILE = Path(__file__).parent.parent / "data" / "published_dataflower.json"
Range = tuple[float, float]


class Published(Document):
    """Figures as multiples of FaaSFlow's: lowest and highest of four workflows; and wordcount's.

    ``memory_time`` is the containers' memory times its duration, ``held`` the memory of objects in
    a node.
    """

    source: str
    of: str
    latency_p99: Range
    memory_time: Range
    throughput: Range
    held: Range
    throughput_of_wordcount: dict[str, float]


def published() -> Published:
    """Read the figures and their source."""
    return read_document(Published, _FILE, "published figures")
