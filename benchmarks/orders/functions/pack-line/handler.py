"""Finds the cheapest cartons that hold what a line orders."""

import json

#: What each carton holds, in cl, and what it and its shipping cost, in cents.
CARTONS = ((250, 189), (600, 249), (1150, 329), (2100, 449), (3800, 649), (5900, 899))


def cheapest(volume: int) -> list[int]:
    """Return how many of each carton hold so many cl for the least (unbounded knapsack)."""
    costs, last = [0] * (volume + 1), [0] * (volume + 1)
    for size in range(1, volume + 1):
        costs[size], last[size] = min(
            [(cost + costs[max(0, size - held)], i) for i, (held, cost) in enumerate(CARTONS)]
        )
    counts = [0] * len(CARTONS)
    while volume > 0:
        counts[last[volume]] += 1
        volume -= CARTONS[last[volume]][0]
    return counts


def handle(req: str) -> str:
    """Answer the line's `cartons`, by their sizes, and what they cost."""
    line = json.loads(req)["line"]
    counts = cheapest(line["quantity"] * line["cl"])
    cost = sum(count * cost for count, (_, cost) in zip(counts, CARTONS, strict=True))
    return json.dumps({"cartons": counts, "shipping_cents": cost})
