"""One requirements.txt for several functions, or an error that names both."""

from __future__ import annotations

import pytest

from chiron.generator.merging import merge_requirements
from chiron.openfaas.handlers import Handler
from chiron.workflow.errors import ChironError


@pytest.fixture
def merged(tmp_path):
    """Merges the requirements.txt of functions a, b, ... with the given texts (None: no file)."""

    def merge(*texts: str | None) -> list[str]:
        handlers = [Handler(name, tmp_path / name, "flask") for name in "abc"[: len(texts)]]
        for handler, text in zip(handlers, texts, strict=True):
            handler.folder.mkdir()
            if text is not None:
                (handler.folder / "requirements.txt").write_text(text)
        return merge_requirements(handlers)

    return merge


def test_all_requirements_come_once_and_sorted(merged):
    assert merged("requests>=2\nflask", "numpy==1.26.4\nrequests>=2", None) == [
        "flask",
        "numpy==1.26.4",
        "requests>=2",
    ]


def test_comments_and_empty_lines_are_left_out(merged):
    assert merged("# why\n\n  flask  # the web\n") == ["flask"]


def test_names_are_compared_as_package_indexes_do(merged):
    assert merged("Typing_Extensions==4.0", "typing.extensions==4.0") == ["typing-extensions==4.0"]


def test_no_functions_have_no_requirements(merged):
    assert merged() == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("numpy==1.0", "numpy==2.0"),
        ("NumPy==1.0", "numpy==1.0.1"),
        ("numpy==1.0", "numpy>=2"),
        ("numpy<1", "numpy==1.0"),
        ("numpy==1.0", "numpy!=1.0"),
    ],
)
def test_a_pin_that_another_function_does_not_allow_is_a_conflict(first, second, merged):
    with pytest.raises(ChironError) as refused:
        merged(first, second)
    assert refused.value.code == "requirements-conflict"
    assert set(refused.value.functions) == {"a", "b"}
    for word in ("a needs", "b needs", "numpy", "different wraps"):
        assert word in refused.value.message


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("numpy==1.0", "numpy==1.0.0"),
        ("numpy==1.0", "numpy>=1,<2"),
        ("numpy==1.0", "numpy"),
        ("numpy==1.*", "numpy==1.4"),
        ("numpy==2.0rc1", "numpy>=1"),
        ("numpy==1.0; python_version<'3'\nnumpy==2.0; python_version>='3'", "numpy==2.0"),
    ],
)
def test_requirements_that_can_be_met_together_are_no_conflict(first, second, merged):
    assert merged(first, second)


@pytest.mark.parametrize("line", ["-r other.txt", "--index-url x", "git+https://x", "a b", "==1"])
def test_what_is_no_plain_requirement_is_named(line, merged):
    with pytest.raises(ChironError) as refused:
        merged("flask", line)
    assert refused.value.code == "bad-requirement"
    assert refused.value.functions == ("b",)
    assert line[:10] in refused.value.message
