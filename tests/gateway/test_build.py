"""Building: template and handler become an image, in one step or not at all."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import zipfile
from dataclasses import replace
from importlib.util import cache_from_source
from pathlib import Path
from urllib.request import url2pathname

import pytest

from chiron.gateway.build import FunctionSource, build, lay_out_as_faas_cli
from chiron.gateway.images import Image, ImageStore
from chiron.workflow.errors import ChironError


@pytest.fixture
def empty_store(tmp_path) -> ImageStore:
    return ImageStore(tmp_path / "images")


@pytest.fixture
def source(tmp_path):
    """Write a handler folder; returns the function to build from it."""

    def write(handler: str | None, lang: str = "python3-flask", requirements: str = ""):
        folder = tmp_path / "handler"
        folder.mkdir(exist_ok=True)
        if handler is not None:
            (folder / "handler.py").write_text(handler)
        (folder / "requirements.txt").write_text(requirements)
        return FunctionSource("side", "registry:5000/team/side", lang, folder)

    return write


def test_of_an_images_tags_those_in_use_and_the_newest_stay(empty_store):
    def build_one(tag: str) -> None:
        with empty_store.new_version(tag) as folder:
            Image(tag, "python3-wrap", Path("python"), {}, "", folder).write()
        empty_store.remove_old_tags(tag)

    build_one("wrap:in-use")
    _, lock = empty_store.pin("wrap:in-use")
    tags = ["other", *(f"wrap:{number}" for number in range(7))]
    for tag in tags:
        build_one(tag)
    assert [bool(empty_store.find(tag)) for tag in tags] == [True, False, False, *[True] * 5]
    assert empty_store.find("wrap:in-use")
    os.close(lock)


def test_the_files_of_a_template_are_in_the_store_once_until_it_changes(
    source, minimal_templates, empty_store, tmp_path
):
    templates = Path(shutil.copytree(minimal_templates, tmp_path / "templates"))
    code = source("handle = str\n")
    files = [
        build(replace(code, image=name), templates, empty_store).folder / "index.py"
        for name in ("a", "b")
    ]
    assert files[0].samefile(files[1])
    assert not files[0].samefile(templates / "plain" / "index.py")  # which may be edited in place
    assert not files[0].stat().st_mode & 0o222  # else a function changes it for every image
    before = files[0].read_text()
    (templates / "plain" / "index.py").write_text("changed = True\n")
    changed = build(code, templates, empty_store)
    assert (changed.folder / "index.py").read_text() == "changed = True\n"
    assert files[0].read_text() == before
    assert len([*(empty_store.root / ".kept" / "plain").glob("[!.]*")]) == 1


def test_where_files_cannot_be_linked_they_are_copied(
    source, minimal_templates, empty_store, monkeypatch
):
    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr("chiron.gateway.build.os.link", refused)
    image = build(source("handle = str\n"), minimal_templates, empty_store)
    assert (image.folder / "index.py").stat().st_nlink == 1


def test_a_path_that_only_containers_have_is_said(source, minimal_templates, empty_store):
    said = []
    for place in ("/home/app/function/model", "function/model"):
        function = source(f"def handle(req): return open({place!r}).read()\n")
        build(function, minimal_templates, empty_store, say=said.append)
    (line,) = said
    assert line.startswith("function side names /home/app/function, which only containers have: ")


def test_an_image_is_the_template_with_the_handler_in_it(
    source, minimal_templates, empty_store, tmp_path
):
    function = source("from util import x\ndef handle(req): return x\n")
    (function.handler / "util.py").write_text("x = 1\n")
    for folder in ("__pycache__", ".mypy_cache", ".weights_cache"):
        (function.handler / folder).mkdir()
    image = build(function, minimal_templates, empty_store, tmp_path / "venvs")
    assert empty_store.find("registry:5000/team/side:latest") == image
    assert image.folder.parent.parent == empty_store.root
    # The folder as a URL and in PYTHONPATH is the folder, as /home/app is.
    assert url2pathname(f"{image.folder}/x") == f"{image.folder}/x"
    assert os.pathsep not in image.folder.parent.name
    files = {str(path.relative_to(image.folder)) for path in image.folder.rglob("*")}
    compiled = Path(cache_from_source("index.py"))
    assert files == {
        "index.py", "image.json", "function", "function/__init__.py", "function/handler.py",
        "function/util.py", "function/requirements.txt", "function/.weights_cache",
        str(compiled.parent), str(compiled),
    }  # fmt: skip
    metadata = json.loads((image.folder / "image.json").read_text())
    assert metadata["name"] == "registry:5000/team/side:latest"
    assert metadata["template"] == "plain"
    assert metadata["python"] == sys.executable
    assert metadata["env"] == {"handler_style": "flask"}


@pytest.mark.parametrize(
    ("lang", "template", "env"),
    [
        ("python3-flask-debian", "plain", {"handler_style": "flask"}),
        ("python3-http", "plain", {"handler_style": "http"}),
        ("python3-http-debian", "plain", {"handler_style": "http-debian"}),
        ("python3-wrap", "python3-wrap", {}),
    ],
)
def test_lang_chooses_template_and_handler_style(
    source, minimal_templates, empty_store, lang, template, env
):
    image = build(source("handle = WRAP = print", lang), minimal_templates, empty_store)
    assert (image.template, image.env) == (template, env)


@pytest.mark.parametrize(
    "handler",
    [
        "def handle(req): ...",
        "async def handle(req): ...",
        "class handle: ...",
        "handle = print",
        "a, handle = 1, print",
        "handle: object = print",
        "from os import getcwd as handle",
        "from os import *",
        "try:\n    import handle\nexcept ImportError:\n    handle = None",
        "if True:\n    def handle(req): ...",
    ],
)
def test_any_way_to_define_handle_at_the_top_level_will_do(
    source, minimal_templates, empty_store, handler
):
    assert build(source(handler), minimal_templates, empty_store).folder.is_dir()


def test_a_package_is_the_handler_before_a_module_of_its_name(
    source, minimal_templates, empty_store
):
    function = source("x = 1")
    (function.handler / "handler").mkdir()
    (function.handler / "handler" / "__init__.py").write_text("from .work import handle")
    image = build(function, minimal_templates, empty_store)
    assert (image.folder / "function" / "handler" / "__init__.py").is_file()


@pytest.mark.parametrize(
    ("handler", "lang", "code", "said"),
    [
        (None, "python3-flask", "handler-missing", "no handler.py"),
        ("", "python3-flask", "handler-without-entry", "defines no handle"),
        ("def handler(req): ...", "python3-http", "handler-without-entry", "no handle"),
        ("def f():\n    handle = 1", "python3-flask", "handler-without-entry", "no handle"),
        ("handle: int", "python3-flask", "handler-without-entry", "no handle"),
        ("def handle(req): ...", "python3-wrap", "handler-without-entry", "defines no WRAP"),
        ("def handle(req:", "python3-flask", "handler-syntax", "handler.py:1 is not valid"),
        ("\0", "python3-flask", "handler-syntax", "not valid Python"),
        (
            "handle = 1",
            "cobol",
            "unknown-lang",
            "lang 'cobol' cannot be a process",
        ),
    ],
)
def test_a_bad_handler_is_refused_by_name_before_anything_is_written(
    source, minimal_templates, empty_store, handler, lang, code, said
):
    with pytest.raises(ChironError) as error:
        build(source(handler, lang), minimal_templates, empty_store)
    assert error.value.code == code
    assert error.value.message.startswith("function side: ")
    assert said in error.value.message
    assert not empty_store.root.exists()


@pytest.mark.parametrize(
    ("lang", "told", "found"),
    [
        ("dockerfile", None, {"Dockerfile", "main.go"}),
        ("own", "handler_folder: code", {"Dockerfile", "template.yml", "code/main.go"}),
        ("own", None, {"Dockerfile", "function/main.go"}),
    ],
)
def test_functions_of_other_langs_are_laid_out_as_faas_cli_does(lang, told, found, tmp_path):
    handler, template, context = (tmp_path / name for name in ("handler", "own", "context"))
    for folder in (handler, template, context):
        folder.mkdir()
    (handler / "main.go").write_text("package main")
    ((handler if lang == "dockerfile" else template) / "Dockerfile").write_text("FROM scratch")
    if told:
        (template / "template.yml").write_text(told)
    lay_out_as_faas_cli(FunctionSource("gopher", "gopher", lang, handler, template), context)
    files = (each for each in context.rglob("*") if each.is_file())
    assert {str(each.relative_to(context)) for each in files} == found


@pytest.mark.parametrize(
    ("lang", "said"),
    [
        ("dockerfile", "no Dockerfile in .*handler"),
        ("node20", "template store pull node20"),
    ],
)
def test_what_faas_cli_would_lack_is_told(lang, said, tmp_path):
    for name in ("handler", "context"):
        (tmp_path / name).mkdir()
    source = FunctionSource("gopher", "gopher", lang, tmp_path / "handler", tmp_path / "none")
    with pytest.raises(ChironError, match=f"function gopher: .*{said}"):
        lay_out_as_faas_cli(source, tmp_path / "context")


def test_a_missing_template_is_refused_by_name(source, empty_store, tmp_path):
    with pytest.raises(ChironError, match=r"template plain has no index\.py"):
        build(source("handle = 1"), tmp_path, empty_store)


def test_a_build_that_fails_leaves_the_image_as_it_was(
    source, minimal_templates, empty_store, tmp_path, monkeypatch
):
    before = build(source("handle = 1"), minimal_templates, empty_store)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    said: list[str] = []
    bad = source("handle = 2", requirements="no-such-package-at-all\n")
    with pytest.raises(ChironError, match=r"function side: its requirements.*pip says: .*no-such"):
        build(bad, minimal_templates, empty_store, tmp_path / "venvs", said.append)
    (line,) = said
    assert line.startswith("side: installing no-such-package-at-all into ")
    assert empty_store.find("registry:5000/team/side") == before
    assert not list((tmp_path / "venvs").glob("*/bin"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-r other.txt", r"line 1: '-r other\.txt' has an option of pip \('-r'\)"),
        ("flask=>1", "'flask=>1' is no plain requirement"),
    ],
)
def test_a_bad_requirement_is_refused_by_name(source, minimal_templates, empty_store, line, said):
    with pytest.raises(ChironError, match=said):
        build(source("handle = 1", requirements=line), minimal_templates, empty_store)
    assert not empty_store.root.exists()


def test_a_version_in_use_outlives_later_builds_and_one_that_is_not_goes(
    source, minimal_templates, empty_store
):
    first = build(source("handle = 1"), minimal_templates, empty_store)
    pinned, lock = empty_store.pin(first.name)
    second = build(source("handle = 2"), minimal_templates, empty_store)
    third = build(source("handle = 3"), minimal_templates, empty_store)
    assert pinned == first
    assert first.folder.is_dir()
    assert not second.folder.exists()
    os.close(lock)
    build(source("handle = 4"), minimal_templates, empty_store)
    assert not first.folder.exists()
    assert not third.folder.exists()


def test_two_images_with_different_requirements_share_nothing(
    tmp_path, make_image, deploy, monkeypatch
):
    code = """
        import colour, sys

        def handle(request):
            return f"{colour.NAME} {sys.prefix}"
    """
    seen = []
    for number, name in enumerate(("red", "green")):
        make_wheel(tmp_path / name, version=f"{number}.0", name=name)
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / name))
        function = deploy(code, requirements=f"colour=={number}.0\n")
        seen.append(function.post().text.split())
    assert [colour for colour, _ in seen] == ["red", "green"]
    prefixes = {prefix for _, prefix in seen}
    assert len(prefixes) == 2
    assert sys.prefix not in prefixes
    assert not [each for prefix in prefixes for each in Path(prefix).rglob("site-packages/pip")]


def make_wheel(folder: Path, version: str, name: str) -> Path:
    """A wheel of a package `colour` whose NAME is `name`."""
    folder.mkdir()
    wheel = folder / f"colour-{version}-py3-none-any.whl"
    info = f"colour-{version}.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("colour.py", f"NAME = {name!r}\n")
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: colour\nVersion: {version}\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return wheel
