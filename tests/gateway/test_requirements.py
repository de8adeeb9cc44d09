"""Requirements are merged and normalised, and compared with what this interpreter has."""

from __future__ import annotations

from importlib import metadata

import pytest

from gateway.requirements import satisfied, union

HAVE = metadata.version("flask")


def test_the_union_has_each_requirement_once_however_it_is_written(tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("# the server\nFlask >=3.0  # why\n\nnumpy\n")
    two.write_text("flask>=3.0\ntyping_extensions\\\n>=4\n")
    lines = union("side", one, two, tmp_path / "absent.txt")
    assert lines == ("flask>=3.0", "numpy", "typing-extensions>=4")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("flask", True),
        (f"flask=={HAVE}", True),
        ("flask>=1000", False),
        ("no-such-package-at-all", False),
        ("no-such-package-at-all; python_version < '3'", True),
        ("flask[async]", False),
        ("flask @ https://127.0.0.1/flask.whl", False),
        ("--no-index", False),
    ],
)
def test_a_requirement_is_satisfied_if_this_interpreter_has_it(line, expected):
    assert satisfied((line,)) is expected


def test_no_requirements_are_satisfied():
    assert satisfied(())
