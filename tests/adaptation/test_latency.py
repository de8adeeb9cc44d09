"""Latencies are read from metrics in OpenFaaS's form, or measured where there are none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chiron.adaptation.latency import GatewayMetrics, Probes, Totals, find_latencies
from chiron.adaptation.rules import Window
from chiron.openfaas.client import Gateway
from chiron.openfaas.objects import FunctionStatus
from chiron.workflow.errors import ChironError
from chiron.workflow.payloads import Payload
from tests.serving import Answering, served

#: What is sent.
ONE = (Payload("payload.json", b"x"),)
#: As a gateway of OpenFaaS writes it: a status to every time, and namespaces in names.
OPENFAAS = """\
# TYPE gateway_functions_seconds histogram
gateway_functions_seconds_bucket{code="200",function_name="w1.openfaas-fn",le="+Inf"} 40
gateway_functions_seconds_sum{code="200",function_name="w1.openfaas-fn"} 6.0
gateway_functions_seconds_count{code="200",function_name="w1.openfaas-fn"} 40
gateway_functions_seconds_sum{code="500",function_name="w1.openfaas-fn"} 100.0
gateway_functions_seconds_count{code="500",function_name="w1.openfaas-fn"} 10
gateway_functions_seconds_sum{code="200",function_name="w1-a.openfaas-fn"} 7.0
gateway_functions_seconds_count{code="200",function_name="w1-a.openfaas-fn"} 7
# TYPE gateway_service_count gauge
gateway_service_count{function_name="w1.openfaas-fn"} 1
"""
#: As the embedded gateway does, which tells no status.
EMBEDDED = """\
# TYPE gateway_functions_seconds histogram
gateway_functions_seconds_count{function_name="w1.openfaas-fn"} 50
gateway_functions_seconds_sum{function_name="w1.openfaas-fn"} 8.5
"""


@dataclass
class Page:
    """What stands at a URL, one text after the other; the last one stays."""

    url: str
    texts: list[str] = field(default_factory=list)


@pytest.fixture
def page() -> Iterator[Page]:
    class Handler(Answering):
        def do_GET(self) -> None:
            texts = made.texts
            content = (texts.pop(0) if len(texts) > 1 else texts[0]).encode() if texts else b""
            self.answer(200 if content else 404, content)

    with served(Handler) as url:
        made = Page(url)
        yield made


def no_wait(seconds: float) -> None:
    pass


class Wraps:
    """A gateway with some replicas of a wrap, of which each has counted requests and seconds."""

    def __init__(self, replicas: int = 1) -> None:
        self.replicas = replicas
        self.counted: dict[str, tuple[int, float]] = {}
        #: How many of the requests took up to half a second.
        self.quick = 0
        self.asked = 0

    def describe(self, name: str) -> FunctionStatus:
        return FunctionStatus(name=name, replicas=self.replicas, available_replicas=self.replicas)

    def get(self, name: str, path: str, timeout_s: float) -> Any:
        if not self.counted:
            raise ChironError("timeout", "late")
        replica = [*self.counted][self.asked % len(self.counted)]
        self.asked += 1
        requests, seconds = self.counted[replica]
        told = {
            f'chiron_replica_info{{replica="{replica}"}}': 1,
            "chiron_requests_in_hand": 0,
            "chiron_requests_waiting": 0,
            "chiron_requests_at_once": 4,
            "chiron_pressure_seconds_total": 0,
            'http_requests_total{code="200",method="post"}': requests,
            'http_request_duration_seconds_sum{code="200",method="post"}': seconds,
            'http_request_duration_seconds_bucket{code="200",method="post",le="0.5"}': self.quick,
            'http_request_duration_seconds_bucket{code="200",method="post",le="+Inf"}': requests,
        }
        return SimpleNamespace(ok=True, text="".join(f"{k} {v}\n" for k, v in told.items()))


@pytest.fixture
def wraps() -> Wraps:
    return Wraps()


@pytest.fixture
def metrics(page, wraps) -> GatewayMetrics:
    return GatewayMetrics(cast(Gateway, wraps), f"{page.url}/metrics", no_wait)


def counted(calls: int, seconds: float) -> str:
    """What a gateway has counted of the wrap w1."""
    name = 'function_name="w1.openfaas-fn"'
    return (
        "# TYPE gateway_functions_seconds histogram\n"
        f"gateway_functions_seconds_count{{{name}}} {calls}\n"
        f"gateway_functions_seconds_sum{{{name}}} {seconds}\n"
    )


@pytest.mark.parametrize(
    ("text", "function", "totals"),
    [
        (OPENFAAS, "w1", Totals(40, 6.0)),
        (OPENFAAS, "w1-a", Totals(7, 7.0)),
        (OPENFAAS, "w2", Totals(0, 0.0)),
        (EMBEDDED, "w1", Totals(50, 8.5)),
    ],
)
def test_the_answers_of_one_function_are_added_up_without_errors(
    text, function, totals, page, metrics
):
    page.texts = [text]
    assert metrics.totals(function) == totals


def test_a_window_is_what_came_between_two_looks(page, metrics):
    page.texts = [OPENFAAS, EMBEDDED]
    assert metrics.window("w1", 60.0, None) == Window(10, pytest.approx(250.0))


@pytest.mark.parametrize("looks", [0, 5, 1000])
def test_what_asks_for_metrics_is_no_request_however_often_it_does(looks, page, wraps):
    """10 requests of 0.2 s, and looks that take no time but that of the way, 0.01 s."""
    wraps.counted = {"a": (7, 3.0)}

    def pass_time(_: float) -> None:
        wraps.counted = {"a": (17, 5.0)}

    page.texts = [counted(30, 4.0), counted(40 + looks, 4.0 + 10 * 0.21 + looks * 0.01)]
    metrics = GatewayMetrics(cast(Gateway, wraps), f"{page.url}/metrics", pass_time)
    window = metrics.window("w1", 60.0, None)
    assert (window.requests, window.mean_ms) == (10, pytest.approx(210.0))
    assert window.arrived == 10 and 0 < window.seconds < 60


def test_looks_alone_are_no_requests(page, wraps, metrics):
    wraps.counted = {"a": (7, 3.0)}
    page.texts = [counted(30, 4.0), counted(90, 4.6)]
    window = metrics.window("w1", 60.0, None)
    assert (window.requests, window.arrived) == (0, 0)


def test_replicas_that_were_heard_twice_stand_for_all(page):
    """20 requests of each of 4 replicas, of which 2 are heard twice, and one for the first time."""
    wraps = Wraps(replicas=4)
    wraps.counted = {"a": (0, 0.0), "b": (0, 0.0)}

    def pass_time(_: float) -> None:
        wraps.counted = {"a": (20, 2.0), "b": (20, 6.0), "new": (500, 1.0)}

    page.texts = [counted(0, 0.0), counted(80, 80 * 0.2 + 80 * 0.01)]
    metrics = GatewayMetrics(cast(Gateway, wraps), f"{page.url}/metrics", pass_time)
    window = metrics.window("w1", 60.0, None)
    assert (window.requests, window.mean_ms, window.arrived) == (80, pytest.approx(210.0), 80)


@pytest.mark.parametrize("others", [{}, {"b": (20, 6.0)}])
def test_a_replica_that_is_new_has_counted_since_it_started(others, page):
    """All replicas were heard before: one was replaced, or there are more of them now."""
    wraps = Wraps(replicas=1)
    wraps.counted = {"a": (7, 3.0)}

    def pass_time(_: float) -> None:
        wraps.replicas, wraps.counted = 1 + len(others), {"new": (10, 2.0)} | others

    requests, seconds = 10 + 20 * len(others), 2.0 + 6.0 * len(others)
    page.texts = [counted(30, 4.0), counted(30 + requests, 4.0 + seconds + requests * 0.01)]
    metrics = GatewayMetrics(cast(Gateway, wraps), f"{page.url}/metrics", pass_time)
    window = metrics.window("w1", 60.0, None)
    assert (window.requests, window.arrived) == (requests, requests)
    assert window.mean_ms == pytest.approx(1000 * seconds / requests + 10)


@pytest.mark.parametrize(("slo_ms", "timed", "late"), [(500.0, 20, 3), (400.0, 0, 0)])
def test_requests_over_the_slo_are_those_that_wraps_have_counted(slo_ms, timed, late, page, wraps):
    """Of two replicas one is heard; an SLO that is no bound of its buckets is not known."""
    wraps.replicas, wraps.counted, wraps.quick = 2, {"a": (7, 3.0)}, 7

    def pass_time(_: float) -> None:
        wraps.counted, wraps.quick = {"a": (27, 7.0)}, 24

    page.texts = [counted(0, 0.0), counted(40, 40 * 0.21)]
    metrics = GatewayMetrics(cast(Gateway, wraps), f"{page.url}/metrics", pass_time)
    window = metrics.window("w1", 60.0, slo_ms)
    assert (window.requests, window.mean_ms) == (40, pytest.approx(210.0))
    assert (window.timed, window.late) == (timed, late)


def test_a_gateway_that_was_started_anew_tells_nothing_of_that_window(page, metrics):
    page.texts = [EMBEDDED, OPENFAAS]
    assert metrics.window("w1", 60.0, None) == Window(0, 0.0)


@pytest.mark.parametrize("text", ["", "<html>", "process_cpu_seconds_total 3.0\n"])
def test_what_is_no_gateways_page_is_told_with_its_url(text, page, metrics):
    page.texts = [text]
    with pytest.raises(ChironError, match=f"{page.url}/metrics") as raised:
        metrics.totals("w1")
    assert raised.value.code == "no-metrics"


def test_a_gateway_that_is_away_is_told_as_that():
    metrics = GatewayMetrics(cast(Gateway, None), "http://127.0.0.1:9/metrics", no_wait)
    with pytest.raises(ChironError, match="nothing answers at http"):
        metrics.totals("w1")


def test_probes_are_sent_where_the_gateway_has_no_metrics_and_none_were_named(page):
    with Gateway(page.url) as gateway:
        probes = Probes(gateway, "w", "pgp", ONE, no_wait, 1)
        assert find_latencies(gateway, None, probes) is probes
        with pytest.raises(ChironError):
            find_latencies(gateway, f"{page.url}/other", probes)
        page.texts = [EMBEDDED]
        assert isinstance(find_latencies(gateway, None, probes), GatewayMetrics)


def test_probes_run_the_deployed_workflow(place, watcher):
    watcher().run(once=True)
    probes = Probes(place.gateway, "pair", "pgp", ONE, no_wait, 3)
    window = probes.window("pair-wrap1", 1.0, None)
    assert (window.requests, window.timed, window.late) == (3, 0, 0)
    assert window.mean_ms > 0
    for slo_ms, late in ((1e-6, 3), (1e6, 0)):
        window = probes.window("pair-wrap1", 1.0, slo_ms)
        assert (window.timed, window.late) == (3, late)
