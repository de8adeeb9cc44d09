"""The template's images: by faas-cli behind a watchdog, and what a build that fails says."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import requests

from chiron.cli.place import BUILDERS
from chiron.deployment.launcher import Launcher
from chiron.evaluation.reference.sources import reference_run
from chiron.gateway.build import FunctionSource, build_in_docker
from chiron.gateway.embedded import EmbeddedGateway
from chiron.generator.generate import Sources, generate
from chiron.openfaas.client import Gateway
from chiron.openfaas.objects import FunctionSpec
from chiron.openfaas.readiness import wait_ready
from chiron.openfaas.stack import deployment, read_stack
from chiron.scheduler.schedule import schedule
from chiron.templates import TEMPLATES
from chiron.workflow.errors import ChironError

pytestmark = [pytest.mark.docker, pytest.mark.slow]

TIMEOUT_S = 100
FAAS_CLI = shutil.which("faas-cli") or shutil.which(
    "faas-cli", path=str(Path(sys.executable).parent)
)
WATCHDOG_IMAGE = "chiron-test-watchdog:latest"
#: Does what of-watchdog does in mode http: listens on `port` (8080), runs `fprocess`, hands
#: requests on to `upstream_url`, and asks its `ready_path` when asked for /_/ready.
WATCHDOG = """#!/usr/bin/env python3
import http.client, http.server, os, shlex, signal, subprocess, sys
from pathlib import Path

assert os.environ["mode"] == "http"
upstream = os.environ["upstream_url"].removeprefix("http://")
process = subprocess.Popen(shlex.split(os.environ["fprocess"]))
signal.signal(signal.SIGTERM, lambda *_: (process.terminate(), sys.exit(process.wait())))
if os.environ.get("suppress_lock") != "true":
    Path("/tmp/.lock").touch()

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = os.environ["ready_path"] if self.path == "/_/ready" else self.path
        try:
            connection = http.client.HTTPConnection(upstream, timeout=30)
            connection.request(self.command, path, body, dict(self.headers))
            response = connection.getresponse()
            status, data = response.status, response.read()
        except OSError:
            status, data = 500, b"upstream is not there"
        self.send_response(status)
        self.send_header("X-Watchdog", "stand-in")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = answer

http.server.ThreadingHTTPServer(("", int(os.environ.get("port", "8080"))), Handler).serve_forever()
"""


@pytest.fixture(scope="module")
def watchdog(engine) -> str:
    """An image with a /fwatchdog that stands in for of-watchdog's."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo("fwatchdog")
        entry.size = len(WATCHDOG.encode())
        tar.addfile(entry, io.BytesIO(WATCHDOG.encode()))
    repository, _, tag = WATCHDOG_IMAGE.partition(":")
    engine.client.api.import_image_from_data(archive.getvalue(), repository, tag)
    return WATCHDOG_IMAGE


@pytest.mark.skipif(FAAS_CLI is None, reason="no faas-cli: installation/faas-cli/install.sh")
def test_what_faas_cli_builds_runs_behind_a_watchdog(
    engine, watchdog, small, profile_of, platform, tmp_path
):
    plan = schedule(small.workflow, profile_of(small.workflow), platform, 1000.0)
    stack_file = generate(plan, Sources.read(small), tmp_path / "build")
    command = [str(FAAS_CLI), "build", "-f", stack_file.name]
    command += ["--build-arg", f"BASE_IMAGE={engine.base}"]
    command += ["--build-arg", f"WATCHDOG_IMAGE={watchdog}"]
    done = subprocess.run(
        command,
        cwd=stack_file.parent,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    with EmbeddedGateway(backend="docker") as embedded, Gateway(embedded.url) as gateway:
        stack = read_stack(stack_file, {})
        for name in stack.functions:
            gateway.deploy(deployment(stack, name, stack_file.parent))
        entry = plan.wraps[0].name
        url = f"{embedded.url}/function/{entry}"
        answer = requests.post(url, data=b'{"a": 1.0}', timeout=TIMEOUT_S)
        expected = reference_run(Sources.read(small), b'{"a": 1.0}', embedded.url).output
    assert (answer.status_code, answer.text) == (200, expected)
    assert answer.headers["X-Watchdog"] == "stand-in"


def test_a_step_that_fails_is_one_line_with_the_functions_name(engine, tmp_path):
    (tmp_path / "handler.py").write_text("def handle(req):\n    return req\n")
    (tmp_path / "requirements.txt").write_text(
        "no-such @ https://127.0.0.1:9/no-such-package-1-py3-none-any.whl\n"
    )
    source = FunctionSource("unlucky", "unlucky", "python3-flask", tmp_path)
    with pytest.raises(ChironError, match=r"function unlucky: .*no-such-package") as caught:
        build_in_docker(source, TEMPLATES, {"BASE_IMAGE": engine.base})
    assert caught.value.message.isprintable()


def test_a_base_image_that_is_not_there_is_named(engine, tmp_path):
    (tmp_path / "handler.py").write_text("def handle(req):\n    return req\n")
    source = FunctionSource("baseless", "baseless", "python3-flask", tmp_path)
    with pytest.raises(ChironError, match="no-such-base"):
        build_in_docker(source, TEMPLATES, {"BASE_IMAGE": "127.0.0.1:9/no-such-base"})


def test_a_function_with_a_dockerfile_of_its_own_answers(engine, tmp_path):
    (tmp_path / "serves.py").write_text(
        "import http.server as h\n"
        "class Handler(h.BaseHTTPRequestHandler):\n"
        "    def do_GET(self): self.send_response(200); self.end_headers()\n"
        "    def do_POST(self): self.do_GET(); self.wfile.write(b'of its own')\n"
        "h.HTTPServer(('', 8080), Handler).serve_forever()\n"
    )
    (tmp_path / "Dockerfile").write_text(
        f'FROM {engine.base}\nCOPY serves.py /\nCMD ["python3", "/serves.py"]\n'
    )
    build_in_docker(FunctionSource("own", "own", "dockerfile", tmp_path), TEMPLATES)
    with EmbeddedGateway(backend="docker") as embedded, Gateway(embedded.url) as gateway:
        gateway.deploy(FunctionSpec(service="own", image="own"))
        wait_ready(gateway, "own", TIMEOUT_S, answers_options=False)
        answer = requests.post(f"{embedded.url}/function/own", timeout=TIMEOUT_S)
    assert (answer.status_code, answer.text) == (200, "of its own")


JAVA = """
package com.openfaas.function;
import com.openfaas.model.*;
public class Handler extends AbstractHandler {
    public IResponse Handle(IRequest req) {
        Response res = new Response();
        res.setBody(req.getBody() + " " + new java.io.File("/usr/share/man/man1").list().length);
        return res;
    }
}
"""


def test_a_wrap_of_python_and_java_is_built_upon_an_image_without_folders_of_manuals(
    engine, write_folder, plan_by_hand, monkeypatch, tmp_path
):
    """Debian's slim images have none, and the JDK puts links there."""
    slim = "FROM {}\nRUN rm -r /usr/share/man && echo path-exclude=/usr/share/man/* >{}\n"
    told = io.BytesIO(slim.format(engine.base, "/etc/dpkg/dpkg.cfg.d/docker").encode())
    engine.client.images.build(fileobj=told, tag="chiron-test-slim:latest", rm=True)
    monkeypatch.setenv("CHIRON_BASE_IMAGE", "chiron-test-slim:latest")
    source = tmp_path / "functions/tells/src/main/java/com/openfaas/function/Handler.java"
    source.parent.mkdir(parents=True)
    source.write_text(JAVA)
    folder = write_folder(
        tmp_path,
        {"tasks": {"begins": "begins", "tells": "tells"}, "edges": [["begins", "tells"]]},
        {"begins": "def handle(req):\n    return req + ' there'\n", "tells": ""},
        fields={"tells": {"lang": "java17"}},
    )
    plan = plan_by_hand({"manuals-wrap1": [["begins", "tells"]]}, memory_mib=512)
    with EmbeddedGateway(backend="docker") as embedded, Gateway(embedded.url) as gateway:
        launcher = Launcher(gateway, BUILDERS["docker"])
        with launcher.launch(folder.workflow, folder, plan) as deployed:
            text, links = deployed.invoke(b"is").output.rsplit(" ", 1)
    assert text == "is there"
    assert int(links) > 0


def built(engine, name: str, code: str, folder: Path) -> str:
    """The id of the image that `chiron build` makes of a handler."""
    folder.mkdir(exist_ok=True)
    (folder / "handler.py").write_text(code)
    source = FunctionSource(name, name, "python3-flask", folder)
    return build_in_docker(source, TEMPLATES, {"BASE_IMAGE": engine.base})


def idents(engine) -> set[str]:
    return set(engine.client.api.images(quiet=True))


def test_an_image_that_was_built_anew_goes_when_nothing_runs_it(engine, tmp_path, wait_until):
    name = "rebuilt"
    code = "def handle(req):\n    return {!r}\n"
    with EmbeddedGateway(backend="docker") as gateway:
        unused = built(engine, name, code.format("unused"), tmp_path / name)
        first = built(engine, name, code.format("first"), tmp_path / name)
        assert unused not in idents(engine)
        body = {"service": name, "image": name}
        functions = f"{gateway.url}/system/functions"
        assert requests.post(functions, json=body, timeout=TIMEOUT_S).status_code == 202
        call = f"{gateway.url}/function/{name}"
        assert requests.post(call, timeout=TIMEOUT_S).text == "first"
        second = built(engine, name, code.format("second"), tmp_path / name)
        assert {first, second} <= idents(engine)  # the first one still runs
        assert requests.put(functions, json=body, timeout=TIMEOUT_S).status_code == 202
        wait_until(lambda: requests.post(call, timeout=TIMEOUT_S).text == "second")
        wait_until(lambda: first not in idents(engine))
    assert second in idents(engine)
