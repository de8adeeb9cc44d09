"""Translates German words by a dictionary, including misread words."""

import json

from .dictionary import ENGLISH

UNREAD = "?"
LETTERS_FOR_A_FAULT = 3  # one letter in this many may be wrong in a word


def distance(one: str, other: str) -> int:
    """Return the edit distance (Levenshtein); a ? in `one` matches any letter."""
    previous = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        current = [number]
        for index, wanted in enumerate(other):
            current.append(
                min(
                    previous[index] + (letter not in (wanted, UNREAD)),
                    previous[index + 1] + 1,
                    current[index] + 1,
                )
            )
        previous = current
    return previous[-1]


def translated(word: str) -> str:
    """Return the English of the word, or of the most similar known word, else the word."""
    if word in ENGLISH:
        return ENGLISH[word]
    most = max(1, len(word) // LETTERS_FOR_A_FAULT)
    alike = [known for known in ENGLISH if abs(len(known) - len(word)) <= most]
    found = min(((distance(word, known), known) for known in alike), default=(most + 1, ""))
    return ENGLISH[found[1]] if found[0] <= most else word.lower()


def handle(req: str) -> str:
    """Return the request's words, each with its English."""
    request = json.loads(req)
    words = [word | {"english": translated(word["text"])} for word in request["words"]]
    return json.dumps({"id": request["id"], "words": words})
