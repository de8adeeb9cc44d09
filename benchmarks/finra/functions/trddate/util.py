"""The calendar of United States equity markets: dates, holidays, settlement."""

from datetime import date, timedelta
from functools import cache

DAY = timedelta(days=1)
SATURDAY, SUNDAY = 5, 6
ONE_DAY_SETTLEMENT = date(2024, 5, 28)  # SEC Rule 15c6-1: two days before, one day since


def parse_date(text: str) -> date | None:
    """Return the day of eight digits YYYYMMDD, or None if `text` is not a day."""
    if len(text) != 8 or not (text.isascii() and text.isdigit()):
        return None
    try:
        return date(int(text[:4]), int(text[4:6]), int(text[6:]))
    except ValueError:
        return None


def easter(year: int) -> date:
    """Return Easter Sunday by the anonymous Gregorian computus."""
    century, rest = divmod(year, 100)
    golden = year % 19
    epact = (
        19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15
    ) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (rest // 4) - epact - rest % 4) % 7
    shift = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * shift + 114, 31)
    return date(year, month, day + 1)


def nth_weekday(year: int, month: int, weekday: int, n: int) -> date:
    """Return the n-th given weekday (Monday is 0) of a month."""
    first = date(year, month, 1)
    return first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (n - 1))


def observed(day: date) -> date:
    """Return the day on which markets keep a holiday: Friday for Saturday, Monday for Sunday."""
    return day + {SATURDAY: -DAY, SUNDAY: DAY}.get(day.weekday(), 0 * DAY)


@cache
def holidays(year: int) -> frozenset[date]:
    """Return the days of the year on which markets are closed, besides weekends."""
    new_year = date(year, 1, 1)
    return frozenset(
        {
            # A New Year's Day on a Saturday has no substitute: Friday is in the old year.
            new_year if new_year.weekday() == SATURDAY else observed(new_year),
            nth_weekday(year, 1, 0, 3),  # Martin Luther King Jr. Day
            nth_weekday(year, 2, 0, 3),  # Washington's Birthday
            easter(year) - 2 * DAY,  # Good Friday
            nth_weekday(year, 6, 0, 1) - 7 * DAY,  # Memorial Day: May's last Monday
            observed(date(year, 6, 19)),  # Juneteenth
            observed(date(year, 7, 4)),  # Independence Day
            nth_weekday(year, 9, 0, 1),  # Labor Day
            nth_weekday(year, 11, 3, 4),  # Thanksgiving
            observed(date(year, 12, 25)),  # Christmas
        }
    )


def is_business_day(day: date) -> bool:
    """Tell whether markets are open on `day`."""
    return day.weekday() < SATURDAY and day not in holidays(day.year)


def settlement_days(traded: date) -> int:
    """Return the number of business days until a trade of that day settles."""
    return 1 if traded >= ONE_DAY_SETTLEMENT else 2


def add_business_days(day: date, count: int) -> date:
    """Return the day that is `count` business days after `day`."""
    while count:
        day += DAY
        count -= is_business_day(day)
    return day
