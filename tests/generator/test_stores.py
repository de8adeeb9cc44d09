"""Wraps of a plan whose path is a store know which one, have its library, and nothing secret."""

from __future__ import annotations

import pytest

from chiron.generator.generate import Sources, generate
from chiron.generator.stores import NO_STORE, StorePlace
from chiron.openfaas.stack import read_stack
from chiron.workflow.errors import ChironError

APART = {"small-main": [["Split it", "Wave", "M1", "M2"]], "small-far": [["M3"]]}
REST = ["Zusammen/fügen? {50 %}"]


@pytest.fixture
def plan(plan_by_hand):
    def make(path="store", **wraps):
        return plan_by_hand(wraps or {**APART, "small-near": [REST]}, path=path)

    return make


def test_all_wraps_know_the_store_and_no_supporting_function_does(plan, write_folder, tmp_path):
    folder = write_folder(tmp_path / "small")
    stack_file = generate(plan(), Sources.read(folder, {}, store="redis://h:1/2"), tmp_path / "b")
    functions = read_stack(stack_file, {}).functions
    known = {name: each.environment.get("chiron_store") for name, each in functions.items()}
    wraps = {"small-main", "small-far", "small-near"}
    assert {name for name, url in known.items() if url == "redis://h:1/2"} == wraps
    assert all("chiron-store" not in each.secrets for each in functions.values())


@pytest.mark.parametrize(
    ("url", "requirements", "secrets"),
    [
        ("redis://h", [], ()),
        ("rediss://me@h", [], ("chiron-store",)),
        ("s3://key@h/bucket", ["minio<8,>=7.2"], ("chiron-store",)),
        ("s3s://h:9000/bucket", ["minio<8,>=7.2"], ()),
    ],
)
def test_a_wrap_gets_the_library_and_the_secret_that_its_store_needs(
    url, requirements, secrets, plan, small, tmp_path
):
    stack_file = generate(plan(), Sources.read(small, {}, store=url), tmp_path / "b")
    for name, function in read_stack(stack_file, {}).functions.items():
        if name.startswith("small-"):
            lines = (stack_file.parent / name / "requirements.txt").read_text().splitlines()
            assert lines == requirements
            assert function.secrets == secrets


@pytest.mark.parametrize("path", ["auto", "gateway"])
def test_wraps_of_other_plans_have_nothing_of_it(path, plan, small, tmp_path):
    stack_file = generate(plan(path), Sources.read(small, {}, store="s3://k@h/b"), tmp_path / "b")
    text = stack_file.read_text() + (stack_file.parent / "small-far/requirements.txt").read_text()
    assert "chiron_store" not in text
    assert "minio" not in text


def test_a_plan_of_one_wrap_needs_no_store(plan_by_hand, small, tmp_path):
    whole = plan_by_hand({"w": [[task.name for task in small.workflow.tasks]]}, path="store")
    stack_file = generate(whole, Sources.read(small, {}), tmp_path / "b")
    assert "chiron_store" not in stack_file.read_text()


def test_without_a_store_the_error_says_how_to_name_one(plan, small, tmp_path):
    with pytest.raises(ChironError, match="--store: redis://") as raised:
        generate(plan(), Sources.read(small, {}), tmp_path / "b")
    assert raised.value.code == "no-store"
    assert not (tmp_path / "b").exists()


def test_a_function_that_wants_another_version_of_the_library_is_named(
    plan, write_folder, tmp_path
):
    folder = write_folder(
        tmp_path / "small", modules={"wave": {"requirements.txt": "minio==6.0\n"}}
    )
    with pytest.raises(ChironError, match=r"the store needs minio.* wave|wave needs minio") as said:
        generate(plan(), Sources.read(folder, {}, store="s3://k@h/b"), tmp_path / "b")
    assert said.value.code == "requirements-conflict"


def test_a_stores_password_comes_from_a_variable():
    variables = {"CHIRON_STORE_PASSWORD": "word"}
    assert StorePlace.read("redis://me@h", variables) == ("redis://me@h", "word")
    assert StorePlace.read("", variables) is NO_STORE


@pytest.mark.parametrize(
    "url",
    [
        "h:6379",
        "http://h/b",
        "redis://",
        "redis://h/x",
        "s3://k@h",
        "s3://k@h/a/b",
        "s3://k@/b",
        "redis://[",
        "redis://h:0",
        "redis://h:99999",
    ],
)
def test_what_is_no_store_is_refused(url):
    with pytest.raises(ChironError, match="is no store: say redis://") as raised:
        StorePlace.read(url, {})
    assert raised.value.code == "bad-store"


@pytest.mark.parametrize(
    "url",
    ["redis://me:hidden@h", "redis://me:hidden", "redis://h?password=hidden", "s3://k@h/b#hidden"],
)
def test_a_password_within_the_url_is_refused_and_not_repeated(url):
    with pytest.raises(ChironError) as raised:
        StorePlace.read(url, {})
    assert raised.value.code == "bad-store"
    assert "hidden" not in raised.value.message
