"""Tables fit into a line of 100 characters, and lose nothing for it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from chiron.cli import logs
from chiron.cli.output import plain, table
from chiron.cli.place import Place
from chiron.openfaas.objects import LogLine

#: Sets the title, clears, moves up, answers back, deletes; C1, and text from right to left.
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[1A\x1b[6n\b\x7f\r\x9b31m\u202e\u200b\x00"


@pytest.mark.parametrize(
    ("columns", "cells"),
    [
        (["what", "ms"], ["one", "1.5"]),
        (["what", *(f"figure-{n:02}" for n in range(20))], [f"cell-{n:02}" for n in range(21)]),
        (["what", "a header of several words"] * 9, [f"figure-{n:02}" for n in range(18)]),
        (["what", "remark", "why"], ["word " * 30, "reason " * 30, "cause " * 30]),
    ],
    ids=["narrow", "many columns", "long headers", "long cells"],
)
def test_a_table_is_at_most_100_characters_wide_and_whole(columns, cells, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    table("a title", columns, [cells], notes=["ms: " + "milliseconds " * 20])
    shown = capsys.readouterr().err
    assert max(map(len, shown.splitlines())) <= 100
    assert shown.split().count("milliseconds") == 20
    assert {word for text in (*columns, *cells) for word in text.split()} <= set(shown.split())


def test_what_does_not_fit_goes_on_below_beside_the_first_columns(capsys):
    columns = ["variant", "workflow", *(f"figure-of-some-length-{n}" for n in range(5))]
    table("a title", columns, [["pgp", "finra", *"12345"]], keys=2)
    shown = capsys.readouterr().err
    assert shown.count("a title") == 1
    rows = [line.split() for line in shown.splitlines() if "pgp" in line]
    assert rows == [["pgp", "finra", *"123"], ["pgp", "finra", *"45"]]


def test_nothing_that_commands_a_terminal_is_left_in_plain_text():
    escaped = plain(f"größe 日本 🎉{HOSTILE}")
    assert escaped.startswith("größe 日本 🎉\\x1b]0;owned\\x07\\x1b[2J")
    assert escaped.isprintable()
    assert plain("a\tb\n", kept="\t") == "a\tb\\n"


@pytest.mark.parametrize("on_terminal", [True, False])
def test_results_are_escaped_on_a_terminal_and_whole_elsewhere(on_terminal):
    program = "import sys; from chiron.cli.output import data; data(sys.argv[1].encode())"
    content = f"a\tb\n{HOSTILE[:-1]}"
    ours, theirs = pty.openpty() if on_terminal else os.pipe()
    command = [sys.executable, "-c", program, content]
    subprocess.run(command, stdout=theirs, check=True, cwd=Path(__file__).parents[2])
    got = os.read(ours, 4096)
    os.close(theirs)
    os.close(ours)
    if on_terminal:
        assert got.decode() == "a" + "\t" + "b\r\n" + plain(HOSTILE[:-1])
    else:
        assert got.decode() == content


def test_a_request_from_a_terminal_is_asked_for():
    ours, theirs = pty.openpty()
    program = "from chiron.cli.invoke import read_request; print(read_request())"
    os.write(ours, b"{}\n\x04")
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, stdin=theirs, capture_output=True, check=True, cwd=Path(__file__).parents[2]
    )
    os.close(theirs)
    os.close(ours)
    assert done.stdout == b"b'{}\\n'\n"
    assert b"reading the request from the terminal: end it with Ctrl-D" in done.stderr


@pytest.mark.parametrize(("options", "shown"), [([], plain(HOSTILE)), (["--raw"], HOSTILE)])
def test_what_functions_print_commands_the_terminal_only_when_asked_to(options, shown, monkeypatch):
    line = LogLine(name="one", timestamp="now", text=f"a\tb{HOSTILE}")
    gateway = SimpleNamespace(logs=lambda name, tail: [line], functions=list)
    launcher = nullcontext(SimpleNamespace(gateway=gateway))
    monkeypatch.setattr(Place, "connect", lambda self: launcher)
    monkeypatch.setattr(logs, "wraps_of", lambda *_: ["one"])
    result = CliRunner().invoke(logs.command, ["small", *options])
    assert result.stdout_bytes.decode() == f"now one a\tb{shown}\n"
