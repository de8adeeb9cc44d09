"""Checks an order: article numbers by their check digits, amounts, the card's number."""

import json
from typing import Any

MOST_OF_AN_ARTICLE = 500


def is_article(number: str) -> bool:
    """Tell whether `number` is a GTIN-13: its digits times 1 and 3 in turn add up to tens."""
    digits = [int(digit) for digit in number if digit.isdecimal()]
    return len(number) == len(digits) == 13 and (sum(digits[::2]) + 3 * sum(digits[1::2])) % 10 == 0


def is_card(number: str) -> bool:
    """Tell whether `number` has a valid Luhn checksum (ISO/IEC 7812-1)."""
    digits = [int(digit) for digit in number if digit.isdecimal()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return len(number) == len(digits) >= 12 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def check_line(line: dict[str, Any]) -> int:
    """Return the price of a line in cents; raises ValueError if it cannot be delivered."""
    if not is_article(line["article"]):
        raise ValueError(f"{line['article']} is no article")
    if not 1 <= line["quantity"] <= MOST_OF_AN_ARTICLE:
        raise ValueError(f"{line['quantity']} of {line['article']} cannot be ordered")
    cost: int = line["quantity"] * line["cents"]
    return cost


def handle(req: str) -> str:
    """Return the price of the order in `cents`; raises ValueError if the order is wrong."""
    order = json.loads(req)
    if not is_card(order["card"]):
        raise ValueError("the card's number is wrong")
    return json.dumps({"cents": sum(map(check_line, order["lines"]))})
