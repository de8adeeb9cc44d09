"""The items in a file of an ItemReader: parts of its text, each parsed at its use.

References
----------
AWS Step Functions Developer Guide, "ItemReader (Map)": "Contents of the ReaderConfig field" and
"How Step Functions parses input CSV files".
"""

from __future__ import annotations

import csv
import re
from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from .errors import StatesError
from .limit import look
from .values import decoded

#: The error of a Map whose items cannot be read.
FAILED = "States.ItemReaderFailed"
#: Value of CSVDelimiter -> character.
DELIMITERS = {"COMMA": ",", "PIPE": "|", "SEMICOLON": ";", "SPACE": " ", "TAB": "\t"}
_BLANK = " \t\n\r"
#: A part of a JSON Pointer that can be an index.
_INDEX = re.compile(r"0|[1-9]\d{0,17}", re.ASCII)


class Pair(NamedTuple):
    """An item of an object, with the fields of its input."""

    Key: str
    Value: Any


def pairs_of(items: Mapping[str, Any]) -> list[Pair]:
    return [Pair(key, value) for key, value in items.items()]


class Lazy(Sequence[Any]):
    """A sequence whose items are computed at each use."""

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.made(index)

    @abstractmethod
    def made(self, index: int) -> Any:
        """Return the item with an existing index."""


class Items(Lazy):
    """Items of a text; only their positions are stored, 16 bytes an item.

    Args:
        places: begin and end of each item.
        parse: returns the item at a position.
    """

    def __init__(
        self, places: Iterator[tuple[int, int]], parse: Callable[[int, int], Any], most: int | None
    ) -> None:
        self._parse = parse
        self._places = array("Q")
        for place in islice(places, most):
            look()
            self._places.extend(place)

    def __len__(self) -> int:
        return len(self._places) // 2

    def made(self, index: int) -> Any:
        return self._parse(self._places[2 * index], self._places[2 * index + 1])


def items_in(text: str, config: Mapping[str, Any], most: int | None) -> Sequence[Any]:
    """Return the first `most` items of a file; None means all.

    Raises StatesError, ``States.ItemReaderFailed``, if the text does not fit the InputType.
    """
    try:
        return _KINDS[config.get("InputType", "JSON")](text, config, most)
    except StatesError as error:
        if error.name == "States.Runtime":  # no Catch would take it
            raise StatesError(FAILED, error.cause) from None
        raise


def _of_json(text: str, config: Mapping[str, Any], most: int | None) -> Items:
    start, pointer = _after_blanks(text, 0), config.get("ItemsPointer", "")
    for escaped in pointer.split("/")[1:]:
        start = _pointed_to(text, start, escaped.replace("~1", "/").replace("~0", "~"))
    if start < 0 or not text.startswith(("[", "{"), start):
        raise StatesError(FAILED, f"the file has no array and no object at {pointer!a}")
    is_object = text[start] == "{"

    def places() -> Iterator[tuple[int, int]]:
        end = start + 1
        for key, value, end in _members(text, start):
            yield (key if is_object else value), end
        rest = _after_blanks(text, _after_blanks(text, end) + 1)
        if not pointer and rest < len(text):
            raise StatesError(FAILED, f"the JSON of the file ends before character {rest}")

    def made(at: int, _: int) -> Any:
        return _pair(text, at) if is_object else decoded(text, at)[0]

    return Items(places(), made, most)


def _pointed_to(text: str, start: int, name: str) -> int:
    """Return the position of the member that a part of a JSON Pointer selects at `start`.

    Returns -1 without such a member, or without an array or object (RFC 6901).
    """
    if start >= 0 and text.startswith("{", start):
        for key, value, _ in _members(text, start):
            if decoded(text, key)[0] == name:
                return value
    elif start >= 0 and text.startswith("[", start) and _INDEX.fullmatch(name):
        return next(islice((value for _, value, _ in _members(text, start)), int(name), None), -1)
    return -1


def _members(text: str, start: int) -> Iterator[tuple[int, int, int]]:
    """Yield the begin of each member of an array or object, and begin and end of its value.

    Raises StatesError, ``States.ItemReaderFailed``.
    """
    is_object = text[start] == "{"
    closing = "}" if is_object else "]"
    at = _after_blanks(text, start + 1)
    is_over = text.startswith(closing, at)
    while not is_over:
        look()
        begin = at
        try:
            if is_object:
                at = _value_of(text, begin)
            _, end = decoded(text, at)
        except ValueError as error:
            raise StatesError(FAILED, f"the file is no JSON: {error}") from None
        yield begin, at, end
        at = _after_blanks(text, end)
        is_over = text.startswith(closing, at)
        if not is_over and not text.startswith(",", at):
            raise StatesError(FAILED, f"the JSON of the file breaks off at character {at}")
        at = _after_blanks(text, at + 1)


def _value_of(text: str, at: int) -> int:
    """Return the begin of the value after the name at a position. Raises ValueError."""
    name, end = decoded(text, at)
    end = _after_blanks(text, end)
    if not isinstance(name, str) or not text.startswith(":", end):
        raise ValueError(f"an object needs a name and a colon at character {at}")
    return _after_blanks(text, end + 1)


def _pair(text: str, at: int) -> Pair:
    return Pair(decoded(text, at)[0], decoded(text, _value_of(text, at))[0])


def _of_json_lines(text: str, _: Mapping[str, Any], most: int | None) -> Items:
    def places() -> Iterator[tuple[int, int]]:
        for number, (start, stop) in enumerate(_lines(text), 1):
            at = _after_blanks(text, start)
            if at >= stop:
                continue
            try:
                _, end = decoded(text, at)
            except ValueError:
                end = stop + 1
            if end > stop or text[end:stop].strip(_BLANK):
                raise StatesError(FAILED, f"line {number} of the file is no JSON")
            yield at, end

    return Items(places(), lambda at, _: decoded(text, at)[0], most)


def _of_csv(text: str, config: Mapping[str, Any], most: int | None) -> Items:
    delimiter = DELIMITERS[config.get("CSVDelimiter", "COMMA")]

    def rows(start: int, end: int) -> Iterator[tuple[list[str], int, int]]:
        ends = array("Q")

        def lines() -> Iterator[str]:
            for first, last in _lines(text, start, end):
                ends.append(last)
                yield text[first:last]

        try:
            for row in csv.reader(lines(), delimiter=delimiter, escapechar="\\"):
                yield row, start, ends[-1]
                start = ends[-1]
                del ends[:]
        except csv.Error as error:
            raise StatesError(FAILED, f"the file is no CSV: {error}") from None

    records = ((row, start, end) for row, start, end in rows(0, len(text)) if row)
    headers = config.get("CSVHeaders")
    if headers is None:
        headers = next(records, ([], 0, 0))[0]
    if len(set(headers)) < len(headers):
        raise StatesError(FAILED, "two columns of the CSV have the same header")

    def record(start: int, end: int) -> dict[str, str]:
        line = text[start:end]
        if '"' not in line and "\\" not in line:
            row = line.rstrip("\r\n").split(delimiter)  # a reader takes 2.5 times as long
        else:
            row = _fields(line, delimiter) if '""' in line else next(rows(start, end))[0]
        return dict(zip(headers, row + [""] * (len(headers) - len(row)), strict=False))

    return Items(((start, end) for _, start, end in records), record, most)


def _fields(record: str, delimiter: str) -> list[str]:
    """Return the fields of a record; a doubled quote is a quote, also in unquoted fields."""
    fields, field, is_quoted, at = list[str](), list[str](), False, 0
    record = record.removesuffix("\n").removesuffix("\r")
    while at < len(record):
        sign, after = record[at], record[at + 1 : at + 2]
        at += 1
        begins = not field and record[at - 2 : at - 1] in ("", delimiter)
        if sign == "\\":
            field.append(after)
            at += 1
        elif sign == '"' and begins and not is_quoted:
            is_quoted = True
        elif sign == '"' and after == '"':
            field.append(sign)
            at += 1
        elif sign == '"' and is_quoted:
            is_quoted = False
        elif sign == delimiter and not is_quoted:
            fields.append("".join(field))
            field = []
        else:
            field.append(sign)
    return [*fields, "".join(field)]


def _lines(text: str, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each line, including its newline."""
    stop = len(text) if stop is None else stop
    while start < stop:
        end = text.find("\n", start, stop) + 1 or stop
        yield start, end
        start = end


def _after_blanks(text: str, at: int) -> int:
    while text[at : at + 1] and text[at] in _BLANK:
        at += 1
    return at


_KINDS: Mapping[str, Callable[[str, Mapping[str, Any], int | None], Sequence[Any]]] = {
    "JSON": _of_json,
    "JSONL": _of_json_lines,
    "CSV": _of_csv,
}
