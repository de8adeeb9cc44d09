"""CPU: the recursive Fibonacci number, all of it Python calls that hold the GIL."""

import hashlib
import json


def fibonacci(n: int) -> int:
    """Return the n-th Fibonacci number in about 1.6**n calls."""
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def handle(req: str) -> str:
    """Compute the Fibonacci number `sizes.fibonacci.n`."""
    request = json.loads(req)
    # After several tasks the input is the list of their outputs, which contain the sizes.
    sizes = (request[0] if isinstance(request, list) else request).get("sizes", {})
    n = sizes.get("fibonacci", {}).get("n", 25)
    return json.dumps(
        {
            "function": "fibonacci",
            "n": n,
            "value": fibonacci(n),
            "input": hashlib.sha256(req.encode()).hexdigest(),
            "sizes": sizes,
        }
    )
