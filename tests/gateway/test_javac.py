"""Java functions of a wrap are compiled when its image is built."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chiron.gateway.javac import compile_functions
from chiron.workflow.errors import ChironError

TEMPLATE = Path(__file__).resolve().parents[2] / "templates" / "python3-wrap"
HANDLER = """
package com.openfaas.function;
public class Handler extends com.openfaas.model.AbstractHandler {
    public com.openfaas.model.IResponse Handle(com.openfaas.model.IRequest req) { return null; }
}
"""
needs_java = pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK: install a JDK 17")


@pytest.fixture
def image(tmp_path):
    """An image, and the folder of its function `run`."""
    shutil.copytree(TEMPLATE / "wrap", tmp_path / "wrap")
    folder = tmp_path / "function" / "functions" / "run" / "function"
    source = folder / "src" / "main" / "java" / "com" / "openfaas" / "function" / "Handler.java"
    source.parent.mkdir(parents=True)
    source.write_text(HANDLER)
    return tmp_path, folder, source


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Where classes of what calls the functions are kept."""
    return tmp_path_factory.mktemp("cache")


@needs_java
def test_classes_are_beside_their_sources_and_those_of_equal_sources_kept(image, cache):
    place, folder, source = image
    classes = place / "wrap/functions/java/.chiron-classes"
    said = list[str]()
    (folder / ".chiron-classes" / "of-other-sources").mkdir(parents=True)
    compile_functions("wrap", place, cache, said.append)
    assert said == ["wrap: compiling its Java functions"]
    assert not (folder / ".chiron-classes" / "of-other-sources").exists()
    assert (folder / ".chiron-classes/com/openfaas/function/Handler.class").is_file()
    assert (classes / "chiron/Worker.class").is_file()
    made = folder / ".chiron-classes"
    assert [each for each in folder.iterdir() if each.name.startswith(".")] == [made]
    first = {*cache.iterdir()}
    for kept in first:
        (kept / "kept").touch()

    def again() -> list[str]:
        said.clear()
        compile_functions("other", place, cache, said.append)
        return said

    assert again() == []
    assert (classes / "kept").exists()
    assert (folder / ".chiron-classes/kept").exists()
    source.write_text(HANDLER.replace("null", "new com.openfaas.model.Response()"))
    assert again() == ["other: compiling its Java functions"]
    assert (classes / "kept").exists()
    assert not (folder / ".chiron-classes/kept").exists()
    (folder / "lib").mkdir()
    (folder / "lib" / "given.jar").write_bytes(b"PK\5\6" + bytes(18))
    assert again() == ["other: compiling its Java functions"]
    assert len({*cache.iterdir()} - first) == 2


@needs_java
def test_what_javac_refuses_is_told_with_the_function(image, cache):
    place, folder, source = image
    source.write_text(HANDLER.replace("null", "nothing"))
    with pytest.raises(ChironError, match=r"function wrap: the Java code of run .*symbol") as told:
        compile_functions("wrap", place, cache, print)
    assert told.value.code == "javac-failed"
    assert [each.name for each in folder.iterdir()] == ["src"]


def test_without_a_jdk_one_line_says_so(image, monkeypatch):
    monkeypatch.setenv("PATH", str(image[0]))
    with pytest.raises(ChironError, match="javac is not on the PATH: install") as told:
        compile_functions("wrap", image[0], image[0] / "cache", print)
    assert "\n" not in told.value.message


def test_where_no_function_is_in_java_nothing_is_done(tmp_path):
    compile_functions("wrap", tmp_path, tmp_path / "cache", pytest.fail)
