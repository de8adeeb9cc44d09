"""Price rules of United States equity markets: tick sizes and price bands."""

from decimal import Decimal

ONE_DOLLAR = Decimal("1.00")
CENT = Decimal("0.01")
SUB_PENNY = Decimal("0.0001")


def on_tick(price: Decimal) -> bool:
    """Tell whether `price` is a multiple of its minimum increment (SEC Rule 612)."""
    tick = CENT if price >= ONE_DOLLAR else SUB_PENNY
    return price % tick == 0


def within_band(price: Decimal, reference: Decimal) -> bool:
    """Tell whether `price` lies in the limit-up limit-down band of a tier 1 security."""
    if reference > Decimal("3.00"):
        width = reference * Decimal("0.05")
    elif reference >= Decimal("0.75"):
        width = reference * Decimal("0.20")
    else:
        width = min(reference * Decimal("0.75"), Decimal("0.15"))
    return abs(price - reference) <= width
