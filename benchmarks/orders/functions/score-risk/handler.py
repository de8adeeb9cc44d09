"""Scores the risk of a large order: compares its buyer with known debtors."""

import json

from .debtors import DEBTORS


def distance(one: str, other: str) -> int:
    """Return the edit distance of two names (Levenshtein 1966)."""
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        corner, row[0] = row[0], i
        for j, wanted in enumerate(other, 1):
            corner, row[j] = row[j], min(corner + (letter != wanted), row[j] + 1, row[j - 1] + 1)
    return row[-1]


def likeness(buyer: str, debtor: str) -> int:
    """Return the likeness of two names, 0 to 100; the order of their words does not count."""
    names = [" ".join(sorted(name.lower().split())) for name in (buyer, debtor)]
    return 100 - 100 * distance(*names) // max(map(len, names))


def handle(req: str) -> str:
    """Return a `score` of 0 to 100, and its reason as `Cause`."""
    request = json.loads(req)
    score, debtor = max((likeness(request["buyer"], debtor), debtor) for debtor in DEBTORS)
    return json.dumps({"score": score, "Cause": f"the buyer may be {debtor}"})
