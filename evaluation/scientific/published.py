"""What DataFlower has published of itself beside FaaSFlow."""

from __future__ import annotations

from pathlib import Path

from chiron.workflow.documents import Document, read_document

_FILE = Path(__file__).parent.parent / "data" / "published_dataflower.json"
Range = tuple[float, float]


class Published(Document):
    """Multiples of FaaSFlow's, the lowest and the highest of four workflows, and of wordcount's.

    ``memory_time`` is the memory of the containers times how long they have it, ``held`` what
    objects take in a node's memory.
    """

    source: str
    of: str
    latency_p99: Range
    memory_time: Range
    throughput: Range
    held: Range
    throughput_of_wordcount: dict[str, float]


def published() -> Published:
    """The figures, with their source."""
    return read_document(Published, _FILE, "published figures")
