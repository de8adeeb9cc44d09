package com.openfaas.function;

import static java.time.DayOfWeek.MONDAY;
import static java.time.DayOfWeek.SATURDAY;
import static java.time.DayOfWeek.SUNDAY;
import static java.time.DayOfWeek.THURSDAY;
import static java.time.temporal.TemporalAdjusters.dayOfWeekInMonth;
import static java.time.temporal.TemporalAdjusters.lastInMonth;

import java.time.DateTimeException;
import java.time.LocalDate;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;

/** The calendar of United States equity markets: dates, holidays, settlement. */
final class Calendar {
    private static final Pattern EIGHT_DIGITS = Pattern.compile("[0-9]{8}");
    /** SEC Rule 15c6-1: two days before, one day since. */
    private static final LocalDate ONE_DAY_SETTLEMENT = LocalDate.of(2024, 5, 28);
    private static final Map<Integer, Set<LocalDate>> HOLIDAYS = new ConcurrentHashMap<>();

    private Calendar() {}

    /** The day that eight digits YYYYMMDD name, or null if they name none. */
    static LocalDate parsed(String text) {
        if (!EIGHT_DIGITS.matcher(text).matches()) {
            return null;
        }
        int year = Integer.parseInt(text.substring(0, 4));
        int month = Integer.parseInt(text.substring(4, 6));
        try {
            return LocalDate.of(year, month, Integer.parseInt(text.substring(6)));
        } catch (DateTimeException error) {
            return null;
        }
    }

    /** Easter Sunday by the anonymous Gregorian computus. */
    static LocalDate easter(int year) {
        int century = year / 100, rest = year % 100;
        int golden = year % 19;
        int correction = (century - (century + 8) / 25 + 1) / 3;
        int epact = (19 * golden + century - century / 4 - correction + 15) % 30;
        int weekday = (32 + 2 * (century % 4) + 2 * (rest / 4) - epact - rest % 4) % 7;
        int shift = (golden + 11 * epact + 22 * weekday) / 451;
        int day = epact + weekday - 7 * shift + 114;
        return LocalDate.of(year, day / 31, day % 31 + 1);
    }

    /** The day on which markets keep a holiday: Friday for Saturday, Monday for Sunday. */
    static LocalDate observed(LocalDate day) {
        return switch (day.getDayOfWeek()) {
            case SATURDAY -> day.minusDays(1);
            case SUNDAY -> day.plusDays(1);
            default -> day;
        };
    }

    /** The days of the year on which markets are closed, besides weekends. */
    static Set<LocalDate> holidays(int year) {
        LocalDate newYear = LocalDate.of(year, 1, 1);
        return Set.of(
            // A New Year's Day on a Saturday is not made up for: Friday belongs to the old year.
            newYear.getDayOfWeek() == SATURDAY ? newYear : observed(newYear),
            newYear.with(dayOfWeekInMonth(3, MONDAY)), // Martin Luther King Jr. Day
            LocalDate.of(year, 2, 1).with(dayOfWeekInMonth(3, MONDAY)), // Washington's Birthday
            easter(year).minusDays(2), // Good Friday
            LocalDate.of(year, 5, 1).with(lastInMonth(MONDAY)), // Memorial Day
            observed(LocalDate.of(year, 6, 19)), // Juneteenth
            observed(LocalDate.of(year, 7, 4)), // Independence Day
            LocalDate.of(year, 9, 1).with(dayOfWeekInMonth(1, MONDAY)), // Labor Day
            LocalDate.of(year, 11, 1).with(dayOfWeekInMonth(4, THURSDAY)), // Thanksgiving
            observed(LocalDate.of(year, 12, 25)) // Christmas
        );
    }

    /** Whether markets are open on `day`. */
    static boolean isBusinessDay(LocalDate day) {
        boolean weekend = day.getDayOfWeek() == SATURDAY || day.getDayOfWeek() == SUNDAY;
        return !weekend && !HOLIDAYS.computeIfAbsent(day.getYear(), Calendar::holidays).contains(day);
    }

    /** After how many business days a trade of that day settles. */
    static int settlementDays(LocalDate traded) {
        return traded.isBefore(ONE_DAY_SETTLEMENT) ? 2 : 1;
    }

    /** The day that is `count` business days after `day`. */
    static LocalDate plusBusinessDays(LocalDate day, int count) {
        LocalDate found = day;
        for (int left = count; left > 0; left -= isBusinessDay(found) ? 1 : 0) {
            found = found.plusDays(1);
        }
        return found;
    }
}
