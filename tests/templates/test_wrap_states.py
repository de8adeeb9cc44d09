"""What a wrap does where states wait, repeat and fail: each rule by a machine of a few states."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.templates.network import BOUND_S

FUNCTIONS = {
    "echo": "def handle(req):\n    return req\n",
    "fails": "def handle(req):\n    raise ValueError('no ' + req)\n",
    "hangs": "import time\n\ndef handle(req):\n    time.sleep(60)\n",
    "late": "import time\n\ndef handle(req):\n    time.sleep(1.5)\n    return '\"late\"'\n",
    "dies": "import os\n\ndef handle(req):\n    os.kill(os.getpid(), 9)\n",
    "dies-once": """
        import os
        from pathlib import Path

        def handle(req):
            if not Path("died").exists():
                Path("died").touch()
                os.kill(os.getpid(), 9)
            return req
        """,
    "dies-at": """
        import json, os
        from pathlib import Path

        def handle(req):
            items = json.loads(req)["Items"]
            if 500 in items and not Path("died").exists():
                Path("died").touch()
                os.kill(os.getpid(), 9)
            return str(sum(items))
        """,
    "counts": """
        import os, time
        from pathlib import Path

        def handle(req):
            here = Path(f"runs-{req}")
            here.touch()
            at_once = len(list(Path().glob("runs-*")))
            time.sleep(0.02)
            here.unlink()
            return str(at_once)
        """,
    "where": "import os\n\ndef handle(req):\n    return str(os.getpid())\n",
    "wide": """
        import time
        from pathlib import Path

        def handle(req):
            while req == '"last"' and not Path("go").exists():
                time.sleep(0.01)
            return "x" * 20_000
        """,
    "length": "def handle(req):\n    return str(len(req))\n",
    "write": """
        import json
        from pathlib import Path

        def handle(req):
            file = json.loads(req)
            path = Path(file["Bucket"], file["Key"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file["Body"])
            return ""
        """,
    "collect": """
        import json
        from pathlib import Path

        def handle(req):
            place = json.loads(req)["ResultWriterDetails"]
            manifest = json.loads(Path(place["Bucket"], place["Key"]).read_text())
            files = manifest["ResultFiles"]["SUCCEEDED"]
            found = [json.loads(Path(place["Bucket"], each["Key"]).read_text()) for each in files]
            return json.dumps([each["Output"] for file in found for each in file])
        """,
    "read": """
        import json

        def handle(req):
            rows = json.loads(req)["rows"]
            return "a,b\\n" + "".join(f"{n},x\\n" for n in range(rows))
        """,
}
ALL = [{"ErrorEquals": ["States.ALL"], "Next": "echo"}]
DISTRIBUTED = {"ProcessorConfig": {"Mode": "DISTRIBUTED"}}


def task(function: str, **fields: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": function, **(fields or {"End": True})}


def scope(**states: Any) -> dict[str, Any]:
    """States of which the first one begins."""
    return {"StartAt": next(iter(states)), "States": states}


def alone(function: str, **fields: Any) -> dict[str, Any]:
    """A scope of one task."""
    return scope(**{function: task(function, **fields)})


def caught(function: str, **fields: Any) -> dict[str, Any]:
    """A task whose failure is the answer, after another task in the same place."""
    first = task(function, Next="echo", Catch=ALL, **fields)
    return scope(**{function: first, "echo": task("echo")})


def tasks_of(machine: dict[str, Any]) -> dict[str, str]:
    """The functions of its tasks: a Task state is called as its function is."""
    found = dict[str, str]()
    for name, state in machine["States"].items():
        if state["Type"] == "Task" and "Functions" in state:
            found |= {f"{name}.{each}": each for each in state["Functions"].values()}
        elif state["Type"] == "Task":
            found[name] = state["Resource"]
        for field in ("ItemReader", "ResultWriter"):
            if field in state:
                found[f"{name}.{field}"] = state[field]["Resource"]
        for scope in [*state.get("Branches", ()), *filter(None, [state.get("ItemProcessor")])]:
            found |= tasks_of(scope)
    return found


Serve = Callable[..., Any]


@pytest.fixture
def serve(start: Any, wrap_image: Any, gateway: Any) -> Serve:
    return serving(start, wrap_image, gateway)


def serving(start: Any, wrap_image: Any, gateway: Any) -> Serve:
    """What starts the wraps of a machine, all of whose tasks run in one place, or `processes`."""

    def serve(
        machine: dict[str, Any],
        place: str = "main",
        mechanism: str = "pool",
        processes: list[list[int]] | None = None,
        **options: Any,
    ) -> Any:
        tasks = tasks_of(machine)
        names, numbers = list(tasks.values()), list(range(len(tasks)))
        remote = place.startswith("remote")
        other = f"test-{place}"
        own = processes or ([[], numbers] if "further" in place else [numbers])
        entry = {
            "output": None,
            "machine": machine,
            "states": dict(zip(tasks, numbers, strict=True)),
            "remotes": {other: dict(enumerate(names))} if remote else {},
        }
        code = {name: FUNCTIONS[name] for name in names}
        declared = {"mechanism": mechanism, "inputs": {}, "buckets": [], "instances": len(names)}
        declared |= {"tasks": dict(enumerate(names))} | options
        if remote:
            image = wrap_image(code, own, name=other, **declared)
            gateway.ports[other] = start(image, gateway_url=gateway.url).port
            declared |= {"tasks": {}}
            image = wrap_image({}, [[]], entry=entry, **declared)
        else:
            image = wrap_image(code, own, entry=entry, **declared)
        return start(image, gateway_url=gateway.url)

    return serve


JSONATA = {"QueryLanguage": "JSONata"}
LESS = {"n.$": "States.MathAdd($.n, -1)"}
AGAIN = [{"Variable": "$.n", "NumericGreaterThan": 0, "Next": "echo"}]
WAITS = {"Type": "Wait", "Seconds": 60, "End": True}
SPREAD = {"Type": "Map", "ItemProcessor": alone("echo") | DISTRIBUTED}
#: Machines that are ways through one machine, of which a request names one.
WAYS = {
    "JSONata": scope(
        echo=task(
            "echo",
            **JSONATA,
            Arguments={"n": "{% $states.input.a + 1 %}"},
            Assign={"x": "{% $states.result.n %}"},
            Output="{% $states.input %}",
            Next="length",
        ),
        length=task("length", **JSONATA, Output="{% [$x, $states.input.a] %}", End=True),
    ),
    "endless": alone(
        "echo",
        **JSONATA,
        Output="{% ($f := function($n) { $n < 0 ? 1 : $f($n + 1) }; $f($states.input)) %}",
        End=True,
    ),
    "reads": scope(
        M={
            **SPREAD,
            "ItemReader": {
                "Resource": "read",
                "Parameters": {"rows.$": "$.n"},
                "ReaderConfig": {"InputType": "CSV"},
            },
            "ItemBatcher": {"MaxItemsPerBatch": 2},
            "End": True,
        }
    ),
    "writes": scope(
        M={
            **SPREAD,
            "ResultWriter": {"Resource": "write", "Parameters": {"Bucket": "out", "Prefix": "p"}},
            "Next": "collect",
        },
        collect=task("collect"),
    ),
    "dies": caught("dies"),
    "dies once": alone(
        "dies-once",
        End=True,
        Retry=[{"ErrorEquals": ["States.TaskFailed"], "IntervalSeconds": 1, "MaxAttempts": 1}],
    ),
    "hangs": caught("hangs", TimeoutSeconds=1),
    "late": scope(
        late=task("late", Next="echo", Catch=ALL, TimeoutSeconds=1),
        echo=task("echo", Next="wait"),
        wait={"Type": "Wait", "Seconds": 1, "End": True},
    ),
    "caught": caught("fails"),
    "fails": alone("fails"),
    "chooses": scope(
        A=task(
            "$.f",
            Invoke=True,
            Functions={"Echo": "echo", "len": "length"},
            Parameters={"FunctionName.$": "$.f", "Payload.$": "$.p"},
            OutputPath="$.Payload",
            End=True,
        )
    ),
    "loop": scope(
        echo=task("echo", Next="less"),
        less={"Type": "Pass", "Parameters": LESS, "Next": "again"},
        again={"Type": "Choice", "Choices": AGAIN, "Default": "end"},
        end={"Type": "Succeed"},
    ),
}
#: Where the tasks run: in the server, or in a further process of another wrap.
PLACES = ("main", "remote-further")


def renamed(part: Any, way: str) -> Any:
    """A part of a machine whose states have the name of their way before their own."""
    if isinstance(part, list):
        return [renamed(each, way) for each in part]
    if not isinstance(part, dict):
        return part
    found = {name: renamed(each, way) for name, each in part.items()}
    for name in {"StartAt", "Next", "Default"} & found.keys():
        found[name] = f"{way}.{part[name]}"
    if "States" in found:
        found["States"] = {f"{way}.{name}": each for name, each in found["States"].items()}
    return found


@pytest.fixture(scope="module")
def go(shared_start: Any, shared_image: Any, shared_gateway: Any) -> Callable[..., Any]:
    """Has an input go a way in a place: the answer."""
    rules, states, servers = list[Any](), dict[str, Any](), dict[str, Any]()
    for way, machine in WAYS.items():
        own = renamed(machine, way)
        rules.append({"Variable": "$.way", "StringEquals": way, "Next": way})
        states |= own["States"]
        states[way] = {"Type": "Pass", "InputPath": "$.given", "Next": own["StartAt"]}
    states["which"] = {"Type": "Choice", "Choices": rules, "Default": "which"}

    def go(way: str, place: str, given: Any, **headers: str) -> Any:
        if place not in servers:
            serve = serving(shared_start, shared_image, shared_gateway)
            servers[place] = serve({"StartAt": "which", "States": states}, place)
        return servers[place].request(body=json.dumps({"way": way, "given": given}), **headers)

    return go


ROWS = [{"a": str(n), "b": "x"} for n in range(3)]
#: Way -> where, an input, and its answer.
ANSWERS = {
    "JSONata": (PLACES, {"a": 1}, [2, 1]),
    "reads": (PLACES, {"n": 3}, [{"Items": ROWS[:2]}, {"Items": ROWS[2:]}]),
    "writes": (PLACES, [1, {"a": "é"}], ["1", '{"a":"é"}']),
    "loop": (PLACES[:1], {"n": 500}, {"n": 0}),
    "dies once": (PLACES[1:], {"a": 1}, {"a": 1}),
}
#: Way -> where, and the error that is caught with a part of its cause.
CAUGHT = {
    "dies": (PLACES[1:], "process-died", "SIGKILL"),
    "hangs": (PLACES, "States.Timeout", ""),
    "late": (PLACES, "States.Timeout", ""),
    "caught": (PLACES, "ValueError", '"errorMessage": "no 7", "errorType": "ValueError"'),
}


def in_places(table: dict[str, Any]) -> Any:
    pairs = [(way, place) for way, (places, *_) in table.items() for place in places]
    return pytest.mark.parametrize(("way", "place"), pairs)


@in_places(ANSWERS)
def test_states_answer_the_same_wherever_their_tasks_run(way: str, place: str, go: Any) -> None:
    _, given, expected = ANSWERS[way]
    answer = go(way, place, given, X_Chiron_Timeout="15")
    assert (answer.status, answer.json) == (200, expected), answer.text


@in_places(CAUGHT)
def test_a_failure_is_caught_by_its_name_with_its_cause(way: str, place: str, go: Any) -> None:
    _, error, cause = CAUGHT[way]
    answer = go(way, place, 7, X_Chiron_Timeout="15")
    assert (answer.status, answer.json["Error"]) == (200, error), answer.text
    assert cause in answer.json["Cause"] and bool(cause) == bool(answer.json["Cause"])


def test_an_evaluation_ends_with_the_requests_time_and_the_wrap_serves_on(go: Any) -> None:
    late = go("endless", "main", 0, X_Chiron_Timeout="1")
    assert (late.status, "evaluated" in late.text) == (504, True), late.text
    assert go("endless", "main", -1).text == "1"


@pytest.mark.parametrize("place", PLACES)
def test_a_failure_that_nothing_catches_is_a_500_that_names_it(place: str, go: Any) -> None:
    answer = go("fails", place, 7)
    assert (answer.status, answer.json["function"]) == (500, "fails")
    assert answer.json["message"].startswith("ValueError: no 7")


@pytest.mark.parametrize("place", PLACES)
def test_a_task_chooses_its_function_at_run_time(place: str, go: Any) -> None:
    for name, payload, status, answer in (
        ("Echo", "abc", 200, "abc"),
        ("len", "abc", 200, "3"),
        ("nobody", "abc", 500, "Lambda.ResourceNotFoundException"),
    ):
        answered = go("chooses", place, {"f": name, "p": payload})
        assert (answered.status, answer in answered.text) == (status, True), answered.text


def test_a_distributed_map_goes_on_where_its_worker_was_killed(serve: Any) -> None:
    spread = {
        "Type": "Map",
        "ItemBatcher": {"MaxItemsPerBatch": 10},
        "ItemProcessor": alone("dies-at") | DISTRIBUTED,
        "End": True,
    }
    server = serve(scope(M=spread), "further", attempts=2)
    answer = server.request(body=json.dumps([*range(1000)]))
    assert answer.json == [sum(range(n, n + 10)) for n in range(0, 1000, 10)], answer.text


def test_no_more_items_of_a_map_run_at_once_than_it_says(serve: Any) -> None:
    spread = {"Type": "Map", "MaxConcurrency": 3, "ItemProcessor": alone("counts"), "End": True}
    machine = scope(M=spread)
    answer = serve(machine, processes=[[0], [0]]).request(body=json.dumps(list(range(12))))
    assert answer.status == 200, answer.text
    assert max(answer.json) <= 3


def test_a_thousand_items_spread_over_the_processes_that_have_the_task(serve: Any) -> None:
    spread = {"Type": "Map", "ItemProcessor": alone("where"), "End": True}
    machine = scope(M=spread)
    server = serve(machine, processes=[[], [0], [0]])
    answer = server.request(body=json.dumps(list(range(1000))))
    assert answer.status == 200, answer.text
    assert len(answer.json) == 1000
    assert len(set(answer.json)) == 2


def peaks_mib(server: Any) -> list[float]:
    """The most memory that the server has taken so far, and any of its processes."""

    def peak_mib(process: psutil.Process) -> float:
        status = Path(f"/proc/{process.pid}/status").read_text()
        return float(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024

    return [peak_mib(server.process), max(map(peak_mib, server.family()))]


@pytest.mark.slow
def test_ten_times_the_items_of_a_map_take_no_more_memory_and_let_another_request_through(
    serve: Any, in_background: Any, tmp_path: Path
) -> None:
    wide = {"wide": task("wide", Next="length"), "length": task("length")}
    each = {"StartAt": "wide", "States": wide}
    spread = {"Type": "Map", "MaxConcurrency": 20, "ItemProcessor": each, "End": True}
    server = serve(scope(M=spread), "further", timeout_s=BOUND_S)
    gates = [image / "go" for image in tmp_path.glob("test-wrap*")]

    def ask(items: int) -> None:
        answer = server.request(body=json.dumps([*range(items - 1), "last"]))
        assert answer.json == [20_000] * items, answer.text[:200]

    for gate in gates:
        gate.touch()
    ask(300)
    before = peaks_mib(server)
    for gate in gates:
        gate.unlink()
    many = in_background(ask, 3000)
    assert server.request(body="[0]").json == [20_000]
    assert not many.done()  # its last item waits
    for gate in gates:
        gate.touch()
    many.result()
    after = peaks_mib(server)  # all that came between the tasks was 60 MB
    assert all(now < then + 12 for then, now in zip(before, after, strict=True)), (before, after)
    # Threads that have worked are kept: at most as many as there were items at once.
    assert psutil.Process(server.process.pid).num_threads() < 40


@pytest.mark.parametrize(("place", "mechanism"), [("main", "fork"), ("remote-further", "pool")])
def test_what_fails_hangs_and_waits_leaves_nothing(
    place: str, mechanism: str, serve: Any, eventually: Any
) -> None:
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Z"}]
    spread = {"Type": "Map", "ItemProcessor": alone("echo"), "End": True}
    each = scope(M={**spread, "ItemsPath": "$.items"})
    branches = [alone("fails"), scope(W=WAITS), each]
    parallel = {"Type": "Parallel", "Branches": branches, "Catch": catch, "Next": "Z"}
    machine = scope(P=parallel, Z={"Type": "Pass", "End": True})
    server = serve(machine, place, mechanism)

    def ask() -> None:
        answer = server.request(body=json.dumps({"items": list(range(20))}))
        assert answer.json["Error"] == "ValueError", answer.text

    def counts() -> tuple[int, int, int]:
        return len(server.family()), server.descriptors(), server.threads()

    for _ in range(3):
        ask()
    before = counts()
    for _ in range(40):
        ask()
    # What is kept to be used again are as many threads as all items have at once, and connections;
    # and a worker, unless it was ended as the last request has left it with items.
    most = [count + spare for count, spare in zip(before, (1, 20, 20), strict=True)]
    assert eventually(lambda: all(n <= m for n, m in zip(counts(), most, strict=True))), (
        before,
        counts(),
    )


#: Parts of a machine of which the time is further away than ``epoll`` takes.
FAR: dict[str, dict[str, Any]] = {
    "by SecondsPath": {"Type": "Wait", "SecondsPath": "$.far", "End": True},
    "for 1,000 days": {"Type": "Wait", "TimestampPath": "$.at", "End": True},
    "fails": task(
        "fails",
        End=True,
        Retry=[{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 99999999, "BackoffRate": 10.0}],
    ),
    "hangs": task("hangs", End=True, TimeoutSeconds=99999999),
}


@pytest.mark.slow
def test_a_far_time_fails_its_own_request_alone(serve: Any, eventually: Any) -> None:
    rules = [{"Variable": "$.to", "StringEquals": name, "Next": name} for name in FAR]
    choice = {"Type": "Choice", "Choices": rules, "Default": "echo"}
    machine = {
        "StartAt": "which",
        "TimeoutSeconds": 99999999,
        "States": {"which": choice, **FAR, "echo": task("echo")},
    }
    server = serve(machine, "further")
    in_years = datetime.now(UTC) + timedelta(days=1000)
    before = 0, 0
    for name in [*FAR] * 2:
        given = json.dumps({"to": name, "far": 3_000_000, "at": in_years.isoformat()})
        answer = server.request(body=given, X_Chiron_Timeout="0.2")
        assert (answer.status, answer.json["code"]) == (504, "timeout"), name
        assert server.request(body='{"to": ""}').json == {"to": ""}
        before = counts(server) if name != "hangs" or not any(before) else before
    assert server.request("GET", "/_/health").status == 200
    assert eventually(
        lambda: all(now <= was for now, was in zip(counts(server), before, strict=True))
    )


def counts(server: Any) -> tuple[int, int]:
    """Its processes, and the descriptors of the first one."""
    return len(server.family()), server.descriptors()
