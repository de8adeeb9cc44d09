"""Every mistake is one line that names the thing and the mend, and exit status 2."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from chiron.adaptation.alone import deploying, watching
from chiron.openfaas.client import Gateway
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from tests.commands import COMMAND
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("without_template")
Machine = dict[str, Any]


def task(function: str = "split", following: str | None = None) -> Machine:
    end: Machine = {"Next": following} if following else {"End": True}
    return {"Type": "Task", "Resource": function} | end


def machine(**states: Machine) -> Machine:
    return {"StartAt": next(iter(states)), "States": states}


def parallel(*branches: Machine) -> Machine:
    return {"Type": "Parallel", "Branches": list(branches), "End": True}


BAD_WORKFLOWS: dict[str, tuple[Any, list[str]]] = {
    "a cycle": (machine(A=task(following="B"), B=task(following="A")), ["cycle", "A -> B -> A"]),
    "a cycle of a DAG": (
        {"tasks": {"a": "f", "b": "f"}, "edges": [["a", "b"], ["b", "a"]]},
        ["cycle", "a -> b -> a"],
    ),
    "an unknown Next": (machine(A=task(following="Z")), ["'Z'", "'A'", "States.A.Next"]),
    "a duplicate state": (
        machine(P=parallel(machine(A=task()), machine(A=task()))),
        ["'A'", "two states", "Branches[1]"],
    ),
    "a duplicate key": ('{"StartAt": "A", "StartAt": "B", "States": {}}', ["'StartAt'", "twice"]),
    "an empty Parallel": (machine(P=parallel()), ["at least one branch", "States.P.Branches"]),
    "an unsupported state": (
        machine(C={"Type": "Choise", "Choices": []}),
        ["'Choise'", "there are: Task, Parallel, Map", "States.C.Type"],
    ),
    "a bad name": (machine(A=task("Side")), ['"Side": "side"', "lower-case", "States.A.Resource"]),
    "a name with code in it": (
        machine(A=task("a;rm -rf $HOME")),
        ['"a;rm -rf $HOME": "a-rm-rf-home"'],
    ),
    "names that are alike": (
        {"tasks": {"Last Px": "f", "last_px": "f"}},
        ["'Last Px'", "'last_px'", "rename one"],
    ),
    "no JSON": ("{", ["not JSON", "line 1"]),
    "another document": ("[]", ["StartAt", "tasks"]),
}


@each_row(("workflow", "words"), BAD_WORKFLOWS.values(), ids=BAD_WORKFLOWS)
def test_a_workflow_that_is_wrong(workflow, words, chiron, artefacts):
    text = workflow if isinstance(workflow, str) else json.dumps(workflow)
    (artefacts / "workflow.json").write_text(text)
    result = chiron("schedule", artefacts, "--slo", "200ms")
    assert (result.status, result.stdout) == (2, "")
    error = result.error()
    assert [word for word in words if word not in error] == []


@each_row(
    ("slo", "word"),
    [
        ("0ms", "greater than 0"),
        ("-5ms", "greater than 0"),
        ("200", "unit of us, ms, s, m"),
        ("200h", "unit of us, ms, s, m"),
        ("soon", "unit of us, ms, s, m"),
        ("1e999ms", "greater than 0"),
        ("", "unit of us, ms, s, m"),
    ],
)
def test_an_slo_that_is_no_positive_duration(slo, word, chiron, artefacts):
    result = chiron("schedule", artefacts, f"--slo={slo}")
    assert (result.status, result.stdout) == (2, "")
    error = result.error()
    assert "--slo" in error
    assert word in error


def remove_handler(folder: Path) -> None:
    (folder / "functions" / "wave" / "handler.py").unlink()


def remove_handle(folder: Path) -> None:
    (folder / "functions" / "wave" / "handler.py").write_text("def other(req):\n    return req\n")


def remove_function(folder: Path) -> None:
    stack = json.loads((folder / "stack.yaml").read_text())
    del stack["functions"]["wave"]
    (folder / "stack.yaml").write_text(json.dumps(stack))


def no_python(folder: Path) -> None:
    (folder / "functions" / "wave" / "handler.py").write_text("def handle(req)\n")


def with_nul(folder: Path) -> None:
    (folder / "functions" / "wave" / "handler.py").write_text("def handle(req):\0\n")


def pin_otherwise(folder: Path) -> None:
    for name in ("wave", "join"):
        (folder / "functions" / name / "requirements.txt").write_text(f"numpy=={ord(name[0])}\n")


def link_out(folder: Path) -> None:
    (folder / "functions" / "wave" / "key").symlink_to("/etc/passwd")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (link_out, ["functions/wave/key", "leads out", "put the files themselves"]),
        (remove_handler, ["wave", "handler.py missing", "create it"]),
        (remove_handle, ["wave", "has no handle", "define def handle(req)"]),
        (no_python, ["wave", "not Python", "line 1"]),
        (with_nul, ["wave", "is not Python: source code string cannot contain null bytes"]),
        (pin_otherwise, ["wave", "join", "numpy", "pin one version"]),
    ],
)
def test_functions_that_cannot_be_deployed(
    spoil: Callable[[Path], None], words, chiron, planned, tmp_path
):
    spoil(planned)
    result = chiron("generate", "plan.json")
    assert (result.status, result.stdout) == (2, "")
    *before, error = result.stderr.splitlines()
    assert before == [f"· workflow {planned.name}"]
    assert error.startswith("error: ")
    assert [word for word in words if word not in error] == []
    assert not (tmp_path / "build").exists()


def test_a_function_that_is_not_in_stack_yaml_is_said_to_be_deployed_already(chiron, planned):
    remove_function(planned)
    result = chiron("generate", "plan.json")
    assert result.status == 0
    assert "function wave is not in stack.yaml: it has to be deployed already" in result.stderr


def test_nothing_is_half_deployed_where_a_handler_is_missing(chiron, planned, tmp_path, embedded):
    remove_handler(planned)
    known = ("--profile=profile.json", "--platform=platform.json")
    result = chiron("deploy", planned, "--slo=1s", *known, OPENFAAS_URL=embedded.url)
    assert result.status == 2
    assert "handler.py missing" in result.error()
    assert not (tmp_path / "out" / "build").exists()


def test_a_link_out_of_the_workflow_folder_is_built_into_nothing(chiron, planned, tmp_path):
    link_out(planned)
    result = chiron("build", "-f", planned / "stack.yaml", CHIRON_HOME=str(tmp_path / "home"))
    assert result.status == 2
    assert "functions/wave/key leads out" in result.error()
    assert not list((tmp_path / "home").rglob("key"))


def test_a_function_that_the_profile_lacks(chiron, artefacts, tmp_path):
    profile = json.loads((tmp_path / "profile.json").read_text())
    del profile["functions"]["wave"]
    (tmp_path / "profile.json").write_text(json.dumps(profile))
    result = chiron("schedule", artefacts, "--slo", "200ms")
    assert result.status == 2
    assert "lacks wave: run chiron profile" in result.error()


def test_an_artefact_with_an_unknown_field_is_refused_by_its_path(chiron, artefacts, tmp_path):
    profile = json.loads((tmp_path / "profile.json").read_text())
    profile["functions"]["wave"]["colour"] = "blue"
    (tmp_path / "profile.json").write_text(json.dumps(profile))
    result = chiron("schedule", artefacts, "--slo", "200ms")
    assert result.status == 2
    assert "functions.wave.colour" in result.error()


@each_row(
    ("arguments", "verb"),
    [
        (["schedule", "small", "--slo=1s"], "chiron profile small -o profile.json"),
        (["predict", "small", "--plan=p"], "chiron profile small"),
        (["schedule", "small", "--slo=1s", "--profile=there.json"], "chiron calibrate"),
        (["generate", "plan.json"], "chiron schedule DIR"),
    ],
)
def test_a_missing_artefact_names_the_verb_that_makes_it(
    arguments, verb, chiron, small, profile_of, tmp_path
):
    (tmp_path / "there.json").write_text(profile_of(small.workflow).model_dump_json())
    result = chiron(*arguments)
    assert result.status == 2
    error = result.error()
    assert "No such file" in error
    assert f"make it with {verb}" in error


@each_row(
    ("arguments", "words"),
    [
        (
            ["deploy", "nowhere"],
            ["folder nowhere is not there", "name the folder", "workflow.json"],
        ),
        (["deploy", "small/functions"], ["small/functions has no workflow.json", "chiron init"]),
        (["deploy", "small/stack.yaml"], ["small/stack.yaml", "is a file"]),
    ],
)
def test_a_folder_that_is_none_of_a_workflow(arguments, words, chiron, small):
    result = chiron(*arguments, "--slo=1s", "--local")
    assert (result.status, result.stdout) == (2, "")
    assert [word for word in words if word not in result.error()] == []


def test_a_fault_of_a_workflow_names_its_file(chiron, small, embedded):
    (small.path / "workflow.json").write_text('{"tasks": {"a": "f"}, "edges": [["a"], ["b"]]}')
    error = chiron("deploy", "small", "--slo=1s", OPENFAAS_URL=embedded.url).error()
    assert error.startswith("small/workflow.json: 2 faults: ")
    assert error.count("(at edges[0])") == 1


def test_a_folder_without_stack_file_is_told_what_that_is(chiron, small, embedded):
    small.stack_file.unlink()
    error = chiron("deploy", "small", "--slo=1s", OPENFAAS_URL=embedded.url).error()
    assert "stack file small/stack.yaml is not there" in error
    assert "OpenFaaS file with your functions" in error


@each_row(
    ("arguments", "words"),
    [
        (["fly"], ["'fly'", "chiron --help"]),
        (["schedule"], ["'DIR'", "chiron schedule --help"]),
        (["schedule", "--mechanism=magic", "small"], ["'magic'", "fork", "pool"]),
        (["schedule", "--planner=mine", "small"], ["'mine'", "faastlane+", "pgp"]),
        (["predict", "small"], ["--plan", "--plans", "chiron predict --help"]),
        (["schedule", "--bogus"], ["--bogus", "chiron schedule --help"]),
        (["logs", "x", "--execution"], ["--execution", "chiron --help"]),
        (["profile", "small", "--local", "-g", "gw"], ["--local and --gateway: choose one"]),
        (["schema"], ["Choose from: plan, platform, profile", "chiron schema --help"]),
        (["serve", "--port=80808"], ["--port", "80808", "65535"]),
        (["serve", "--gateway-port=80808"], ["--gateway-port", "80808", "65535"]),
        (["deploy", "small", "--slo=1s", "--no-prove", "--tries=2"], ["--tries and --no-prove"]),
        (["dead-letters", "x", "--retry", "--discard"], ["--retry and --discard: choose one"]),
        (["serve", "gateway", "--token-file=t"], ["--token-file: this starts no services"]),
        (["serve", "gateway", "--host=::", "--store=s"], ["--host, --store: this starts no"]),
        (["serve", "scheduler", "--backend=docker"], ["--backend: this starts no embedded"]),
        (["serve", "gateway", "-g", "gw"], ["gateway and -g: choose one"]),
        (
            ["profile", "small", "--local-launcher", "-g", "gw"],
            ["--local-launcher uses no gateway"],
        ),
        (
            ["schedule", "small", "--slo=1s", "--pareto", "--planner=sand"],
            ["leave out --planner sand"],
        ),
        (["evaluate", "latency", "small", "--slo=1s", "--planners=pgp,mine"], ["'mine'", "sand"]),
    ],
)
def test_a_command_line_that_is_wrong(arguments, words, chiron, small):
    result = chiron(*arguments)
    assert (result.status, result.stdout) == (2, "")
    error = result.error()
    assert [word for word in words if word not in error] == []


def test_a_gateway_that_is_not_there(chiron, free_port):
    url = f"http://127.0.0.1:{free_port}"
    for result in (chiron("invoke", "finra", "-g", url), chiron("invoke", "x", OPENFAAS_URL=url)):
        assert result.status == 2
        error = result.error()
        assert url in error
        assert "chiron serve" in error
        assert "-g" in error


@pytest.mark.parametrize(
    ("verb", "held", "who"),
    [
        (["deploy", "--slo=1s"], deploying, "another command deploys"),
        (["profile"], deploying, "another command deploys"),
        (["watch", "--slo=1s"], watching, "another chiron watch adapts"),
    ],
)
def test_a_workflow_that_another_command_changes(
    verb, held, who, chiron, artefacts, embedded, environment, monkeypatch
):
    monkeypatch.setenv("CHIRON_HOME", environment["CHIRON_HOME"])
    with Gateway(embedded.url) as gateway, held(gateway, "small"):
        result = chiron(*verb, "small", "-g", embedded.url, "-o", "elsewhere")
    assert (result.status, result.stdout) == (2, "")
    assert result.error().startswith(f"{who} small on {embedded.url}: ")


def test_a_home_that_cannot_be_written_is_not_needed_to_hold_a_workflow(monkeypatch, tmp_path):
    monkeypatch.setenv("CHIRON_HOME", "/proc/home")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with (
        Gateway("http://127.0.0.1:1") as gateway,
        deploying(gateway, "small"),
        pytest.raises(ChironError, match="another command deploys"),
        deploying(gateway, "small"),
    ):
        pass


@each_row(
    ("arguments", "said"),
    [
        (["schedule", "small", "--slo=1s", "--profile=small"], "small is a folder: name the file"),
        (["schedule", "small", "--slo=1s", "--platform=small"], "such as small/platform.json"),
        (["schedule", "small", "--slo=1s", "--node-memory=10MB"], "whole number without a unit"),
        (["schedule", "small", "--slo=1s", "--percentile=p95"], "number without a unit"),
        (["convert", "small/stack.yaml", "--to=dag"], "this is a stack.yaml"),
    ],
)
def test_an_argument_of_another_kind_is_told_the_kind(chiron, artefacts, arguments, said):
    result = chiron(*arguments)
    assert (result.status, result.stdout) == (2, "")
    assert said in result.error()


def fake_strace(folder: Path, says: str) -> Path:
    folder.mkdir()
    (folder / "strace").write_text(f"#!/bin/sh\necho 'strace: {says}' >&2\nexit 1\n")
    (folder / "strace").chmod(0o755)
    return folder


@pytest.mark.parametrize("verb", ["profile", "evaluate latency", "evaluate prediction"])
def test_a_machine_without_strace(chiron, small, tmp_path, verb):
    (tmp_path / "empty").mkdir()
    result = chiron(*verb.split(), "small", "--local", PATH=str(tmp_path / "empty"))
    assert (result.status, result.stdout) == (2, "")
    error = result.stderr.splitlines()[-1]
    assert error.startswith("error: ")
    assert "strace" in error
    assert "install" in error
    assert "timing" not in result.stderr  # that is said before anything runs


def test_a_machine_on_which_nothing_may_be_traced(chiron, small, tmp_path):
    folder = fake_strace(tmp_path / "bin", "ptrace(PTRACE_SEIZE): Operation not permitted")
    result = chiron("profile", "small", "--local", PATH=f"{folder}:{os.environ['PATH']}")
    assert (result.status, result.stdout) == (2, "")
    error = result.error()
    assert "Operation not permitted" in error


@each_row(
    "arguments",
    [
        ["profile", "small", "--local"],
        ["profile", "small", "--local", "--trace"],
        ["calibrate", "--local"],
        ["deploy", "small", "--slo=1s", "--local"],
        ["evaluate", "latency", "small", "--local"],
        ["evaluate", "prediction", "small", "--local"],
        ["schedule", "small", "--slo=1s"],
        ["generate", "plan.json"],
        ["watch", "small", "--slo=1s"],
        ["invoke", "small", "--trace"],
    ],
    ids=" ".join,
)
def test_where_nothing_can_be_written_nothing_is_measured(arguments, chiron, planned):
    option = [] if arguments[-1] == "--trace" else ["-o"]
    result = chiron(*arguments, *option, "/proc/out/file.json")
    assert (result.status, result.stdout) == (2, "")
    error = result.error()
    assert "/proc/out/file.json cannot be written" in error
    assert "name another place" in error


@pytest.mark.parametrize("verb", ["invoke", "logs", "remove", "dead-letters"])
@pytest.mark.parametrize("folder", [".", "..", "benchmarks/finra"])
def test_a_folder_is_not_taken_for_the_name_of_a_deployed_workflow(chiron, verb, folder):
    result = chiron(verb, folder, OPENFAAS_URL="http://127.0.0.1:1")
    assert (result.status, result.stdout) == (2, "")
    assert f"{folder} is a folder: give the name that chiron list shows" in result.stderr


def test_a_cache_that_cannot_be_written_is_named_with_its_variable(chiron, small):
    result = chiron("build", "-f", small.stack_file, CHIRON_HOME="/proc/home")
    assert result.status == 2
    assert "/proc/home" in result.error()
    assert "set CHIRON_HOME" in result.error()


def test_a_home_that_cannot_be_written_is_told_of_the_variable(chiron, small, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)  # root's cache is elsewhere
    nowhere = {"CHIRON_HOME": "", "HOME": "/proc/home", "OPENFAAS_URL": "http://127.0.0.1:1"}
    result = chiron("build", "-f", small.stack_file, **nowhere)
    assert result.status == 2
    assert "/proc/home" in result.error()
    assert "set CHIRON_HOME" in result.error()


def test_a_place_that_cannot_be_written_after_all_is_the_callers_to_mend(
    chiron, artefacts, monkeypatch
):
    full = ChironError("not-writable", "plan.json cannot be written: full", status=500)
    monkeypatch.setattr("chiron.cli.schedule.emit_own", Mock(side_effect=full))
    result = chiron("schedule", artefacts, "--slo=1s")
    assert (result.status, result.error()) == (2, full.message)


FULL = "[Errno 28] No space left on device: 'b/x'"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            shutil.Error([("a/x", "b/x", FULL), ("a/y", "b/y", FULL)]),
            "No space left on device: b/x: free some space there",
        ),
        (
            FileNotFoundError(2, "No usable temporary directory found in ['/tmp', '/var/tmp']"),
            "no folder for temporary files has space: see TMPDIR: free some space there",
        ),
    ],
)
def test_a_folder_for_temporary_files_that_is_full(error, said, chiron, planned, monkeypatch):
    monkeypatch.setattr("chiron.cli.generate.generate", Mock(side_effect=error))
    result = chiron("generate", "plan.json")
    assert (result.status, result.error()) == (2, said)


def test_what_users_typed_is_shown_as_it_is_on_one_line(chiron, artefacts):
    name, shown = "[red]x[/red]\n\x1b[31m\\[b]", r"[red]x[/red]\n\x1b[31m\[b]"
    missing = chiron("schedule", name, "--slo=1s")
    assert missing.error().startswith(f"workflow folder {shown} is not there: ")
    written = chiron("schedule", artefacts, "--slo=1s", "-o", name)
    lines = written.stderr.splitlines()
    assert f"· wrote {shown}" in lines
    assert lines[-1] == f"next: chiron generate '{shown}' --workflow {artefacts}"


def test_an_error_is_json_too_where_json_was_asked_for(chiron, artefacts):
    (artefacts / "workflow.json").write_text(json.dumps(machine(A=task(following="Z"))))
    result = chiron("schedule", artefacts, "--slo=1s", "--json")
    assert result.status == 2
    assert result.json.keys() == {"code", "message", "path", "functions"}
    assert (result.json["code"], result.json["path"]) == ("unknown-next", "States.A.Next")
    assert result.json["message"] in result.error()


@each_row(
    "arguments",
    [["schedule", "--bogus"], ["deploy", "small"], ["watch", "small", "--slo=200"]],
    ids=" ".join,
)
def test_a_command_line_that_is_wrong_is_json_too_where_json_was_asked_for(chiron, arguments):
    result = chiron(*arguments, "--json")
    assert (result.status, result.json["code"]) == (2, "bad-command-line")
    assert result.json["message"] == result.error()


def test_the_folders_of_the_tests_are_right_before_they_are_spoilt(chiron, planned):
    assert WorkflowFolder.open(planned).workflow.name == "small"
    assert chiron("generate", "plan.json").status == 0


def test_a_profile_of_another_workflow_is_refused_and_kept(chiron, artefacts, tmp_path):
    profile = json.loads((tmp_path / "profile.json").read_text())
    (tmp_path / "profile.json").write_text(json.dumps(profile | {"workflow": "other"}))
    result = chiron("schedule", artefacts, "--slo", "200ms")
    assert (result.status, result.stdout) == (2, "")
    assert "profile.json is of workflow other, not of small: run chiron profile" in result.error()


def test_a_plan_of_another_workflow_is_not_overwritten(chiron, artefacts, tmp_path):
    (tmp_path / "plan.json").write_text('{"workflow": "other"}')
    result = chiron("schedule", artefacts, "--slo", "200ms")
    assert result.status == 0
    assert "plan.json is of another workflow: it is plan-other.json now" in result.stderr
    assert json.loads((tmp_path / "plan-other.json").read_text()) == {"workflow": "other"}


@pytest.mark.parametrize(
    ("streams", "status"),
    [(">&- 2>&- <&-", 0), ("2>&- >/dev/full", 2), (">/dev/full", 2)],
)
def test_results_that_nobody_can_read(streams, status, environment, small, tmp_path):
    command = ["sh", "-c", f'exec "$@" {streams}', "sh", *COMMAND]
    command += ["convert", small.path, "--to", "asl"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    says = "error: No space left on device: free some space there\n"
    assert (done.returncode, done.stdout) == (status, b"")
    assert done.stderr.decode() == (says if streams == ">/dev/full" else "")


@pytest.mark.parametrize("end", [">/dev/full", "| true"])
def test_the_status_of_an_error_that_nobody_reads_as_json(end, environment, tmp_path):
    command = ["bash", "-o", "pipefail", "-c", f'"$@" {end}', "bash", *COMMAND]
    command += ["list", "--json", "-g", "http://127.0.0.1:1"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    told = done.stderr.decode().splitlines()
    assert (done.returncode, len(told)) == (2, 1)
    assert told[0].startswith("error: no OpenFaaS gateway answers")


@pytest.mark.parametrize(
    "name", ["stack.yaml", "workflow.json", "functions/join", "functions/join/more.py"]
)
def test_a_file_that_may_not_be_read_is_named(name, environment, small, tmp_path):
    names = "-dac_override,-dac_read_search"  # with these, root may read every file
    as_user = ["setpriv", f"--bounding-set={names}", f"--inh-caps={names}"]
    command = [
        *(as_user if os.geteuid() == 0 else []),
        *COMMAND,
        "deploy",
        "small",
        "--slo=1s",
        "--local",
    ]
    (small.path / "functions/join/more.py").write_text("")
    (small.path / name).chmod(0)
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    (small.path / name).chmod(0o700)
    error = done.stderr.decode().splitlines()[-1]
    assert (done.returncode, error[:7]) == (2, "error: ")
    assert "Permission denied" in error
    assert f"small/{name}" in error


def write(name: str, text: str) -> Callable[[Path], None]:
    """Writes a file of the workflow's folder, or with ``../`` beside it."""

    def spoil(folder: Path) -> None:
        (folder / name).write_text(text)

    return spoil


INVOKE = {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": True}
CHOSEN = machine(A=INVOKE | {"Parameters": {"FunctionName.$": "$.f"}})
MISTAKES: dict[str, tuple[Callable[[Path], None], list[str], list[str]]] = {
    "a function that is chosen at run time": (
        write("workflow.json", json.dumps(CHOSEN)),
        ["deploy", "small", "--slo=1s"],
        ["chosen at run time", "name all that it can be in functions.json", "FunctionName.$"],
    ),
    "a list where names have values": (
        write(
            "stack.yaml",
            "functions: {a: {lang: python3-http, handler: ./a, build_args: [A=1]}}",
        ),
        ["deploy", "small", "--slo=1s"],
        ["a map of names to values belongs here", "in YAML NAME: value", "functions.a.build_args"],
    ),
    "a profile of another workflow, by its option": (
        write("../other.json", '{"format": 1, "workflow": "other", "functions": {}}'),
        ["deploy", "small", "--slo=1s", "--profile", "other.json"],
        ["other.json is of workflow other, not of small", "chiron profile"],
    ),
    "a platform where a profile belongs": (
        lambda _: None,
        ["schedule", "small", "--slo=1s", "--profile", "platform.json"],
        ["profile platform.json", "functions"],
    ),
    "half a profile": (
        write("../profile.json", '{"format": 1, "workf'),
        ["schedule", "small", "--slo=1s"],
        ["profile.json", "not JSON", "line 1"],
    ),
    "a folder where a payload belongs": (
        lambda folder: (folder / "payloads" / "one.json").mkdir(parents=True),
        ["deploy", "small", "--slo=1s"],
        ["payload small/payloads/one.json cannot be read", "directory"],
    ),
    "two files of a workflow": (
        write("workflow.yaml", "tasks: {}\n"),
        ["schedule", "small", "--slo=1s"],
        ["workflow.json and workflow.yaml", "keep one"],
    ),
    "a stack file that is no YAML": (
        write("stack.yaml", "functions:\n\twave: {}\n"),
        ["deploy", "small", "--slo=1s"],
        ["stack.yaml", "line 2"],
    ),
    "a stack file without functions": (
        write("stack.yaml", "version: '1.0'\nprovider: {name: openfaas}\n"),
        ["deploy", "small", "--slo=1s"],
        ["stack.yaml"],
    ),
    "a requirement that reaches into this machine": (
        write("functions/wave/requirements.txt", "-e ../wave\n"),
        ["deploy", "small", "--slo=1s"],
        ["wave", "requirements.txt", "line 1"],
    ),
    "constraints for a function that is not there": (
        write("constraints.json", '{"format": 1, "isolate": {"wvae": "wrap"}}'),
        ["schedule", "small", "--slo=1s"],
        ["wvae", "constraints.json"],
    ),
    "a backend without a gateway of one's own": (
        lambda _: None,
        ["deploy", "small", "--slo=1s", "--backend=docker"],
        ["--backend", "add --local"],
    ),
    "a workflow beside the one that is there": (
        write("../machine.json", json.dumps(machine(A=task()))),
        ["init", "small", "--states", "machine.json"],
        ["small/workflow.json is there already", "not machine.json", "leave out --states"],
    ),
    "a lang that is almost one": (
        write(
            "stack.yaml",
            "functions:\n  wave: {lang: pyhton3-http, handler: ./functions/wave, image: wave}\n",
        ),
        ["build", "-f", "small/stack.yaml"],
        ["wave", "pyhton3-http", "did you mean python3-http?"],
    ),
    "a percentile that is no number": (
        lambda _: None,
        ["deploy", "small", "--slo=1s", "--percentile=nan"],
        ["--percentile", "nan is not finite", "chiron deploy --help"],
    ),
    "a verb with a letter too few": (
        lambda _: None,
        ["profil", "small"],
        ["Did you mean 'profile'?", "chiron --help"],
    ),
    "a percentile that is a share": (
        lambda _: None,
        ["deploy", "small", "--slo=1s", "--percentile=0.95"],
        ["--percentile", "1<=x<=100", "chiron deploy --help"],
    ),
    "a percentile above all": (
        lambda _: None,
        ["deploy", "small", "--slo=1s", "--percentile=101"],
        ["--percentile", "101", "chiron deploy --help"],
    ),
}


@pytest.mark.parametrize(("spoil", "arguments", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_with_its_mend(spoil, arguments, words, chiron, artefacts, embedded):
    spoil(artefacts)
    empty = artefacts.parent / "empty"
    empty.mkdir()
    (empty / "stack.yaml").write_text((artefacts / "stack.yaml").read_text())
    result = chiron(*arguments, OPENFAAS_URL=embedded.url)
    assert (result.status, result.stdout) == (2, "")
    error = result.error()
    assert [word for word in words if word not in error] == []
