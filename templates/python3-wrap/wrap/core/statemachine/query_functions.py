"""The functions that Step Functions adds to JSONata, and ``$eval``, which it removes.

Source: AWS Step Functions Developer Guide, "Transforming data with JSONata in Step Functions".
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from .chance import Chance
from .expressions import Function
from .functions import FUNCTIONS, Refused

#: Bits of the fraction of a float.
_BITS = 53


def query_functions(chance: Chance) -> dict[str, Function]:
    """Return name without ``$`` -> function; all raise Refused."""

    def random(seed: Any = None) -> float:
        """Return a number in [0, 1); equal for equal seeds."""
        bits = chance.getrandbits(_BITS) if seed is None else _bits_of(seed)
        return float(bits / 2**_BITS)

    def uuid(*_: Any) -> str:
        return str(FUNCTIONS["States.UUID"](chance))

    def numbers(first: Any, last: Any, step: Any) -> Any:
        """Return a range; a single number is no array, as in all sequences of JSONata."""
        found = FUNCTIONS["States.ArrayRange"](first, last, step)
        return found[0] if len(found) == 1 else found

    found: dict[str, Function] = {
        "eval": _eval,
        "hash": FUNCTIONS["States.Hash"],
        "parse": FUNCTIONS["States.StringToJson"],
        "partition": FUNCTIONS["States.ArrayPartition"],
        "random": random,
        "range": numbers,
        "uuid": uuid,
    }
    return {name: _named(name, function) for name, function in found.items()}


#: The names of these functions.
QUERY_FUNCTIONS = frozenset(("eval", "hash", "parse", "partition", "random", "range", "uuid"))


def _named(name: str, function: Function) -> Function:
    """Wrap `function` so that errors show the name used in expressions."""

    def called(*given: Any) -> Any:
        try:
            return function(*given)
        except TypeError as error:
            raise Refused(str(error).replace(f"{function.__qualname__}()", f"${name}")) from None

    return called


def _bits_of(seed: Any) -> int:
    digest = hashlib.sha256(json.dumps(seed).encode()).digest()
    return int.from_bytes(digest) >> (8 * len(digest) - _BITS)


def _eval(*_: Any) -> Any:
    raise Refused("$eval is not available: read JSON with $parse")
