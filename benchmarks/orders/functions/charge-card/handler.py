"""Charges a card: signs the payment and waits for the bank's answer."""

import hashlib
import hmac
import json
import time

KEY = b"the shop's key"
ANSWER_MS = 25  # of the bank: it stands for another machine, so the function sleeps


def handle(req: str) -> str:
    """Return the paid amount, the card's last digits and the bank's reference."""
    payment = json.loads(req)
    signature = hmac.new(KEY, req.encode(), hashlib.sha256).hexdigest()
    time.sleep(ANSWER_MS / 1000)
    paid = {"paid_cents": payment["cents"], "card": payment["card"][-4:]}
    return json.dumps(paid | {"reference": signature[:16]})
