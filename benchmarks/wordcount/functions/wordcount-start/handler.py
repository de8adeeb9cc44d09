"""Makes a text of the requested size, and cuts it into parts between words."""

import json
from collections.abc import Iterator
from itertools import accumulate
from random import Random
from typing import Any

try:
    from chiron_io import emit
except ImportError:  # an ordinary function returns all of its output at the end

    def emit(name: str, value: str) -> None:
        """Do nothing: there is no consumer."""


WORDS, PAGES, PAGE_WORDS = 5000, 256, 800
LETTERS = "etaoinshrdlu"


def pages() -> list[str]:
    """Return pages of text; word frequencies follow Zipf's law, one over the rank."""
    random = Random(WORDS)  # noqa: S311 - a text that can be made again, not a secret
    words = ["".join(random.choices(LETTERS, k=random.randint(2, 10))) for _ in range(WORDS)]
    weights = list(accumulate(1 / rank for rank in range(1, WORDS + 1)))
    return [
        " ".join(random.choices(words, cum_weights=weights, k=PAGE_WORDS)) for _ in range(PAGES)
    ]


BOOK = pages()


def text_of(size: int) -> str:
    """Return `size` characters of random pages: always the same text."""
    random = Random(size)  # noqa: S311 - as above
    count = size // min(map(len, BOOK)) + 1
    return " ".join(random.choices(BOOK, k=count))[:size]


def cut(text: str, parts: int) -> Iterator[str]:
    """Yield `text` in `parts` parts of about equal size, cut at spaces."""
    start = 0
    for number in range(1, parts + 1):
        end = len(text) if number == parts else text.find(" ", len(text) * number // parts)
        yield text[start:end]
        start = end


def handle(event: Any, context: Any) -> dict[str, Any]:
    """Return a text of `megabytes` (millions of characters) as `parts` `files`.

    Each file is emitted as soon as it is cut: the first as `file-0`, in the form of
    wordcount-count's input.
    """
    request = json.loads(event.body)
    files = []
    text = text_of(round(request["megabytes"] * 1e6))
    for number, part in enumerate(cut(text, request["parts"])):
        files.append(json.dumps(part))
        emit(f"file-{number}", f'{{"file": {files[-1]}}}')
    return {"statusCode": 200, "body": f'{{"files": [{", ".join(files)}]}}'}
