"""A function is ready when it answers itself, behind any kind of template."""

import json

import pytest

from chiron.openfaas.client import Gateway
from chiron.openfaas.readiness import wait_ready
from chiron.workflow.errors import ChironError

HEALTH = "GET /function/side/_/health"
OPTIONS = "OPTIONS /function/side"
DESCRIBE = "GET /system/function/side"


@pytest.fixture
def client(gateway):
    with Gateway(gateway.url, timeout_s=5) as client:
        yield client


def test_waits_until_health_no_longer_fails(client, gateway):
    gateway.answer(HEALTH, (500, b""), (502, b""), (200, b"OK"))
    gateway.answer(OPTIONS, (200, b""))

    wait_ready(client, "side", timeout_s=10)

    assert gateway.lines() == [HEALTH, HEALTH, HEALTH, OPTIONS]


def test_a_watchdog_that_is_healthy_before_its_function_is_not_enough(client, gateway):
    gateway.answer(HEALTH, (200, b"OK"))
    gateway.answer(OPTIONS, (500, b""), (200, b""))

    wait_ready(client, "side", timeout_s=10)

    assert gateway.lines() == [HEALTH, OPTIONS, HEALTH, OPTIONS]


def test_other_templates_need_a_replica_and_a_settled_answer(client, gateway):
    gateway.answer(HEALTH, (405, b""))
    gateway.answer(
        DESCRIBE, (200, {"name": "side"}), (200, {"name": "side", "availableReplicas": 1})
    )
    gateway.answer(OPTIONS, (503, b""), (405, b""))

    wait_ready(client, "side", timeout_s=10)

    assert gateway.lines()[-3:] == [HEALTH, DESCRIBE, OPTIONS]
    assert gateway.lines().count(OPTIONS) == 2


@pytest.fixture
def one_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first probe is the last one, however late its answer comes."""
    monkeypatch.setattr("chiron.openfaas.readiness._PROBE_INTERVAL_S", 10.0)


@pytest.mark.usefixtures("one_probe")
def test_gives_up_with_the_last_answer_and_the_end_of_the_log(client, gateway):
    gateway.answer(HEALTH, (500, b""))
    lines = [b'{"name": "side", "text": "imports"}', b'{"name": "side", "text": "no numpy"}']
    gateway.answer("GET /system/logs", (200, b"\n".join(lines)))

    with pytest.raises(ChironError) as raised:
        wait_ready(client, "side", timeout_s=0.1)

    assert (raised.value.code, raised.value.status) == ("not-ready", 504)
    assert raised.value.functions == ("side",)
    assert "/_/health answers 500" in raised.value.message
    assert raised.value.message.endswith("its log ends: imports | no numpy")


@pytest.mark.usefixtures("one_probe")
def test_a_module_that_no_requirement_brings_is_named_with_its_file(client, gateway):
    gateway.answer(HEALTH, (503, b""))
    line = {"name": "side", "text": "ModuleNotFoundError: No module named 'numppy'"}
    gateway.answer("GET /system/logs", (200, json.dumps(line).encode()))
    with pytest.raises(ChironError, match=r"add what has numppy to its requirements\.txt"):
        wait_ready(client, "side", timeout_s=0.1)


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (
            "ModuleNotFoundError: No module named 'numppy'",
            "missing-package",
            "add the package that has numppy to the function's requirements.txt",
        ),
        (
            "ImportError: function side: no program ffmpeg is installed here: name its package",
            "import-failed",
            "cannot be imported: ImportError: function side: no program ffmpeg is installed",
        ),
        ("SyntaxError: invalid syntax", "import-failed", "imported: SyntaxError: invalid syntax"),
        (
            "ImportError: function side: open '/var/openfaas/secrets/key' (handler.js:7)",
            "import-failed",
            "name the secret in stack.yaml; outside a container read the folder in secrets_dir",
        ),
    ],
)
def test_a_start_in_vain_as_an_import_fails_ends_the_wait_at_once(
    client, gateway, text, code, words
):
    gateway.answer(HEALTH, (503, b""))
    old, new = (
        json.dumps({"name": "side", "timestamp": at, "text": text}).encode() for at in ("1", "2")
    )
    gateway.answer("GET /system/logs", (200, old), (200, old + b"\n" + new))
    with pytest.raises(ChironError) as raised:
        wait_ready(client, "side", timeout_s=3600)
    assert (raised.value.code, raised.value.status) == (code, 400)
    assert words in str(raised.value)


def test_any_error_of_an_import_that_has_ended_the_program_ends_the_wait_at_once(client, gateway):
    gateway.answer(HEALTH, (503, b"function side is not ready: exited with status 1"))
    old, where, new = (
        json.dumps({"name": "side", "timestamp": at, "text": text}).encode()
        for at, text in [("1", "KeyError: 'URL'"), ("2", "handler.py"), ("2", "KeyError: 'URL'")]
    )
    gateway.answer("GET /system/logs", (200, old), (200, b"\n".join([old, where, new])))
    with pytest.raises(ChironError, match=r"handler\.py") as raised:
        wait_ready(client, "side", timeout_s=3600)
    assert (raised.value.code, raised.value.status) == ("import-failed", 400)


@pytest.mark.parametrize("namespace", ["", "mine"])
def test_on_kubernetes_what_has_neither_replica_nor_log_is_pending(client, gateway, namespace):
    gateway.answer(HEALTH, (503, b"No endpoints available for: side."))
    gateway.answer(DESCRIBE, (200, {"name": "side", "namespace": namespace, "replicas": 1}))
    gateway.answer("GET /system/logs", (200, b""))
    gateway.answer("GET /system/info", (200, {"provider": {"orchestration": "kubernetes"}}))

    with pytest.raises(ChironError) as raised:
        wait_ready(client, "side", timeout_s=0.1)

    assert "it is pending: no node has room" in raised.value.message
    assert raised.value.message.endswith(
        f"kubectl -n {namespace or 'openfaas-fn'} get events | grep side"
    )


@pytest.mark.parametrize(("available", "orchestration"), [(1, "kubernetes"), (0, "containerd")])
def test_a_silent_function_is_not_called_pending_where_it_is_not(
    client, gateway, available, orchestration
):
    gateway.answer(HEALTH, (503, b""))
    gateway.answer(DESCRIBE, (200, {"name": "side", "availableReplicas": available}))
    gateway.answer("GET /system/logs", (200, b""))
    gateway.answer("GET /system/info", (200, {"provider": {"orchestration": orchestration}}))

    with pytest.raises(ChironError, match="it has no log"):
        wait_ready(client, "side", timeout_s=0.1)


def test_gives_up_at_once_where_the_memory_limit_ended_it(client, gateway):
    said = b"function side is not ready: killed: it went above its memory limit of 64 MiB"
    gateway.answer(HEALTH, (503, said))
    lines = [
        b'{"name": "side", "text": "loads"}',
        b'{"name": "side", "text": "gateway: killed; next start in 1 s"}',
    ]
    gateway.answer("GET /system/logs", (200, b"\n".join(lines)))

    with pytest.raises(ChironError) as raised:
        wait_ready(client, "side", timeout_s=3600)

    assert raised.value.code == "not-ready"
    assert f"/_/health answers 503: {said.decode()}" in raised.value.message
    assert raised.value.message.endswith("its log ends: loads")


def test_a_function_that_is_not_deployed_is_never_ready(client, gateway):
    gateway.answer(DESCRIBE, (404, b"function side not found"))

    with pytest.raises(ChironError) as raised:
        wait_ready(client, "side", timeout_s=1.0)

    assert raised.value.code == "not-ready"
    assert "has no function side" in raised.value.message
    assert OPTIONS not in gateway.lines()


def test_a_gateway_that_is_gone_ends_the_wait():
    with Gateway("http://127.0.0.1:9") as client, pytest.raises(ChironError) as raised:
        wait_ready(client, "side", timeout_s=60)

    assert raised.value.code == "no-gateway"
