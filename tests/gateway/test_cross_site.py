"""No web page manages the gateway through a browser, and no other machine without a secret."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
import requests

from chiron.gateway.access import Credentials, is_loopback, refuse_cross_site
from chiron.gateway.embedded import EmbeddedGateway
from chiron.gateway.server import listen
from chiron.workflow.errors import ChironError
from tests.rows import each_row

TIMEOUT_S = 60
BODY = '{"name": "planted", "value": "x"}'
JSON = {"Content-Type": "application/json"}
FOREIGN = {"Origin": "http://elsewhere.example"}
REBOUND = {"Host": "elsewhere.example"}


@pytest.fixture
def send(gateway):
    """Send a request as a browser might; the secret that it may have planted is removed."""

    def request(method, path, headers, body=None, url=gateway.url, **options):
        url = f"{url}/{path}"
        return requests.request(
            method, url, data=body, headers=headers, timeout=TIMEOUT_S, **options
        )

    yield request
    removal = {"url": f"{gateway.url}/system/secrets", "json": {"name": "planted"}}
    requests.delete(**removal, timeout=TIMEOUT_S)


@each_row(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "text/plain; a=application/json"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=b"},
        {},  # as a script sends a Blob without a type
    ],
)
def test_what_any_page_may_post_is_refused(send, headers):
    for body in (BODY, iter([BODY.encode()])):
        assert send("POST", "system/secrets", headers, body).status_code == 415
    assert send("GET", "system/secrets", {}).json() == []


@each_row("method", ["GET", "POST", "PUT", "DELETE"])
@each_row(
    "headers",
    [FOREIGN, REBOUND, {"Origin": "null"}, {"Host": "elsewhere.example:8080"}, {"Host": ""}],
)
def test_pages_of_other_sites_and_under_rebound_names_are_refused(send, method, headers):
    for path in ("functions", "secrets"):
        assert send(method, f"system/{path}", JSON | headers, BODY).status_code == 403
    assert send("GET", "system/secrets", {}).json() == []


def test_a_browser_that_asks_first_is_not_encouraged(send):
    for method in ("DELETE", "PUT", "POST"):
        asks = FOREIGN | {
            "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": "content-type",
        }
        answer = send("OPTIONS", "system/functions", asks)
        assert not answer.ok
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_a_page_of_the_gateways_own_origin_may_use_it(send, gateway):
    for host in (urlsplit(gateway.url).netloc, "localhost:1", "[::1]:1", "LocalHost"):
        own = JSON | {"Origin": f"http://{host}", "Host": host}
        assert send("POST", "system/secrets", own, BODY).status_code in (200, 409)


def test_metrics_are_not_for_rebound_names(send):
    assert send("GET", "metrics", REBOUND).status_code == 403
    assert send("GET", "metrics", FOREIGN).status_code == 403
    assert send("GET", "metrics", {}).status_code == 200
    assert send("GET", "healthz", REBOUND).text == "OK"


def test_functions_may_be_called_from_any_page(deploy, send):
    function = deploy()
    answer = send("POST", f"function/{function.name}", FOREIGN | REBOUND, "hello")
    assert (answer.status_code, answer.text) == (200, "hello")


def test_with_credentials_any_name_will_do_and_no_other_origin(store, send):
    with EmbeddedGateway(images=store.root, user="admin", password="long-enough") as guarded:  # noqa: S106
        to = {"url": guarded.url, "auth": ("admin", "long-enough")}
        assert send("GET", "system/functions", REBOUND, **to).status_code == 200
        # A browser remembers credentials and sends them for the pages of others.
        assert send("GET", "system/functions", FOREIGN, **to).status_code == 403
        assert send("POST", "system/secrets", {}, BODY, **to).status_code == 415
        assert send("GET", "metrics", REBOUND, **to).status_code == 403


def test_what_the_gateway_itself_posts_for_a_caller_manages_nothing(deploy, callback, send):
    function = deploy("""
        def handle(request):
            return 200, {"Content-Type": "application/json"}, request.body
    """)
    headers = {"X-Callback-Url": callback.url}
    send("POST", f"async-function/{function.name}", headers, BODY)
    delivered, body = callback.get(timeout=TIMEOUT_S)
    assert body.decode() == BODY

    answer = send("POST", "system/secrets", dict(delivered) | {"Host": "localhost"}, body)

    assert answer.status_code == 403
    assert send("GET", "system/secrets", {}).json() == []


@each_row(
    "host",
    [
        None,
        "",
        "localhost.elsewhere.example",
        "127.0.0.1.elsewhere.example",
        "127.0.0.1@elsewhere.example",
        "127.1",
        "2130706433",
        "::1",
        "[::1",
        "[elsewhere.example]",
        "localhost:80:80",
        "localhost:x",
    ],
)
def test_only_addresses_and_localhost_are_no_names(host):
    for fine in ("127.0.0.1", "127.0.0.1:8080", "localhost:", "[::1]:80", "192.0.2.1:80"):
        refuse_cross_site("GET", {"Host": fine}.get)
    with pytest.raises(ChironError) as refusal:
        refuse_cross_site("GET", {"Host": host}.get)
    assert (refusal.value.status, refusal.value.code) == (403, "unknown-host")


@each_row("host", ["", "0.0.0.0", "::", "192.0.2.1", "example.com"])  # noqa: S104
def test_without_credentials_the_gateway_is_for_this_machine_alone(host):
    assert not is_loopback(host)
    with pytest.raises(ChironError, match=r"CHIRON_GATEWAY_USER") as refusal:
        listen(host, 0, None)
    assert refusal.value.code == "no-credentials"


@each_row("host", ["127.0.0.1", "127.0.0.2", "localhost"])
def test_this_machine_needs_no_credentials_and_others_may_have_them(host):
    with listen(host, 0, None) as listener:
        assert listener.getsockname()[0].startswith("127.")
    with listen("0.0.0.0", 0, Credentials("a", "b")) as listener:  # noqa: S104
        assert listener.getsockname()[0] == "0.0.0.0"  # noqa: S104
