"""Values and texts, what is the same value, and what is a timestamp."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.wrap.core.statemachine.errors import StatesError
from chiron.wrap.core.statemachine.limit import Limited
from chiron.wrap.core.statemachine.values import (
    MOST_LEVELS,
    Text,
    dump,
    identity,
    instant,
    is_number,
    parse,
    shown,
    size_of,
)
from tests.rows import each_row

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(JSON)
def test_what_is_dumped_is_parsed_to_the_same(value):
    again = parse(dump(value))
    assert again == value and not isinstance(again, Text)
    assert identity(again) == identity(value)


@given(st.text() | st.sampled_from(["NaN", "[Infinity]", "{", "01", "\ufeff1", ""]))
def test_a_text_is_a_value_or_stays_as_it_is(text):
    value = parse(text)
    assert dump(value) == text if isinstance(value, Text) else parse(dump(value)) == value


@each_row(
    "text",
    ["", "x", "NaN", "[-Infinity]", "1 2", "01", "[1,]", "'a'", "9" * 5000 + " apples", "[1e999"],
)
def test_what_is_no_strict_json_is_a_text(text):
    assert isinstance(parse(text), Text) and dump(parse(text)) == text


def test_an_escaped_half_of_a_character_stays_escaped():
    """The halves from U+DC80 to U+DCFF stand for bytes where a text is no JSON."""
    halves = {chr(half): chr(half) for half in range(0xD800, 0xE000)}
    assert dump(halves).isascii()
    assert parse(dump(halves)) == halves


def test_bytes_that_are_no_text_are_whole_answers_and_no_part_of_json():
    answer = parse(b'"\xff"'.decode(errors="surrogateescape"))
    assert isinstance(answer, Text) and dump(answer) == '"\udcff"'
    assert shown([answer]) == r'["\"\udcff\""]'
    with pytest.raises(StatesError, match="not UTF-8 cannot be part of JSON") as failed:
        dump({"a": [answer]})
    assert failed.value.name == "States.Runtime"


@each_row(
    ("value", "text"),
    [
        ({"a": [1, 2.5, None, True]}, '{"a":[1,2.5,null,true]}'),
        ("größe", '"größe"'),
        (Text("no JSON"), "no JSON"),
        ([Text("no JSON")], '["no JSON"]'),
    ],
)
def test_values_are_dumped_compactly(value, text):
    assert dump(value) == text


def nested(levels):
    return "[" * levels + "]" * levels


@each_row(
    "text",
    [
        *("1e999", "[-1e999]", '{"a":1e400}', "9" * 4301, "[-" + "9" * 5000 + "]"),
        *(nested(MOST_LEVELS + 1), nested(970), nested(100_000), '{"a":' * 201 + "1" + "}" * 201),
        *("[" * 100_000, '{"a":1e999,"b":' + nested(5000) + "}"),
    ],
)
def test_json_that_python_refuses_is_an_error_and_no_text(text):
    with pytest.raises(StatesError) as caught:
        parse(text)
    assert caught.value.name == "States.Runtime"


def test_json_is_read_as_deep_as_it_may_be():
    text = nested(MOST_LEVELS)
    assert dump(parse(text)) == text
    assert parse(f'"{"[" * 500}"') == "[" * 500
    flat = f"[{','.join(['[]'] * 500)}]"
    assert dump(parse(flat)) == flat


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


def test_what_is_no_json_is_not_dumped():
    for value in ([float("nan")], 10**5000, deep(100_000)):
        with pytest.raises(StatesError) as caught:
            dump(value)
        assert caught.value.name == "States.Runtime"


def test_a_fraction_of_a_second_has_no_more_digits_than_can_be_read():
    assert instant(f"1970-01-01T00:00:01.{'0' * 98}1Z") == 1 + Fraction(1, 10**99)
    assert instant(f"1970-01-01T00:00:01.{'1' * 5000}Z") is None


@each_row(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        ([1], [True], False),
        ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1}, True),
        ({"a": 0}, {"a": False}, False),
        ([1, 2], [2, 1], False),
        ([], {}, False),
        ("1", 1, False),
        (None, False, False),
        ("x", Text("x"), True),
    ],
)
def test_the_same_value_is_the_same_json(one, other, same):
    assert (identity(one) == identity(other)) is same


def test_booleans_are_no_numbers():
    assert [is_number(value) for value in (1, 1.5, True, "1", None)] == [True, True] + [False] * 3


@each_row(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2016-03-14T01:59:00Z", 1457920740),
        ("2016-03-14T02:59:00+01:00", 1457920740),
        ("2016-03-13T20:29:00-05:30", 1457920740),
        ("1970-01-01T00:00:00.25Z", Fraction(1, 4)),
        ("1970-01-01T00:00:00.000000000001Z", Fraction(1, 10**12)),
        ("1969-12-31T23:59:59.5Z", Fraction(-1, 2)),
        ("2016-12-31T23:59:60Z", 1483228800),
        ("0001-01-01T00:00:00+23:59", -62135596800 - 86340),
        ("1970-01-01T00:00:00-00:00", 0),
    ],
)
def test_a_timestamp_is_an_instant(text, seconds):
    assert instant(text) == seconds


@each_row(
    "text",
    [
        "2016-03-14",
        "2016-03-14t01:59:00Z",
        "2016-03-14T01:59:00z",
        "2016-03-14 01:59:00Z",
        "2016-03-14T01:59:00",
        "2016-03-14T01:59Z",
        "2016-03-14T01:59:00.Z",
        "2016-03-14T01:59:61Z",
        "2016-03-14T24:00:00Z",
        "2016-02-30T01:59:00Z",
        "2016-3-14T01:59:00Z",
        "2016-03-14T01:59:00+0100",
        "2016-03-14T01:59:00+24:00",
        "2016-03-14T01:59:00Z\n",
        "٢٠١٦-03-14T01:59:00Z",
        "",
        1457920740,
        None,
    ],
)
def test_what_is_no_timestamp_is_no_instant(text):
    assert instant(text) is None


@given(
    st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)),
    st.integers(-23 * 60, 23 * 60),
)
def test_the_offset_of_a_timestamp_does_not_matter(moment, minutes):
    shown = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert instant(shown.isoformat()) == instant(shown.astimezone(UTC).isoformat())


@given(JSON)
def test_a_text_within_the_bound_is_written_as_without_it(value):
    text = dump(value)
    assert dump(value, 20 * len(text) + 20) == text


@given(JSON, st.integers(0, 200))
def test_a_size_is_told_up_to_a_bound(value, most):
    size = size_of(value)
    assert size_of(value, most) == size if size <= most else size_of(value, most) > most


def test_who_writes_a_message_looks_at_the_beginning_of_a_value_and_at_the_time():
    value, looks = [[number] for number in range(100_000)], []
    with Limited(lambda: looks.append(1)):
        assert shown(value) == "an array that is large"
    assert len(looks) == 1
    with Limited(lambda: 1 / 0), pytest.raises(ZeroDivisionError):
        size_of(value)


def test_a_value_whose_parts_are_shared_is_refused_before_its_text_is_made():
    shared = [1] * 10_000
    with pytest.raises(StatesError, match=r"States\.DataLimitExceeded: a value of about \d+ bytes"):
        dump([shared] * 100_000, 1 << 20)
