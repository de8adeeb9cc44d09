"""A command in the place of a handler: its streams, how it fails, and what ends with it."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from http.client import HTTPConnection
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from wrap.functions.function_runner import Place
from wrap.functions.kinds import functions_of

#: Where a command's task is: in the server, or in a further process.
PLACES = {"main": [[0]], "fork": [[], [0]], "pool": [[], [0]]}
ECHO = "def handle(req):\n    return req\n"
in_each_place = pytest.mark.parametrize("place", PLACES)


@pytest.fixture
def serve(start: Any, wrap_image: Any) -> Any:
    """Starts a wrap whose only task is a command."""

    def serve(*words: str, place: str = "main", files: dict[str, str] | None = None) -> Any:
        image = wrap_image(
            {"run": files or {"data.txt": ""}},
            PLACES[place],
            styles={"run": "command"},
            commands={"run": list(words)},
            mechanism="pool" if place == "pool" else "fork",
            entry={"output": 0},
        )
        for file in files or {}:
            (image / "function" / "functions" / "run" / "function" / file).chmod(0o755)
        return start(image)

    return serve


@in_each_place
def test_any_bytes_of_any_size_go_through(place: str, serve: Any) -> None:
    server = serve("cat", place=place)
    for size in (0, 1, 20_000_000):
        content = os.urandom(size)
        answer = server.request(body=content)
        assert (answer.status, answer.body) == (200, content)


#: Words of commands that get "plait" -> what they answer.
WORDS = {
    ("true",): "",
    ("sort", "-r"): "plait\n",
    ("echo", "$HOME", "*", "a  b", "|", "cat"): "$HOME * a  b | cat\n",
    ("tr", "{i}", "{n}"): "plant",
    ("head", "-c", "3"): "pla",
    ("cat", "{in}"): "plait",
    ("cmp", "{in}", "{in}"): "",
    ("tail", "-c", "2", "{in}"): "it",
    ("cp", "{in}", "{out}"): "plait",
    ("dd", "of={out}", "status=none"): "plait",
}


def test_a_command_gets_its_words_as_they_are_and_files_for_places(start, wrap_image):
    names = [f"c{number}" for number in range(len(WORDS))]
    image = wrap_image(
        {name: {"data.txt": ""} for name in names},
        styles=dict.fromkeys(names, "command"),
        commands=dict(zip(names, map(list, WORDS), strict=True)),
        entry={"output": [*range(len(WORDS))]},
    )
    assert start(image).request(body="plait").json == list(WORDS.values())


def test_it_runs_in_the_folder_of_its_function_and_may_seek(serve: Any) -> None:
    script = """
        import os
        with open("/dev/stdin", "rb") as given, open("/dev/stdout", "wb") as output:
            given.seek(-2, os.SEEK_END)
            output.write(b"0000" + given.read() + open("data.txt", "rb").read())
            output.seek(0)
            output.write(b"at")
    """
    files = {"seeks.py": script, "data.txt": "of mine"}
    assert serve(sys.executable, "seeks.py", files=files).request(body="large").body == (
        b"at00geof mine"
    )


def test_one_that_fails_is_told_with_its_status_or_signal_and_the_end_of_what_it_said(serve):
    script = "#!/bin/sh\ncat | grep -q dies && kill -SEGV $$\nseq 1000 >&2\necho bad >&2\nexit 3\n"
    server = serve("./fails.sh", "twice 1", files={"fails.sh": script})
    answer = server.request(body="x")
    assert answer.status == 500
    message = "./fails.sh 'twice 1' exited with status 3: 999 | 1000 | bad"
    cause = {"errorMessage": message, "errorType": "exited", "stackTrace": []}
    assert answer.json == {
        "code": "exited",
        "message": message,
        "function": "run",
        "wrap": "test-wrap1",
        "error": "exited",
        "cause": json.dumps(cause),
    }
    answer = server.request(body="dies")
    message = "./fails.sh 'twice 1' was killed by SIGSEGV: it said nothing on stderr"
    assert (answer.json["code"], answer.json["message"]) == ("exited", message)


def test_what_it_says_is_in_the_log_as_its_functions(serve: Any) -> None:
    script = "#!/bin/sh\nprintf 'first\\nsecond' >&2\necho given > $1\necho third\n"
    server = serve("./says.sh", "{out}", files={"says.sh": script})
    answer = server.request(X_Call_Id="1a2b3c4d5e")
    assert answer.text == "given\n"
    lines = [line for line in server.log.read_text().splitlines() if line.startswith("[run ")]
    assert lines == [f"[run 1a2b3c4d] {text}" for text in ("first", "secondthird")]


@pytest.mark.parametrize("place", ["main", "fork"])
def test_its_time_over_it_ends_with_all_that_it_started(place, serve, eventually, tmp_path):
    script = f"#!/bin/sh\nsleep 4321 &\ntouch {tmp_path}/begun\nsleep 4321\n"
    server = serve("./hangs.sh", place=place, files={"hangs.sh": script})
    before = server.descriptors()
    answer = server.request(X_Chiron_Timeout="1")
    assert (answer.status, answer.json["code"]) == (504, "timeout")
    assert (tmp_path / "begun").exists()

    def all_ended() -> bool:
        left = [process for process in psutil.process_iter() if "4321" in _words(process)]
        return not left and server.descriptors() <= before

    assert eventually(all_ended)


#: Ways to leave something running: what a script does whose arguments are a program that sleeps.
ESCAPES = {
    "in the background": '"$@" &',
    "in a session": 'setsid "$@" &',
    "by a second fork": 'sh -c \'setsid "$@" & exit\' sh "$@"',
    "without descriptors and variables": 'env -i setsid sh -c \'exec "$@" <&- >&- 2>&-\' sh "$@" &',
    "stopped": '(setsid "$@" & kill -STOP $!)',
    "and ends at once": 'setsid "$@" & kill -9 $$',
}
#: One that is never old: it forks itself and ends, for as long as there is its file.
RESTLESS = """
    import os, sys
    os.setsid()
    while os.path.exists(sys.argv[1]):
        if os.fork():
            os._exit(0)
"""


@in_each_place
def test_a_daemon_has_ended_when_its_request_is_answered(place, serve, eventually, tmp_path):
    ways = "".join(f"'{name}') {escape} ;;\n" for name, escape in ESCAPES.items())
    script = f"#!/bin/sh\nset -- sleep 4321 {tmp_path}\ncase $(cat) in\n{ways}esac\n"
    script = script.replace("esac", f"*) touch {tmp_path}/other ;;\nesac")
    server = serve("./leaves.sh", place=place, files={"leaves.sh": script})
    for escape in [*ESCAPES] * 2:
        server.request(body=escape)
        assert not [p for p in psutil.process_iter() if str(tmp_path) in _words(p)], escape
    assert not (tmp_path / "other").exists()
    assert eventually(lambda: not list(filter(_is_zombie, server.family())))


@pytest.mark.parametrize("place", ["fork"])
def test_a_daemon_that_forks_while_it_is_looked_for_has_ended_too(place, serve, tmp_path):
    script = f"#!/bin/sh\n{sys.executable} restless.py {tmp_path}/runs &\ncat\n"
    files = {"leaves.sh": script, "restless.py": RESTLESS}
    server = serve("./leaves.sh", place=place, files=files)
    (tmp_path / "runs").touch()
    try:
        for _ in range(3):
            assert server.request(body="x").text == "x"
            assert not [p for p in psutil.process_iter() if f"{tmp_path}/runs" in _words(p)]
    finally:
        (tmp_path / "runs").unlink()


@pytest.mark.parametrize("place", ["main", "pool"])
def test_commands_at_the_same_time_leave_each_others_processes_alone(place, serve, in_background):
    """Each waits for a process that has lost its parent, while others end."""
    script = "#!/bin/sh\nread pause\nmkfifo $$ && (setsid sh -c "
    script += "'sleep $1; echo well > $2' sh $pause $$ &)\ncat $$; rm $$\n"
    server = serve("./waits.sh", place=place, files={"waits.sh": script})
    pauses = [f"0.{number % 5}" for number in range(12)]
    answers = [in_background(server.request, body=f"{pause}\n") for pause in pauses]
    assert [answer.result().text for answer in answers] == ["well\n"] * len(pauses)


def test_a_reaper_that_is_killed_fails_its_request_alone_and_another_takes_its_place(serve):
    script = "#!/bin/sh\nread who\ntest $who = cat && exec cat\nkill -9 $PPID\nsleep 4324\n"
    server = serve("./kills.sh", files={"kills.sh": script})
    for _ in range(2):
        answer = server.request(body="me\n")
        assert (answer.status, answer.json["code"]) == (500, "process-died")
        assert server.request(body="cat\nwell").text == "well"


def test_commands_of_the_main_process_run_when_the_fork_server_was_killed(serve, eventually):
    server = serve("cat")
    fork_server = server.fork_server()
    reapers = fork_server.children()
    fork_server.kill()
    assert eventually(lambda: not any(reaper.is_running() for reaper in reapers))
    assert server.request(body="x").text == "x"


def _is_zombie(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    return False


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@in_each_place
def test_a_program_has_its_three_streams_alone(place: str, serve: Any) -> None:
    """Else an end that it closes would stay open. One more is the folder that is listed."""
    assert serve("ls", "/proc/self/fd", place=place).request().text.split() == ["0", "1", "2", "3"]


def test_a_command_has_classic_watchdogs_variables(serve: Any) -> None:
    server = serve("env", place="fork")
    said = dict(
        line.partition("=")[::2]
        for line in server.request("PUT", "/a/b?x=1", "body", X_Api_Key="k").text.splitlines()
    )
    assert (said["Http_Method"], said["Http_Path"], said["Http_Query"]) == ("PUT", "/a/b", "x=1")
    assert (said["Http_X_Api_Key"], said["Http_ContentLength"]) == ("k", "4")


def test_its_variables_have_the_bytes_of_path_and_headers(serve: Any) -> None:
    """Of a repeated header the first value, as the classic watchdog has it."""
    connection = HTTPConnection("127.0.0.1", serve("env").port)
    connection.putrequest("GET", "/a%20%C3%A9")
    for name, value in (
        ("X-A", "1"), ("x-a", "2"), ("X-Empty", ""), ("x_own", "line"), ("X-Text", "é".encode())
    ):  # fmt: skip
        connection.putheader(name, value)
    connection.endheaders()
    said = connection.getresponse().read().splitlines()
    connection.close()
    assert sorted(line for line in said if line.startswith((b"Http_X_", b"Http_P"))) == [
        "Http_Path=/a é".encode(),
        b"Http_X_A=1",
        b"Http_X_Empty=",
        "Http_X_Text=é".encode(),
        b"Http_X_own=line",
    ]
    assert not any(line.startswith((b"Http_Query", b"Http_Content_Type")) for line in said)


def test_commands_and_handlers_hand_on_to_each_other(start: Any, wrap_image: Any) -> None:
    image = wrap_image(
        {"zip": {"x": ""}, "unzip": {"x": ""}, "echo": ECHO},
        [[0, 2], [1]],
        tasks={0: "zip", 1: "unzip", 2: "echo"},
        styles={"zip": "command", "unzip": "command"},
        commands={"zip": ["gzip"], "unzip": ["gzip", "-d"]},
        inputs={0: None, 1: 0, 2: 1},
        entry={"output": 2},
    )
    text = "größe " * 100_000
    assert start(image).request(body=text.encode()).text == text


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "it has no command"),
        ({"functions": {"run": "cobol"}}, "style 'cobol' is none of flask, http"),
        ({"commands": {"run": ["no-such"]}}, "function run: no program no-such .* ADDITIONAL_PACK"),
    ],
)
def test_a_function_of_no_kind_and_a_command_that_cannot_run_are_refused(fields, told, tmp_path):
    wrap: Any = SimpleNamespace(**{"functions": {"run": "command"}, "commands": {}} | fields)
    folder = tmp_path / "run" / "function"
    folder.mkdir(parents=True)
    (folder / "x").touch()
    with pytest.raises((ImportError, ValueError), match=told):
        functions_of(Place(wrap, tmp_path, "", 0))
