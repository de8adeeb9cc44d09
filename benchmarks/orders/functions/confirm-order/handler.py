"""Writes the confirmation of an order."""

import json


def handle(req: str) -> str:
    """Return the payment, and each line's reservation, warehouse and cartons."""
    order = json.loads(req)
    lines = [
        {"reservation": stock["reservation"], "warehouse": stock["warehouse"]}
        | {"cartons": pack["cartons"]}
        for pack, stock in order["parts"]
    ]
    shipping = sum(pack["shipping_cents"] for pack, _ in order["parts"])
    paid = {"order": order["id"], "payment": order["payment"], "shipping_cents": shipping}
    return json.dumps(paid | {"lines": lines})
