"""Requirements are merged and normalised, and compared with what this interpreter has."""

from __future__ import annotations

from importlib import metadata

import pytest

from chiron.gateway.requirements import satisfied, union
from chiron.workflow.errors import ChironError
from tests.rows import each_row

HAVE = metadata.version("flask")
OPTIONS = [
    "-r other.txt", "-rother.txt", "--requirement=other.txt", "--req other.txt", "-c bounds.txt",
    "--constr bounds.txt", "-e .", "-e.", "--editable git+https://127.0.0.1/x", "-f .",
    "--find-links=/", "-i x", "--index-url x", "--extra-index-url=x", "--no-index", "--pre",
    "--trusted-host x", "-", "--", "flask==3.0 --hash=sha256:00", "flask --config-settings a=b",
    "flask==3.0 \\\n --hash=sha256:00", "fla\\\nsk -r x",
]  # fmt: skip
PATHS = [".", "./local", "/etc", "../x", "local/x.whl", "git+http://127.0.0.1/x"]
NONE = ["==1.0", "=1", "flask=>1", "flask==", "a b", "!", ";", "[x]", "flask; os_name", "\0"]
PLACES = ["file:///etc", "./local", "/etc/x.whl", "http://127.0.0.1/x.whl", "svn+ssh://x/y"]
REFUSED = (
    [(line, "an option of pip") for line in OPTIONS]
    + [(line, "is no plain requirement") for line in PATHS + NONE]
    + [("git+https://127.0.0.1/x", "write the package before it, NAME @ git")]
    + [(f"x @ {place}", "a place that is not taken") for place in PLACES]
    + [
        ("x @ https://127.0.0.1/${PASSWORD}.whl", "a variable"),
        ('flask; os_name == "a --config-settings b"', "an option of pip"),
        ("flask; os_name ~= 'x'", "a condition"),
    ]
)


def test_the_union_has_each_requirement_once_however_it_is_written(tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("# the server\nFlask >=3.0  # why\n\nnumpy\n")
    two.write_text("flask>=3.0\ntyping_extensions\\\n>=4\n")
    lines = union("side", one, two, tmp_path / "absent.txt")
    assert lines == ("flask>=3.0", "numpy", "typing-extensions>=4")


@each_row(
    ("line", "expected"),
    [
        ("flask", True),
        (f"flask=={HAVE}", True),
        ("flask>=1000", False),
        ("no-such-package-at-all", False),
        ("no-such-package-at-all; python_version < '3'", True),
        ("flask[async]", False),
        ("flask @ https://127.0.0.1/flask.whl", False),
    ],
)
def test_a_requirement_is_satisfied_if_this_interpreter_has_it(line, expected):
    assert satisfied((line,)) is expected


@each_row(("line", "said"), REFUSED)
def test_what_is_no_package_by_name_is_refused_with_its_line(tmp_path, line, said):
    (tmp_path / "requirements.txt").write_text(f"flask\n\n{line}\n")
    with pytest.raises(ChironError, match=f"function side: .*line 3: .*{said}") as refusal:
        union("side", tmp_path / "requirements.txt")
    assert "\n" not in refusal.value.message


def test_a_file_that_is_no_text_or_too_large_is_refused(tmp_path):
    for content in (b"\xff\xfe", b"flask\n" * 200_000):
        (tmp_path / "requirements.txt").write_bytes(content)
        with pytest.raises(ChironError, match=r"requirements\.txt (is not UTF-8|has more than)"):
            union("side", tmp_path / "requirements.txt")


def test_marks_comments_and_lines_in_parts_are_read_as_pip_does(tmp_path):
    text = "\ufeffflask\\\n>=3 # why\t\n# all \\\nnumpy\t# tab\nrequests\\"
    (tmp_path / "requirements.txt").write_text(text, encoding="utf-8")
    assert union("side", tmp_path / "requirements.txt") == ("flask>=3", "numpy", "requests")


def test_places_that_others_can_reach_are_taken(tmp_path):
    lines = ["a @ git+https://127.0.0.1/a@v1", "b @ https://127.0.0.1/b.whl", "c[x]==1.*"]
    (tmp_path / "requirements.txt").write_text("\n".join(lines))
    assert union("side", tmp_path / "requirements.txt") == tuple(lines)


def test_no_requirements_are_satisfied():
    assert satisfied(())
