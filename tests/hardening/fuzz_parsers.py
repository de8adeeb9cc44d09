"""The parsers of what users write, as one function of bytes each."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from chiron.openfaas.handlers import Handler, read_requirements
from chiron.openfaas.stack import read_stack
from chiron.profiler.strace_text import parse as parse_strace
from chiron.workflow.documents import parse_json, validate
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import parse_workflow
from chiron.workflow.forms import known_form
from chiron.workflow.plan import Plan
from chiron.workflow.profile import Profile
from chiron.workflow.strict_yaml import load_document

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
Parser = Callable[[bytes, Path], Any]


def parse_workflow_bytes(data: bytes, _: Path) -> Any:
    """workflow.json, of any form."""
    return parse_workflow(parse_json(data, "workflow"))


def parse_workflow_yaml(data: bytes, _: Path) -> Any:
    """workflow.yaml, of any form, which is translated."""
    return known_form(load_document(data.decode(errors="replace"), "workflow").value)


def parse_profile(data: bytes, _: Path) -> Any:
    """profile.json."""
    return validate(Profile, parse_json(data, "profile"), "profile")


def parse_plan(data: bytes, _: Path) -> Any:
    """plan.json, held against a workflow."""
    plan = validate(Plan, parse_json(data, "plan"), "plan")
    plan.check_against(parse_workflow({"tasks": {"a": "f", "b": "g"}, "edges": [["a", "b"]]}))
    return plan


def parse_stack(data: bytes, scratch: Path) -> Any:
    """stack.yaml, with its variables."""
    file = scratch / "stack.yaml"
    file.write_bytes(data)
    return read_stack(file, {"HOME": "/home/me"})


def parse_requirements(data: bytes, scratch: Path) -> Any:
    """requirements.txt."""
    (scratch / "requirements.txt").write_bytes(data)
    return read_requirements(Handler("f", scratch, "flask"))


def parse_trace(data: bytes, _: Path) -> Any:
    """What strace wrote, which is read with whatever is no UTF-8 replaced."""
    return parse_strace(data.decode(errors="replace"))


_MACHINE = {
    "StartAt": "A",
    "TimeoutSeconds": 60,
    "States": {
        "A": {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Parameters": {"FunctionName": "f", "Payload.$": "States.Array($.a[0], 'b')"},
            "ResultSelector": {"a.$": "$.Payload"},
            "ResultPath": "$.a",
            "Retry": [{"ErrorEquals": ["E"], "BackoffRate": 1.5, "JitterStrategy": "FULL"}],
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "D", "ResultPath": "$.e"}],
            "Next": "B",
        },
        "B": {
            "Type": "Choice",
            "Choices": [
                {"And": [{"Variable": "$.a", "StringMatches": "a*"}], "Next": "C"},
                {"Variable": "$.a", "TimestampEquals": "2024-01-01T00:00:00Z", "Next": "W"},
            ],
            "Default": "A",
        },
        "C": {
            "Type": "Map",
            "ItemsPath": "$$.Execution.Input[*]",
            "Iterator": {"StartAt": "I", "States": {"I": {"Type": "Pass", "End": True}}},
            "MaxConcurrency": 2,
            "End": True,
        },
        "D": {"Type": "Fail", "ErrorPath": "$.e", "CausePath": "States.Format('{}', $.e)"},
        "W": {"Type": "Wait", "SecondsPath": "$.s", "Next": "B"},
    },
}
_PROFILE = {
    "format": 1,
    "workflow": "w",
    "functions": {
        "f": {
            "latency_ms": 2.0,
            "periods": [{"kind": "cpu", "start_ms": 0.0, "duration_ms": 2.0}],
            "spread_ms": [1.0, 3.0],
            "requirements": ["numpy==1.0"],
        }
    },
}
_PLAN = {
    "format": 2,
    "workflow": "w",
    "planner": "pgp",
    "trigger": "stage",
    "wraps": [
        {
            "name": "w",
            "cpus": 1,
            "memory_mib": 64,
            "mechanism": "fork",
            "processes": [["a"], ["b"]],
        }
    ],
    "cpus": 1,
}
_STACK = b"""version: "1.0"
provider: {name: openfaas, gateway: "${HOME:-http://x}"}
functions:
  f:
    lang: python3-http
    handler: ./f
    image: f:latest
    environment:
      x: 'y'
      z: |
        text
    secrets: [s]
    limits: {memory: 128Mi, cpu: "0.5"}
"""
_TRACE = b"""12 1700000000.1 openat(AT_FDCWD, "/etc/hosts", O_RDONLY) = 3</etc/hosts> <0.000012>
12 1700000000.2 futex(0x7f, FUTEX_WAIT, 0, NULL <unfinished ...>
13 1700000000.3 --- SIGCHLD {si_signo=SIGCHLD} ---
12 1700000000.4 <... futex resumed>) = -1 EAGAIN (Resource temporarily unavailable) <0.1>
12 1700000000.5 +++ exited with 0 +++
"""
_REQUIREMENTS = (
    b"numpy>=1.0,<2 ; python_version < '4'\n# c\nx[y] @ https://z/x.whl\nrequests==2.*  # c\n"
)
_FLAT = {
    "name": "w",
    "global_input": {"x": {"type": "pass", "size": 8}},
    "functions": [
        {
            "name": "a",
            "source": "f",
            "runtime": 0.5,
            "input": {"x": {"type": "pass", "value": {"function": "INPUT", "parameter": "x"}}},
            "output": {"parts": {"type": "keys", "size": 8}},
            "next": {"type": "foreach", "nodes": ["b"]},
        },
        {
            "name": "b",
            "source": "g",
            "input": {"p": {"type": "key", "value": {"function": "a", "parameter": "parts"}}},
            "output": {"n": {"type": "pass"}},
            "next": {"type": "pass", "nodes": ["v"]},
        },
        {
            "name": "v",
            "source": "VIRTUAL",
            "next": {
                "type": "switch",
                "conditions": ["a.parts > 3", "default"],
                "nodes": ["c", "END"],
            },
        },
        {"name": "c", "source": "f"},
    ],
}
_NESTED = {
    "name": "w",
    "type": "sequence",
    "steps": [
        {"name": "a", "type": "function", "source": "f", "output": ["x", "y"]},
        {
            "name": "p",
            "type": "parallel",
            "branches": [
                {
                    "name": "b",
                    "type": "foreach",
                    "inputMappings": [{"target": "i", "source": "LOCAL.x[*]"}],
                    "task": {"name": "t", "type": "function", "source": "g"},
                },
                {
                    "name": "s",
                    "type": "switch",
                    "choices": [
                        {
                            "condition": "LOCAL.y == 'A'",
                            "go": {"name": "d", "type": "function", "source": "f"},
                        }
                    ],
                },
            ],
        },
    ],
}
_BUCKETS = {
    "name": "ads",
    "entry": ["in"],
    "durable": False,
    "buckets": {
        "in": {"trigger": "by-name", "names": ["a"], "name_from": "type", "functions": ["f", "g"]},
        "both": {"trigger": "by-set", "function": "h", "attempts": 3},
        "some": {"trigger": "redundant", "k": 1, "n": 2, "function": "i", "rerun_after_ms": 5},
        "many": {"trigger": "by-batch-size", "size": 3, "wait_ms": 2, "function": "j"},
        "last": {"trigger": "dynamic-group", "group_from": "key", "function": "k"},
    },
    "functions": {
        "f": {"gives": ["both", "some"]},
        "g": {"function": "f", "gives": "both"},
        "h": {"gives": {"each": ["many"]}},
        "j": {"gives": ["last", {"each": "last"}]},
    },
}


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _example(file: str) -> bytes:
    return _json(yaml.safe_load((BENCHMARKS / file).read_text()))


#: Parser and an input that it takes, by name.
PARSERS: dict[str, tuple[Parser, bytes]] = {
    "machine": (parse_workflow_bytes, _json(_MACHINE)),
    "dag": (parse_workflow_bytes, _example("illegal-recognizer/workflow.json")),
    "flat": (parse_workflow_bytes, _json(_FLAT)),
    "nested": (parse_workflow_bytes, _json(_NESTED)),
    "dataflows": (parse_workflow_bytes, _example("recognition/workflow.yaml")),
    "buckets": (parse_workflow_bytes, _json(_BUCKETS)),
    "yaml": (parse_workflow_yaml, yaml.safe_dump(_NESTED).encode()),
    "profile": (parse_profile, _json(_PROFILE)),
    "plan": (parse_plan, _json(_PLAN)),
    "stack": (parse_stack, _STACK),
    "requirements": (parse_requirements, _REQUIREMENTS),
    "strace": (parse_trace, _TRACE),
}


def check(parser: Parser, data: bytes, scratch: Path) -> None:
    """Parse; the only error there may be is one that a terminal can show on a line."""
    try:
        parser(data, scratch)
    except ChironError as error:
        assert str(error).isprintable(), repr(error)
        assert error.code and len(str(error)) < 5000, repr(error)


def mutated(seed: bytes, number: random.Random) -> bytes:
    """`seed` with up to six pieces changed: of its bytes or, of JSON mostly, of its values."""
    if seed.startswith(b"{") and number.random() < 0.9:
        value = json.loads(seed)
        for _ in range(number.randint(1, 6)):
            value = _changed(value, number)
        return json.dumps(value).encode()
    data = bytearray(seed)
    for _ in range(number.randint(1, 6)):
        start = number.randrange(len(data) + 1)
        end = min(len(data), start + int(number.paretovariate(0.7)))
        piece = data[start:end]
        choice = number.randrange(5)
        if choice == 0:
            data[start:end] = b""
        elif choice == 1:
            data[start:start] = piece * number.randint(1, 4)
        elif choice == 2:
            other = number.randrange(len(data) + 1)
            data[other:other] = piece
        elif choice == 3:
            data[start:end] = number.choice(_NASTY)
        else:
            data[start:end] = bytes(number.randrange(256) for _ in piece[:8])
    return bytes(data)


def _changed(value: Any, number: random.Random) -> Any:
    """A JSON value with one place in it changed."""
    inner = list(value.items()) if isinstance(value, dict) else []
    inner = list(enumerate(value)) if isinstance(value, list) else inner
    if not inner or number.random() < 0.1:
        return number.choice([*_NASTY_VALUES, {"A": value}, [value], [value, value]])
    key, below = number.choice(inner)
    copy = value.copy()
    choice = number.random()
    if choice < 0.1:
        del copy[key]
    elif choice < 0.3 and isinstance(copy, dict):
        copy[number.choice([*(k for k, _ in inner), *map(str, _NASTY_VALUES)])] = below
    elif choice < 0.3:
        copy.insert(number.randrange(len(copy) + 1), below)
    else:
        copy[key] = _changed(below, number)
    return copy


_NASTY_VALUES = [
    None, True, 0, -1, 1, 2, 0.5, -0.0, 1e308, 2**63, 10**400, float("nan"), float("inf"), "", " ",
    "A", "B", "a", "b", "f", "w", "Task", "Parallel", "Fail", "Pass", "Choice", "\0", "a\nb",
    "\ud800", "\u202e", "\uff41", "a" * 100, "${HOME}", "../x", "'", '"', [], {}, [[]], ["a", "b"],
]  # fmt: skip
_NASTY = [
    b"\0", b"\xff\xfe", b"\xed\xa0\x80", "\u202e".encode(), "\u2028".encode(), b"\x1b[2J", b"\r\n",
    b"${", b"${A:-${B}}", b"$$", b"\\", b"'", b'"', b"{{7*7}}", b"*a", b"&a", b"!!python/object:x",
    b"<<: *a", b"---", b"- - -", b"[" * 100, b"{\"a\":" * 100, b"(" * 100, b"9" * 5000, b"1e999",
    b"-0", b"NaN", b"null", b"true", b"[]", b"{}", b"../../etc/passwd", b"-r x", b"--", b";", b"#",
    b" = 0 <1.0>", b" <unfinished ...>", b"<... x resumed>", "\u0661".encode(), b"a" * 3000,
]  # fmt: skip
