"""Whatever the planner and mechanism, the output is the reference executor's."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import pytest

from chiron.deployment.launcher import Deployment
from chiron.generator.generate import Sources
from chiron.predictor.mechanisms import EVERYWHERE
from chiron.scheduler.choices import Choices
from chiron.scheduler.planners import PLANNERS
from chiron.scheduler.schedule import schedule
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.plan import Plan
from tests.rows import each_row

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MEGABYTE = 1_000_000


@dataclass
class Running:
    """A workflow, deployed by several planners at once."""

    folder: WorkflowFolder
    deployments: dict[str, Deployment]
    url: str
    known: dict[bytes, str] = field(default_factory=dict)

    def expected(self, request: bytes) -> str:
        if request not in self.known:
            run = Sources.read(self.folder).reference(request, self.url)
            self.known[request] = run.output
        return self.known[request]


def two_wraps(mechanism: str) -> Plan:
    """The small workflow on two wraps: a remote stage, a wrap's threads and further processes."""
    wraps = [
        {
            "name": "small-main",
            "cpus": 1,
            "memory_mib": 128,
            "mechanism": mechanism,
            "processes": [["Split it", "Wave", "M1", "M3"], ["Zusammen/fügen? {50 %}"]],
        },
        {
            "name": "small-remote",
            "cpus": 1,
            "memory_mib": 128,
            "mechanism": mechanism,
            "processes": [["M2"]],
        },
    ]
    plan = {"format": 2, "workflow": "small", "planner": "faastlane+"}
    return Plan.model_validate_json(json.dumps(plan | {"wraps": wraps, "cpus": 2}))


#: Room for requests that are much larger than the payload that wraps are sized for.
ROOMY = {"limits": {"memory": "256Mi"}}
#: A client calls each function, or groups of them are wraps that call each other.
KINDS = ("one-to-one", "faasflow")


def plans(folder, profile_of, platform, *mechanisms: str, planners=PLANNERS) -> list[Plan]:
    """The plan of each planner, by the mechanisms in turn."""
    workflow = folder.workflow
    found = [
        schedule(
            workflow,
            profile_of(workflow),
            platform,
            12.0,
            Choices(planner=planner, mechanism=mechanism),
        )
        for planner, mechanism in zip(planners, cycle(mechanisms))
    ]
    if workflow.name == "small":
        found[list(PLANNERS).index("faastlane+")] = two_wraps(mechanisms[0])
    return found


def all_answer_right(
    place, folder: WorkflowFolder, chosen: list[Plan], requests: list[bytes]
) -> None:
    """Deployed as each of the plans, it answers every request as the reference executor does.

    Of planners whose processes are the same, the plan of one is enough.
    """
    different = {(each.orchestrator, *(w.processes for w in each.wraps)): each for each in chosen}
    with place.deployed(folder, list(different.values())) as deployments:
        for request in requests:
            expected = Sources.read(folder).reference(request, place.gateway.url).output
            answers = [deployment.invoke(request).output for deployment in deployments]
            assert [answer == expected for answer in answers] == [True] * len(different)


@pytest.fixture(scope="module")
def small_running(place, write_folder, profile_of, platform, tmp_path_factory) -> Iterator[Running]:
    folder = write_folder(tmp_path_factory.mktemp("small"), fields={"split": ROOMY})
    chosen = plans(folder, profile_of, platform, *EVERYWHERE)
    with place.deployed(folder, chosen) as deployments:
        by_planner = dict(zip(PLANNERS, deployments, strict=True))
        yield Running(folder, by_planner, place.gateway.url)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mechanism"), [("finra", "fork"), ("slapp", "pool")])
def test_every_planner_of_a_benchmark_answers_as_the_reference_does(
    name, mechanism, place, profile_of, platform
):
    folder = WorkflowFolder.open(BENCHMARKS / name)
    chosen = plans(folder, profile_of, platform, mechanism)
    all_answer_right(place, folder, chosen, [folder.payloads()[0].content])


REQUESTS = {
    "JSON": b'{"price": 1.10e5, "name": "\xc3\xa9\\u00e9"}',
    "text": "no JSON at all: ü".encode(),
    "nothing": b"",
    "numbers-that-are-no-JSON": b"NaN",
    "nested-text": b'"a \\"quoted\\" [string]"',
}


@each_row("body", REQUESTS.values(), ids=REQUESTS)
def test_the_output_is_the_same_bytes_for_every_planner(body, small_running):
    expected = small_running.expected(body)
    answers = {name: d.invoke(body).output for name, d in small_running.deployments.items()}
    assert answers == dict.fromkeys(PLANNERS, expected)


@each_row("megabytes", [1, 5])
def test_large_payloads_arrive_whole(megabytes, small_running):
    body = json.dumps({"text": "ü€x" * (megabytes * MEGABYTE // 6)}, ensure_ascii=False).encode()
    assert len(body) >= megabytes * MEGABYTE
    expected = small_running.expected(body)
    answers = {name: d.invoke(body).output for name, d in small_running.deployments.items()}
    assert [name for name, answer in answers.items() if answer != expected] == []


BINARY_WORKFLOW = {
    "name": "binary",
    "tasks": {name: name for name in ("pack", "turn", "count", "digest", "seal")},
    "edges": [
        ["pack", "turn"],
        ["pack", "count"],
        ["turn", "digest"],
        ["count", "seal"],
        ["digest", "seal"],
    ],
}
BINARY_FUNCTIONS = {
    "pack": """
import gzip
def handle(event, context):
    content = gzip.compress(event.body, 0, mtime=0)
    return content, {"Content-Type": "application/gzip"}
""",
    "turn": "def handle(event, context):\n    return event.body[::-1]\n",
    "count": "def handle(req):\n    return str(req.count('\ufffd'))\n",
    "digest": """
import hashlib
def handle(event, context):
    return {"body": hashlib.sha256(event.body).hexdigest()}
""",
    "seal": "def handle(event, context):\n    return b'\\xff' + event.body\n",
}


def test_outputs_that_are_no_text_are_outputs_like_any_other(
    place, write_folder, profile_of, platform, tmp_path
):
    """Also where a handler of python3-flask gets them as text."""
    fields = dict.fromkeys(BINARY_FUNCTIONS, ROOMY)
    folder = write_folder(tmp_path, BINARY_WORKFLOW, BINARY_FUNCTIONS, {}, fields)
    requests = [bytes(range(256)), random.Random(1).randbytes(2 * MEGABYTE)]
    chosen = plans(folder, profile_of, platform, *EVERYWHERE, planners=KINDS)
    all_answer_right(place, folder, chosen, requests)


EMITTING_WORKFLOW = {
    "name": "emitting",
    "tasks": {name: name for name in ("split", "left", "right", "whole", "last")},
    "edges": [
        ["split#left", "left"],
        ["split#right", "right"],
        ["split#left", "whole"],
        ["split", "whole"],
        ["left", "last"],
        ["right#size", "last"],
        ["right", "last"],
        ["whole", "last"],
    ],
}
EMITTING_FUNCTIONS = {
    "split": """
from chiron_io import emit
def handle(req):
    emit("left", req[: len(req) // 2])
    emit("right", req[len(req) // 2 :].encode())
    return {"size": len(req)}
""",
    "left": "def handle(req):\n    return req.upper()\n",
    "right": """
from chiron_io import emit
def handle(event, context):
    emit("size", str(len(event.body)))
    return {"body": event.body[::-1].decode()}
""",
    "whole": "def handle(req):\n    return req\n",
    "last": "def handle(req):\n    return req\n",
}


def test_what_is_emitted_is_an_output_like_any_other(
    place, write_folder, profile_of, platform, tmp_path
):
    folder = write_folder(tmp_path, EMITTING_WORKFLOW, EMITTING_FUNCTIONS, {})
    requests = [b"ab", b"x" * (MEGABYTE // 2) + b"yz" * (MEGABYTE // 4)]
    chosen = plans(folder, profile_of, platform, *EVERYWHERE, planners=KINDS)
    all_answer_right(place, folder, chosen, requests)


STREAMING_WORKFLOW = {
    "name": "streaming",
    "tasks": {
        name: name for name in ("read", "upper", "count", "pair", "sort", "tag", "join", "whole")
    },
    "edges": [
        ["read", "upper", "stream"],
        ["read#numbers", "count", "stream"],
        ["upper", "pair", "stream"],
        ["count", "pair", "stream"],
        ["upper", "sort", "stream"],
        ["sort", "join", "stream"],
        ["tag", "join"],
        ["pair", "join"],
        ["read", "whole"],
    ],
}
STREAMING_FUNCTIONS = {
    "read": """
from chiron_io import open_output
def handle(req):
    with open_output() as words, open_output("numbers") as numbers:
        for number, word in enumerate(req.split(",")):
            words.write(word.encode() + b"\\n")
            numbers.write(b"%d\\n" % number)
""",
    "upper": """
from chiron_io import open_input
def handle(req):
    assert req == ""
    for line in open_input("read"):
        yield line.upper()
""",
    "count": """
from chiron_io import open_input, open_output
def handle(event, context):
    assert event.body == b""
    with open_input() as numbers, open_output() as out:
        while data := numbers.read(1000):
            out.write(data[::-1])
    return {"body": "not this"}
""",
    # All of one before the other, which is the order that needs more than the pipes hold.
    "pair": """
from chiron_io import open_input
def handle(req):
    return open_input("count").read()[-40:] + open_input("upper").read()[:40]
""",
    "tag": "def handle(req):\n    return str(len(req))\n",
    "join": """
from chiron_io import open_input
def handle(req):
    return req + open_input("sort").readline().decode()
""",
    "sort": "",
    "whole": "def handle(req):\n    return req[::-1]\n",
}


def test_what_is_read_while_it_is_written_is_an_output_like_any_other(
    place, write_folder, profile_of, platform, tmp_path
):
    """A diamond of streams, a command among them, and readers that leave some of it."""
    commands = {"sort": {"lang": "command", "fprocess": "sort {in:upper}"}}
    folder = write_folder(tmp_path, STREAMING_WORKFLOW, STREAMING_FUNCTIONS, {}, commands)
    requests = [b"ab", b"", b",".join(b"%d" % each for each in range(MEGABYTE // 10))]
    chosen = plans(folder, profile_of, platform, *EVERYWHERE, planners=KINDS)
    all_answer_right(place, folder, chosen, requests)


COMMANDS = {"sort": "sort -r", "zip": "gzip -nc {in}", "unzip": "sh unzip.sh", "count": "wc -c"}


def test_commands_are_tasks_like_any_other(place, write_folder, profile_of, platform, tmp_path):
    """Beside a handler, which gets what they give and gives what they get."""
    tasks = {name: name for name in (*COMMANDS, "join")}
    edges = [["sort", "zip"], ["zip", "unzip"], ["zip", "count"], ["unzip", "join"]]
    folder = write_folder(
        tmp_path,
        {"name": "commands", "tasks": tasks, "edges": [*edges, ["count", "join"]]},
        dict.fromkeys(COMMANDS, "") | {"join": "def handle(req):\n    return req\n"},
        {"unzip": {"unzip.sh": "gzip -d"}},
        {name: {"lang": "command", "fprocess": command} for name, command in COMMANDS.items()},
    )
    requests = ["\n".join(map(str, range(size // 7))).encode() for size in (3, MEGABYTE)]
    chosen = plans(folder, profile_of, platform, *EVERYWHERE, planners=KINDS)
    all_answer_right(place, folder, chosen, requests)


@each_row("planner", PLANNERS)
def test_a_failing_function_is_named_and_later_requests_are_right(planner, small_running):
    deployment = small_running.deployments[planner]
    with pytest.raises(ChironError) as failed:
        deployment.invoke(b'"boom"')
    assert failed.value.functions == ("wave",)
    assert failed.value.message.startswith("function wave failed: ")
    assert "no waves today" in failed.value.message
    assert failed.value.status == 500
    assert deployment.invoke(b"{}").output == small_running.expected(b"{}")


def test_wraps_call_each_other_without_the_gateway(place, small_running):
    def calls() -> dict[str, float]:
        functions = place.gateway.functions()
        return {f.name: f.invocation_count for f in functions if f.name.startswith("small-")}

    deployment = small_running.deployments["faastlane+"]
    before = calls()
    expected = small_running.expected(b"{}")
    for _ in range(20):
        assert deployment.invoke(b"{}").output == expected
    more = {name: count - before[name] for name, count in calls().items()}
    assert more["small-main"] == 20
    assert more["small-remote"] < 10  # it is asked for its address, now and then


def test_a_trace_tells_of_every_task_once(small_running):
    for planner, deployment in small_running.deployments.items():
        answer = deployment.invoke(b"{}", trace=True)
        assert answer.output == small_running.expected(b"{}")
        runs = sorted(str(span.task) for span in answer.timeline.tasks)
        assert runs == sorted(small_running.folder.workflow.by_name), planner
