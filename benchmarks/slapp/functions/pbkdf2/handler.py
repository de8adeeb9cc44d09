"""CPU in native code: derives a key from the input; hashlib releases the GIL meanwhile."""

import hashlib
import json


def handle(req: str) -> str:
    """Derive a key from the first stage's outputs in `sizes.pbkdf2.iterations` iterations."""
    sizes = json.loads(req)[0].get("sizes", {})
    iterations = sizes.get("pbkdf2", {}).get("iterations", 50_000)
    key = hashlib.pbkdf2_hmac("sha256", req.encode(), b"slapp", iterations)
    return json.dumps({"function": "pbkdf2", "iterations": iterations, "key": key.hex()})
