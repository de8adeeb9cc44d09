"""Makes a text of the size that is asked for, and cuts it into parts between words."""

import json
from itertools import accumulate
from random import Random
from typing import Any

WORDS, PAGES, PAGE_WORDS = 5000, 256, 800
LETTERS = "etaoinshrdlu"


def pages() -> list[str]:
    """Return pages of text; how often a word comes is as Zipf has it: by one over its rank."""
    random = Random(WORDS)  # noqa: S311 - a text that can be made again, not a secret
    words = ["".join(random.choices(LETTERS, k=random.randint(2, 10))) for _ in range(WORDS)]
    weights = list(accumulate(1 / rank for rank in range(1, WORDS + 1)))
    return [
        " ".join(random.choices(words, cum_weights=weights, k=PAGE_WORDS)) for _ in range(PAGES)
    ]


BOOK = pages()


def text_of(size: int) -> str:
    """Return `size` characters of pages at random: always the same ones."""
    random = Random(size)  # noqa: S311 - as above
    count = size // min(map(len, BOOK)) + 1
    return " ".join(random.choices(BOOK, k=count))[:size]


def cut(text: str, parts: int) -> list[str]:
    """Return `text` in so many parts of about one size, cut at spaces."""
    found, start = [], 0
    for number in range(1, parts + 1):
        end = len(text) if number == parts else text.find(" ", len(text) * number // parts)
        found.append(text[start:end])
        start = end
    return found


def handle(event: Any, context: Any) -> dict[str, Any]:
    """Answer a text of so many `megabytes` (millions of characters) as `parts` many `files`."""
    request = json.loads(event.body)
    files = cut(text_of(round(request["megabytes"] * 1e6)), request["parts"])
    return {"statusCode": 200, "body": json.dumps({"files": files})}
