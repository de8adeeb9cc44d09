"""Whatever the planner and mechanism, the output is the reference executor's."""

from __future__ import annotations

import json
from itertools import cycle
from pathlib import Path

import pytest

from chiron.evaluation.reference.sources import reference_run
from chiron.generator.generate import Sources
from chiron.predictor.mechanisms import EVERYWHERE
from chiron.scheduler.choices import Choices
from chiron.scheduler.planners import PLANNERS
from chiron.scheduler.schedule import schedule
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.plan import Plan

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MEGABYTE = 1_000_000


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
of_each_kind = pytest.mark.parametrize(
    "planner", [pytest.param("one-to-one", marks=pytest.mark.slow), "faasflow"]
)


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
            expected = reference_run(Sources.read(folder), request, place.gateway.url).output
            answers = [deployment.invoke(request).output for deployment in deployments]
            assert [answer == expected for answer in answers] == [True] * len(different)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mechanism"), [("finra", "fork"), ("slapp", "pool")])
def test_every_planner_of_a_benchmark_answers_as_the_reference_does(
    name, mechanism, place, profile_of, platform
):
    folder = WorkflowFolder.open(BENCHMARKS / name)
    chosen = plans(folder, profile_of, platform, mechanism)
    all_answer_right(place, folder, chosen, [folder.payloads()[0].content])


LARGE = json.dumps({"text": "ü€x" * (5 * MEGABYTE // 6)}, ensure_ascii=False).encode()
REQUESTS = [
    b'{"price": 1.10e5, "name": "\xc3\xa9\\u00e9"}',
    "no JSON at all: ü".encode(),
    b"",
    b"NaN",
    b'"a \\"quoted\\" [string]"',
]


def test_every_planners_deployment_answers_and_fails_as_the_reference(
    place, write_folder, profile_of, platform, tmp_path
):
    """And tells of every task once; what it takes to deploy all of them is done once."""
    folder = write_folder(tmp_path / "small", fields={"split": ROOMY})
    sources = Sources.read(folder)
    with place.deployed(folder, plans(folder, profile_of, platform, *EVERYWHERE)) as deployments:
        by_planner = dict(zip(PLANNERS, deployments, strict=True))
        for request in REQUESTS:
            expected = reference_run(sources, request, place.gateway.url).output
            answers = {name: each.invoke(request).output for name, each in by_planner.items()}
            assert answers == dict.fromkeys(PLANNERS, expected)
        for name, deployment in by_planner.items():
            answer = deployment.invoke(b"NaN", trace=True)
            runs = sorted(str(span.task) for span in answer.timeline.tasks)
            assert runs == sorted(folder.workflow.by_name), name
            with pytest.raises(ChironError) as failed:
                deployment.invoke(b'"boom"')
            assert failed.value.functions == ("wave",)
            assert failed.value.message.startswith("function wave failed: ")
            assert "no waves today" in failed.value.message
            assert failed.value.status == 500
            assert deployment.invoke(REQUESTS[-1]).output == expected, "later ones are right"
        large = reference_run(sources, LARGE, place.gateway.url).output
        for name in ("one-to-one", "faastlane+"):
            assert by_planner[name].invoke(LARGE).output == large, name
        wraps_call_each_other_without_the_gateway(place, by_planner["faastlane+"])


def wraps_call_each_other_without_the_gateway(place, deployment):
    def calls() -> dict[str, float]:
        functions = place.gateway.functions()
        return {f.name: f.invocation_count for f in functions if f.name.startswith("small-")}

    before = calls()
    for _ in range(20):
        deployment.invoke(b"{}")
    more = {name: count - before[name] for name, count in calls().items()}
    assert more["small-main"] == 20
    assert more["small-remote"] < 10  # it is asked for its address, now and then


COMMANDS = {"sort": "sort -r", "zip": "gzip -nc {in}", "unzip": "sh unzip.sh"}
MIXED_FUNCTIONS = {
    "split": """
from chiron_io import emit
def handle(req):
    emit("left", req[: len(req) // 2])
    emit("right", req[len(req) // 2 :].encode())
    return {"size": len(req)}
""",
    "turn": "def handle(event, context):\n    return event.body[::-1]\n",
    "count": "def handle(req):\n    return str(req.count('\ufffd'))\n",
    "digest": """
import hashlib
from chiron_io import emit
def handle(event, context):
    emit("size", str(len(event.body)))
    return {"body": hashlib.sha256(event.body).hexdigest()}
""",
    "join": "def handle(req):\n    return req\n",
    "seal": "def handle(event, context):\n    return b'\\xff' + event.body\n",
}
MIXED_EDGES = [
    *(["split#left", "sort"], ["sort", "zip"], ["zip", "unzip"], ["zip", "turn"], ["zip", "count"]),
    *(
        ["turn", "digest"],
        ["split#right", "join"],
        ["split", "join"],
        ["unzip", "join"],
        ["count", "join"],
        ["digest", "join"],
    ),
    *(["digest#size", "join"], ["join", "seal"]),
]


@of_each_kind
def test_commands_bytes_and_what_is_emitted_are_outputs_like_any_other(
    planner, place, write_folder, profile_of, platform, tmp_path
):
    """Also where a handler of python3-flask gets as text what is none."""
    functions = dict.fromkeys(COMMANDS, "") | MIXED_FUNCTIONS
    fields = {name: {"lang": "command", "fprocess": each} for name, each in COMMANDS.items()}
    folder = write_folder(
        tmp_path,
        {"name": "mixed", "tasks": {name: name for name in functions}, "edges": MIXED_EDGES},
        functions,
        {"unzip": {"unzip.sh": "gzip -d"}},
        dict.fromkeys(MIXED_FUNCTIONS, ROOMY) | fields,
    )
    requests = ["\n".join(map(str, range(size // 7))).encode() for size in (14, 2 * MEGABYTE)]
    chosen = plans(folder, profile_of, platform, *EVERYWHERE, planners=[planner])
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


@of_each_kind
def test_what_is_read_while_it_is_written_is_an_output_like_any_other(
    planner, place, write_folder, profile_of, platform, tmp_path
):
    """A diamond of streams, a command among them, and readers that leave some of it."""
    commands = {"sort": {"lang": "command", "fprocess": "sort {in:upper}"}}
    folder = write_folder(tmp_path, STREAMING_WORKFLOW, STREAMING_FUNCTIONS, {}, commands)
    requests = [b"ab", b"", b",".join(b"%d" % each for each in range(MEGABYTE // 10))]
    chosen = plans(folder, profile_of, platform, *EVERYWHERE, planners=[planner])
    all_answer_right(place, folder, chosen, requests)
