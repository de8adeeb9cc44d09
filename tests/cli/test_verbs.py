"""What each verb prints and writes where all is well."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from chiron.cli.main import VERBS
from chiron.openfaas.stack import read_stack
from chiron.profiler.holding import profiled_source
from chiron.workflow.documents import read_document
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.plan import Plan
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("without_template")


@each_row("verb", sorted(VERBS))
def test_the_help_of_every_verb_has_an_example_that_is_its_own(verb, chiron):
    result = chiron(verb, "--help")
    assert result.status == 0
    assert f"Example:\n    chiron {verb}" in result.stdout


def test_a_plan_is_written_explained_and_followed_by_the_next_command(chiron, artefacts, tmp_path):
    result = chiron("schedule", artefacts, "--slo", "200ms")
    assert (result.status, result.stdout) == (0, "")
    plan = read_document(Plan, tmp_path / "plan.json", "plan")
    assert (plan.planner, plan.mechanisms, plan.slo_ms, plan.meets_slo) == (
        "pgp",
        "fork",
        200.0,
        True,
    )
    assert [line for line in plan.why if line not in result.stderr] == []
    last = result.stderr.splitlines()[-1]
    assert last == f"next: chiron generate plan.json --workflow {artefacts}"


@pytest.mark.parametrize(("options", "status"), [([], 3), (["--best-effort"], 0)])
def test_an_slo_that_cannot_be_met_is_an_answer(options, status, chiron, artefacts):
    result = chiron("schedule", artefacts, "--slo", "1us", "--json", *options)
    assert result.status == status
    assert result.json["meets_slo"] is False


def test_artefacts_in_the_workflows_folder_come_before_those_that_are_here(chiron, artefacts):
    for name in ("profile.json", "platform.json"):
        (artefacts.parent / name).rename(artefacts / name)
        (artefacts.parent / name).write_text("not this one")
    assert chiron("schedule", artefacts, "--slo", "200ms").status == 0


def test_the_artefacts_of_a_deployment_are_planned_with(chiron, artefacts):
    (artefacts.parent / "out").mkdir()
    for name in ("profile.json", "platform.json"):
        (artefacts.parent / name).rename(artefacts.parent / "out" / name)
    assert chiron("schedule", artefacts, "--slo", "200ms").status == 0


@pytest.mark.parametrize("verb", [["schedule", "--slo=200ms"], ["predict", "--plan=plan.json"]])
def test_a_profile_of_other_code_is_told_of(verb, chiron, small, planned):
    place, said = planned.parent / "profile.json", "profile.json is of other code or payloads"
    profile = json.loads(place.read_text()) | {"source": profiled_source(small)}
    place.write_text(json.dumps(profile))
    assert said not in chiron(*verb, planned).stderr
    handler = planned / "functions" / "wave" / "handler.py"
    handler.write_text(f"# better\n{handler.read_text()}")
    result = chiron(*verb, planned)
    assert result.status == 0 and f"* warning: {said}" in result.stderr


@pytest.mark.parametrize("mechanism", ["fork", "pool"])
def test_a_plan_is_predicted_as_it_was_scheduled(mechanism, chiron, artefacts):
    plan = chiron("schedule", artefacts, "--slo=20ms", "--mechanism", mechanism, "--json").json
    predicted = chiron("predict", artefacts, "--plan", "plan.json", "--json").json
    assert predicted == plan["predicted"]


def test_a_prediction_is_shown_as_a_table_on_stderr(chiron, artefacts):
    plan = chiron("schedule", artefacts, "--slo=20ms", "--json").json
    result = chiron("predict", artefacts, "--plan", "plan.json")
    assert result.stdout == ""
    assert f"{plan['predicted']['latency_ms']:.2f}" in result.stderr


def test_many_plans_give_one_line_of_json_each(chiron, artefacts, tmp_path):
    planners = ["one-to-one", "sand", "faastlane", "pgp"]
    plans = [
        chiron("schedule", artefacts, "--slo=20ms", "--planner", planner, "--json").json
        for planner in planners
    ]
    (tmp_path / "plans.jsonl").write_text("\n\n".join(map(json.dumps, plans)))
    result = chiron("predict", artefacts, "--plans", "plans.jsonl")
    assert (result.status, result.stderr) == (0, "")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert lines == [plan["predicted"] for plan in plans]


def test_a_plan_finds_its_workflow_nearby_and_becomes_a_folder(chiron, artefacts, tmp_path):
    assert chiron("schedule", artefacts, "--slo=200ms").status == 0
    result = chiron("generate", "plan.json")
    assert (result.status, result.stdout) == (0, "")
    plan = read_document(Plan, tmp_path / "plan.json", "plan")
    stack = read_stack(tmp_path / "build" / "stack.yaml", {})
    assert set(stack.functions) == {wrap.name for wrap in plan.wraps}
    last = result.stderr.splitlines()[-1]
    assert last == "next: chiron build -f build/stack.yaml && faas-cli deploy -f build/stack.yaml"


@pytest.mark.parametrize("knows", ["plan", "profile", "code"])
def test_a_plan_by_hand_that_lets_functions_disturb_each_other_is_a_warning(
    chiron, artefacts, tmp_path, knows
):
    file, seeds = tmp_path / "profile.json", ["random.seed"]
    profile = json.loads(file.read_text())
    first, second = list(profile["functions"])[:2]
    profile["functions"][first]["unshareable"] = seeds
    file.write_text(json.dumps(profile))
    assert chiron("schedule", artefacts, "--slo=200ms").status == 0
    assert " shares a " not in chiron("generate", "plan.json").stderr
    plan = json.loads((tmp_path / "plan.json").read_text())
    wrap = plan["wraps"][0]
    wrap["processes"] = [[task for process in wrap["processes"] for task in process]]
    if knows == "code":
        seeds = ["contextlib.redirect_stdout"]
        (handler,) = tmp_path.rglob(f"{first}/handler.py")
        handler.write_text(f"from contextlib import redirect_stdout\n{handler.read_text()}")
        handler.write_text(f"{handler.read_text()}\nCAPTURE = redirect_stdout\n")
    if knows != "profile":
        file.unlink()
    if knows != "plan":
        del plan["apart"]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    result = chiron("generate", "plan.json")
    assert result.status == 0
    reason = f"{first} changes what its whole process shares ({seeds[0]})"
    warning = f"wrap {wrap['name']}: {first} shares a process with {second}, although {reason}"
    assert f"* warning: {warning}" in result.stderr


def test_a_timeout_that_is_given_is_in_every_setting(chiron, artefacts, tmp_path):
    assert chiron("schedule", artefacts, "--slo=200ms").status == 0
    assert chiron("generate", "plan.json", "--timeout=2m").status == 0
    for name, function in read_stack(tmp_path / "build" / "stack.yaml", {}).functions.items():
        limits = {function.environment[f"{kind}_timeout"] for kind in ("exec", "read", "write")}
        assert limits == {"122s"}
        assert "timeout_s=120.0" in (tmp_path / "build" / name / "handler.py").read_text()
    assert chiron("generate", "plan.json", "--timeout=0s").status == 2


def test_a_plan_that_fits_two_folders_asks_which(chiron, artefacts, write_folder, tmp_path):
    write_folder(tmp_path / "copy")
    assert chiron("schedule", artefacts, "--slo=200ms").status == 0
    result = chiron("generate", "plan.json")
    assert result.status == 2
    assert "2 fit: copy, small" in result.error().replace(f"{tmp_path}/", "")
    assert chiron("generate", "plan.json", "--workflow", "copy").status == 0


def test_a_plan_that_fits_no_folder_asks_for_it(chiron, artefacts, write_folder, tmp_path):
    write_folder(tmp_path / "small", {"tasks": {"other": "wave"}})
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "workflow.json").write_text("{")  # somebody else's
    (tmp_path / "elsewhere" / "a" / "b").mkdir(parents=True)
    far = write_folder(tmp_path / "elsewhere" / "a" / "b" / "small")
    assert chiron("schedule", far.path, "--slo=200ms").status == 0
    result = chiron("generate", "plan.json")
    assert result.status == 2
    assert "none nearby fits" in result.error()
    assert "--workflow" in result.error()


def test_colours_are_for_terminals_and_no_color_wins_over_them(chiron, small):
    coloured = chiron("schedule", "small", "--slo=1s", FORCE_COLOR="1")
    assert "\x1b[" in coloured.stderr
    plain = chiron("schedule", "small", "--slo=1s", FORCE_COLOR="1", NO_COLOR="1")
    assert "\x1b[3" not in plain.stderr
    assert "\x1b" not in chiron("schedule", "small", "--slo=1s").stderr


def test_doctor_says_as_json_what_is_here_and_what_mends_the_rest(chiron, free_port):
    result = chiron("doctor", "--json", "-g", f"http://127.0.0.1:{free_port}")
    findings = {finding["name"]: finding for finding in result.json}
    assert findings["python"]["ok"]
    assert not findings["gateway"]["ok"]
    assert all(finding["fix"] for finding in findings.values() if not finding["ok"])
    lacking = [f for f in findings.values() if f["required"] and not f["ok"]]
    assert result.status == (1 if lacking else 0)
    assert [name for name in findings if name not in result.stderr] == []


def test_a_doctor_that_misses_something_needed_fails(chiron, tmp_path):
    result = chiron("doctor", "--json", PATH=str(tmp_path))
    strace = next(finding for finding in result.json if finding["name"] == "strace")
    assert (result.status, strace["ok"], strace["required"]) == (1, False, True)
    assert "fix: " in result.stderr


@pytest.mark.parametrize("artefact", ["plan", "platform", "profile", "constraints"])
def test_the_schema_of_an_artefact_is_printed(artefact, chiron):
    result = chiron("schema", artefact)
    assert result.status == 0
    assert "format" in result.json["properties"]


def test_the_shell_completes_verbs(chiron):
    words = {"_CHIRON_COMPLETE": "bash_complete", "COMP_WORDS": "chiron sch", "COMP_CWORD": "1"}
    assert chiron(**words).stdout.split() == ["plain,schedule", "plain,schema"]


STACK = {
    "version": "1.0",
    "provider": {"name": "openfaas"},
    "functions": {
        name: {"lang": lang, "handler": f"./{name}", "image": f"{name}:latest"}
        for name, lang in (("resize", "python3-http"), ("label", "python3-flask"), ("x", "ruby"))
    },
}


@pytest.fixture
def functions(tmp_path):
    """A folder with a stack.yaml and the code of one of its functions."""
    folder = tmp_path / "mine"
    (folder / "resize").mkdir(parents=True)
    (folder / "resize" / "handler.py").write_text("def handle(event, context):\n    pass\n")
    (folder / "stack.yaml").write_text(json.dumps(STACK))
    return folder


def test_a_stack_file_becomes_a_workflow_of_its_functions_in_their_order(chiron, functions):
    result = chiron("init", "mine")
    assert result.status == 0
    assert "payload.json: put an example request there" in result.stderr
    workflow = json.loads((functions / "workflow.json").read_text())
    tasks = {"resize": "resize", "label": "label"}
    assert workflow == {"tasks": tasks, "edges": [["resize", "label"]]}
    assert "missing: function label: folder missing" in result.stderr
    (functions / "payload.json").write_text('"mine"')
    assert "payload.json is there and stays" in chiron("init", "mine").stderr
    assert (functions / "payload.json").read_text() == '"mine"'


def test_a_state_machine_of_another_platform_becomes_a_workflow(chiron, functions, tmp_path):
    arn = "arn:aws:lambda:eu-west-1:123456789012:function:ReSize"
    machine = {"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": arn, "End": True}}}
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    result = chiron("init", "mine", "--states", "machine.json")
    assert result.status == 0, result.stderr
    assert json.loads((functions / "functions.json").read_text()) == {arn: "resize"}
    assert result.stderr.splitlines()[-1] == "next: chiron deploy mine --slo 200ms --local"


def test_a_state_machine_in_the_folder_that_is_not_named_is_said(chiron, functions):
    (functions / "order.asl.json").write_text('{"StartAt": "A"}')
    said = "order.asl.json to --states"
    assert said in chiron("init", "mine").stderr
    assert said not in chiron("init", "mine").stderr  # it begins with workflow.json


def invoking(function: object, resource: str = "arn:aws:states:::lambda:invoke") -> dict:
    parameters = {"FunctionName": function, "Payload.$": "$"}
    state = {"Type": "Task", "Resource": resource, "Parameters": parameters, "End": True}
    return {"StartAt": "A", "States": {"A": state}}


@pytest.mark.parametrize("function", ["resize", "arn:aws:lambda:eu-west-1:1:function:ReSize:prod"])
def test_the_function_name_of_a_lambda_invocation_names_the_function(
    function, chiron, functions, tmp_path
):
    (tmp_path / "machine.json").write_text(json.dumps(invoking(function)))
    result = chiron("init", "mine", "--states", "machine.json")
    assert result.stderr.splitlines()[-1] == "next: chiron deploy mine --slo 200ms --local"
    assert WorkflowFolder.open(functions).workflow.functions == ("resize",)


def test_a_placeholder_that_names_no_function_is_said(chiron, functions, tmp_path):
    document = invoking("${ReSize}")
    parameters = document["States"]["A"]["Parameters"]
    del parameters["Payload.$"]
    parameters["Payload"] = {"topic": "${Topic}"}
    (tmp_path / "machine.json").write_text(json.dumps(document))
    result = chiron("init", "mine", "--states", "machine.json")
    assert "warning: ${Topic}: nothing replaces this in workflow.json" in result.stderr
    assert "${ReSize}" not in result.stderr


def test_a_function_that_is_chosen_at_run_time_is_one_of_stack_yaml(chiron, functions, tmp_path):
    document = invoking("any")
    parameters = document["States"]["A"]["Parameters"]
    parameters["FunctionName.$"] = f"$.{parameters.pop('FunctionName')}"
    (tmp_path / "machine.json").write_text(json.dumps(document))
    result = chiron("init", "mine", "--states", "machine.json")
    assert result.status == 0, result.stderr
    names = read_stack(functions / "stack.yaml", {}).functions
    table = {name: name for name in names}
    assert json.loads((functions / "functions.json").read_text()) == table
    assert {*WorkflowFolder.open(functions).workflow.functions} == {*names}


def test_what_a_missing_function_does_in_place_of_a_service_is_said(chiron, functions, tmp_path):
    waits, plain = (
        "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        "arn:aws:states:::sns:publish",
    )
    states = {
        "A": {"Type": "Task", "Resource": waits, "Next": "B"},
        "B": {"Type": "Task", "Resource": plain, "End": True},
    }
    (tmp_path / "machine.json").write_text(json.dumps({"StartAt": "A", "States": states}))
    said = chiron("init", "mine", "--states", "machine.json").stderr
    where = "in stack.yaml, unless it is deployed already; for"
    assert f"function send-message {where} {waits} it answers when the callback came\n" in said
    assert f"function publish {where} {plain} it does the same\n" in said


def test_a_lambda_invocation_that_cannot_run_leaves_no_file(chiron, functions, tmp_path):
    resource = "arn:aws:states:::lambda:invoke.waitForTaskToken"
    (tmp_path / "machine.json").write_text(json.dumps(invoking("ReSize", resource)))
    error = chiron("init", "mine", "--states", "machine.json").error()
    assert "a wait for a callback" in error
    assert '"Resource": "ReSize"' in error
    assert sorted(each.name for each in functions.iterdir()) == ["resize", "stack.yaml"]


def test_functions_json_does_not_name_the_function_of_every_lambda_invocation(chiron, functions):
    (functions / "workflow.json").write_text(json.dumps(invoking("resize")))
    (functions / "functions.json").write_text('{"arn:aws:states:::lambda:invoke": "invoke"}')
    error = chiron("init", "mine").error()
    assert "remove arn:aws:states:::lambda:invoke" in error


def test_functions_of_other_languages_are_said_to_be_left_out(chiron, functions):
    assert "warning: x is no task of the workflow: lang ruby" in chiron("init", "mine").stderr


def test_a_folder_with_stack_yml_is_made_a_workflow_folder(chiron, functions):
    (functions / "stack.yaml").rename(functions / "stack.yml")
    assert chiron("init", "mine").status == 0
    assert {*WorkflowFolder.open(functions).workflow.functions} == {"resize", "label"}


def test_a_lang_that_is_almost_one_of_wraps_is_asked_about(chiron, functions):
    text = (functions / "stack.yaml").read_text()
    (functions / "stack.yaml").write_text(text.replace("ruby", "python3-flsk"))
    said = chiron("init", "mine").stderr
    assert "lang python3-flsk runs in no wrap (did you mean python3-flask?)" in said


def test_functions_that_stay_apart_are_said_though_all_do(chiron, functions):
    text = (functions / "stack.yaml").read_text()
    (functions / "stack.yaml").write_text(re.sub(r"python3-\w+|ruby", "python3", text))
    said = chiron("init", "mine").stderr
    lines = [line for line in said.splitlines() if "is called over HTTP" in line]
    assert len(lines) == 3
    assert all("python3-flask calls the same handle as python3" in line for line in lines)
    missing = [line for line in said.splitlines() if "folder missing at mine/" in line]
    assert [line.split()[3] for line in missing] == ["label:", "x:"]
    assert "next: " not in said


def test_a_folder_without_functions_for_tasks_is_said_in_one_line(chiron, functions):
    assert "missing-file" not in chiron("init", "nowhere").error()
    (functions / "stack.yaml").write_text(json.dumps(STACK | {"functions": {}}))
    assert "stack.yaml has no function" in chiron("init", "mine").error()


def test_verbs_import_no_library_that_they_do_not_need():
    """The dashboard's is not even among what serves before somebody asks for a page."""
    asking = ("dead_letters", "invoke", "list", "logs", "remove")
    steps = [[f"chiron.cli.{verb}" for verb in asking]]
    steps += [["chiron.cli.deploy", "chiron.cli.init"], ["chiron.cli.main", "chiron.services.app"]]
    code = "import sys\n" + "".join(f"import {', '.join(s)}; print(*sys.modules)\n" for s in steps)
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE)
    asked, planned, served = ({*line.split()} for line in done.stdout.decode().splitlines())
    libraries = {"aiohttp", "dash", "flask", "jinja2", "llvmlite", "matplotlib", "networkx"}
    libraries |= {"numba", "numpy", "prometheus_client", "rich", "sklearn"}
    ours = {"chiron.profiler", "chiron.predictor.predict", "chiron.scheduler.pgp"}
    assert asked & (libraries | ours) == set()
    few = {"jsonpath", "re2", "jlens", "jinja2", "flask", "docker", "networkx", "numpy"}
    assert planned & few == set()
    assert "dash" not in served
