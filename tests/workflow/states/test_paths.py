"""What paths select, and where reference paths put a result."""

from __future__ import annotations

import copy
import gc
import json
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.wrap.core.statemachine.errors import StatesError
from chiron.wrap.core.statemachine.paths import (
    check_path,
    check_reference_path,
    check_result_path,
    evaluate,
    is_definite,
    put,
)
from tests.rows import each_row

BOOKS = [
    {"title": "A", "price": 8, "tags": ["x", "y"], "isbn": "1"},
    {"title": "B", "price": 12.5, "tags": []},
    {"title": "it's", "price": 20, "sold": None},
]
DATA = {
    "books": BOOKS,
    "most": 10,
    "kind": "A",
    "detail-type": {"a.b": 1, "2nd": 2, "größe": 3, "": 4, "it's": 5},
    "empty": [],
    "null": None,
    "deep": [[1, [2, 3]], {"price": 1}],
    "0": "a name",
}
CONTEXT = {"Execution": {"Id": "e"}, "Map": {"Item": {"Index": 2, "Value": [7, 8]}}}


@each_row(
    ("path", "value"),
    [
        ("$", DATA),
        ("$$", CONTEXT),
        ("$$.Execution.Id", "e"),
        ("$$['Map'].Item.Value[-1]", 8),
        ("$.most", 10),
        ("$['most']", 10),
        ('$["most"]', 10),
        ("$.['most']", 10),
        ("$.books.[0].['title']", "A"),
        ("$[ 'most' ]", 10),
        ("$.null", None),
        ("$.books[0].tags[1]", "y"),
        ("$['books'][0]['title']", "A"),
        ("$.books[-1].price", 20),
        ("$.deep[0][1][0]", 2),
        ("$.0", "a name"),
        ("$.detail-type.2nd", 2),
        ("$.detail-type.größe", 3),
        ("$.detail-type.gr\\u00f6\\u00dfe", 3),
        ("$.detail-type.a\\.b", 1),
        ("$.detail-type['a.b']", 1),
        ("$.detail-type['']", 4),
        ("$.detail-type['it\\'s']", 5),
        ('$.detail-type["it\'s"]', 5),
        ("$.\\most", 10),
        ("$.\\most  ", 10),
    ],
)
def test_a_definite_path_selects_one_value(path, value):
    assert is_definite(path)
    assert evaluate(path, DATA, CONTEXT) == value


@each_row(
    ("path", "found"),
    [
        ("$.books[*].title", ["A", "B", "it's"]),
        ("$.books.*.title", ["A", "B", "it's"]),
        ("$.books[*].isbn", ["1"]),
        ("$..price", [8, 12.5, 20, 1]),
        ("$..['price']", [8, 12.5, 20, 1]),
        ("$..nothing", []),
        ("$.books[*].['title']", ["A", "B", "it's"]),
        ("$.books.[1:].price", [12.5, 20]),
        ("$.books[?(@.title != 'a.[b')].price", [8, 12.5, 20]),
        ("$.deep[*][*]", [1, [2, 3], 1]),
        ("$.empty[*]", []),
        ("$.empty[1:]", []),
        ("$.most[*]", []),
        ("$.books[0,2].price", [8, 20]),
        ("$.books[ 0 , 7 ].price", [8]),
        ("$.books[1:].price", [12.5, 20]),
        ("$.books[:2].price", [8, 12.5]),
        ("$.books[-2:].price", [12.5, 20]),
        ("$.books[:-1].price", [8, 12.5]),
        ("$.books[0:1]", [BOOKS[0]]),
        ("$.books[?(@.price > 10)].title", ["B", "it's"]),
        ("$.books[?(@.price > $.most)].title", ["B", "it's"]),
        ("$.books[?(@.title == $.kind)].price", [8]),
        ("$.books[?(@.price >= 8 && @.price < 20)].price", [8, 12.5]),
        ("$.books[?(@.price < 9 || @.price > 19)].price", [8, 20]),
        ("$.books[?(@.isbn)].title", ["A"]),
        ("$.books[?(!@.isbn)].title", ["B", "it's"]),
        ("$.books[?(@.sold == null)].title", ["it's"]),
        ("$.books[?(@['title'] == 'B')].price", [12.5]),
        ("$.books[?(@.title == 'it\\'s')].price", [20]),
        ("$.books[?(@.title =~ /a|b/i)].price", [8, 12.5]),
        ("$.books[?(@.title in ['A', 'C'])].price", [8]),
        ("$.books[?(@.price > 100)]", []),
        ("$.detail-type[?(@['2nd'] == 2)].größe", [3]),
        ("$.detail-type[?(@['2nd'] == 3)]", []),
        ("$.deep[1][?(@.price == 1)]", [{"price": 1}]),
        ("$.deep[1][?(@ == 1)]", []),
        ("$.deep..[0]", [[1, [2, 3]], 1, 2]),
        ("$$.Map.Item.Value[*]", [7, 8]),
        ("$$..Value[?(@ > 7)]", [8]),
        ("$.books[*]['title','price']", [{k: b[k] for k in ("title", "price")} for b in BOOKS]),
        ("$['books','most'].length", []),
    ],
)
def test_an_indefinite_path_gives_a_list(path, found):
    assert not is_definite(path)
    assert evaluate(path, DATA, CONTEXT) == found


@each_row(
    ("path", "value"),
    [
        ("$['most','kind']", {"most": 10, "kind": "A"}),
        ("$['most', 'nothing']", {"most": 10}),
        ("$.books[0]['isbn','title']", {"isbn": "1", "title": "A"}),
    ],
)
def test_several_names_at_the_end_give_an_object(path, value):
    assert is_definite(path)
    assert evaluate(path, DATA, CONTEXT) == value


@each_row(
    "path",
    [
        "$.nothing",
        "$.books[3]",
        "$.books[-4]",
        "$.books.title",
        "$.most[0]",
        "$.kind[0]",
        "$.detail-type[0]",
        "$.null.a",
        "$.most['a','b']",
        "$$.nothing",
        "$$.books",
    ],
)
def test_what_has_to_exist_and_does_not_is_a_runtime_error(path):
    with pytest.raises(StatesError) as caught:
        evaluate(path, DATA, CONTEXT)
    assert caught.value.name == "States.Runtime"
    assert path in caught.value.cause


@each_row(
    "path",
    [
        "$.nothing[*]",
        "$.nothing..a",
        "$.books[7][?(@.a)]",
        "$.nothing[1:]",
        "$.most[*].a",
        "$$.x[*]",
    ],
)
def test_an_indefinite_path_finds_nothing_below_a_missing_field(path):
    assert evaluate(path, DATA, CONTEXT) == []


@each_row(
    ("path", "found"),
    [
        ("$[?(@.Name==Receipt)].n", [1]),
        ("$[?(Receipt == @.Name)].n", [1]),
        ("$[?(@.Name != Receipt && @.n < 3)].n", [2]),
        ("$[?(@.Name in [Receipt, Re-Cat])].n", [1, 3]),
        ("$[?(@['Name'] == Cat)].n", [2]),
        ("$[?(@.Name =~ /rec.*/i)].n", [1]),
        ("$[?(length(@.Name) == 3)].n", [2]),
        ("$[?(@.on == true)].n", [2]),
        ("$[?(@.on == null)].n", [3]),
        ("$[?(@.Name == 'Receipt')].n", [1]),
        ("$[?(@.Name == Ärger)].n", [4]),
    ],
)
def test_a_bare_word_in_a_filter_is_a_string(path, found):
    data = [{"Name": "Receipt", "n": 1}, {"Name": "Cat", "n": 2, "on": True}]
    data += [{"Name": "Re-Cat", "n": 3, "on": None}, {"Name": "Ärger", "n": 4}]
    assert evaluate(path, data, {}) == found


@each_row("value", ["[1]", '{"a": 1}', 5, None, True])
def test_what_has_no_parts_is_not_looked_into(value):
    assert evaluate("$..a", value, {}) == []
    assert evaluate("$[*]", value, {}) == []
    assert evaluate("$.v..a", {"v": value}, {}) == []
    assert evaluate("$[*]..a", [value, {"a": value}], {}) == [value]


def test_what_is_nested_too_deep_cannot_be_looked_into():
    deep: list = []
    for _ in range(300):
        deep = [deep]
    with pytest.raises(
        StatesError, match=r"^States\.ParameterPathFailure: path .* cannot be applied"
    ):
        evaluate("$..a", deep, {})


@each_row(
    "path",
    [
        "",
        "a",
        "a.b",
        " $.a",
        "$.",
        "$..",
        "$.a.",
        "$1",
        "$a-b",
        "$$$.a",
        "$[",
        "$[]",
        "$['a'",
        "$.a[b]",
        "$.a[0,]",
        "$.a[?(@.x == 1]",
        "$.a[?(@.x = 1)]",
        "$.a b",
        "$.a\n",
        "$.a | $.b",
        "$.a & $.b",
        "$.a.length()",
        "$.a[(@.length - 1)]",
        "$.a[~]",
        "$[" * 5000,
        "States.Array()",
    ],
)
def test_what_is_no_path_is_refused_in_a_line(path):
    with pytest.raises(ValueError, match="is no path") as caught:
        check_path(path)
    assert str(caught.value).isprintable()
    with pytest.raises(ValueError, match="is no path"):
        evaluate(path, {}, {})


@each_row(
    "path",
    [
        "$",
        "$.store.book",
        "$.store\\.book",
        "$.\\stor\\e.boo\\k",
        "$.store.book.title",
        "$.foo.\\.bar",
        "$.foo\\@bar.baz\\[\\[.\\?pretty",
        "$.&Ж中.\\uD800\\uDF46",
        "$.ledgers.branch[0].pending.count",
        "$.ledgers[0][22][315].foo",
        "$['store']['book']",
        "$['store'][0]['book']",
        "$$.Execution.Input.wait",
    ],
)
def test_reference_paths_are_as_in_the_specification(path):
    check_path(path)
    check_reference_path(path)


@each_row(
    "path",
    ["$..a", "$.a[*]", "$.*", "$.a[0,1]", "$.a[1:]", "$.a[?(@.b)]", "$['a','b']", "$.a[-1]"],
)
def test_paths_that_can_select_several_values_are_no_reference_paths(path):
    check_path(path)
    with pytest.raises(ValueError, match="is no reference path"):
        check_reference_path(path)
    with pytest.raises(ValueError, match="is no reference path"):
        check_result_path(path)


def test_nothing_is_put_into_the_context_object():
    with pytest.raises(ValueError, match="in the context object"):
        check_result_path("$$.a")


@each_row(
    ("path", "data", "expected"),
    [
        ("$", {"a": 1}, 6),
        ("$", "text", 6),
        ("$.a", {}, {"a": 6}),
        ("$.a", {"a": {"b": 1}, "c": 2}, {"a": 6, "c": 2}),
        ("$.a.b", {"a": {"c": [1]}}, {"a": {"c": [1], "b": 6}}),
        ("$.a.b.c", {"d": 1}, {"a": {"b": {"c": 6}}, "d": 1}),
        ("$['a b']['c']", {}, {"a b": {"c": 6}}),
        ("$.a[1]", {"a": [1, 2, 3]}, {"a": [1, 6, 3]}),
        ("$.a[0].b", {"a": [{}]}, {"a": [{"b": 6}]}),
        ("$[1]", [1, 2], [1, 6]),
    ],
)
def test_a_result_is_put_where_the_reference_path_says(path, data, expected):
    before = copy.deepcopy(data)
    assert put(path, data, 6) == expected
    assert data == before


@each_row(
    ("path", "data"),
    [
        ("$.x", "foo"),
        ("$.x", 1),
        ("$.x", None),
        ("$.x", []),
        ("$.a.b", {"a": 1}),
        ("$.a.b", {"a": None}),
        ("$.a.b", {"a": [1]}),
        ("$.a[0]", {}),
        ("$.a[0]", {"a": []}),
        ("$.a[1]", {"a": [1]}),
        ("$.a[0]", {"a": "text"}),
        ("$[0]", {}),
    ],
)
def test_what_a_result_cannot_be_put_into_is_an_error(path, data):
    with pytest.raises(StatesError) as caught:
        put(path, data, 6)
    assert caught.value.name == "States.ResultPathMatchFailure"
    assert path in caught.value.cause


class Parts(list):
    """A list that can be watched until it is gone."""


@each_row("path", ["$.parts[*]", "$.parts[0:1]", "$..parts", "$.parts[?(@ > 1)]"])
def test_what_was_selected_from_goes_without_a_collection(path):
    data = {"parts": Parts([1, 2])}
    watched = weakref.ref(data["parts"])
    gc.disable()
    try:
        assert evaluate(path, data, {})
        del data
        assert watched() is None
    finally:
        gc.enable()


NAMES = st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"])), max_size=4)


@given(NAMES, st.dictionaries(st.text(max_size=2), st.integers()), st.integers() | st.text())
def test_what_is_put_is_found(names, data, value):
    path = "$" + "".join(f"[{json.dumps(name, ensure_ascii=False)}]" for name in names)
    check_reference_path(path)
    try:
        result = put(path, data, value)
    except StatesError:
        assert isinstance(data[names[0]], int)
        return
    assert evaluate(path, result, {}) == value
    if names:
        assert all(result[name] == data[name] for name in data if name != names[0])


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_every_name_can_be_written_with_escapes(name):
    escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else c for c in name)
    assert evaluate(f"$.{escaped}", {name: 1}, {}) == 1
    assert evaluate(f"$['{escaped}']", {name: 1}, {}) == 1
