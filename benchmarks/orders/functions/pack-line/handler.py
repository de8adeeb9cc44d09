"""Finds the cheapest cartons for the volume of a line."""

import json

#: Volume of each carton in cl, and its price with shipping in cents.
CARTONS = ((250, 189), (600, 249), (1150, 329), (2100, 449), (3800, 649), (5900, 899))


def cheapest(volume: int) -> list[int]:
    """Return the cheapest numbers of cartons for `volume` cl (unbounded knapsack)."""
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
    """Return the line's `cartons`, by size, and their price with shipping."""
    line = json.loads(req)["line"]
    counts = cheapest(line["quantity"] * line["cl"])
    cost = sum(count * cost for count, (_, cost) in zip(counts, CARTONS, strict=True))
    return json.dumps({"cartons": counts, "shipping_cents": cost})
