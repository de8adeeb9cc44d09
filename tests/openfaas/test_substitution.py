"""Variables in stack.yaml are expanded as faas-cli expands them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.openfaas.substitution import escape, expand
from chiron.workflow.errors import ChironError
from tests.rows import each_row

VARIABLES = {"A": "one", "EMPTY": "", "B_2": "two"}


@each_row(
    ("text", "expanded"),
    [
        ("${A}", "one"),
        ("x${A}${B_2}y", "xonetwoy"),
        ("${NONE}", ""),
        ("${NONE:-default}", "default"),
        ("${EMPTY:-default}", "default"),
        ("${A:-default}", "one"),
        ("${NONE:=d}", "d"),
        ("${NONE=d}", "d"),
        ("${NONE:-}", ""),
        ("${NONE:-a $ b:c/d}", "a $ b:c/d"),
        ("${NONE:-${A}-${NONE:-x}}", "one-x"),
        ("$A $ $", "$A $ $"),
        ("$${A}", "${A}"),
        ("$$", "$"),
        (r"\\ \/ \n", r"\ / \n"),
    ],
)
def test_expansion(text, expanded):
    assert expand(text, VARIABLES, "stack.yaml") == expanded


@each_row(
    "text", ["${}", "${A", "${A:-", "${A:-x", "${A^^}", "${A:1}", "${A:?x}", "${A-x}", "${#A}"]
)
def test_what_is_not_understood_is_refused_with_its_line(text):
    with pytest.raises(ChironError) as raised:
        expand(f"first\nsecond: {text}\nthird", VARIABLES, "stack.yaml")

    assert raised.value.code == "bad-substitution"
    assert "stack.yaml, line 2" in raised.value.message
    assert "\n" not in raised.value.message


@given(st.text(alphabet=st.sampled_from("${}\\/:-A \nü") | st.characters()))
def test_escaped_text_expands_to_itself(text):
    assert expand(escape(text), VARIABLES, "text") == text


def test_values_are_not_expanded_again():
    assert expand("${A}", {"A": "${B} $$ \\\\"}, "text") == "${B} $$ \\\\"
