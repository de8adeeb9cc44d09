"""Wraps that take part in each other's executions: straight to consumers, and after losses."""

from __future__ import annotations

import contextlib
import json
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from wrap.core.program import keys
from wrap.core.triggers import buckets

from tests.templates.network import Stalls, gateways

NAMES = ("test-home", "test-far", "test-near")
#: Notes that it has run, and waits or ends where its folder says so.
HANDLER = """
import json, os, pathlib, time

FOLDER = pathlib.Path({folder!r})

def handle(req):
    text = req if isinstance(req, str) else req.decode()
    with open(FOLDER / "ran-{name}", "a") as ran:
        ran.write("x")
    with open(FOLDER / "pid-{name}", "w") as pid:
        pid.write(str(os.getpid()))
    (FOLDER / "began-{name}").touch()
    while (FOLDER / "hold-{name}").exists():
        time.sleep(0.005)
    if (FOLDER / "die-{name}").exists():
        (FOLDER / "die-{name}").unlink()
        os.kill(os.getpid(), 9)
    return json.dumps(["{name}", text])
"""


class Cluster:
    """Three wraps of one workflow; each of the others is reached through a relay of ours."""

    def __init__(self, image: Any, start: Any, gateway: Any, folder: Path) -> None:
        self._image, self._start, self.gateway, self.folder = image, start, gateway, folder
        self._images: dict[str, Path] = {}
        self.servers: dict[str, Any] = {}

    def begin(
        self,
        place: dict[int, tuple[str, int]],
        inputs: dict[int, Any],
        output: Any,
        attempts: int = 2,
        mechanism: str = "pool",
        trigger: str = "data",
        timeout_s: float = 30.0,
        **settings: str,
    ) -> None:
        """Tasks by their wraps and processes; task 3 runs function f3."""
        needs = {task: [k for k in keys(of) if k is not None] for task, of in inputs.items()}
        level: dict[int, int] = {}
        for task in inputs:
            level[task] = 1 + max((level[each] for each in needs[task]), default=-1)
        stages = [[t for t in inputs if level[t] == n] for n in range(max(level.values()) + 1)]
        made = buckets(needs, stages, trigger)  # type: ignore[arg-type]
        for name in NAMES:
            tasks = {task: f"f{task}" for task, (where, _) in place.items() if where == name}
            last = max((process for where, process in place.values() if where == name), default=0)
            self._images[name] = self._image(
                {f: HANDLER.format(folder=str(self.folder), name=f) for f in tasks.values()},
                [[t for t in tasks if place[t][1] == p] for p in range(last + 1)],
                tasks=tasks,
                name=name,
                mechanism=mechanism,
                inputs=inputs,
                buckets=[(list(awaits), list(starts)) for awaits, starts in made],
                remotes={
                    other: {t: f"f{t}" for t, (where, _) in place.items() if where == other}
                    for other in NAMES
                    if other != name
                },
                entry={"output": output} if name == NAMES[0] else None,
                attempts=attempts,
                timeout_s=timeout_s,
            )
        secrets = self.folder / "secrets"
        secrets.mkdir()
        (secrets / "chiron-direct").write_text("a secret")
        self._settings = settings
        for name in NAMES:
            self.start(name)

    def start(self, name: str) -> None:
        settings = {"secrets_dir": str(self.folder / "secrets"), "chiron_trace_key": "key"}
        settings |= self._settings
        server = self._start(self._images[name], gateway_url=self.gateway.url, **settings)
        self.servers[name] = server
        self.gateway.ports[name] = server.port

    def ask(self, body: str = "in") -> Any:
        return self.servers[NAMES[0]].request(body=body)

    def kill(self, name: str) -> None:
        self.servers[name].process.kill()
        self.servers[name].process.wait()
        self.start(name)

    def hold(self, *names: str) -> None:
        for name in names:
            (self.folder / f"hold-{name}").touch()

    def let_go(self, *names: str) -> None:
        for name in names:
            (self.folder / f"hold-{name}").unlink()

    def has_begun(self, name: str) -> bool:
        return (self.folder / f"began-{name}").exists()

    def forget(self) -> None:
        """Have no task have run."""
        for note in self.folder.glob("*-f?"):
            note.unlink()

    def runs(self, name: str) -> int:
        with suppress(OSError):
            return len((self.folder / f"ran-{name}").read_text())
        return 0


@pytest.fixture
def cluster(wrap_image: Any, start: Any, gateway: Any, tmp_path: Path) -> Cluster:
    folder = tmp_path / "cluster"
    folder.mkdir()
    return Cluster(wrap_image, start, gateway, folder)


#: 0 in the home, then 1 and 2 far, 3 near, 4 in the home again.
CHAIN_INPUTS: dict[int, Any] = {0: None, 1: 0, 2: 1, 3: 2, 4: 3}


def chain(far: int = 0, near: int = 0) -> dict[int, tuple[str, int]]:
    home, distant, close = NAMES
    return {0: (home, 0), 1: (distant, far), 2: (distant, far), 3: (close, near), 4: (home, 0)}


@pytest.fixture(scope="module")
def standing(shared_image: Any, shared_start: Any, tmp_path_factory: Any) -> Iterator[Any]:
    """Gives the cluster of a chain that all tests have; no task of it has run."""
    found = dict[tuple[int, int], Cluster]()
    with ExitStack() as gateway_each:

        def standing(far: int = 0, near: int = 0) -> Cluster:
            if (far, near) not in found:
                gateway = gateway_each.enter_context(contextmanager(gateways)())
                folder = tmp_path_factory.mktemp("cluster")
                found[far, near] = Cluster(shared_image, shared_start, gateway, folder)
                found[far, near].begin(chain(far, near), CHAIN_INPUTS, 4)
            found[far, near].forget()
            return found[far, near]

        yield standing


def nested(inputs: dict[int, Any], output: Any, request: str) -> str:
    """What the handlers make of a request."""
    made: dict[int, str] = {}

    def of(source: Any) -> str:
        if source is None:
            return request
        if isinstance(source, list):
            return "[" + ",".join(made[each] for each in source) + "]"
        return made[source]

    for task, source in inputs.items():
        made[task] = json.dumps([f"f{task}", of(source)])
    return of(output)


def test_what_a_task_gives_goes_straight_to_who_waits_for_it(standing, in_background, eventually):
    cluster = standing()
    assert cluster.ask().text == nested(CHAIN_INPUTS, 4, "in")
    cluster.forget()
    calls = cluster.gateway.calls
    cluster.hold("f2")
    answer = in_background(cluster.ask)
    assert eventually(lambda: cluster.has_begun("f2"))
    home = cluster.servers[NAMES[0]].process
    home.send_signal(signal.SIGSTOP)
    cluster.let_go("f2")
    assert eventually(lambda: cluster.has_begun("f3"))
    home.send_signal(signal.SIGCONT)
    assert answer.result().text == nested(CHAIN_INPUTS, 4, "in")
    assert cluster.gateway.calls == calls


@pytest.mark.parametrize("seed", [0, 3])
def test_any_graph_over_wraps_and_processes_answers_right(cluster: Cluster, seed: int) -> None:
    order = random.Random(seed)
    inputs: dict[int, Any] = {}
    for task in range(12):
        chosen = sorted(order.sample(list(inputs), min(len(inputs), order.randrange(4))))
        inputs[task] = chosen[0] if len(chosen) == 1 and order.random() < 0.5 else chosen or None
    place = {task: (order.choice(NAMES), order.randrange(3)) for task in inputs}
    output = sorted(order.sample(list(inputs), 3))
    cluster.begin(
        place,
        inputs,
        output,
        mechanism=("fork", "pool")[seed % 2],
        trigger=("stage", "data")[seed // 2 % 2],
    )
    for number in range(3):
        assert cluster.ask(f"n{number}").text == nested(inputs, output, f"n{number}")
    for task in inputs:
        assert cluster.runs(f"f{task}") == 3


@pytest.mark.parametrize("held", ["f2", "f3"])
def test_a_wrap_that_was_killed_costs_no_answer(standing, in_background, eventually, held):
    """The far wrap is killed while and after its tasks run."""
    cluster = standing()
    cluster.hold(held)
    answer = in_background(cluster.ask)
    assert eventually(lambda: cluster.has_begun(held))
    cluster.kill(NAMES[1])
    cluster.let_go(held)
    assert answer.result().text == nested(CHAIN_INPUTS, 4, "in")
    assert cluster.runs("f0") == 1
    # What has reached its consumer is not run again.
    assert cluster.runs("f2") == (2 if held == "f2" else 1)


def test_two_wraps_that_were_killed_at_once_cost_no_answer(standing, in_background, eventually):
    cluster = standing(far=1, near=1)
    cluster.hold("f3")
    answer = in_background(cluster.ask)
    assert eventually(lambda: cluster.has_begun("f3"))
    for name in NAMES[1:]:
        cluster.servers[name].process.kill()
    for name in NAMES[1:]:
        cluster.start(name)
    cluster.let_go("f3")
    assert answer.result().text == nested(CHAIN_INPUTS, 4, "in")
    assert cluster.runs("f0") == 1


def test_a_wrap_that_is_ending_takes_part_where_no_other_one_can(cluster, gateway):
    """As while all wraps are exchanged for those of another build, each at its own time."""

    class Once(dict[str, str]):
        def __getitem__(self, name: str) -> str:
            return self.pop(name)

    far = NAMES[1]
    cluster.begin(chain(), CHAIN_INPUTS, 4, timeout_s=10.0, WRAP_LINGER_MS="600000")
    assert cluster.ask().text == nested(CHAIN_INPUTS, 4, "in")
    server = cluster.servers[far]
    gateway.addresses = Once({far: server.request("GET", "/_/address").text})
    del gateway.ports[far]
    server.process.send_signal(signal.SIGTERM)
    for _ in range(3):  # rounds of its loop, which has heard it then
        server.request("GET", "/_/health")
    assert cluster.ask().text == nested(CHAIN_INPUTS, 4, "in")
    assert not gateway.addresses


def test_a_wrap_that_is_ending_leaves_executions_to_another_replica_at_once(cluster, eventually):
    """With one attempt: nothing was begun, so nothing is lost."""
    far = NAMES[1]
    cluster.begin(chain(), CHAIN_INPUTS, 4, attempts=1, timeout_s=10.0, WRAP_LINGER_MS="600000")
    assert cluster.ask().text == nested(CHAIN_INPUTS, 4, "in")
    ending = cluster.servers[far].process
    cluster.start(far)
    ending.send_signal(signal.SIGTERM)
    for number in range(5):
        assert cluster.ask(f"n{number}").text == nested(CHAIN_INPUTS, 4, f"n{number}")
    assert int((cluster.folder / "pid-f1").read_text()) == cluster.servers[far].process.pid
    assert cluster.runs("f1") == 6
    assert ending.poll() is None


def test_a_wrap_that_is_told_to_end_finishes_its_part_and_then_wakes_its_watchdog(
    cluster: Cluster, in_background: Any, eventually: Callable[..., bool]
) -> None:
    far = NAMES[1]
    cluster.begin(chain(), CHAIN_INPUTS, 4, attempts=1, WRAP_LINGER_MS="1")
    cluster.hold("f1")
    answer = in_background(cluster.ask)
    assert eventually(lambda: cluster.has_begun("f1"))
    ending = cluster.servers[far].process
    cluster.start(far)
    ending.send_signal(signal.SIGTERM)
    assert cluster.servers[far].request("GET", "/_/health").status == 200
    assert ending.poll() is None
    cluster.let_go("f1")
    assert answer.result().text == nested(CHAIN_INPUTS, 4, "in")
    assert ending.wait(60) == 1
    assert cluster.runs("f1") == 1


@pytest.mark.parametrize(("name", "size"), [("f1", 2), ("f2", 100_000), ("f3", 2)])
def test_a_process_that_was_killed_costs_no_answer(standing, name, size):
    """What f1 has given to f2 alone is made again where it is large: no other process has it."""
    cluster, request = standing(far=1, near=1), "x" * size
    (cluster.folder / f"die-{name}").touch()
    assert cluster.ask(request).text == nested(CHAIN_INPUTS, 4, request)
    again = {name, "f1"} if name == "f2" else {name}
    runs = {f"f{task}": cluster.runs(f"f{task}") for task in CHAIN_INPUTS}
    assert runs == {each: 1 + (each in again) for each in runs}


def test_when_the_home_has_answered_nothing_goes_on_elsewhere(cluster, eventually):
    """The deadline passes while a task hangs in a further process of another wrap."""
    cluster.begin({**chain(), 5: (NAMES[2], 1)}, {**CHAIN_INPUTS, 5: 0}, [4, 5], timeout_s=4.0)
    cluster.ask()
    (cluster.folder / "began-f5").unlink(missing_ok=True)
    cluster.hold("f5")
    said = cluster.ask()
    assert (said.status, said.json["code"]) == (504, "timeout")
    assert (said.json["function"], said.json["wrap"]) == ("f5", NAMES[2])
    pid = int((cluster.folder / "pid-f5").read_text())
    assert eventually(lambda: not Path(f"/proc/{pid}").exists())


def test_a_connection_that_is_cut_costs_no_answer(cluster, gateway, in_background, eventually):
    cluster.begin(chain(), CHAIN_INPUTS, 4)
    relays = []
    with ExitStack() as closing:
        for name in NAMES[1:]:
            port = cluster.servers[name].request("GET", "/_/address").text.split()[1]
            relays.append(closing.enter_context(contextlib.closing(Stalls(int(port)))))
            gateway.addresses[name] = f"127.0.0.1 {relays[-1].port}"
        assert cluster.ask().text == nested(CHAIN_INPUTS, 4, "in")
        cluster.hold("f3")
        (cluster.folder / "began-f3").unlink()
        answer = in_background(cluster.ask)
        assert eventually(lambda: cluster.has_begun("f3"))
        assert all(relay.cut() for relay in relays)
        cluster.let_go("f3")
        assert answer.result().text == nested(CHAIN_INPUTS, 4, "in")
    # A wrap that cannot be reached at once counts as lost: its tasks begin once more.
    assert all(2 <= cluster.runs(f"f{task}") <= 3 for task in CHAIN_INPUTS)


def test_many_at_once_with_a_wrap_killed_are_all_right(standing, in_background, eventually):
    cluster = standing(far=1, near=1)
    answers = [in_background(cluster.ask, f"n{number}") for number in range(30)]
    assert eventually(lambda: cluster.runs("f2") >= 5)
    cluster.kill(NAMES[1])
    for number, answer in enumerate(answers):
        assert answer.result().text == nested(CHAIN_INPUTS, 4, f"n{number}")
    assert cluster.runs("f3") >= len(answers) <= cluster.runs("f4")


def test_what_an_execution_had_is_gone_with_its_end(standing, eventually):
    """It does not wait until cycles are looked for: that is after many executions."""
    cluster = standing()
    home = psutil.Process(cluster.servers[NAMES[0]].process.pid)
    assert cluster.ask().status == 200
    before, request = home.memory_info().rss, "x" * 8_000_000
    for _ in range(10):
        assert len(cluster.ask(request).text) > len(request)
    assert eventually(lambda: home.memory_info().rss < before + 8 * len(request))


def test_executions_do_not_wait_for_workers_of_each_other(cluster, in_background):
    """Each wrap has workers of executions that wait for those that another wrap has."""
    place = {0: ("test-home", 1), 1: ("test-far", 1), 2: ("test-near", 1), 3: ("test-far", 1)}
    place |= {4: ("test-near", 1), 5: ("test-home", 1)}
    chain = {task: task - 1 if task else None for task in place}
    cluster.begin(place, chain, 5, pool_concurrency="1")
    bodies = [f"request {number}" for number in range(16)]
    answers = [in_background(cluster.ask, body) for body in bodies]
    for body, answer in zip(bodies, answers, strict=True):
        assert body in answer.result().text
