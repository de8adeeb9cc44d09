"""All behaviours, by the names of their families."""

from __future__ import annotations

from at_import import AT_IMPORT, KEPT
from behaviour import Family
from language import FILES, NAMES, PLAIN_NAMES
from over_http import EVENT, FAILS, RAW, REQUEST, RETURNED_BY_FLASK, RETURNED_BY_HTTP
from process import PROCESS, RANDOM_OBJECTS, SEEDED_AT_IMPORT, VARIES

AT_IMPORTS = {f"import: {name}": family for name, family in AT_IMPORT.items()}
FAMILIES: dict[str, Family] = {
    "names": NAMES,
    "files": FILES,
    "plain names": PLAIN_NAMES,
    "process": PROCESS,
    "varies": VARIES,
    "random objects": RANDOM_OBJECTS,
    "seeded at import": SEEDED_AT_IMPORT,
    "kept": KEPT,
    "request": REQUEST,
    "raw": RAW,
    "event": EVENT,
    "returned by flask": RETURNED_BY_FLASK,
    "returned by http": RETURNED_BY_HTTP,
    "fails": FAILS,
    **AT_IMPORTS,
}
