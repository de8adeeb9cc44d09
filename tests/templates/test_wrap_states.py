"""What a wrap does where states wait, repeat and fail: each rule by a machine of a few states."""

from __future__ import annotations

import json
import re
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
#: Where the tasks of a machine run: in the server, in a further process, in another wrap's.
every_place = pytest.mark.parametrize(
    "place",
    [
        "main",
        pytest.param("further", marks=pytest.mark.slow),
        pytest.param("remote", marks=pytest.mark.slow),
        "remote-further",
    ],
)
each_mechanism = pytest.mark.parametrize("mechanism", ["fork", "pool"])


def task(function: str, **fields: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": function, **(fields or {"End": True})}


def alone(function: str, **fields: Any) -> dict[str, Any]:
    """A scope of one task."""
    return {"StartAt": function, "States": {function: task(function, **fields)}}


def caught(function: str, **fields: Any) -> dict[str, Any]:
    """A task whose failure is the answer, after another task in the same place."""
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "echo"}]
    first = task(function, Next="echo", Catch=catch, **fields)
    return {"StartAt": function, "States": {function: first, "echo": task("echo")}}


def tasks_of(machine: dict[str, Any]) -> dict[str, str]:
    """The functions of its tasks: a Task state is called as its function is."""
    found = dict[str, str]()
    for name, state in machine["States"].items():
        if state["Type"] == "Task" and "Functions" in state:
            found |= {f"{name}.{each}": each for each in state["Functions"].values()}
        elif state["Type"] == "Task":
            found[name] = name
        for field in ("ItemReader", "ResultWriter"):
            if field in state:
                found[f"{name}.{field}"] = state[field]["Resource"]
        for scope in [*state.get("Branches", ()), *filter(None, [state.get("ItemProcessor")])]:
            found |= tasks_of(scope)
    return found


@pytest.fixture
def serve(start: Any, wrap_image: Any, gateway: Any) -> Any:
    """Starts the wraps of a machine, all of whose tasks run in one place, or in `processes`."""

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
        own = processes or ([[], numbers] if "further" in place else [numbers])
        entry = {
            "output": None,
            "machine": machine,
            "states": dict(zip(tasks, numbers, strict=True)),
            "remotes": {"test-wrap2": dict(enumerate(names))} if remote else {},
        }
        code = {name: FUNCTIONS[name] for name in names}
        declared = {"mechanism": mechanism, "inputs": {}, "buckets": [], "instances": len(names)}
        declared |= options
        if remote:
            other = wrap_image(code, own, name="test-wrap2", **declared)
            gateway.ports["test-wrap2"] = start(other, gateway_url=gateway.url).port
            image = wrap_image({}, [[]], entry=entry, **declared)
        else:
            image = wrap_image(code, own, entry=entry, **declared)
        return start(image, gateway_url=gateway.url)

    return serve


JSONATA = {"QueryLanguage": "JSONata"}


@pytest.mark.parametrize("place", ["main", "remote"])
def test_states_in_jsonata_give_tasks_arguments_and_assign(place: str, serve: Any) -> None:
    states = {
        "echo": task(
            "echo",
            **JSONATA,
            Arguments={"n": "{% $states.input.a + 1 %}"},
            Assign={"x": "{% $states.result.n %}"},
            Output="{% $states.input %}",
            Next="length",
        ),
        "length": task("length", **JSONATA, Output="{% [$x, $states.input.a] %}", End=True),
    }
    answer = serve({"StartAt": "echo", "States": states}, place).request(body='{"a":1}')
    assert (answer.status, answer.text) == (200, "[2,1]")


def test_an_evaluation_ends_with_the_requests_time_and_the_wrap_serves_on(serve: Any) -> None:
    endless = "{% ($f := function($n) { $n < 0 ? 1 : $f($n + 1) }; $f($states.input)) %}"
    server = serve(alone("echo", **JSONATA, Output=endless, End=True))
    late = server.request(body="0", X_Chiron_Timeout="1")
    assert (late.status, "evaluated" in late.text) == (504, True), late.text
    assert server.request(body="-1").text == "1"


@every_place
def test_a_map_reads_a_file_by_a_function(place: str, serve: Any) -> None:
    spread = {
        "Type": "Map",
        "ItemReader": {
            "Resource": "read",
            "Parameters": {"rows.$": "$.n"},
            "ReaderConfig": {"InputType": "CSV"},
        },
        "ItemBatcher": {"MaxItemsPerBatch": 2},
        "ItemProcessor": alone("echo") | {"ProcessorConfig": {"Mode": "DISTRIBUTED"}},
        "End": True,
    }
    answer = serve({"StartAt": "M", "States": {"M": spread}}, place).request(body='{"n":3}')
    rows = [{"a": str(n), "b": "x"} for n in range(3)]
    assert answer.json == [{"Items": rows[:2]}, {"Items": rows[2:]}], answer.text


@every_place
def test_the_results_of_a_map_are_written_by_a_function(place: str, serve: Any) -> None:
    spread = {
        "Type": "Map",
        "ResultWriter": {"Resource": "write", "Parameters": {"Bucket": "out", "Prefix": "p"}},
        "ItemProcessor": alone("echo") | {"ProcessorConfig": {"Mode": "DISTRIBUTED"}},
        "Next": "collect",
    }
    machine = {"StartAt": "M", "States": {"M": spread, "collect": task("collect")}}
    assert serve(machine, place).request(body='[1,{"a":"é"}]').json == ["1", '{"a":"é"}']


@pytest.mark.each_once
@each_mechanism
@pytest.mark.parametrize("place", ["further", "remote-further"])
def test_what_a_process_was_running_when_it_died_is_caught_by_name(
    place: str, mechanism: str, serve: Any
) -> None:
    answer = serve(caught("dies"), place, mechanism).request(body="{}")
    assert answer.status == 200, answer.text
    assert answer.json["Error"] == "process-died"
    assert "SIGKILL" in answer.json["Cause"]


@pytest.mark.parametrize("place", ["further", "remote-further"])
def test_a_task_whose_process_died_is_tried_again_in_another(place: str, serve: Any) -> None:
    retry = [{"ErrorEquals": ["States.TaskFailed"], "IntervalSeconds": 1, "MaxAttempts": 1}]
    answer = serve(alone("dies-once", End=True, Retry=retry), place).request(body='{"a":1}')
    assert (answer.status, answer.text) == (200, '{"a":1}')


@each_mechanism
def test_a_distributed_map_goes_on_where_its_worker_was_killed(mechanism: str, serve: Any) -> None:
    spread = {
        "Type": "Map",
        "ItemBatcher": {"MaxItemsPerBatch": 10},
        "ItemProcessor": alone("dies-at") | {"ProcessorConfig": {"Mode": "DISTRIBUTED"}},
        "End": True,
    }
    server = serve({"StartAt": "M", "States": {"M": spread}}, "further", mechanism, attempts=2)
    answer = server.request(body=json.dumps([*range(1000)]))
    assert answer.json == [sum(range(n, n + 10)) for n in range(0, 1000, 10)], answer.text


@every_place
def test_after_its_seconds_a_task_is_given_up_and_the_next_one_runs(place: str, serve: Any) -> None:
    server = serve(caught("hangs", TimeoutSeconds=1), place)
    answer = server.request(body="{}", X_Chiron_Timeout="10")
    assert answer.status == 200, answer.text
    assert answer.json == {"Error": "States.Timeout", "Cause": ""}


@pytest.mark.parametrize("place", ["main", "remote"])
def test_what_comes_too_late_is_not_used(place: str, serve: Any) -> None:
    machine = caught("late", TimeoutSeconds=1)
    machine["States"] |= {
        "echo": task("echo", Next="wait"),
        "wait": {"Type": "Wait", "Seconds": 1, "End": True},
    }
    answer = serve(machine, place).request(body="{}")
    assert answer.json["Error"] == "States.Timeout"


@every_place
def test_a_failure_carries_its_error_and_cause(place: str, serve: Any) -> None:
    answer = serve(caught("fails"), place).request(body="7")
    assert (answer.status, answer.json["Error"]) == (200, "ValueError")
    told = json.loads(answer.json["Cause"])
    assert (told["errorType"], told["errorMessage"]) == ("ValueError", "no 7")


@every_place
def test_a_failure_that_nothing_catches_is_a_500_that_names_it(place: str, serve: Any) -> None:
    answer = serve(alone("fails"), place).request(body="7")
    assert answer.status == 500
    assert answer.json["function"] == "fails"
    assert answer.json["message"].startswith("ValueError: no 7")


@pytest.mark.parametrize("place", ["main", "further", "remote"])
def test_a_branch_that_fails_ends_its_parallel_without_the_others(place: str, serve: Any) -> None:
    catch = [{"ErrorEquals": ["ValueError"], "Next": "Z", "ResultPath": None}]
    wait = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 60, "End": True}}}
    branches = [alone("fails"), wait, wait]
    parallel = {"Type": "Parallel", "Branches": branches, "Catch": catch, "Next": "Z"}
    machine = {"StartAt": "P", "States": {"P": parallel, "Z": {"Type": "Succeed"}}}
    answer = serve(machine, place).request(body="1", X_Chiron_Timeout="10")
    assert (answer.status, answer.text) == (200, "1")


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_items_of_a_map_run_at_once_than_it_says(most: int, serve: Any) -> None:
    spread = {"Type": "Map", "MaxConcurrency": most, "ItemProcessor": alone("counts"), "End": True}
    machine = {"StartAt": "M", "States": {"M": spread}}
    answer = serve(machine, processes=[[0], [0]]).request(body=json.dumps(list(range(12))))
    assert answer.status == 200, answer.text
    assert max(answer.json) <= most


@each_mechanism
def test_a_thousand_items_spread_over_the_processes_that_have_the_task(
    mechanism: str, serve: Any
) -> None:
    spread = {"Type": "Map", "ItemProcessor": alone("where"), "End": True}
    machine = {"StartAt": "M", "States": {"M": spread}}
    server = serve(machine, mechanism=mechanism, processes=[[], [0], [0]])
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
@pytest.mark.parametrize("place", ["main", "further"])
def test_ten_times_the_items_of_a_map_take_no_more_memory_and_let_another_request_through(
    place: str, serve: Any, in_background: Any, tmp_path: Path
) -> None:
    wide = {"wide": task("wide", Next="length"), "length": task("length")}
    each = {"StartAt": "wide", "States": wide}
    spread = {"Type": "Map", "MaxConcurrency": 20, "ItemProcessor": each, "End": True}
    server = serve({"StartAt": "M", "States": {"M": spread}}, place, timeout_s=BOUND_S)
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


@pytest.mark.parametrize("place", ["main", "further", "remote"])
def test_a_task_chooses_its_function_at_run_time(place: str, serve: Any) -> None:
    chosen = task("$.f", Invoke=True, Functions={"Echo": "echo", "len": "length"}, End=True)
    chosen |= {"Parameters": {"FunctionName.$": "$.f", "Payload.$": "$.p"}}
    chosen |= {"OutputPath": "$.Payload"}
    server = serve({"StartAt": "A", "States": {"A": chosen}}, place)
    for name, payload, status, answer in (
        ("Echo", "abc", 200, "abc"),
        ("len", "abc", 200, "3"),
        ("nobody", "abc", 500, "Lambda.ResourceNotFoundException"),
    ):
        answered = server.request(body=json.dumps({"f": name, "p": payload}))
        assert (answered.status, answer in answered.text) == (status, True), answered.text


@pytest.mark.parametrize("place", ["main", "further"])
def test_a_loop_of_five_hundred(place: str, serve: Any) -> None:
    less = {"n.$": "States.MathAdd($.n, -1)"}
    again = [{"Variable": "$.n", "NumericGreaterThan": 0, "Next": "echo"}]
    states = {
        "echo": task("echo", Next="less"),
        "less": {"Type": "Pass", "Parameters": less, "Next": "again"},
        "again": {"Type": "Choice", "Choices": again, "Default": "end"},
        "end": {"Type": "Succeed"},
    }
    answer = serve({"StartAt": "echo", "States": states}, place).request(body='{"n":500}')
    assert (answer.status, answer.text) == (200, '{"n":0}')


@pytest.mark.each_once
@pytest.mark.parametrize("place", ["main", "further", "remote-further"])
@each_mechanism
def test_what_fails_hangs_and_waits_leaves_nothing(
    place: str, mechanism: str, serve: Any, eventually: Any
) -> None:
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Z"}]
    spread = {"Type": "Map", "ItemProcessor": alone("echo"), "End": True}
    long = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 60, "End": True}}}
    each = {"StartAt": "M", "States": {"M": {**spread, "ItemsPath": "$.items"}}}
    branches = [alone("fails"), long, each]
    parallel = {"Type": "Parallel", "Branches": branches, "Catch": catch, "Next": "Z"}
    machine = {"StartAt": "P", "States": {"P": parallel, "Z": {"Type": "Pass", "End": True}}}
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
@pytest.mark.each_once
@each_mechanism
@pytest.mark.parametrize("place", ["main", "further", "remote-further"])
def test_a_far_time_fails_its_own_request_alone(
    place: str, mechanism: str, serve: Any, eventually: Any
) -> None:
    rules = [{"Variable": "$.to", "StringEquals": name, "Next": name} for name in FAR]
    choice = {"Type": "Choice", "Choices": rules, "Default": "echo"}
    machine = {
        "StartAt": "which",
        "TimeoutSeconds": 99999999,
        "States": {"which": choice, **FAR, "echo": task("echo")},
    }
    server = serve(machine, place, mechanism)
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
