"""Counts the words of a part of the text."""

import json
from collections import Counter
from itertools import accumulate
from random import Random
from typing import Any
from zlib import crc32

WORDS, PAGES, PAGE_WORDS = 5000, 256, 800
LETTERS = "etaoinshrdlu"


def book() -> list[str]:
    """Return pages of text; word frequencies follow Zipf's law, one over the rank."""
    random = Random(WORDS)  # noqa: S311 - a text that can be made again, not a secret
    words = ["".join(random.choices(LETTERS, k=random.randint(2, 10))) for _ in range(WORDS)]
    weights = list(accumulate(1 / rank for rank in range(1, WORDS + 1)))
    return [
        " ".join(random.choices(words, cum_weights=weights, k=PAGE_WORDS)) for _ in range(PAGES)
    ]


BOOK = book()


def made(part: int, pages: int) -> list[str]:
    """Return the `pages` pages of a part."""
    return Random(part).choices(BOOK, k=pages)  # noqa: S311 - as above


def mapped(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Return for each of the `groups` the `counts` of its words."""
    counts = Counter(" ".join(made(asked["part"], asked["pages"])).split())
    found: list[dict[str, int]] = [{} for _ in range(asked["groups"])]
    for word, count in counts.items():
        found[crc32(word.encode()) % len(found)][word] = count
    return [{"group": f"{group:04}", "counts": each} for group, each in enumerate(found)]


def handle(req: str) -> str:
    """Emit the counts into the reducers' bucket."""
    from chiron_io import emit

    for part in mapped(json.loads(req)):
        emit("shuffled", json.dumps(part), group=part["group"])
    return ""
