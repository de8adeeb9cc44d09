"""A task's function needs a supported lang and a handler.py with a fitting ``handle``."""

import json
import zipfile
from pathlib import Path

import pytest

from chiron.openfaas.handler_folder import STYLES
from chiron.openfaas.handlers import Handler
from chiron.openfaas.languages import called_in, find_handler, language_of, settled
from chiron.openfaas.stack import StackFile, StackFunction
from chiron.workflow.errors import ChironError
from tests.rows import each_row


@each_row(
    ("lang", "style"),
    [
        ("python3-flask", "flask"),
        ("python3-flask-debian", "flask"),
        ("python3-http", "http"),
        ("python3-http-debian", "http-debian"),
    ],
)
def test_styles_of_the_supported_templates(lang, style):
    assert language_of(StackFunction(lang=lang)).styles[lang] == style


@each_row("lang", ["", "python3-wrap", "java11-vert-x", "dockerfile"])
def test_functions_of_other_langs_and_of_no_stack_are_called(lang):
    assert called_in(stack(lang), ["side", "elsewhere"]) == ("side", "elsewhere")
    assert called_in(stack("command"), ["side"]) == ()
    with pytest.raises(ChironError, match=r"python3-flask, .*python3-http-debian") as raised:
        find_handler(stack(lang), "side", Path())
    assert raised.value.code == "bad-lang"


def stack(lang: str = "python3-flask", handler: str = "./side") -> StackFile:
    return StackFile(functions={"side": StackFunction(lang=lang, handler=handler)})


@each_row(
    ("lang", "code"),
    [
        ("python3-flask", "def handle(req):\n    return req"),
        ("python3-flask", "def handle(req, more=None):\n    return req"),
        ("python3-flask", "def handle(*args):\n    return args"),
        ("python3-flask", "from elsewhere import handle"),
        ("python3-flask", "from elsewhere import main as handle"),
        ("python3-flask", "handle = lambda req: req"),
        ("python3-flask", "try:\n    import x\nexcept ImportError:\n    def handle(req): ..."),
        ("python3-http", "def handle(event, context):\n    return {}"),
        ("python3-http", "def handle(): ...\ndef handle(event, context): ..."),
    ],
)
def test_handlers_that_the_template_can_call(write, tmp_path, lang, code):
    write("side/handler.py", code)
    handler = find_handler(stack(lang), "side", tmp_path)
    assert handler == Handler("side", tmp_path / "side", STYLES[lang])


@each_row(
    ("lang", "code", "reason"),
    [
        ("python3-flask", "", "has no handle"),
        ("python3-flask", "def handler(req): ...", "has no handle"),
        ("python3-flask", "class C:\n    def handle(req): ...", "has no handle"),
        ("python3-flask", "def main():\n    def handle(req): ...", "has no handle"),
        ("python3-flask", "print([handle for handle in ()])", "has no handle"),
        (
            "python3-flask",
            "def main(event, context): ...",
            r"add def handle\(req\): return json.dumps\(main\(json.loads\(req\), None\)\)",
        ),
        (
            "python3-http",
            "def main(event, context): ...",
            r"json.dumps\(main\(json.loads\(event.body\), context\)\)}",
        ),
        (
            "python3-http",
            "def handler(event): ...",
            r"to call handler, import json .*json.dumps\(handler\(json.loads\(event.body\)\)\)}",
        ),
        ("python3-flask", "async def handle(req): ...", "async"),
        ("python3-flask", "def handle(event, context): ...", r"define def handle\(req\)"),
        ("python3-flask", "def handle(req, *, key): ...", "other parameters"),
        ("python3-http", "def handle(req): ...", r"define def handle\(event, context\)"),
        ("python3-http", "def handle(\n", "line 1"),
        ("python3-http", "x = '\x00'", "not Python"),
    ],
)
def test_handlers_that_the_template_cannot_call(write, tmp_path, lang, code, reason):
    write("side/handler.py", code)
    with pytest.raises(ChironError, match=reason) as raised:
        find_handler(stack(lang), "side", tmp_path)
    assert raised.value.code == "bad-handler"
    assert raised.value.functions == ("side",)
    assert raised.value.path == "functions.side.handler"
    assert "\n" not in str(raised.value)


def test_checking_a_handler_does_not_run_it(write, tmp_path):
    write("side/handler.py", "raise SystemExit\ndef handle(req): ...")
    find_handler(stack(), "side", tmp_path)


def test_a_package_is_the_handler_before_a_module_of_its_name(write, tmp_path):
    write("side/handler.py", "")
    write("side/handler/__init__.py", "from .work import handle")
    handler = find_handler(stack(), "side", tmp_path)
    assert handler == Handler("side", tmp_path / "side", "flask")
    write("side/handler/__init__.py", "x = 1")
    with pytest.raises(ChironError, match=r"handler/__init__\.py has no handle"):
        find_handler(stack(), "side", tmp_path)


@each_row(("handler", "what"), [("./none", "folder"), ("./empty", "handler.py")])
def test_a_missing_handler_names_the_function_and_the_mend(write, tmp_path, handler, what):
    write("empty/requirements.txt", "")
    with pytest.raises(ChironError) as raised:
        find_handler(stack(handler=handler), "side", tmp_path)
    assert raised.value.code == "no-handler"
    assert f"function side: {what} missing" in raised.value.message


@pytest.mark.parametrize("module", ["app", "function"])
def test_a_module_of_another_platform_is_to_be_the_handler(module, write, tmp_path):
    write(f"side/{module}.py", "def handle(req): ...")
    with pytest.raises(ChironError, match=rf"rename {module}\.py to handler\.py"):
        find_handler(stack(), "side", tmp_path)


@pytest.mark.parametrize(
    ("lang", "style"),
    [
        ("node20", "node"),
        ("node22", "node22"),
        ("node24", "node22"),
        ("node10-express", "node-callback"),
        ("node", "node-classic"),
    ],
)
def test_node_handlers_run_in_processes_of_their_own_runtime(write, tmp_path, lang, style):
    write("side/handler.js", "nobody reads this")
    found = find_handler(stack(lang), "side", tmp_path)
    assert (found.folder, found.style) == (tmp_path / "side", style)
    assert (found.runtime, found.cooperative, found.parallel) == ("node", True, False)
    (tmp_path / "none").mkdir()
    with pytest.raises(ChironError, match=r"function side: handler\.js missing") as raised:
        find_handler(stack(lang, "./none"), "side", tmp_path)
    assert raised.value.code == "no-handler"


@each_row(
    ("lang", "engines", "stays"),
    [
        ("node22", ">=22", True),
        ("node22", "^22.1.0", True),
        ("node22", "22.x || 24.x", True),
        ("node12", "<=12", True),
        ("node12", "8 - 14", True),
        ("node24", "> 20", True),
        ("node18", "<20.0.0", True),
        ("node18", ">=16 <20", True),
        ("node22", ">=18", False),
        ("node22", "18 || >=20.9.0 <23", False),
        ("node22", "*", False),
        ("node22", "lts/*", False),
        ("node18", "<20.1.0", False),
        ("node12", "~12.1 || 20", False),
        ("node20", ">=22", False),  # nor has its template
        ("node", ">=22", False),
    ],
)
def test_node_handlers_for_another_version_than_that_of_wraps_run_in_no_wrap(
    write, tmp_path, lang, engines, stays
):
    write("side/handler.js", "")
    write("side/package.json", json.dumps({"engines": {"node": engines}}))
    known = settled(stack(lang), tmp_path)
    reason = f"its package.json asks for Node.js {engines}, and wraps have 20"
    assert known.functions["side"].outside == (reason if stays else "")
    assert called_in(known, ["side"]) == (("side",) if stays else ())


@each_row("content", ["", "{", "[]", '{"engines": 22}', '{"engines": {"node": 22}}'])
def test_a_package_json_without_a_range_keeps_nothing_out_of_wraps(write, tmp_path, content):
    write("side/handler.js", "")
    write("side/package.json", content)
    assert called_in(settled(stack("node22"), tmp_path), ["side"]) == ()


HANDLER = "side/src/main/java/com/openfaas/function/Handler.java"


@pytest.mark.parametrize("lang", ["java8", "java11", "java17"])
def test_java_handlers_run_in_processes_of_their_own_runtime_without_a_lock(write, tmp_path, lang):
    write(HANDLER, "package com.openfaas.function;\nclass Handler { }")
    found = find_handler(settled(stack(lang), tmp_path), "side", tmp_path)
    assert (found.style, found.runtime) == ("java", "java")
    assert (found.cooperative, found.parallel, found.warm_up_s > 0) == (False, True, True)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("import java.util.List;", ""),
        ("import static java.lang.Math.max;", ""),
        ("import javax.crypto.Cipher;", ""),
        ("import com.openfaas.function.inner.Own;", ""),
        ("import org.acme.Tool.Inner;", ""),
        ("import static org.acme.Tool.*;", ""),
        ("import org.acme.*;", ""),
        ("import com.google.gson.Gson;", "it imports com.google.gson.Gson, which no jar"),
        ("import javax.inject.*;", "it imports javax.inject"),
        ("import org.acme.more.Tool;", "it imports org.acme.more.Tool"),
    ],
)
def test_java_code_that_needs_a_jar_which_is_not_there_runs_in_no_wrap(
    write, tmp_path, line, reason
):
    write(HANDLER, f"package com.openfaas.function;\n{line}\nclass Handler {{ }}")
    write(HANDLER.replace("Handler", "inner/Own"), "package com.openfaas.function.inner;")
    (tmp_path / "side" / "lib").mkdir()
    with zipfile.ZipFile(tmp_path / "side" / "lib" / "tool.jar", "w") as jar:
        jar.writestr("org/acme/Tool.class", b"")
    known = settled(stack("java17"), tmp_path)
    assert known.functions["side"].outside.startswith(reason)
    assert called_in(known, ["side"]) == (("side",) if reason else ())
    assert "outside" not in known.model_dump_json()


@each_row(
    ("line", "module"),
    [
        ("compile 'mysql:mysql-connector-java:8.0.26'", "mysql:mysql-connector-java"),
        ('runtimeOnly("org.mariadb:client:3.0")', "org.mariadb:client"),
        ("implementation group: 'org.acme', name: 'near', version: '1'", "org.acme:near"),
        ("api 'org.acme:tool'", ""),
        ("implementation 'org.acme:within:2.0'", ""),
        ("testImplementation 'junit:junit:4.12'", ""),
        ("// compile 'org.acme:near:1'", ""),
        ("compile project(':model')", ""),
        ("compile 'com.openfaas:entrypoint:0.1.0'", ""),
        ("implementation 'com.google.guava:guava:23.0'", ""),
        ("implementation platform('org.acme:all:1')", ""),
    ],
)
def test_java_code_whose_build_adds_a_jar_that_is_not_there_runs_in_no_wrap(
    write, tmp_path, line, module
):
    write(HANDLER, "package com.openfaas.function;\nclass Handler { }")
    write("side/build.gradle", f"dependencies {{\n    {line}\n}}\n")
    (tmp_path / "side" / "lib").mkdir(exist_ok=True)
    with zipfile.ZipFile(tmp_path / "side" / "lib" / "tool-1.0.jar", "w") as jar:
        jar.writestr("META-INF/maven/org.acme/within/pom.xml", b"")
    reason = f"its build.gradle names {module}, which no jar in its folder lib is: copy it there"
    known = settled(stack("java17"), tmp_path)
    assert known.functions["side"].outside == (reason if module else "")


def test_a_java_template_with_another_handler_runs_in_no_wrap(write, tmp_path):
    write("side/src/main/kotlin/Handler.kt", "class Handler")
    known = settled(stack("java17"), tmp_path)
    assert "no src/main/java/com/openfaas/function/Handler.java" in known.functions["side"].outside
    with pytest.raises(ChironError, match=r"runs in no wrap: it has no src"):
        find_handler(known, "side", tmp_path)


def test_a_function_without_handler_or_lang_is_refused(tmp_path):
    for lang, handler, field in (("python3-http", "", "handler"), ("", "./side", "lang")):
        with pytest.raises(ChironError) as raised:
            find_handler(stack(lang, handler), "side", tmp_path)
        assert raised.value.path == f"functions.side.{field}"


def test_a_function_that_the_stack_lacks_is_refused(tmp_path):
    with pytest.raises(ChironError) as raised:
        find_handler(stack(), "other", tmp_path)
    assert raised.value.code == "unknown-function"
