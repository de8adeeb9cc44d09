"""The client sends what faas-cli sends and turns what goes wrong into errors one can mend."""

import base64
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests

from chiron.cli.place import store_secrets
from chiron.openfaas.client import FunctionSpec, Gateway
from chiron.openfaas.credentials import Credentials
from chiron.openfaas.objects import GatewayInfo, Resources
from chiron.workflow.errors import ChironError
from tests.rows import each_row

ADMIN = Credentials.basic("admin", "s3cret:with-colon")
BASIC = "Basic " + base64.b64encode(b"admin:s3cret:with-colon").decode()


@pytest.fixture
def client(gateway):
    with Gateway(gateway.url, ADMIN, timeout_s=5) as client:
        yield client


def test_deploy_updates_with_put(client, gateway):
    gateway.answer("PUT /system/functions", (202, b""))

    client.deploy(FunctionSpec(service="side", image="side:latest"))

    [call] = gateway.calls
    assert call.json == {
        "service": "side",
        "image": "side:latest",
        "labels": {},
        "annotations": {},
    }
    assert call.headers["content-type"] == "application/json"


def test_deploy_creates_with_post_what_put_does_not_find(client, gateway):
    gateway.answer("PUT /system/functions", (404, b"service side not found"))
    gateway.answer("POST /system/functions", (201, b""))

    client.deploy(FunctionSpec(service="side", image="side:latest"))

    assert gateway.lines() == ["PUT /system/functions", "POST /system/functions"]
    assert gateway.calls[0].json == gateway.calls[1].json


def test_deploy_does_not_create_after_another_failure(client, gateway):
    gateway.answer("PUT /system/functions", (400, b"unable to find\nsecret: key"))

    with pytest.raises(ChironError) as raised:
        client.deploy(FunctionSpec(service="side", image="side:latest"))

    assert raised.value.code == "gateway-error"
    assert raised.value.status == 400
    assert "function side" in raised.value.message
    assert "unable to find secret: key" in raised.value.message
    assert gateway.lines() == ["PUT /system/functions"]


def test_a_full_spec_has_the_field_names_of_the_rest_api():
    spec = FunctionSpec(
        service="side",
        image="side:1",
        namespace="openfaas-fn",
        env_process="python index.py",
        env_vars={"A": "1"},
        constraints=("fast",),
        secrets=("key",),
        labels={"l": "1"},
        annotations={"a": "1"},
        limits=Resources(memory="64Mi", cpu="500m"),
        requests=Resources(),
        read_only_root_filesystem=True,
    )
    assert spec.body() == {
        "service": "side",
        "image": "side:1",
        "namespace": "openfaas-fn",
        "envProcess": "python index.py",
        "envVars": {"A": "1"},
        "constraints": ["fast"],
        "secrets": ["key"],
        "labels": {"l": "1"},
        "annotations": {"a": "1"},
        "limits": {"memory": "64Mi", "cpu": "500m"},
        "readOnlyRootFilesystem": True,
    }


def test_functions_parses_statuses_with_absent_and_null_fields(client, gateway):
    gateway.answer(
        "GET /system/functions",
        (200, [{"name": "a", "image": "a:1", "labels": None, "newField": 1, "replicas": 2}]),
    )

    [status] = client.functions()

    assert (status.name, status.replicas, status.available_replicas) == ("a", 2, 0)
    assert status.labels == {}


def test_names_cannot_leave_their_place_in_the_path(client, gateway):
    with pytest.raises(ChironError, match="nothing here"):
        client.describe("../../healthz?x=1")

    assert gateway.lines() == ["GET /system/function/..%2F..%2Fhealthz%3Fx%3D1"]


def test_remove_names_the_function_in_the_body(client, gateway):
    gateway.answer("DELETE /system/functions", (202, b""))

    client.remove("side")

    assert gateway.calls[0].json == {"functionName": "side"}


def test_remove_of_an_unknown_function_is_not_found(client, gateway):
    gateway.answer("DELETE /system/functions", (404, b"service side not found"))

    with pytest.raises(ChironError) as raised:
        client.remove("side")

    assert (raised.value.code, raised.value.status) == ("not-found", 404)
    assert "function side" in raised.value.message


def test_remove_waits_until_the_function_is_gone(client, gateway):
    gateway.answer("DELETE /system/functions", (202, b""))
    gateway.answer("GET /system/function/side", *[(200, {"name": "side"})] * 2, (404, b"gone"))

    client.remove("side")

    assert gateway.lines() == ["DELETE /system/functions", *["GET /system/function/side"] * 3]


def test_remove_waits_for_what_somebody_else_removes(client, gateway):
    gateway.answer("DELETE /system/functions", (404, b'services "side" not found'))
    gateway.answer("GET /system/function/side", *[(200, {"name": "side"})] * 2, (404, b"gone"))

    client.remove("side")

    assert gateway.lines()[-1] == "GET /system/function/side"
    assert len(gateway.calls) == 4


def test_a_removal_that_does_not_end_is_an_error_with_the_line_that_tells_more(
    client, gateway, monkeypatch
):
    monkeypatch.setattr("chiron.openfaas.client.GONE_S", 0.2)
    gateway.answer("DELETE /system/functions", (202, b""))
    gateway.answer("GET /system/function/side", (200, {"name": "side", "namespace": "mine"}))

    with pytest.raises(ChironError) as raised:
        client.remove("side")

    assert (raised.value.code, raised.value.functions) == ("not-removed", ("side",))
    assert "kubectl -n mine describe replicaset,pod -l faas_function=side" in raised.value.message


BEING_REMOVED = b'object is being deleted: deployments.apps "side" already exists'


def test_deploy_waits_for_one_of_that_name_that_is_being_removed(client, gateway):
    gateway.answer("PUT /system/functions", (404, b'services "side" not found'))
    gateway.answer("POST /system/functions", *[(500, BEING_REMOVED)] * 2, (202, b""))

    client.deploy(FunctionSpec(service="side", image="side:latest"))

    assert gateway.lines().count("POST /system/functions") == 3


def test_deploy_gives_up_where_a_removal_does_not_end(client, gateway, monkeypatch):
    monkeypatch.setattr("chiron.openfaas.client.GONE_S", 0.2)
    gateway.answer("PUT /system/functions", (404, b'services "side" not found'))
    gateway.answer("POST /system/functions", (500, BEING_REMOVED))

    with pytest.raises(ChironError, match="object is being deleted") as raised:
        client.deploy(FunctionSpec(service="side", image="side:latest"))

    assert raised.value.message.endswith(
        "kubectl -n openfaas-fn describe replicaset,pod -l faas_function=side"
    )


def test_logs_are_read_line_by_line(client, gateway):
    lines = b'{"name":"a","text":"one"}\n{"name":"a","text":"two\\n"}\n\n'
    gateway.answer("GET /system/logs", (200, lines))

    assert [line.text for line in client.logs("a", tail=2)] == ["one", "two"]
    query = gateway.calls[0].query
    assert (query["name"], query["follow"]) == ("a", "false")


@pytest.mark.parametrize(
    ("provider", "url"),
    [
        ("faasd", "http://gateway:8080"),
        ("faasd-ce", "http://gateway:8080"),
        ("faas-netes", "http://gateway.openfaas:8080"),
        ("faas-netes-ce", "http://gateway.openfaas:8080"),
        ("chiron-embedded", ""),
        ("another", ""),
    ],
)
def test_a_provider_tells_where_functions_reach_the_gateway(provider, url):
    info = GatewayInfo.model_validate({"provider": {"provider": provider}})
    assert info.url_inside == url


@pytest.mark.parametrize(
    ("provider", "one_node"),
    [("faasd", True), ("faasd-ce", True), ("chiron-embedded", True), ("faas-netes-ce", False)],
)
def test_a_provider_tells_whether_it_has_one_node(provider, one_node):
    info = GatewayInfo.model_validate({"provider": {"provider": provider}})
    assert info.one_node == one_node


def test_info_names_provider_and_release(client, gateway):
    gateway.answer(
        "GET /system/info",
        (
            200,
            {
                "provider": {
                    "provider": "faasd",
                    "orchestration": "containerd",
                    "version": {"release": "0.19.0"},
                },
                "version": {"release": "0.27.3", "commit_message": "c"},
                "arch": "x86_64",
            },
        ),
    )

    info = client.info()

    assert (info.provider.provider, info.provider.version.release) == ("faasd", "0.19.0")


def test_invoke_returns_any_answer_of_the_function(client, gateway):
    gateway.answer("POST /function/side", (500, b"boom"), (200, b"\x00out"))

    assert client.invoke("side", b"in").status_code == 500
    answer = client.invoke("side", b"in", headers={"X-Chiron-Call": "1", "Content-Type": "a/b"})

    assert answer.content == b"\x00out"
    assert gateway.calls[0].headers["content-type"] == "text/plain"
    assert gateway.calls[1].headers["content-type"] == "a/b"
    assert gateway.calls[1].headers["x-chiron-call"] == "1"
    assert gateway.calls[1].body == b"in"


def test_get_asks_a_function_for_a_path_and_returns_any_answer(client, gateway):
    gateway.answer("GET /function/side/_/wrap", (405, b"no"), (200, b"side"))

    assert client.get("side", "/_/wrap").status_code == 405
    assert client.get("side", "/_/wrap").text == "side"
    assert "authorization" not in gateway.calls[0].headers


def test_scale_asks_for_so_many_replicas(client, gateway):
    gateway.answer("POST /system/scale-function/side", (200, b""), (404, b"no such function"))

    client.scale("side", 3)
    with pytest.raises(ChironError, match="no such function"):
        client.scale("side", 3)

    assert gateway.calls[0].json == {"serviceName": "side", "replicas": 3}
    assert "authorization" in gateway.calls[0].headers


def test_only_the_gateways_own_api_sees_credentials(client, gateway, monkeypatch, tmp_path: Path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login other password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    gateway.answer("GET /system/functions", (200, []))
    gateway.answer("POST /function/side", (200, b""))

    client.functions()
    client.invoke("side", b"")

    assert gateway.calls[0].headers["authorization"] == BASIC
    assert "authorization" not in gateway.calls[1].headers


def test_tokens_are_sent_as_bearer(gateway):
    gateway.answer("GET /system/functions", (200, []))

    with Gateway(gateway.url, Credentials.bearer("t0ken")) as client:
        client.functions()

    assert gateway.calls[0].headers["authorization"] == "Bearer t0ken"


def test_connections_are_kept_alive(client, gateway):
    gateway.answer("POST /function/side", (200, b""))

    for _ in range(5):
        client.invoke("side", b"x")

    assert len({call.connection for call in gateway.calls}) == 1


def test_threads_may_share_a_client(client, gateway):
    gateway.answer("POST /function/side", (200, b"ok"))

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: client.invoke("side", b"%d" % n).content, range(40)))

    assert answers == [b"ok"] * 40
    assert sorted(call.body for call in gateway.calls) == sorted(b"%d" % n for n in range(40))


def test_a_log_ends_with_its_newest_lines_though_faasd_cuts_those_off(client, gateway):
    lines = [f'{{"name":"a","text":"{number}"}}' for number in range(100)]
    gateway.answer("GET /system/logs", (200, "\n".join(lines).encode()))

    assert [line.text for line in client.logs("a", tail=2)] == ["98", "99"]
    assert int(gateway.calls[0].query["tail"]) > 1000


@each_row(
    "refusal",
    [
        (401, b"invalid credentials"),
        (403, b'{"code": 7, "error": "access_denied", "message": "invalid credentials"}'),
    ],
)
def test_wrong_credentials_point_to_login(client, gateway, refusal):
    gateway.answer("GET /system/functions", refusal)

    with pytest.raises(ChironError) as raised:
        client.functions()

    assert (raised.value.code, raised.value.status) == ("unauthorised", 401)
    assert "refuses the credentials (invalid credentials): run" in raised.value.message
    assert f"faas-cli login -g {gateway.url}" in raised.value.message


def test_no_gateway_names_the_url_and_offers_the_embedded_one():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with Gateway(url) as client, pytest.raises(ChironError) as raised:
            client.functions()

    assert raised.value.code == "no-gateway"
    assert url in raised.value.message
    assert "--local" in raised.value.message


def test_a_gateway_that_does_not_answer_is_a_timeout():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Gateway(url, timeout_s=0.1) as client, pytest.raises(ChironError) as raised:
            client.functions()

    assert (raised.value.code, raised.value.status) == ("timeout", 504)
    assert "check -g or OPENFAAS_URL" in raised.value.message


def test_what_does_not_say_what_it_is_is_no_gateway_within_seconds(monkeypatch):
    limits = []
    request = requests.Session.request

    def noted(self, *arguments, timeout, **others):
        limits.append(timeout[1])
        return request(self, *arguments, timeout=(0.1, 0.1), **others)

    monkeypatch.setattr(requests.Session, "request", noted)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Gateway(url) as client, pytest.raises(ChironError, match="within 5 s") as raised:
            client.info()

    assert (raised.value.code, limits) == ("no-gateway", [5.0])


def test_an_address_that_nothing_answers_at_is_no_gateway():
    with ExitStack() as stack:
        crowded = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):  # then the kernel answers no more
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(crowded.getsockname())
        url = f"http://127.0.0.1:{crowded.getsockname()[1]}"
        client = stack.enter_context(Gateway(url, timeout_s=0.1))
        with pytest.raises(ChironError, match="name another with -g or OPENFAAS_URL") as raised:
            client.functions()

    assert raised.value.code == "no-gateway"


def test_what_has_no_information_is_no_gateway(client, gateway):
    gateway.answer("GET /system/info", (404, b"not here"))

    with pytest.raises(ChironError, match="not an OpenFaaS gateway: check -g") as raised:
        client.info()

    assert raised.value.code == "no-gateway"


@pytest.mark.parametrize("content", [b"<html>hello</html>", b"{}", b"null", b"[1]"])
def test_what_is_no_gateway_is_told_apart(client, gateway, content):
    gateway.answer("GET /system/functions", (200, content))

    with pytest.raises(ChironError) as raised:
        client.functions()

    assert raised.value.code == "no-gateway"
    assert "not an OpenFaaS gateway" in raised.value.message


@pytest.mark.parametrize("url", ["http:///x", "http://[", "ftp://host", "http://a:b:c"])
def test_a_url_that_cannot_be_used_is_named(url):
    with Gateway(url) as client, pytest.raises(ChironError) as raised:
        client.functions()

    assert raised.value.code == "bad-gateway-url"
    assert url in raised.value.message


def test_files_of_secrets_are_stored_under_their_names(client, gateway, tmp_path):
    gateway.answer("GET /system/secrets", (200, []))
    gateway.answer("POST /system/secrets", (201, b""))
    store_secrets(client, tmp_path / "none")
    (tmp_path / "key").write_text("swordfish\n")

    store_secrets(client, tmp_path)

    assert gateway.lines() == ["GET /system/secrets", "POST /system/secrets"]
    assert gateway.calls[1].json == {"name": "key", "value": "swordfish\n"}
    (tmp_path / "key").write_bytes(b"\xff")
    with pytest.raises(ChironError, match="key cannot be read as text"):
        store_secrets(client, tmp_path)


def test_an_empty_file_is_no_secret(client, gateway, tmp_path):
    """faas-cli stores no empty secret, and no file whose name begins with a dot."""
    (tmp_path / ".gitkeep").touch()
    store_secrets(client, tmp_path)
    (tmp_path / "key").write_text("\n")
    with pytest.raises(ChironError, match="key is empty: write its value") as raised:
        store_secrets(client, tmp_path)
    assert (raised.value.code, gateway.lines()) == ("bad-secret", [])


def test_an_empty_value_is_a_value(client, gateway):
    gateway.answer("GET /system/secrets", (200, []))
    gateway.answer("POST /system/secrets", (201, b""))
    client.ensure_secret("key", value="")
    assert gateway.calls[-1].json == {"name": "key", "value": ""}


def test_a_secret_that_another_deployment_creates_meanwhile_is_there(client, gateway):
    gateway.answer("GET /system/secrets", (200, []), (200, [{"name": "proof"}]))
    gateway.answer("POST /system/secrets", (409, b"secret proof already exists"))
    gateway.answer("PUT /system/secrets", (200, b""))

    client.ensure_secret("proof")
    assert "PUT /system/secrets" not in gateway.lines()

    gateway.answer("GET /system/secrets", (200, []), (200, [{"name": "proof"}]))
    client.ensure_secret("proof", value="mine")
    assert (gateway.calls[-1].line, gateway.calls[-1].json["value"]) == (
        "PUT /system/secrets",
        "mine",
    )

    gateway.answer("GET /system/secrets", (200, []))
    with pytest.raises(ChironError, match="409"):
        client.ensure_secret("proof")


TAKEN = (200, {"name": "side", "image": "side:2", "annotations": {"a": "2", "theirs": "x"}})
BEFORE = (200, {"name": "side", "image": "side:1", "annotations": {"a": "1"}})
SECOND = FunctionSpec(service="side", image="side:2", annotations={"a": "2"})
KUBERNETES = (200, {"provider": {"provider": "faas-netes", "orchestration": "kubernetes"}})


def test_an_update_that_kubernetes_did_not_make_is_sent_again(client, gateway):
    """faas-netes answers 200 to an update that failed, and 202 to one that it made."""
    gateway.answer("GET /system/info", KUBERNETES)
    gateway.answer("PUT /system/functions", (200, b""), (202, b""))
    gateway.answer("GET /system/function/side", BEFORE)

    client.deploy(SECOND)

    assert gateway.lines().count("PUT /system/functions") == 2


def test_an_update_that_met_the_end_of_a_removal_creates_the_function(client, gateway):
    gateway.answer("GET /system/info", KUBERNETES)
    gateway.answer("PUT /system/functions", (200, b""), (404, b"not found"))
    gateway.answer("POST /system/functions", (202, b""))
    gateway.answer("GET /system/function/side", (404, b"gone"))

    client.deploy(SECOND)

    assert gateway.lines()[-1] == "POST /system/functions"


def test_an_update_that_the_gateway_tells_is_not_sent_again(client, gateway):
    gateway.answer("GET /system/info", KUBERNETES)
    gateway.answer("PUT /system/functions", (200, b""))
    gateway.answer("GET /system/function/side", TAKEN)

    client.deploy(SECOND)

    assert gateway.lines().count("PUT /system/functions") == 1


def test_faasd_is_not_asked_for_an_image_that_it_names_otherwise(client, gateway):
    gateway.answer("GET /system/info", (200, {"provider": {"provider": "faasd"}}))
    gateway.answer("PUT /system/functions", (200, b""))

    client.deploy(SECOND)

    assert gateway.lines() == ["PUT /system/functions", "GET /system/info"]


def test_an_update_that_is_never_made_is_an_error_that_says_where_to_look(
    client, gateway, monkeypatch
):
    monkeypatch.setattr("chiron.openfaas.client._TAKEN_S", 0.2)
    gateway.answer("GET /system/info", KUBERNETES)
    gateway.answer("PUT /system/functions", (200, b""))
    gateway.answer("GET /system/function/side", BEFORE)

    with pytest.raises(ChironError, match="function side, but it was not updated") as raised:
        client.deploy(SECOND)

    assert raised.value.code == "gateway-error"
    assert "kubectl -n openfaas logs deploy/gateway -c faas-netes" in raised.value.message


CONFLICT = b"unable to update function deployment: side"


def test_replicas_are_asked_for_again_where_kubernetes_was_changing_the_function(client, gateway):
    gateway.answer("POST /system/scale-function/side", *[(500, CONFLICT)] * 2, (202, b""))

    client.scale("side", 3)

    assert len(gateway.calls) == 3


def test_the_last_lines_of_a_log_are_the_newest_of_all_replicas(client, gateway):
    """faas-netes tells the lines of one replica after those of another."""
    lines = [
        f'{{"name":"a","instance":"{pod}","text":"{pod}{second}",'
        f'"timestamp":"2026-11-30T10:00:0{second}.{fraction}Z"}}'
        for pod, fraction in {"x": "5", "y": "55"}.items()
        for second in (1, 2)
    ]
    gateway.answer("GET /system/logs", (200, "\n".join(lines).encode()))

    assert [line.text for line in client.logs("a", tail=3)] == ["y1", "x2", "y2"]


OF_PRO = {
    "com.openfaas.scale.type": "rps",
    "com.openfaas.scale.target": "20",
    "com.openfaas.scale.target-proportion": "1",
}


@pytest.mark.parametrize(
    ("provider", "labels"),
    [("faas-netes-ce", {"team": "a"}), ("faas-netes", {"team": "a"} | OF_PRO)],
)
def test_the_community_edition_is_not_sent_the_labels_that_it_refuses(
    client, gateway, provider, labels
):
    gateway.answer("GET /system/info", (200, {"provider": {"provider": provider}}))
    gateway.answer("PUT /system/functions", (202, b""))

    client.deploy(FunctionSpec(service="side", image="side:2", labels={"team": "a"} | OF_PRO))

    assert gateway.calls[-1].json["labels"] == labels
