"""The generated folder: ordinary OpenFaaS functions."""

from __future__ import annotations

import filecmp
import json
import subprocess
import sys

import pytest
import yaml

from chiron.generator.fingerprint import source_of
from chiron.generator.generate import Sources, generate
from chiron.generator.merging import merge_environments
from chiron.openfaas.stack import deployment, read_stack
from chiron.templates import TEMPLATES
from chiron.workflow.tracing import KEY_ANNOTATION, KEY_VARIABLE
from tests.generator.building import HANDLER, refused, tree

#: What faas-cli would expand, were it not escaped.
EXPANDABLE = "$HOME ${HOME} $$ ${X:-y} $(id) \\ \\$ {{ .X }}"


def test_every_wrap_has_a_declaration_and_the_code_of_its_functions(small, plan_of, tmp_path):
    out = generate(plan_of(small.workflow), Sources.read(small), tmp_path / "build").parent
    (wrap,) = (entry for entry in out.iterdir() if entry.name.startswith("small-"))
    for name in ("split", "wave", "mirror", "join"):
        generated = wrap / "functions" / name / "function"
        compared = filecmp.dircmp(small.path / "functions" / name, generated)
        assert (compared.left_only, compared.diff_files) == ([], [])
        assert compared.right_only == ["__init__.py"]  # as in the template
    declaration = (wrap / "handler.py").read_text()
    compile(declaration, "handler.py", "exec")
    # What users typed is in code as literals alone.
    assert declaration.count("Zusammen") == declaration.count(ascii("Zusammen/fügen? {50 %}")) == 1


def test_the_declaration_is_one_that_the_runtime_takes(generated):
    handlers = sorted(generated.parent.glob("small-*/handler.py"))
    show = "import runpy, sys; print(*(runpy.run_path(p)['WRAP'].name for p in sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", show, *map(str, handlers)],
        cwd=TEMPLATES / "python3-wrap",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == [handler.parent.name for handler in handlers], done.stderr


@pytest.mark.usefixtures("whole_template")
def test_the_template_is_where_faas_cli_looks_for_it(generated):
    template = generated.parent / "template" / "python3-wrap"
    assert (template / "template.yml").is_file()
    assert (template / "wrap" / "core" / "wrap_spec.py").is_file()
    assert not list(template.rglob("__pycache__"))


@pytest.mark.usefixtures("whole_template")
def test_a_linked_template_makes_the_same_images_and_another_one_others(
    small, plan_of, tmp_path, monkeypatch
):
    plan, sources = plan_of(small.workflow), Sources.read(small)
    images = []
    for linked in (False, True):
        file = generate(plan, sources, tmp_path / str(linked) / "build", linked=linked)
        assert (file.parent / "template" / "python3-wrap").is_symlink() is linked
        images.append([each.image for each in read_stack(file, {}).functions.values()])
    assert images[0] == images[1]
    other = tmp_path / "templates" / "python3-wrap"
    other.mkdir(parents=True)
    monkeypatch.setattr("chiron.generator.generate.TEMPLATES", other.parent)
    file = generate(plan, sources, tmp_path / "other" / "build")
    assert images[0] != [each.image for each in read_stack(file, {}).functions.values()]


def test_the_stack_says_all_that_faas_cli_needs(generated):
    stack = read_stack(generated, {})
    assert len(stack.functions) == 6
    for name, function in stack.functions.items():
        assert (function.lang, function.fprocess) == ("python3-wrap", "python index.py")
        assert (generated.parent / function.handler / "handler.py").is_file()
        assert function.image.startswith(f"{name}:")
        assert function.limits.cpu == "1"
        assert function.requests.cpu == "100m"
        assert function.limits.memory.endswith("Mi")


def test_the_wraps_of_a_build_have_one_key_for_traces_and_no_other_build_has_it(
    with_helper, plan_of, tmp_path
):
    folder = with_helper()
    plan, sources = plan_of(folder.workflow, "one-to-one"), Sources.read(folder)
    keys = []
    for out in ("one", "another"):
        functions = read_stack(generate(plan, sources, tmp_path / out), {}).functions
        wraps = [functions[wrap.name] for wrap in plan.wraps]
        found = {each.environment[KEY_VARIABLE] for each in wraps}
        assert found == {each.annotations[KEY_ANNOTATION] for each in wraps}
        keys += found
        assert keys[-1] not in str(functions["helper"])
    first, second = keys
    assert first != second
    assert min(map(len, keys)) >= 32


def test_the_same_key_makes_the_same_folder(small, plan_of, tmp_path):
    plan, sources = plan_of(small.workflow), Sources.read(small)
    folders = [
        generate(plan, sources, tmp_path / out, trace_key="the-key").parent for out in ("a", "b")
    ]
    assert tree(folders[0]) == tree(folders[1])


def test_an_image_has_a_tag_of_its_own_for_each_code(small, plan_of, tmp_path):
    """A replica that starts again pulls its image: it must not run code that was pushed since."""
    plan = plan_of(small.workflow)

    def images(out):
        stack_file = generate(plan, Sources.read(small), tmp_path / out)
        return [each.image for each in read_stack(stack_file, {}).functions.values()]

    before = images("before")
    assert images("same") == before
    for handler in small.path.rglob("handler.py"):
        handler.write_text(handler.read_text() + "\nCHANGED = True\n")
    assert not set(images("changed")) & set(before)


def test_no_value_is_expanded_by_faas_cli(write_folder, plan_of, tmp_path):
    escaped = EXPANDABLE.replace("\\", "\\\\").replace("$", "$$")
    fields = {"wave": {"environment": {"TRICKY": escaped}}}
    folder = write_folder(tmp_path / "small", fields=fields)
    stack_file = generate(plan_of(folder.workflow), Sources.read(folder), tmp_path / "build")
    stack = read_stack(stack_file, {"HOME": "/expanded", "X": "expanded"})
    (wrap,) = stack.functions.values()
    assert wrap.environment["TRICKY"] == EXPANDABLE
    assert "expanded" not in str(stack)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([{}, {}], {}),
        ([{"min": "2", "max": "9"}, {"min": "3", "max": "5"}], {"min": "3", "max": "5"}),
        ([{"min": "6"}, {"max": "5"}], {"min": "6", "max": "6"}),
        ([{"max": "4"}, {}], {"max": "4"}),
    ],
)
def test_a_wrap_has_the_replicas_that_all_its_functions_may_have(
    write_folder, plan_of, tmp_path, labels, expected
):
    named = [{f"com.openfaas.scale.{k}": v for k, v in its.items()} for its in (*labels, expected)]
    fields = {name: {"labels": its} for name, its in zip(("wave", "join"), named, strict=False)}
    folder = write_folder(tmp_path / "small", fields=fields)
    stack_file = generate(plan_of(folder.workflow), Sources.read(folder), tmp_path / "build")
    (wrap,) = read_stack(stack_file, {}).functions.values()
    assert wrap.labels == named[-1]


def test_functions_that_are_no_task_come_along_as_they_are(with_helper, plan_of, tmp_path):
    folder = with_helper(environment={"DELAY": "5"}, labels={"a": "b"})
    stack_file = generate(plan_of(folder.workflow), Sources.read(folder), tmp_path / "build")
    helper = read_stack(stack_file, {}).functions["helper"]
    assert (helper.lang, helper.handler) == ("python3-flask", "./helper")
    assert helper.fprocess == "python index.py"
    assert (helper.environment, helper.labels) == ({"DELAY": "5"}, {"a": "b"})
    assert (stack_file.parent / "helper" / "handler.py").read_text() == HANDLER


def test_a_command_that_is_no_task_and_what_is_left_out_do_not_come_along(
    with_helper, write_folder, plan_of, tmp_path
):
    folder = with_helper()
    sources = Sources.read(folder)
    assert sources.supporting == ["helper"]
    assert sources.without(["helper"]).supporting == []
    command = {"lang": "command", "fprocess": "cat", "handler": "./functions/helper"}
    folder = with_helper(**command)
    assert Sources.read(folder).supporting == []


def test_a_command_is_declared_in_words_beside_the_files_of_its_folder(
    write_folder, plan_of, tmp_path
):
    command = {"lang": "command", "fprocess": "sort -t '|' {in}"}
    folder = write_folder(tmp_path / "f", fields={"wave": command})
    stack_file = generate(plan_of(folder.workflow), Sources.read(folder), tmp_path / "build")
    (wrap,) = read_stack(stack_file, {}).functions.values()
    declared = (stack_file.parent / wrap.handler / "handler.py").read_text()
    assert "'wave': ['sort', '-t', '|', '{in}']," in declared
    assert "'wave': 'command'," in declared
    assert (stack_file.parent / wrap.handler / "functions" / "wave").is_dir()
    assert wrap.fprocess == "python index.py"


def test_a_wrap_is_built_with_the_debian_packages_of_all_its_functions(
    write_folder, plan_of, tmp_path
):
    fields = {
        "wave": {"build_args": {"ADDITIONAL_PACKAGE": "ffmpeg  sox", "OTHER": "x"}},
        "join": {"build_args": {"ADDITIONAL_PACKAGE": "sox jq"}},
    }
    folder = write_folder(tmp_path / "f", fields=fields)
    stack_file = generate(plan_of(folder.workflow), Sources.read(folder), tmp_path / "build")
    (wrap,) = read_stack(stack_file, {}).functions.values()
    packages = wrap.build_args.pop("ADDITIONAL_PACKAGE").split()
    assert (sorted(packages), wrap.build_args) == (["ffmpeg", "jq", "sox"], {})


@pytest.mark.parametrize(("planner", "told"), [("sand", 1), ("one-to-one", 0)])
def test_the_entry_knows_how_large_the_requests_were_that_it_was_sized_for(
    planner, told, small, plan_of, tmp_path
):
    plan = plan_of(small.workflow, planner)
    functions = read_stack(generate(plan, Sources.read(small), tmp_path / "b"), {}).functions
    sizes = [f.environment.get("WRAP_REQUEST_BYTES") for f in functions.values()]
    assert [size for size in sizes if size] == [str(len(small.payloads()[0].content))] * told


@pytest.mark.parametrize(
    ("planner", "slo_ms", "told"),
    [("sand", 250.5, ["250.5"]), ("one-to-one", 250.5, []), ("sand", None, [])],
)
def test_the_entry_knows_the_slo_that_its_metrics_are_laid_beside(
    planner, slo_ms, told, small, plan_of, tmp_path
):
    plan = plan_of(small.workflow, planner).model_copy(update={"slo_ms": slo_ms})
    functions = read_stack(generate(plan, Sources.read(small), tmp_path / "b"), {}).functions
    slos = [f.environment.get("WRAP_SLO_MS") for f in functions.values()]
    assert [slo for slo in slos if slo] == told


def test_prometheus_reads_the_metrics_of_wraps_alone(write_folder, plan_of, tmp_path):
    functions = dict.fromkeys(("wave", "helper"), HANDLER)
    folder = write_folder(tmp_path / "f", {"tasks": {"t": "wave"}}, functions)
    plan = plan_of(folder.workflow)
    stack = read_stack(generate(plan, Sources.read(folder), tmp_path / "b"), {})
    told = {
        name: each.annotations.get("prometheus.io.scrape") for name, each in stack.functions.items()
    }
    assert told == {plan.wraps[0].name: "true", "helper": None}


def test_every_function_is_told_where_the_gateway_is_unless_it_says_so_itself(
    write_folder, plan_of, tmp_path
):
    folder = write_folder(
        tmp_path / "f",
        {"tasks": {"t": "wave", "u": "own"}},
        dict.fromkeys(("wave", "own", "helper"), HANDLER),
        {},
        {"own": {"environment": {"gateway_url": "http://mine"}}},
    )
    plan = plan_of(folder.workflow, "one-to-one")
    told = Sources.read(folder, {}, "http://gateway:8080")
    functions = read_stack(generate(plan, told, tmp_path / "told"), {}).functions
    wrap_of = dict(zip(("wave", "own"), [wrap.name for wrap in plan.wraps], strict=True))
    urls = {name: function.environment.get("gateway_url") for name, function in functions.items()}
    assert urls == {
        wrap_of["wave"]: "http://gateway:8080",
        wrap_of["own"]: "http://mine",
        "helper": "http://gateway:8080",
    }
    untold = read_stack(generate(plan, Sources.read(folder, {}), tmp_path / "untold"), {})
    assert "gateway_url" not in untold.functions["helper"].environment


def test_secrets_and_variables_of_a_wraps_functions_are_united(write_folder, plan_of, tmp_path):
    fields = {
        "wave": {"secrets": ["one", "two"], "environment": {"A": "1", "exec_timeout": "1s"}},
        "join": {"secrets": ["two", "three"], "environment": {"A": "1", "B": "2"}},
    }
    folder = write_folder(tmp_path / "small", fields=fields)
    stack_file = generate(plan_of(folder.workflow), Sources.read(folder), tmp_path / "build")
    (wrap,) = read_stack(stack_file, {}).functions.values()
    assert sorted(wrap.secrets) == ["one", "three", "two"]
    assert (wrap.environment["A"], wrap.environment["B"]) == ("1", "2")
    assert wrap.environment["exec_timeout"] == "12s"  # what is predicted takes more
    assert (
        "timeouts_s={\n        'wave': 1.0,\n    }"
        in (stack_file.parent / wrap.handler / "handler.py").read_text()
    )


@pytest.mark.parametrize(
    ("given", "limits", "requests"),
    [
        ({"limits": {"memory": "1Gi"}}, ("1024Mi", "1"), ("96Mi", "100m")),
        ({"limits": {"memory": "300M"}}, ("287Mi", "1"), ("96Mi", "100m")),
        ({"limits": {"memory": "16Mi", "cpu": "100m"}}, ("96Mi", "1"), ("96Mi", "100m")),
        ({"limits": {"memory": "odd", "cpu": "odd"}}, ("96Mi", "1"), ("96Mi", "100m")),
        ({"limits": {"cpu": "2500m"}}, ("96Mi", "2500m"), ("96Mi", "100m")),
        ({"requests": {"cpu": "600m"}}, ("96Mi", "1"), ("96Mi", "600m")),
        ({"requests": {"memory": "200Mi", "cpu": "2"}}, ("200Mi", "2"), ("200Mi", "2")),
        (
            {"limits": {"memory": "1Gi", "cpu": "4"}, "requests": {"memory": "128Mi"}},
            ("1024Mi", "4"),
            ("128Mi", "100m"),
        ),
    ],
)
def test_a_wrap_gets_what_the_plan_says_or_the_user_gives_a_function(
    given, limits, requests, write_folder, plan_of, tmp_path
):
    functions = {"wave": HANDLER, "other": HANDLER}
    tasks = {"tasks": {"t": "wave", "u": "other"}}
    small = {"other": {"limits": {"memory": "64Mi"}, "requests": {"memory": "32Mi"}}}
    folder = write_folder(tmp_path / "f", tasks, functions, {}, {"wave": given} | small)
    plan = plan_of(folder.workflow)
    plan = plan.model_copy(
        update={
            "wraps": tuple(w.model_copy(update={"memory_mib": 96, "cpus": 1}) for w in plan.wraps)
        }
    )
    stack = read_stack(generate(plan, Sources.read(folder), tmp_path / "build"), {})
    (wrap,) = stack.functions.values()
    assert (wrap.limits.memory, wrap.limits.cpu) == limits
    assert (wrap.requests.memory, wrap.requests.cpu) == requests
    assert wrap.environment["WRAP_MEMORY_MIB"] == limits[0].removesuffix("Mi")
    assert wrap.environment["WRAP_CPUS"] == {"2500m": "3"}.get(limits[1], limits[1])


def test_wraps_whose_functions_are_not_known_yet_request_what_an_idle_one_takes(
    small, plan_of, tmp_path
):
    plan = plan_of(small.workflow)
    (wrap,) = plan.wraps
    unknown = wrap.model_copy(update={"memory_mib": 1024, "demand": None})
    plan = plan.model_copy(update={"wraps": (unknown,)})
    stack = read_stack(generate(plan, Sources.read(small), tmp_path / "build"), {})
    (function,) = stack.functions.values()
    assert (function.limits.memory, function.requests.memory) == ("1024Mi", "48Mi")


def test_native_libraries_get_one_thread_unless_the_user_says_otherwise(
    write_folder, plan_of, tmp_path
):
    fields = {"wave": {"environment": {"OMP_NUM_THREADS": "4"}}}
    folder = write_folder(tmp_path / "f", {"tasks": {"t": "wave"}}, {"wave": HANDLER}, {}, fields)
    stack = read_stack(
        generate(plan_of(folder.workflow), Sources.read(folder), tmp_path / "build"), {}
    )
    (wrap,) = stack.functions.values()
    assert wrap.environment["OMP_NUM_THREADS"] == "4"
    assert wrap.environment["OPENBLAS_NUM_THREADS"] == "1"
    assert wrap.environment["POLARS_MAX_THREADS"] == "1"


@pytest.mark.parametrize(
    ("variable", "value", "other"),
    [
        ("MODE", "a", {"MODE": "b"}),
        ("RAW_BODY", "true", {}),
        ("RAW_BODY", "1", {"RAW_BODY": "0"}),
        ("jwt_auth", "true", {}),
        ("jwt_auth", "1", {"jwt_auth": "false"}),
    ],
)
def test_variables_that_two_functions_want_otherwise_are_a_conflict(
    variable, value, other, write_folder, plan_of, tmp_path
):
    fields = {"wave": {"environment": {variable: value}}, "join": {"environment": other}}
    folder = write_folder(tmp_path / "small", fields=fields)
    error = refused("environment-conflict", plan_of(folder.workflow), folder, tmp_path / "build")
    assert "wave" in error.functions
    assert variable in error.message
    apart = plan_of(folder.workflow, "one-to-one")
    assert generate(apart, Sources.read(folder), tmp_path / "build").is_file()


@pytest.mark.parametrize(("durable", "sleep"), [(False, "25s"), (True, "1s")])
def test_a_watchdog_waits_for_events_that_only_its_wrap_has(
    write_folder, plan_of, tmp_path, durable, sleep
):
    buckets = {"entry": {"trigger": "by-batch-size", "size": 10, "function": "wave"}}
    document = {"entry": "entry", "buckets": buckets, "durable": durable}
    folder = write_folder(tmp_path / "f", document, {"wave": HANDLER}, {})
    sources = Sources.read(folder, store="redis://10.0.0.1:6379")
    stack = generate(plan_of(folder.workflow), sources, tmp_path / "build")
    (wrap,) = read_stack(stack, {}).functions.values()
    assert wrap.environment["healthcheck_interval"] == sleep


@pytest.mark.parametrize(("path", "sleep"), [("auto", "25s"), ("gateway", "1s")])
def test_a_watchdog_waits_for_what_others_ask_its_wrap_for_directly(
    write_folder, plan_by_hand, tmp_path, path, sleep
):
    document = {"tasks": {"a": "wave", "b": "wave"}, "edges": [["a", "b"]]}
    folder = write_folder(tmp_path / "f", document, {"wave": HANDLER}, {})
    plan = plan_by_hand({"f-a": [["a"]], "f-b": [["b"]]}, workflow="f", path=path)
    stack = generate(plan, Sources.read(folder), tmp_path / "build")
    functions = read_stack(stack, {}).functions
    slept = [functions[name].environment["healthcheck_interval"] for name in ("f-a", "f-b")]
    assert slept == ["1s", sleep]


@pytest.mark.parametrize(("language", "expected"), [("JSONata", "jlens>=0.25\n"), ("JSONPath", "")])
def test_the_wrap_that_runs_a_machine_in_jsonata_has_its_evaluator(
    language, expected, write_folder, plan_by_hand, tmp_path
):
    task = {"Type": "Task", "Resource": "wave"}
    assigned = task | {"QueryLanguage": language, "Assign": {"x": 1}, "Next": "B"}
    states = {"A": assigned, "B": task | {"End": True}}
    folder = write_folder(tmp_path / "f", {"StartAt": "A", "States": states}, {"wave": HANDLER}, {})
    plan = plan_by_hand({"f-a": [["A"]], "f-b": [["B"]]}, workflow="f")
    out = generate(plan, Sources.read(folder), tmp_path / "build").parent
    needed = [(out / wrap / "requirements.txt").read_text() for wrap in ("f-a", "f-b")]
    assert needed == [expected, ""]


def test_what_a_place_cannot_build_is_left_out_and_that_is_said(write_folder, tmp_path):
    folder = write_folder(
        tmp_path / "two",
        {"tasks": {"a": "wave"}, "edges": []},
        {"wave": "def handle(req):\n    return req\n"},
        {},
    )
    stack = json.loads(folder.stack_file.read_text())
    stack["functions"]["side"] = {"lang": "node20", "handler": "./side", "image": "side"}
    folder.stack_file.write_text(json.dumps(stack))
    sources = Sources.read(folder, {})
    assert sources.supporting == ["side"]
    assert sources.buildable({"node20"}).supporting == ["side"]
    built = sources.buildable({"python3-http"})
    assert built.supporting == []
    assert (
        "function side is not deployed: this gateway does not build lang node20"
        in (built.warnings[-1])
    )


@pytest.mark.usefixtures("whole_template")
@pytest.mark.faas_cli
def test_function_resources_of_faas_cli_have_all_that_a_deployment_has(
    faas_cli, write_folder, plan_of, tmp_path
):
    fields = {
        "environment": {"MODE": "on"},
        "secrets": ["token"],
        "constraints": ["zone=a"],
        "labels": {"team": "a", "com.openfaas.scale.min": "2"},
        "annotations": {"note": "x"},
        "readonly_root_filesystem": "true",
    }
    names = ("split", "wave", "mirror", "join")
    folder = write_folder(tmp_path / "small", fields=dict.fromkeys(names, fields))
    stack_file = generate(plan_of(folder.workflow), Sources.read(folder), tmp_path / "build")
    done = subprocess.run(
        [faas_cli, "generate", "-f", stack_file.name, "--namespace", "mine"],
        cwd=stack_file.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    resources = [each for each in yaml.safe_load_all(done.stdout) if each]
    stack = read_stack(stack_file, {})
    assert [each["metadata"]["name"] for each in resources] == list(stack.functions)
    for resource in resources:
        assert (resource["kind"], resource["metadata"]["namespace"]) == ("Function", "mine")
        found = resource["spec"]
        spec = deployment(stack, found["name"], stack_file.parent)
        assert found["image"] == spec.image
        assert found["environment"] == spec.env_vars
        assert (found["labels"], found["annotations"]) == (spec.labels, spec.annotations)
        assert (found["limits"], found["requests"]) == (
            spec.limits.model_dump(),
            spec.requests.model_dump(),
        )
        assert tuple(found.get("secrets", ())) == spec.secrets
        assert tuple(found.get("constraints", ())) == spec.constraints
        assert found.get("readOnlyRootFilesystem", False) == spec.read_only_root_filesystem


def test_a_wrap_has_the_value_that_all_templates_read_alike(tmp_path):
    """Node's template reads 1 as false, Flask's as true."""
    given = {"node": {"RAW_BODY": "true"}, "python": {"RAW_BODY": "1", "LEVEL": "2"}}
    styles = {"node": "node", "python": "flask"}
    merged = merge_environments("w", given, styles, {}, {name: [tmp_path] for name in given})
    assert merged == {"RAW_BODY": "true", "LEVEL": "2"}


def test_a_trigger_of_the_users_is_part_of_what_a_deployment_is_made_from(write_folder, tmp_path):
    trigger = tmp_path / "triggers.py"
    trigger.write_text("class Pairs:\n    size = 2\n")
    bucket = {"trigger": "triggers.Pairs", "function": "wave"}
    folder = write_folder(
        tmp_path, {"entry": "in", "buckets": {"in": bucket}}, {"wave": HANDLER}, {}
    )
    before = source_of(Sources.read(folder))
    trigger.write_text("class Pairs:\n    size = 3\n")
    assert source_of(Sources.read(folder)) != before


def test_only_what_python_and_tools_leave_is_not_copied(write_folder, plan_of, tmp_path):
    folder = write_folder(tmp_path / "f", {"tasks": {"t": "wave"}}, {"wave": HANDLER}, {})
    code = folder.path / "functions" / "wave"
    kept, left = (".weights_cache/a", "licensed.pyc"), ("__pycache__/a", ".mypy_cache/a")
    for file in (*kept, *left):
        (code / file).parent.mkdir(exist_ok=True)
        (code / file).write_text("a")
    out = generate(plan_of(folder.workflow), Sources.read(folder), tmp_path / "build").parent
    (copied,) = out.glob("*/functions/wave/function")
    assert [(copied / file).is_file() for file in (*kept, *left)] == [True, True, False, False]
