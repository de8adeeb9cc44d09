"""CPU: multiplies 1 to n in Python, holding the GIL."""

import hashlib
import json

PRIME = 2**61 - 1


def factorial(n: int) -> int:
    """Return n!."""
    product = 1
    for factor in range(2, n + 1):
        product *= factor
    return product


def handle(req: str) -> str:
    """Compute `sizes.factorial.n`!; return its length in bits and its residue by a prime."""
    request = json.loads(req)
    # After several tasks the input is the list of their outputs, which contain the sizes.
    sizes = (request[0] if isinstance(request, list) else request).get("sizes", {})
    n = sizes.get("factorial", {}).get("n", 9000)
    product = factorial(n)
    return json.dumps(
        {
            "function": "factorial",
            "n": n,
            "bits": product.bit_length(),
            "residue": product % PRIME,
            "input": hashlib.sha256(req.encode()).hexdigest(),
            "sizes": sizes,
        }
    )
