"""The management API answers each call of faas-cli with the status and body of a real gateway."""

from __future__ import annotations

import base64
import json

import pytest
import requests

from tests.rows import each_row

TIMEOUT_S = 60


@pytest.fixture
def system(gateway):
    """Send a request to /system/..."""

    def send(method, path, body=None):
        text = body if isinstance(body, str | bytes) else json.dumps(body)
        url = f"{gateway.url}/system/{path}"
        headers = {"Content-Type": "application/json"}
        data = None if body is None else text
        return requests.request(method, url, data=data, headers=headers, timeout=TIMEOUT_S)

    return send


def test_an_empty_list_is_an_empty_array_and_never_null(system):
    answer = system("GET", "functions?namespace=elsewhere")
    assert (answer.status_code, answer.text) == (200, "[]")


def test_put_of_an_unknown_function_is_404_so_that_the_client_posts(system, make_image):
    make_image("echo")
    answer = system("PUT", "functions", {"service": "nobody", "image": "echo"})
    assert (answer.status_code, answer.text) == (404, "service nobody not found\n")


def test_post_of_an_existing_function_is_400(system, echo):
    answer = system("POST", "functions", {"service": echo.name, "image": echo.name})
    assert answer.status_code == 400
    assert f"service {echo.name} already exists" in answer.text
    assert answer.headers["Content-Type"].startswith("text/plain")


@each_row(
    ("change", "named"),
    [
        ({"image": "never-built"}, "image never-built not found"),
        ({"secrets": ["no-such-key"]}, "secret no-such-key not found"),
        ({"service": "Bad_Name"}, "'Bad_Name'"),
        ({"service": None}, "service"),
        ({"image": "../../etc"}, "'../../etc'"),
        ({"namespace": "elsewhere"}, "namespace elsewhere not found"),
        ({"limits": {"memory": "much"}}, "memory 'much'"),
        ({"limits": {"cpu": "-1"}}, "cpu '-1'"),
        ({"envVars": {"exec_timeout": "soon"}}, "duration 'soon'"),
        ({"envVars": {"max_inflight": "few"}}, "max_inflight: 'few'"),
        ({"envVars": {"a": 1}}, "envVars.a"),
        ({"labels": {"com.openfaas.scale.min": "1000"}}, "replicas"),
        ({"labels": {"com.openfaas.scale.min": "9" * 5000}}, "scale.min"),
        ({"envVars": {"max_inflight": "9" * 5000}}, "max_inflight"),
        ({"envVars": {"exec_timeout": "9" * 400 + "s"}}, "duration"),
        ({"limits": {"memory": "9" * 400}}, "memory"),
        ({"limits": {"cpu": "9" * 400}}, "cpu"),
        ({"limits": {"memory": "\u0663Gi"}}, "memory"),
    ],
)
def test_a_bad_deployment_is_400_and_names_what_is_wrong(system, echo, change, named):
    body = {"service": "bad", "image": echo.name, **change}
    answer = system("POST", "functions", body)
    assert answer.status_code == 400
    assert named in answer.text
    assert answer.text.count("\n") == 1
    assert system("GET", "function/bad").status_code == 404


@each_row(
    "body",
    [
        "",
        "{",
        "[]",
        '"text"',
        "[" * 100_000,
        '{"service":' * 90_000,
        '{"replicas": %s}' % ("9" * 5000),
        '{"functionName": "x\\ud800", "name": "x", "value": "\\ud800", "replicas": 1}',
        '{"functionName": "x", "name": "x", "namespace": "\\udfff", "service": "x", "image": "x"}',
        b"\xff\xfe{",
    ],
    ids=range(10),
)
def test_a_body_that_is_no_json_object_of_a_size_and_depth_that_can_be_read_is_400(
    system, echo, body
):
    scale = f"scale-function/{echo.name}"
    for method in ("POST", "PUT", "DELETE"):
        for path in ("functions", "secrets"):
            assert system(method, path, body).status_code == 400
    assert system("POST", scale, body).status_code == 400


@each_row("charset", ["nonsense", "hex", "utf-16", "idna"])
def test_json_is_utf_8_whatever_is_said_of_it(gateway, charset):
    url = f"{gateway.url}/system/functions"
    headers = {"Content-Type": f"application/json; charset={charset}"}
    body = '{"functionName": "nobody"}'
    answer = requests.delete(url, data=body, headers=headers, timeout=TIMEOUT_S)
    assert answer.status_code == 404


@each_row(
    "path",
    [
        "function/%00%ff",
        "function/%ed%a0%80",
        "functions?namespace=%ff&namespace=%00",
        "functions?%",
        "logs?name=%ff",
        f"logs?name=NAME&tail={'9' * 5000}",
        "logs?name=NAME&tail=%ff",
        "logs?name=NAME&since=99999-01-01",
        "logs?name=NAME&since=0001-01-01T00:00:00%2B23:59",
        "logs?name=NAME&since=9999-12-31T23:59:59-23:59",
        "logs?name=NAME&since=%00&follow=%ff&instance=%ff",
    ],
)
def test_no_address_is_a_fault_of_the_gateway(system, echo, path):
    echo.post()
    assert system("GET", path.replace("NAME", echo.name)).status_code < 500


def test_a_deployment_may_say_null_for_what_it_leaves_out(deploy):
    function = deploy(labels=None, envVars=None, secrets=None, limits=None, constraints=None)
    assert function.post("hello").text == "hello"


def test_describe_says_what_was_deployed(deploy, wait_until):
    function = deploy(labels={"team": "blue"}, envVars={"colour": "red"}, limits={"memory": "1Gi"})
    function.post()
    wait_until(lambda: function.describe()["invocationCount"] == 1.0)
    status = function.describe(usage=True)
    assert status["name"] == status["image"] == function.name
    assert status["namespace"] == "openfaas-fn"
    assert status["labels"] == {"team": "blue"}
    assert status["envVars"] == {"colour": "red"}
    assert status["limits"] == {"memory": "1Gi"}
    assert status["replicas"] == status["availableReplicas"] == 1
    assert status["createdAt"].endswith("Z")
    assert status["usage"]["totalMemoryBytes"] > 1 << 20
    assert status["usage"]["cpu"] > 0
    assert "service" not in status


def test_list_has_every_function_once(system, echo, deploy):
    names = {echo.name, deploy().name}
    listed = [entry["name"] for entry in system("GET", "functions?namespace=openfaas-fn").json()]
    assert names <= set(listed)
    assert len(listed) == len(set(listed))


@each_row(
    ("method", "path", "body"),
    [
        ("GET", "function/nobody", None),
        ("DELETE", "functions", {"functionName": "nobody"}),
        ("POST", "scale-function/nobody", {"serviceName": "nobody", "replicas": 1}),
        ("GET", "logs?name=nobody", None),
        ("PUT", "secrets", {"name": "nobody", "value": "x"}),
        ("DELETE", "secrets", {"name": "nobody"}),
    ],
)
def test_what_does_not_exist_is_404(system, method, path, body):
    assert system(method, path, body).status_code == 404


@each_row("replicas", [-1, 1000, "two", None, True, 1.0, 10**4000])
def test_a_bad_number_of_replicas_is_400(system, echo, replicas):
    answer = system("POST", f"scale-function/{echo.name}", {"replicas": replicas})
    assert answer.status_code == 400


def test_secrets_are_listed_by_name_and_their_values_never_come_out(system):
    raw = base64.b64encode(b"\x00\xff").decode()
    assert system("POST", "secrets", {"name": "first", "value": "hidden"}).status_code == 200
    assert system("POST", "secrets", {"name": "second", "rawValue": raw}).status_code == 200
    assert system("POST", "secrets", {"name": "first", "value": "again"}).status_code == 409
    assert system("PUT", "secrets", {"name": "first", "value": "changed"}).status_code == 200
    listed = system("GET", "secrets")
    assert listed.json() == [
        {"name": "first", "namespace": "openfaas-fn"},
        {"name": "second", "namespace": "openfaas-fn"},
    ]
    for name in ("first", "second"):
        assert system("DELETE", "secrets", {"name": name}).status_code == 200
    assert system("GET", "secrets").text == "[]"


@each_row("name", ["../escape", "", ".hidden", "a/b"])
def test_a_secret_whose_name_could_leave_its_folder_is_400(system, name):
    assert system("POST", "secrets", {"name": name, "value": "x"}).status_code == 400


def test_info_lets_a_client_know_the_embedded_gateway(system):
    info = system("GET", "info").json()
    assert info["provider"]["provider"] == "chiron-embedded"
    assert set(info["provider"]) == {"provider", "version", "orchestration"}
    assert set(info["provider"]["version"]) == {"sha", "release"}
    assert set(info["version"]) == {"commit_message", "sha", "release"}
    assert info["arch"]
