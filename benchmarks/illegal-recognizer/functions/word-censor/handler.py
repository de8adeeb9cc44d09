"""Finds forbidden phrases in a text, including phrases with spelling faults."""

import json
from typing import Any

from .phrases import PHRASES

LETTERS_FOR_A_FAULT = 5  # one letter in this many may be wrong in a phrase


def matches(phrase: str, text: str) -> list[tuple[int, int, int]]:
    """Return (faults, start, end) of whole words that nearly match the phrase (Sellers 1980)."""
    most = len(phrase) // LETTERS_FOR_A_FAULT
    padded = f" {phrase} "
    # For each prefix of the phrase: its faults, and the start of its match in the text.
    column = [(length, 0) for length in range(len(padded) + 1)]
    found = []
    for end, letter in enumerate(text, 1):
        previous, column = column, [(0, end)]
        for index, wanted in enumerate(padded):
            faults, start = previous[index]
            best = (faults + (letter != wanted), start)
            above, beside = column[index], previous[index + 1]
            if above[0] + 1 < best[0]:
                best = (above[0] + 1, above[1])
            if beside[0] + 1 < best[0]:
                best = (beside[0] + 1, beside[1])
            column.append(best)
        faults, start = column[-1]
        if faults <= most and letter == text[start] == " ":
            found.append((faults, start, end))
    return found


def forbidden(words: list[str]) -> dict[int, str]:
    """Return {place of a word: forbidden phrase} of the words in forbidden phrases."""
    text = f" {' '.join(words)} "
    found: dict[int, str] = {}
    for phrase in PHRASES:
        for _, start, end in sorted(matches(phrase, text)):
            first, last = text.count(" ", 0, start), text.count(" ", 0, end - 1)
            if phrase not in map(found.get, range(first, last)):  # else a worse, overlapping match
                found |= {place: phrase for place in range(first, last) if place not in found}
    return dict(sorted(found.items()))


def handle(req: str) -> str:
    """Return the words of forbidden phrases as `findings`, each with its box, and the text."""
    request = json.loads(req)
    words: list[dict[str, Any]] = request["words"]
    # A German word may be several English words: it is forbidden if one of them is.
    places = [(place, part) for place, w in enumerate(words) for part in w["english"].split()]
    found: dict[int, str] = {}
    for index, phrase in forbidden([part for _, part in places]).items():
        found.setdefault(places[index][0], phrase)
    findings = [{"reason": phrase, "box": words[place]["box"]} for place, phrase in found.items()]
    text = " ".join(word["english"] for word in words)
    return json.dumps({"id": request["id"], "text": text, "findings": findings})
