"""Artefacts are strict JSON, refused with the path of the first fault, written whole or not."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from chiron.workflow.constraints import Constraints
from chiron.workflow.documents import (
    Document,
    dotted,
    dump,
    held,
    parse_json,
    read_document,
    read_json,
    require_writable,
    validate,
    write_atomically,
)
from chiron.workflow.errors import ChironError
from tests.rows import each_row


class Inner(Document):
    count: int
    share: Annotated[float, Field(ge=0)] = 0.0


class Outer(Document):
    name: str
    parts: tuple[Inner, ...] = ()
    note: str | None = None


@each_row("text", ["NaN", "[Infinity]", '{"a": -Infinity}'])
def test_nan_and_infinity_are_no_json(refused, text):
    assert refused(parse_json, text, "plan").code == "bad-json"


@each_row("text", ['{"a": 1, "a": 1}', '[{"b": {"a": 1, "x": 2, "a": 3}}]'])
def test_a_duplicate_key_is_named(refused, text):
    error = refused(parse_json, text, "plan")
    assert (error.code, error.path) == ("duplicate-key", "a")
    assert "'a'" in error.message


def test_a_long_number_is_refused_without_advice_for_programs(refused):
    error = refused(parse_json, "9" * 5000, "plan")
    assert error.message.endswith(": value has 5000 digits")


def test_one_key_in_two_objects_is_no_duplicate():
    assert parse_json('[{"a": 1}, {"a": 1}]', "plan") == [{"a": 1}, {"a": 1}]


def test_a_syntax_error_is_placed(refused):
    error = refused(parse_json, '{\n "a": 1,\n}', "workflow x.json")
    assert error.code == "bad-json"
    assert error.message.startswith("workflow x.json") and "line 3" in error.message


@each_row(
    "text", ["", b"\xff\xfe\xfd", "[" * 1_000_000, "9" * 10_000, '"a\nb"', "\ufeff{}", "{} x"]
)
def test_what_is_no_json_is_refused_whatever_it_is(refused, text):
    assert refused(parse_json, text, "plan").code == "bad-json"


@given(st.text() | st.binary())
def test_any_text_is_a_value_or_a_one_line_error(text: str | bytes):
    try:
        parse_json(text, "plan")
    except ChironError as error:
        assert str(error).isprintable()


@each_row(
    ("value", "path"),
    [
        ({"name": "a", "parts": [{"count": 1}, {"count": 1, "colour": 2}]}, "parts[1].colour"),
        ({"name": "a", "parts": [{"count": 1.5}]}, "parts[0].count"),
        ({"name": "a", "parts": [{"count": "1"}]}, "parts[0].count"),
        ({"name": "a", "parts": [{"count": True}]}, "parts[0].count"),
        ({"name": "a", "parts": [{"count": 1, "share": -1}]}, "parts[0].share"),
        ({"name": "a", "parts": [{"count": 1, "share": math.nan}]}, "parts[0].share"),
        ({"name": "a", "parts": [{"count": 1, "share": math.inf}]}, "parts[0].share"),
        ({"name": "a", "parts": {}}, "parts"),
        ({"parts": []}, "name"),
        ({"name": 1}, "name"),
        ([], None),
        (None, None),
    ],
)
def test_the_first_fault_is_named_by_its_dotted_path(refused, value, path):
    error = refused(validate, Outer, value, "artefact")
    assert (error.code, error.path) == ("bad-document", path)
    assert error.message.startswith("artefact: ")


def test_a_number_too_large_for_a_float_is_no_finite_number(refused):
    value = parse_json('{"name": "a", "parts": [{"count": 1, "share": 1e999}]}', "artefact")
    assert refused(validate, Outer, value, "artefact").path == "parts[0].share"


def test_lone_surrogates_and_depth_are_refused_not_a_crash(refused):
    assert refused(validate, Outer, {"name": "\ud800"}, "artefact").code == "bad-document"
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    assert refused(validate, Outer, {"name": "a", "parts": deep}, "x").code == "bad-document"


def test_documents_are_immutable():
    with pytest.raises(ValueError, match="frozen"):
        Outer(name="a").name = "b"


@given(
    st.builds(
        Outer,
        name=st.text(),
        parts=st.lists(
            st.builds(Inner, count=st.integers(), share=st.floats(0, 1e300)), max_size=3
        ).map(tuple),
        note=st.none() | st.text(),
    )
)
def test_what_is_dumped_is_read_back_the_same(document: Outer):
    assert validate(Outer, parse_json(dump(document), "x"), "x") == document


def test_a_document_goes_through_a_file_unchanged(tmp_path):
    document = Outer(name="größe", parts=(Inner(count=1, share=0.1),))
    write_atomically(tmp_path / "new" / "a.json", dump(document))
    assert read_document(Outer, tmp_path / "new" / "a.json", "artefact") == document


@each_row("name", ["missing.json", "."])
def test_a_file_that_cannot_be_read_is_named(refused, tmp_path, name):
    error = refused(read_json, tmp_path / name, "profile")
    assert error.code == "missing-file"
    assert error.message.startswith(f"profile {tmp_path / name} cannot be read")


def test_a_fault_in_a_file_names_the_file_and_the_path(refused, tmp_path):
    file = tmp_path / "a.json"
    file.write_text('{"name": 1}')
    error = refused(read_document, Outer, file, "artefact")
    assert str(file) in error.message and error.path == "name"


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing_else(tmp_path):
    file = tmp_path / "a.json"
    write_atomically(file, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(file, "new \ud800")
    assert file.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_a_write_whose_last_step_fails_leaves_nothing_behind(tmp_path):
    target = tmp_path / "a.json"
    target.mkdir()
    with pytest.raises(ChironError) as caught:
        write_atomically(target, "text")
    assert caught.value.message.startswith(f"{target} cannot be written")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_what_is_no_file_gets_the_content_and_stays(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        require_writable(pipe, folder=False)
        write_atomically(pipe, "text")
        assert reader.read() == b"text"
    assert pipe.is_fifo()
    with (tmp_path / "file").open("w+") as file:
        link.symlink_to(f"/proc/self/fd/{file.fileno()}")  # as /dev/stdout is
        write_atomically(link, "text")
        assert file.read() == "text"
    assert link.is_symlink()
    (tmp_path / "elsewhere").write_text("old")
    (tmp_path / "other").symlink_to("elsewhere")
    write_atomically(tmp_path / "other", "new")
    assert (tmp_path / "elsewhere").read_text() == "old"


def test_a_written_file_has_the_rights_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("")
    write_atomically(tmp_path / "a.json", "text")
    assert (tmp_path / "a.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_path_is_dotted_with_indices_in_brackets():
    assert dotted(("wraps", 0, "stages", 1, "cpus")) == "wraps[0].stages[1].cpus"
    assert dotted(()) == ""


def test_files_are_utf8_whatever_the_locale(tmp_path):
    write_atomically(tmp_path / "a.json", '"ä"')
    assert Path(tmp_path / "a.json").read_bytes() == '"ä"'.encode()


def test_all_faults_of_a_document_are_said_at_once_and_many_are_counted(refused):
    error = refused(
        validate, Constraints, {"isolate": {"a": "planet"}, "no_check": 3}, "constraints"
    )
    assert error.message.startswith("constraints: 3 faults: Field required (at format); ")
    assert "(at isolate.a); " in error.message and "(at no_check)" in error.message
    many = {"format": 1, "isolate": dict.fromkeys(map(str, range(20)), "planet")}
    assert refused(validate, Constraints, many, "constraints").message.endswith("; and 8 more")


def test_a_file_of_another_kind_is_told_as_such(tmp_path, refused):
    file = tmp_path / "workflow.json"
    file.write_text('{"tasks": {"t": "f"}, "edges": []}')
    error = refused(read_document, Constraints, file, "constraints")
    assert error.message == (
        f"constraints {file}: it is another document, with 'tasks', 'edges' and without format: "
        "name the file with the constraints"
    )
    file.write_text('{"tasks": {"t": "f"}, "format": 1, "isolate": {}}')  # as a misspelled field
    assert "(at tasks)" in str(refused(read_document, Constraints, file, "constraints"))


def test_a_list_in_words(refused):
    error = refused(validate, Constraints, {"format": 1, "together": "a"}, "constraints")
    assert error.message == 'constraints: a list belongs here: ["value"], in YAML - value'


def test_one_command_at_a_time_holds_a_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with held(out):
        with pytest.raises(ChironError, match="another command writes to") as raised, held(out):
            pass
        assert (raised.value.code, raised.value.status) == ("in-use", 409)
        with held(tmp_path / "other"):
            (out / "plan.json").write_text("{}")
    with held(out):
        pass
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out"]
