"""The requests of a workflow folder: which there are, how often each comes, what is not checked."""

from __future__ import annotations

import json
from itertools import islice

import pytest

from chiron.workflow.answer import ExpectedAnswer
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.payloads import Payload, turns
from chiron.workflow.profile import PayloadProfile, Profile

LARGE, SMALL = "payloads/large.json", "payloads/small.json"


@pytest.fixture
def folder(tmp_path):
    """Writes a folder of two parallel tasks with these files; returns it opened."""

    def write(constraints=None, **files):
        (tmp_path / "payloads").mkdir()
        (tmp_path / "workflow.json").write_text('{"tasks": {"fetch": "f", "count": "g"}}')
        for name, text in files.items():
            (tmp_path / f"{name.replace('_', '/')}.json").write_text(text)
        if constraints:
            (tmp_path / "constraints.json").write_text(json.dumps({"format": 1, **constraints}))
        return WorkflowFolder.open(tmp_path)

    return write


def test_a_list_is_one_payload_and_further_ones_are_in_a_folder(folder):
    opened = folder(payload="[1, 2]", payloads_small="{}", payloads_large="[3]")
    assert [(each.name, each.content, each.weight) for each in opened.payloads()] == [
        ("payload.json", b"[1, 2]", 1.0),
        (LARGE, b"[3]", 1.0),
        (SMALL, b"{}", 1.0),
    ]


def test_payloads_may_stand_instead_of_payload_json(folder):
    assert [each.name for each in folder(payloads_large="[3]").payloads()] == [LARGE]


def test_a_folder_without_any_asks_with_an_empty_object(folder):
    assert folder().payloads() == (Payload("payload.json", b"{}"),)


def test_payloads_weigh_what_the_constraints_say(folder):
    opened = folder({"weights": {LARGE: 3}}, payload="1", payloads_large="2")
    assert [each.weight for each in opened.payloads()] == [1.0, 3.0]


@pytest.mark.parametrize(
    ("constraints", "code", "said"),
    [
        ({"weights": {"payloads/lage.json": 3}}, "missing-file", f"it has payload.json, {LARGE}"),
        ({"weights": {LARGE: 0}}, "bad-document", "weights"),
        ({"no_check": ["fetsch"]}, "unknown-task", "name one of fetch, count, or a JSON path"),
    ],
)
def test_a_constraint_for_what_is_not_there_is_told_what_is(
    folder, refused, constraints, code, said
):
    opened = folder(constraints, payload="1", payloads_large="2")
    error = refused(opened.payloads)
    assert error.code == code
    assert said in str(error)


def test_all_constraints_that_are_wrong_are_named_at_once(folder, refused):
    wrong = {"isolate": {"h": "wrap"}, "weights": {"no.json": 1}, "no_check": ["fetsch"]}
    error = refused(folder(wrong).payloads)
    assert error.message.startswith("3 faults: ")
    for said in ("constraints for h", "weighs no.json", "no_check of constraints.json has fetsch"):
        assert said in error.message


@pytest.mark.parametrize("weights", [(1,), (1, 1), (3, 1), (1, 2, 4), (0.5, 0.25)])
def test_every_payload_comes_as_often_as_it_weighs_from_the_beginning(weights):
    payloads = [Payload(str(index), b"", weight) for index, weight in enumerate(weights)]
    for count in range(1, 40):
        asked = list(islice(turns(payloads), count))
        for payload in payloads:
            assert abs(asked.count(payload) - count * payload.weight / sum(weights)) < 1


@pytest.mark.parametrize(
    ("no_check", "answer", "same"),
    [
        ([], '[1, {"n": 5}]', False),
        (["count"], '[1, {"n": 5}]', True),
        (["count"], '[9, {"n": 2}]', False),
        (["$[1].n"], '[1, {"n": 5}]', True),
        (["$[*].n"], '[1, {"n": 5}]', True),
        (["$"], "anything", True),
    ],
)
def test_what_the_constraints_leave_out_is_not_compared(folder, refused, no_check, answer, same):
    opened = folder({"no_check": no_check})
    known = ExpectedAnswer.learned(b"{}", ['[1, {"n": 2}]'])
    profile = Profile(
        format=1,
        workflow="demo",
        functions={},
        payloads=(PayloadProfile(name="payload.json", answer=known),),
    )
    expected = opened.expected(profile, b"{}")
    assert bool(expected.differences(answer)) is not same


def test_a_difference_names_its_payload_and_what_leaves_it_out(folder, refused):
    known = ExpectedAnswer.learned(b"{}", ['[1, {"n": 2}]'])
    error = refused(known.check, '[1, {"n": 5}]', folder().workflow, LARGE)
    assert f"as its function does alone, to {LARGE}:" in error.message
    assert 'no_check there takes "$[1].n"' in error.message


def test_a_file_that_is_no_payload_by_its_name_is_said(folder):
    opened = folder(payload="1", payloads_large="2")
    (opened.path / "payloads/photo.png").write_bytes(b"\x89PNG")
    (opened.path / "payloads/.gitkeep").touch()
    (opened.path / "payloads/old").mkdir()
    (warning,) = opened.warnings()
    assert warning.endswith("payloads/photo.png is no payload: end its name with .json")
