"""CPU: digits of pi by Machin's series in Python integers. A python3-http function."""

import hashlib
import json
from typing import Any

GUARD_DIGITS = 10
WINDOW_DIGITS = 20


def arctan_inverse(x: int, one: int) -> int:
    """Return arctan(1/x) as a multiple of 1/one, by its power series."""
    power = total = one // x
    divisor, sign = 1, 1
    while power:
        power //= x * x
        divisor, sign = divisor + 2, -sign
        total += sign * (power // divisor)
    return total


def pi_digits(digits: int) -> int:
    """Return pi * 10**digits, rounded down: pi/4 = 4 arctan(1/5) - arctan(1/239)."""
    guard: int = 10**GUARD_DIGITS
    one = guard * 10**digits
    return 4 * (4 * arctan_inverse(5, one) - arctan_inverse(239, one)) // guard


def handle(event: Any, context: Any) -> dict[str, Any]:
    """Compute `sizes.pi.digits` digits; return 20 of them, from a place that the input decides."""
    sizes = json.loads(event.body)[0].get("sizes", {})
    digits = sizes.get("pi", {}).get("digits", 4500)
    seed = int.from_bytes(hashlib.sha256(event.body).digest()[:8], "big")
    after = seed % max(1, digits - WINDOW_DIGITS)
    window = pi_digits(digits) // 10**after % 10**WINDOW_DIGITS
    return {
        "statusCode": 200,
        "headers": {"Content-Type": "application/json"},
        "body": json.dumps(
            {
                "function": "pi",
                "digits": digits,
                "digits_after_window": after,
                "window": f"{window:0{WINDOW_DIGITS}}",
            }
        ),
    }
