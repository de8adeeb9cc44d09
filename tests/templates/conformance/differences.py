"""What differs from a function alone."""
from __future__ import annotations
from collections.abc import Iterator, Mapping, Sequence
Places = Mapping[str, Mapping[str, Sequence[str]]]
def listed(places: Places) -> Iterator[tuple[str, str, str]]:
    return iter(())
DOCUMENTED: dict[str, Places] = {}
UNMENDED: dict[str, Places] = {}
UNMENDED_NEIGHBOURS: dict[str, str] = {}
