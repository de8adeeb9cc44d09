"""Every `chiron` command that a document names has that verb and those options."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from chiron.cli.main import chiron as root
from tests.rows import each_row

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    file
    for pattern in ("*.md", "*/*.md", "*/*/*.md")
    for file in sorted(ROOT.glob(pattern))
    if not file.relative_to(ROOT).parts[0].startswith(("build", "out", "."))
]
_CODE = re.compile(r"```.*?\n(.*?)```|`([^`]+)`|^    (chiron .*)$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(?:\S+=\S* )*(?:\.venv/bin/|\$ )?chiron ([^|;&#<>]*)")


def commands(text: str) -> list[str]:
    """What stands behind `chiron` in the code of a document."""
    lines = []
    for block, span, line in _CODE.findall(text):
        lines += (block or line).splitlines() if block or line else [" ".join(span.split())]
    return [found[1].strip() for line in lines if (found := _COMMAND.match(line.strip()))]


def fault(line: str) -> str | None:
    """What `chiron` does not have of a command; None if it has all."""
    command: click.Command = root
    words = shlex.split(line.replace("[", " ").replace("]", " ").rstrip("\\"), posix=True)
    while isinstance(command, click.Group) and words:
        if words[0].startswith("-") or words[0].isupper() or words[0] == "...":
            break
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            return words[0]
        command, words = found, words[1:]
    known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    known.add("--help")
    options = [word.partition("=")[0].rstrip(".,") for word in words if re.match("--?[a-z]", word)]
    return next((each for each in options if each not in known), None)


@each_row("document", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_its_commands_exist(document: Path) -> None:
    faults = {line: wrong for line in commands(document.read_text()) if (wrong := fault(line))}
    assert faults == {}


def test_a_command_that_does_not_exist_is_found() -> None:
    assert fault("evaluate runtime --quick --part others") is None
    assert fault("evaluate nothing") == "nothing"
    assert fault("schedule DIR --slo 1s --nothing") == "--nothing"
    assert commands("`chiron a\n--b`\n```sh\nX=1 chiron c  # d\n```\n    chiron e\n") == [
        "a --b", "c", "e",
    ]  # fmt: skip
