"""The generated handler.py: whatever the declaration holds, it stays data."""

from __future__ import annotations

import ast
import math
import sys
from dataclasses import asdict, replace
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.generator.render import render_handler
from chiron.workflow.errors import ChironError
from chiron.wrap.core.declaration import EntryDeclaration, WrapDeclaration
from tests.rows import each_row

PLAIN = WrapDeclaration(
    workflow="small",
    name="small-wrap1",
    mechanism="fork",
    functions={"side": "flask", "volume": "http"},
    tasks={0: "side", 1: "volume"},
    processes=[[0], [1]],
    inputs={0: None, 1: [0], 3: None, 4: 3},
    buckets=[([], [0, 3]), ([0, 3], [1, 4])],
    timeout_s=10.5,
    entry=EntryDeclaration([0, 1], {"small-wrap2": {3: "near", 4: "far"}}, None),
    timeouts_s={"side": 0.25},
)
HOSTILE = [
    '"""',
    "'''\"\"\"\\",
    'x")\nimport os; os.abort()\n("',
    "{{ 7 * 7 }}{% raise %}{# #}",
    "${HOME} $HOME $(id) `id`",
    "\\n\\x00\\",
    "\0\r\n\t\x1b[31m\u2028\ud800",
    "é漢😀",
    "x" * 10_000,
    "\n" * 10_000,
]
BAD_NAMES = ["", "Side", "side'", "side\n", "../side", "{{ x }}", "a" * 64, "side-", "1side", "é"]


def evaluate(source: str) -> SimpleNamespace:
    """What the source declares, with the runtime's two classes replaced by plain records."""
    assert source.isascii()
    called = {node.func.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)}
    assert called <= {"Wrap", "Entry"}
    module = ModuleType("wrap.core.wrap_spec")
    module.Wrap = module.Entry = lambda **fields: SimpleNamespace(**fields)
    names: dict[str, object] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "wrap", ModuleType("wrap"))
        patch.setitem(sys.modules, "wrap.core.wrap_spec", module)
        exec(compile(source, "handler.py", "exec"), names)  # noqa: S102  (what is to be shown)
    return names["WRAP"]


def declared(source: str) -> dict[str, object]:
    """All fields that the source declares."""
    wrap = vars(evaluate(source))
    entry = wrap.get("entry")
    return wrap | {"entry": vars(entry) if entry else None}


def with_failure(error: str, cause: str) -> WrapDeclaration:
    return replace(PLAIN, entry=replace(PLAIN.entry, fail=(error, cause)))


def test_the_rendered_wrap_declares_exactly_what_it_was_given():
    assert declared(render_handler(PLAIN)) == asdict(PLAIN)


def test_a_wrap_that_is_no_entry_declares_none():
    assert declared(render_handler(replace(PLAIN, entry=None))) == asdict(PLAIN) | {"entry": None}


@each_row("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_error_and_cause_stay_text(text):
    wrap = with_failure(text, text[::-1])
    assert declared(render_handler(wrap)) == asdict(wrap)


@given(error=st.text(), cause=st.text(alphabet="\"'\\{}%#$\n\r\0 \u2028"))
def test_any_error_and_cause_stay_text(error, cause):
    assert evaluate(render_handler(with_failure(error, cause))).entry.fail == (error, cause)


@each_row("text", HOSTILE, ids=range(len(HOSTILE)))
@each_row("field", ["mechanism", "style", "remote"])
def test_hostile_text_in_any_other_field_stays_text(field, text):
    wrap = {
        "mechanism": replace(PLAIN, mechanism=text),
        "style": replace(PLAIN, functions={"side": text}),
        "remote": replace(PLAIN, remotes={text: {1: "far"}}),
    }[field]
    assert declared(render_handler(wrap)) == asdict(wrap)


@each_row("name", BAD_NAMES)
@each_row("field", ["workflow", "name", "functions", "remote"])
def test_names_outside_the_allow_list_are_refused(field, name):
    value = {name: "flask"} if field == "functions" else name
    if field == "remote":
        field, value = "remotes", {"small-wrap2": {3: name}}
    with pytest.raises(ChironError) as refused:
        render_handler(replace(PLAIN, **{field: value}))
    assert refused.value.code == "bad-name"
    assert refused.value.path == {"name": "wraps.name", "remotes": "functions"}.get(field, field)


def test_what_is_no_literal_is_refused_before_anything_is_written():
    with pytest.raises(ValueError, match="malformed"):
        render_handler(replace(PLAIN, timeout_s=math.inf))
