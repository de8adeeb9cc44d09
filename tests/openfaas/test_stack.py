"""stack.yaml is read as faas-cli reads it and written so that faas-cli reads what was meant."""

import subprocess
from pathlib import Path

import pytest

from chiron.openfaas.objects import Resources
from chiron.openfaas.stack import (
    Configuration,
    Provider,
    StackFile,
    StackFunction,
    StackResources,
    TemplateSource,
    deployment,
    environment,
    read_stack,
    unknown_fields,
    unset_warning,
    write_stack,
)
from chiron.workflow.errors import ChironError
from tests.rows import each_row

FULL = """\
version: 1.0
provider:
  name: openfaas
  gateway: ${GATEWAY:-http://127.0.0.1:8080}
functions:
  side:
    lang: python3-flask
    handler: ./functions/side
    image: ${REGISTRY}/side:latest
    fprocess: python index.py
    environment:
      OCTAL: 010
      EXPONENT: 1e3
      YES: yes
      EMPTY:
      URL: "http://a:b"
    environment_file: [env.yml]
    secrets: [key]
    labels: {canary: true}
    annotations: {topic: t}
    limits: {memory: 64Mi, cpu: 500m}
    requests: {memory: 32Mi}
    constraints: [fast]
    readonly_root_filesystem: true
    namespace: openfaas-fn
    skip_build: false
    build_options: [dev]
    build_args: {TEST_ENABLED: false}
    build_secrets: {netrc: ./netrc}
    platforms: linux/amd64
  volume:
    lang: python3-http
    handler: functions/volume
configuration:
  templates:
  - name: python3-http
    source: https://example.com/templates
  copy: [./common]
"""


def test_every_field_that_faas_cli_knows_is_read(write):
    stack = read_stack(write("stack.yaml", FULL), {"REGISTRY": "registry:5000"})

    assert list(stack.functions) == ["side", "volume"]
    assert stack.provider.gateway == "http://127.0.0.1:8080"
    side = stack.function("side")
    assert side.image == "registry:5000/side:latest"
    assert side.environment == {
        "OCTAL": "010",
        "EXPONENT": "1e3",
        "YES": "yes",
        "EMPTY": "",
        "URL": "http://a:b",
    }
    assert side.labels == {"canary": "true"}
    assert side.limits == StackResources(memory="64Mi", cpu="500m")
    assert side.readonly_root_filesystem is True
    assert side.skip_build is False
    assert side.build_args == {"TEST_ENABLED": "false"}
    assert stack.configuration == Configuration(
        templates=(TemplateSource(name="python3-http", source="https://example.com/templates"),),
        copy=("./common",),
    )


def test_what_is_written_is_read_back(write, tmp_path):
    stack = read_stack(write("stack.yaml", FULL), {})

    write_stack(tmp_path / "again.yaml", stack)

    assert read_stack(tmp_path / "again.yaml", {}) == stack


def test_null_sections_are_absent(write):
    text = "functions:\n  a:\n    lang: x\n    environment:\n    secrets: ~\n    limits: null\n"
    assert read_stack(write("stack.yaml", text), {}).function("a") == StackFunction(lang="x")


def test_what_functions_have_in_common_is_written_once(write):
    text = """
x-common: &common
  lang: python3-http
  environment: &variables {LEVEL: info, REGION: eu}
functions:
  one: {<<: *common, handler: ./one}
  two:
    <<: *common
    lang: python3-flask
    environment: {<<: *variables, LEVEL: debug}
  three: {lang: python3-http, environment: *variables}
"""
    stack = read_stack(write("stack.yaml", text), {})

    assert stack.function("one").lang == "python3-http"
    assert stack.function("two").lang == "python3-flask"
    assert [stack.function(name).environment for name in ("one", "two", "three")] == [
        {"LEVEL": "info", "REGION": "eu"},
        {"LEVEL": "debug", "REGION": "eu"},
        {"LEVEL": "info", "REGION": "eu"},
    ]


@pytest.mark.parametrize("line", ["  image: a:${TAG}", "  b: ${TAG}"])
def test_a_variable_that_is_not_set_is_named_with_a_fault(tmp_path, line):
    file = tmp_path / "stack.yaml"
    file.write_text(f"functions:\n  a: {{lang: node20, handler: .}}\n{line}\n")
    with pytest.raises(ChironError, match=r"; not set are TAG: a default is \$\{TAG:-default}"):
        read_stack(file, {})
    with pytest.raises(ChironError) as other:
        read_stack(file, {"TAG": "x"})
    assert "not set" not in str(other.value)


def test_variables_that_are_not_set_are_told_but_not_those_of_comments(write):
    text = "# ${GONE}\nfunctions: {side: {image: '${REG}/a:${TAG:-1}', environment: {U: '${URL}'}}}"
    file = write("stack.yaml", text)
    assert unset_warning(file, {"URL": ""}) == (
        "stack.yaml: not set, and so empty, are REG, URL: export them, or write a default: "
        "${REG:-default}"
    )
    assert unset_warning(file, {"REG": "r", "URL": "u"}) == ""


@each_row(
    ("text", "place", "mend"),
    [
        ("functions: {side: {enviroment: {}}}", "functions.side.'enviroment'", "environment?"),
        ("functions: {side: {limits: {gpu: 1}}}", "functions.side.limits.'gpu'", "cpu?"),
        ("provider: {network: net}", "provider.'network'", "remove it"),
        ("configuration: {templates: [{name: x, sorce: y}]}", "templates[0].'sorce'", "source?"),
        ("function: {a: {}}", "'function'", "functions?"),
    ],
)
def test_fields_that_faas_cli_ignores_are_named_and_kept(write, tmp_path, text, place, mend):
    stack = read_stack(write("stack.yaml", text), {})

    (line,) = unknown_fields(stack, tmp_path)
    assert f"{place} is no field" in line
    assert mend in line
    write_stack(tmp_path / "again.yaml", stack)
    assert read_stack(tmp_path / "again.yaml", {}) == stack


@each_row("text", [FULL, "functions: {a: {x-owner: me}}", "x-common: {a: b}"])
def test_a_file_without_unknown_fields_warns_of_none(write, tmp_path, text):
    write("env.yml", "environment: {A: 1}")
    assert list(unknown_fields(read_stack(write("stack.yaml", text), {}), tmp_path)) == []


def test_variables_beside_the_environment_of_their_file_are_said(write, tmp_path):
    write("env.yml", "environment: {A: 1}\nLEVEL: debug\n")
    stack = read_stack(write("stack.yaml", "functions: {f: {environment_file: [env.yml]}}"), {})
    assert list(unknown_fields(stack, tmp_path)) == [
        "env.yml: 'LEVEL' is no field of faas-cli and is ignored: variables are below environment"
    ]


#: Nine lists of nine of the one before.
LAUGHS = "x-0: &a0 [x]\n" + "".join(
    f"x-{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)


@each_row(
    ("text", "code", "named"),
    [
        ("functions: [a]", "bad-document", "functions"),
        ("functions: {side: {handler: [x]}}", "bad-document", "functions.side.handler"),
        ("functions: {side: {skip_build: maybe}}", "bad-document", "functions.side.skip_build"),
        ("provider: {name: faas}", "bad-document", "provider.name"),
        ("version: 2.0", "bad-document", "version"),
        ("functions: {Side: {}}", "bad-name", "Side"),
        ("functions: {a: {lang: x}, a: {lang: y}}", "duplicate-key", "line 1: key 'a' twice"),
        ("functions: {a: *common}", "bad-yaml", "undefined alias 'common'"),
        ("functions: &a {a: *a}", "bad-yaml", "alias *a is inside itself"),
        (LAUGHS, "bad-yaml", "100,000 values with the aliases written out"),
        ("functions: !!python/name:os.system {}", "bad-yaml", "os.system"),
        ("functions: {a: !!str x}", "bad-yaml", "tag tag:yaml.org,2002:str"),
        ("functions: {[a]: {}}", "bad-yaml", "a key has to be text"),
        ("functions: {a", "bad-yaml", "line 1"),
        ("a: b\n---\nc: d", "bad-yaml", "line 2"),
        ("[" * 5000, "bad-yaml", "nested too deeply"),
        ("a: \x01", "bad-yaml", "stack.yaml"),
        ("text", "bad-document", "stack.yaml"),
        ("a: ${A^^}", "bad-substitution", "${A^^}"),
    ],
)
def test_faults_are_named_in_one_line(write, text, code, named):
    with pytest.raises(ChironError) as raised:
        read_stack(write("stack.yaml", text), {})

    assert raised.value.code == code
    assert named in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ChironError, match=r"nowhere\.yaml") as raised:
        read_stack(tmp_path / "nowhere.yaml", {})
    assert raised.value.code == "missing-file"
    assert str(raised.value).endswith("which faas-cli new makes")
    (tmp_path / "compose.yml").write_text("services: {}")
    (tmp_path / "stack.yml").write_text("functions: {}")
    with pytest.raises(ChironError, match=r": stack\.yml has functions: rename it to nowhere"):
        read_stack(tmp_path / "nowhere.yaml", {})
    (tmp_path / "more.yaml").write_text("version: 1.0\nfunctions: {}")
    with pytest.raises(ChironError, match=r"functions of more\.yaml, stack\.yml into one nowhere"):
        read_stack(tmp_path / "nowhere.yaml", {})


def test_a_missing_environment_file_is_no_file_of_functions(tmp_path):
    function = StackFunction(environment_file=("no.yml",))
    with pytest.raises(ChironError, match=r"no\.yml is not there: create it, or remove it from"):
        environment(function, tmp_path)


def test_an_unknown_function_is_refused_with_those_there_are(write):
    stack = read_stack(write("stack.yaml", FULL), {})
    with pytest.raises(ChironError, match="side, volume") as raised:
        stack.function("sid")
    assert raised.value.code == "unknown-function"
    assert raised.value.functions == ("sid",)


def test_environment_files_override_what_is_inline_in_their_order(write, tmp_path):
    write("one.yml", "environment: {A: 1, B: 1}")
    write("two.yml", "environment: {B: 2}")
    function = StackFunction(
        environment={"A": "inline", "C": "inline"}, environment_file=("one.yml", "two.yml")
    )
    assert environment(function, tmp_path) == {"A": "1", "B": "2", "C": "inline"}


def test_a_missing_environment_file_is_named(tmp_path):
    with pytest.raises(ChironError, match=r"env\.yml"):
        environment(StackFunction(environment_file=("env.yml",)), tmp_path)


def test_a_function_without_image_cannot_be_deployed(write, tmp_path):
    with pytest.raises(ChironError) as raised:
        deployment(read_stack(write("stack.yaml", FULL), {}), "volume", tmp_path)
    assert (raised.value.code, raised.value.path) == ("no-image", "functions.volume.image")


#: Text that YAML, the shell or envsubst would each like to read as something else.
AWKWARD = {
    "DOLLARS": "$$ $A ${A} $${A} ${A:-b} ${",
    "SLASHES": r"\ \\ \/ \n // \${A}",
    "YAML": "*a &b !c # d: - [x] {y} 'q' \"r\" |",
    "YES": "yes",
    "NULL": "null",
    "TILDE": "~",
    "EMPTY": "",
    "NUMBER": "010",
    "LINES": "one\n\n  two $\n",
    "SPACES": "  both sides  ",
    "CONTROL": "\t\x07\x7f\u2028\x85",
    "WIDE": "ü 漢字 \U0001f600 " + "long " * 60,
}


def awkward_stack() -> StackFile:
    function = StackFunction(
        lang="python3-wrap",
        handler="./wrap",
        image="wrap:latest",
        fprocess="python index.py",
        environment=AWKWARD,
        labels=AWKWARD,
        annotations=AWKWARD,
        secrets=("a", "010"),
        constraints=("x=${A}",),
        limits=StackResources(memory="64Mi"),
        readonly_root_filesystem=True,
    )
    return StackFile(provider=Provider(gateway="http://127.0.0.1:1"), functions={"wrap": function})


def test_awkward_text_survives_writing_and_reading(tmp_path):
    write_stack(tmp_path / "stack.yaml", awkward_stack())
    assert read_stack(tmp_path / "stack.yaml", {"A": "expanded"}) == awkward_stack()


def deploy_with_faas_cli(faas_cli: str, path: Path, url: str, *, variables: dict[str, str]) -> None:
    subprocess.run(
        [faas_cli, "deploy", "-f", path.name, "-g", url, "--read-template=false"],
        cwd=path.parent,
        env={"HOME": str(path.parent), "PATH": ""} | variables,
        check=True,
        capture_output=True,
        timeout=60,
    )


@pytest.mark.faas_cli
def test_faas_cli_deploys_exactly_the_values_that_were_written(faas_cli, gateway, tmp_path):
    gateway.answer("PUT /system/functions", (200, b""))
    path = tmp_path / "stack.yaml"
    write_stack(path, awkward_stack())

    deploy_with_faas_cli(faas_cli, path, gateway.url, variables={"A": "expanded"})

    [call] = gateway.calls
    assert call.json == deployment(awkward_stack(), "wrap", tmp_path).body()


@pytest.mark.faas_cli
def test_a_users_stack_is_deployed_as_faas_cli_would(faas_cli, gateway, write, tmp_path):
    gateway.answer("PUT /system/functions", (200, b""))
    path = write("stack.yaml", FULL.replace("  volume:\n", "  volume:\n    image: v:1\n"))
    write("env.yml", "environment: {URL: from-file, NEW: 1}")
    variables = {"REGISTRY": "reg\\\\istry"}

    deploy_with_faas_cli(faas_cli, path, gateway.url, variables=variables)

    stack = read_stack(path, variables)
    theirs = sorted((call.json for call in gateway.calls), key=lambda body: str(body["service"]))
    assert theirs == [deployment(stack, name, tmp_path).body() for name in ("side", "volume")]


def test_resources_of_the_rest_api_are_not_mistaken_for_those_of_the_file():
    assert Resources.model_validate({"memory": "1Mi", "nvidia.com/gpu": "1"}).memory == "1Mi"


@each_row(
    "word",
    [
        "-oAPT::Update::Pre-Invoke::=id", "--allow-unauthenticated", "./mine.deb", "/srv/mine.deb",
        "https://example.com/a.deb", "FFmpeg", "a", "libc6-", "*", "ffmpeg^", "ffmpeg:", "ffmpeg=",
        "ffmpeg=-1", "ffmpeg/../x", "ffmpeg;id", "$(id)", "`id`", "ffmpeg\u00a0",
    ],
)  # fmt: skip
def test_what_is_no_debian_package_never_reaches_apt(word, write):
    text = f"functions:\n  side:\n    build_args:\n      ADDITIONAL_PACKAGE: 'jq {word}'\n"
    with pytest.raises(ChironError) as raised:
        read_stack(write("stack.yaml", text.replace("$", "$$")), {})
    assert raised.value.code == "bad-package"
    assert "function side: ADDITIONAL_PACKAGE has " in raised.value.message
    assert raised.value.path == "functions.side.build_args.ADDITIONAL_PACKAGE"


def test_debian_packages_have_architectures_versions_and_releases(write):
    packages = "g++ libstdc++-12-dev:arm64 ffmpeg=7:5.1.6-0+deb12u1 jq/bookworm-backports 7zip"
    text = f"functions:\n  side:\n    build_args: {{ADDITIONAL_PACKAGE: '{packages}'}}\n"
    side = read_stack(write("stack.yaml", text), {}).function("side")
    assert side.build_args == {"ADDITIONAL_PACKAGE": packages}
