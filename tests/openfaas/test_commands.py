"""A task's function may be a command: fprocess names the program, which no shell reads."""

from __future__ import annotations

import pytest

from chiron.openfaas.handlers import Handler
from chiron.openfaas.languages import find_handler
from chiron.openfaas.stack import StackFile, StackFunction
from chiron.workflow.errors import ChironError


def stack(fprocess: str, handler: str = "./side", lang: str = "command") -> StackFile:
    function = StackFunction(lang=lang, handler=handler, fprocess=fprocess)
    return StackFile(functions={"side": function})


@pytest.mark.parametrize(
    ("fprocess", "words"),
    [
        ("sort -r", ("sort", "-r")),
        ("./mine.sh 'a  b' | cat > x", ("./mine.sh", "a  b", "|", "cat", ">", "x")),
        ("ffmpeg -i {in} -f mp3 {out}", ("ffmpeg", "-i", "{in}", "-f", "mp3", "{out}")),
        ("awk '{print $1}'", ("awk", "{print $1}")),
    ],
)
def test_fprocess_is_split_into_words(write, tmp_path, fprocess, words):
    write("side/data.txt", "")
    handler = find_handler(stack(fprocess), "side", tmp_path)
    assert handler == Handler("side", tmp_path / "side", "command", words, shares_process=False)


@pytest.mark.parametrize(
    ("fprocess", "code", "reason"),
    [
        ("", "no-command", "has no fprocess"),
        ("  ", "no-command", "has no fprocess"),
        ("'' x", "no-command", "has no fprocess"),
        ("sort 'x", "bad-command", "close what is quoted"),
        ("sort \0", "bad-command", "NUL"),
        ("cat {in:}", "bad-command", r"\{in:\} lacks the name of a stream"),
    ],
)
def test_what_is_no_command_is_refused_with_its_field(write, tmp_path, fprocess, code, reason):
    write("side/data.txt", "")
    with pytest.raises(ChironError, match=reason) as raised:
        find_handler(stack(fprocess), "side", tmp_path)
    error = raised.value
    assert (error.code, error.path, error.functions) == (code, "functions.side.fprocess", ("side",))


@pytest.mark.parametrize("handler", ["", "./none"])
def test_a_command_needs_a_folder_to_run_in(tmp_path, handler):
    with pytest.raises(ChironError, match="folder") as raised:
        find_handler(stack("cat", handler), "side", tmp_path)
    assert (raised.value.code, raised.value.path) == ("no-handler", "functions.side.handler")
