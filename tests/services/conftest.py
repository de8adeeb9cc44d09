"""Fixtures: a small workflow, what predicts it, and the services over it."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from flask_openapi3.openapi import OpenAPI
from werkzeug.serving import make_server

from chiron.deployment.deploy import Progress
from chiron.deployment.deployed import DeployedWorkflow
from chiron.deployment.launcher import Launcher
from chiron.deployment.live import Latency, LiveWorkflow
from chiron.deployment.postmortem import FailedExecution
from chiron.generator.annotations import DeployedPrediction
from chiron.services.app import Config, create_app
from chiron.services.child import Failed, Limits, Stop, Work, partial_result
from chiron.workflow.errors import ChironError

_BOUND_S = 120
_HANDLER = "def handle(req):\n    return req\n"


@contextmanager
def _no_gateway() -> Iterator[Launcher]:
    raise ChironError("no-gateway", "no gateway answers here", status=502)
    yield


def _run_here(work: Work, _: Limits, tell: Progress, stop: Stop) -> Any:
    """Do work as `chiron.services.child.run` does, but in this process, where a test can look."""

    def progress(line: str) -> None:
        if reason := stop():
            raise reason
        tell(line)

    try:
        return work(progress)
    except ChironError as error:
        raise Failed(error, partial_result(error)) from None


def _task(function: str, then: str | None) -> dict[str, Any]:
    return {"Type": "Task", "Resource": function, **({"Next": then} if then else {"End": True})}


@pytest.fixture
def workflow() -> dict[str, Any]:
    """Two functions in sequence, as in workflow.json."""
    states = {"First": _task("first", "Second"), "Second": _task("second", None)}
    return {"Name": "demo", "StartAt": "First", "States": states}


@pytest.fixture
def profile() -> dict[str, Any]:
    """The profile of both functions: 2 ms of computing each."""
    period = {"kind": "cpu", "start_ms": 0.0, "duration_ms": 2.0}
    function = {"latency_ms": 2.0, "periods": [period]}
    return {"format": 1, "workflow": "demo", "functions": {"first": function, "second": function}}


@pytest.fixture
def platform() -> dict[str, Any]:
    """A platform with a hop of 5 ms."""
    return {
        "format": 1,
        "name": "test",
        "cpus": 2,
        "rpc_ms": 5.0,
        "invoke_ms": 0.5,
        "ipc_ms": 0.2,
        "process_startup_ms": 2.0,
        "process_block_ms": 1.0,
        "pool_dispatch_ms": 0.5,
        "thread_startup_ms": 0.1,
        "switch_cost_ms": 0.01,
    }


@pytest.fixture
def root(tmp_path: Path, workflow: dict[str, Any]) -> Path:
    """The services' root, with the folder `demo` of the workflow in it."""
    folder = tmp_path / "root" / "demo"
    stack = ["provider:", "  name: openfaas", "functions:"]
    for name in ("first", "second"):
        code = folder / "functions" / name
        code.mkdir(parents=True)
        (code / "handler.py").write_text(_HANDLER)
        stack += [f"  {name}:", "    lang: python3-flask", f"    handler: ./functions/{name}"]
        stack += [f"    image: {name}:latest"]
    (folder / "stack.yaml").write_text("\n".join(stack) + "\n")
    (folder / "workflow.json").write_text(json.dumps(workflow))
    return folder.parent


@pytest.fixture
def config(root: Path, tmp_path: Path) -> Config:
    """Services over `root`, without a gateway."""
    url = "http://127.0.0.1:9"
    return Config(_no_gateway, url, root=root, state=tmp_path / "state", run=_run_here)


@pytest.fixture
def app(config: Config) -> OpenAPI:
    """The services, whose jobs do not run yet."""
    return create_app(config)


@pytest.fixture
def client(app: OpenAPI) -> FlaskClient:
    """A client of the services."""
    return app.test_client()


@pytest.fixture
def running(app: OpenAPI) -> Iterator[None]:
    """The services' jobs run."""
    with app.extensions["chiron"].running():
        yield


@pytest.fixture
def ended(client: FlaskClient, wait_until: Callable[..., Any]) -> Callable[[str], dict[str, Any]]:
    """The job at a location, once it has ended."""

    def wait(location: str) -> dict[str, Any]:
        def over() -> Any:
            job = client.get(location).json
            return job if job["status"] in ("done", "failed") else None

        return wait_until(over)

    return wait


@pytest.fixture
def packed() -> Callable[..., bytes]:
    """A folder as a .tar.gz, below a top folder if one is named."""

    def pack(folder: Path, top: str = "") -> bytes:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            archive.add(folder, arcname=top or "/")
        return packed.getvalue()

    return pack


@pytest.fixture
def refused(client: FlaskClient) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Post a body; returns the status and the error, whose form is checked."""

    def post(path: str, **body: Any) -> tuple[int, dict[str, Any]]:
        answer = client.post(path, **body)
        assert answer.mimetype == "application/json"
        assert set(answer.json) == {"code", "message", "path", "functions"}
        assert "\n" not in answer.json["message"]
        assert client.get("/jobs").json["jobs"] == []
        return answer.status_code, answer.json

    return post


@pytest.fixture
def deployment(profile: dict[str, Any], platform: dict[str, Any]) -> dict[str, Any]:
    """The body of a deployment for which nothing has to be measured."""
    return {"directory": "demo", "slo": "200ms", "profile": profile, "platform": platform}


@pytest.fixture
def live_workflow() -> Callable[..., LiveWorkflow]:
    """A deployed workflow of which so many requests met its SLO, and with so many failures."""

    def make(
        name: str,
        slo_ms: float | None,
        within: float | None,
        *failures: FailedExecution,
        requests: int = 1000,
    ) -> LiveWorkflow:
        predicted = DeployedPrediction(
            latency_ms=40.0, low_ms=30.0, high_ms=50.0, cpus=1, slo_ms=slo_ms
        )
        met = None if within is None else round(within * requests)
        times = {"mean_ms": 1.0, "p50_ms": 1.0, "p95_ms": 2.0, "p99_ms": 3.0}
        latency = Latency(requests=requests, met=met, **times)
        deployed = DeployedWorkflow(
            workflow=name,
            planner="pgp",
            functions=(f"{name}-wrap1",),
            predicted=predicted,
            replicas=1,
            available=1,
            calls=7.0,
        )
        return LiveWorkflow(
            deployed=deployed,
            requests_per_s=1.0,
            failed_per_s=0.0,
            latency=None if within is None else latency,
            ever=None if within is None else latency,
            wraps=(),
            events_per_s=None,
            buckets=(),
            failures=failures,
        )

    return make


CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")  # its event loop runs in the thread of the tests that follow
def browser() -> Iterator[Any]:
    """Chromium, driven by Playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if CHROMIUM is None:
        pytest.skip("chromium is missing: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@contextmanager
def _serving(app: OpenAPI) -> Iterator[str]:
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}/"
    finally:
        server.shutdown()
        thread.join()


@pytest.fixture
def serving() -> Callable[[OpenAPI], AbstractContextManager[str]]:
    """Has services answer a browser; gives their address."""
    return _serving


@pytest.fixture
def address(app: OpenAPI) -> Iterator[str]:
    """Where a browser reaches the services."""
    with _serving(app) as address:
        yield address


#: How often a page asks in a test, in milliseconds: longer than an answer takes, as the page drops
#: an answer if it has asked again.
_POLL_MS = 800


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages ask for news more often, so that no test waits for seconds."""
    for section in ("live", "jobs"):
        monkeypatch.setattr(f"chiron.services.dashboard.{section}._POLL_MS", _POLL_MS)
    monkeypatch.setattr("chiron.services.dashboard.feed.EVERY_S", _POLL_MS / 2000)
    monkeypatch.setattr("chiron.services.dashboard.feed._WAIT_S", _POLL_MS / 8000)


def _is_fault(message: Any) -> bool:
    return message.type == "error" and not _was_cut(message.text)


def _was_cut(text: str) -> bool:
    """Return whether a request failed as tests of containers changed the network meanwhile."""
    return "ERR_NETWORK_CHANGED" in text


@pytest.fixture
def open_page(browser: Any, address: str, soon: None) -> Iterator[Callable[..., Any]]:
    """Opens the dashboard; in the end it has had no fault, and asked nobody else."""
    faults, pages = [], []

    def open_page(path: str = "") -> Any:
        page = browser.new_page()
        page.set_default_timeout(1000 * _BOUND_S)
        pages.append(page)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda m: faults.append(m.text) if _is_fault(m) else None)
        page.on(
            "request",
            lambda r: (
                None if r.url.startswith((address, "data:", "blob:")) else faults.append(r.url)
            ),
        )
        cut: list[str] = []
        page.on("requestfailed", lambda r: cut.append(r.failure) if _was_cut(r.failure) else None)
        page.goto(f"{address}{path}")
        while cut:  # a page without one of its scripts shows nothing
            cut.clear()
            faults.clear()
            page.reload()
        page.wait_for_selector("#files", state="attached")
        return page

    yield open_page
    for page in pages:
        page.close()
    assert faults == []


@pytest.fixture
def drop() -> Callable[..., None]:
    """Chooses files, or a folder, in the dialog of a page."""

    def drop(page: Any, files: Any, kind: str = "files") -> None:
        with page.expect_file_chooser() as dialog:
            page.locator(f"[data-choose={kind}]").click()
        dialog.value.set_files(files)

    return drop


#: How a page is looked at: the width in pixels, and the colours.
_LOOKS = ((1280, "light"), (1280, "dark"), (390, "light"))


@pytest.fixture
def sound() -> Callable[[Any], None]:
    """Checks a page in the light, in the dark and on a phone.

    axe-core finds nothing serious there, and the page is not wider than the window.
    """
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe")

    def check(page: Any) -> None:
        for width, scheme in _LOOKS:
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 844})
            page.wait_for_function("() => document.documentElement.scrollWidth <= innerWidth")
            found = axe.Axe().run(page).response["violations"]
            serious = [each for each in found if each["impact"] in ("serious", "critical")]
            named = [(each["id"], [n["html"] for n in each["nodes"]]) for each in serious]
            assert named == [], (width, scheme)

    return check
