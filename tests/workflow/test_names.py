"""Names that OpenFaaS, States Language or a reader could not tell apart are refused."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from chiron.workflow.errors import ChironError
from chiron.workflow.names import (
    FunctionNames,
    check_distinct,
    check_name,
    check_task_name,
    shown,
    workflow_name,
)
from tests.rows import each_row


@each_row("name", ["a", "a1", "a-1", "a--b", "a" * 63])
def test_openfaas_names_are_accepted_as_they_are(name):
    assert check_name(name, "function", "here") == name


@each_row(
    "name", ["", "1a", "-a", "a-", "A", "a_b", "a b", "a.b", "ä", "a\n", "a" * 64, "a\0", None, 1]
)
def test_other_names_are_refused_with_the_rule(refused, name):
    error = refused(check_name, name, "function", "States.A.Resource")
    assert (error.code, error.path) == ("bad-name", "States.A.Resource")
    assert "^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$" in error.message


@each_row(
    "name", ["A", "Last Px", "größe", "数据", "a.b", "a'b", "x" * 80, '<>{}[]?*"%\\^|~`$&,;:/()!']
)
def test_task_names_are_free_text(name):
    assert check_task_name(name, "here") == name


@each_row("character", "#\n\t\0\x7f\ud800\u202e")
def test_task_names_hold_nothing_that_numbers_runs_or_cannot_be_printed(refused, character):
    error = refused(check_task_name, f"a{character}b", "here")
    assert error.code == "bad-name"
    assert ascii(character) in error.message


@each_row("name", ["", " ", "x" * 81])
def test_task_names_have_1_to_80_characters(refused, name):
    assert "1 to 80" in refused(check_task_name, name, "here").message


def test_what_is_proposed_is_a_name_even_where_the_deployed_one_is_none():
    assert FunctionNames.proposal(["Second_One"], ["Second_One"]) == {"Second_One": "second-one"}


@each_row(
    ("one", "other"),
    [
        ("A", "a"),
        ("Last Px", "last_px"),
        ("a - b", "a_b"),
        ("stra\u00dfe", "STRASSE"),
        ("\u212bngstr\u00f6m", "\u00e5ngstro\u0308m"),
        ("\uff41", "a"),
    ],
)
def test_names_that_normalise_alike_are_both_named(refused, one, other):
    error = refused(check_distinct, ["x", one, other], "tasks")
    assert (error.code, error.path, error.functions) == ("alike-names", "tasks", (one, other))


def test_names_that_differ_in_where_their_digits_part_are_distinct():
    check_distinct(["a-11", "a-1-1", "a11", "a1-1"], "tasks")


@given(st.text(max_size=100))
def test_a_workflow_name_is_one_that_openfaas_takes_or_is_refused(text: str):
    try:
        name = workflow_name(text, "Name")
    except ChironError as error:
        assert error.code == "bad-name"
    else:
        assert re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", name)
        assert workflow_name(name, "Name") == name


@given(st.text(max_size=300) | st.integers() | st.none())
def test_what_is_shown_in_a_message_fits_a_line(value: object):
    assert shown(value).isprintable()
    assert shown(value).isascii()
    assert len(shown(value)) <= 60


@each_row(
    ("given", "deployed", "proposed"),
    [
        ("${module.ingestion.lambda_function_arn}:$LATEST", (), "ingestion"),
        ("${aws_lambda_function.work_flow.arn}", (), "work-flow"),
        ("arn:aws:lambda:eu-west-1:123456789012:function:ReSize:42", ("resize",), "resize"),
        ("ReSize:prod", ("resize",), "resize"),
        ("${UppercaseFunctionArn}", (), "uppercase-function"),
        ("${UppercaseFunctionArn}", ("uppercase", "lower"), "uppercase"),
        ("arn:aws:states:::sns:publish.waitForTaskToken", (), "publish"),
        ("arn:aws:states:::states:startExecution.sync:2", (), "start-execution"),
    ],
)
def test_the_name_of_another_platform_gets_the_function_that_it_means(given, deployed, proposed):
    assert FunctionNames.proposal([given], deployed) == {given: proposed}
