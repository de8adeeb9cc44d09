"""A wrap answers what running its functions one after the other would give, wherever they run."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

ECHO = "def handle(req):\n    return req\n"
SIZED = "def handle(req):\n    return '{letter}' * int(req)\n"
LENGTHS = """
    import json
    def handle(req):
        return json.dumps([[text[0], len(text)] for text in json.loads(req)])
"""
INPUTS = {**dict.fromkeys(range(4)), 4: [0, 1, 2, 3]}
HANDLERS = {letter: SIZED.format(letter=letter) for letter in "abcd"} | {"join": LENGTHS}


@pytest.mark.parametrize("mechanism", ["fork", "pool"])
def test_outputs_of_any_size_arrive_whole_and_in_order(
    mechanism: str, start: Any, wrap_image: Any
) -> None:
    """The second process is called again for what needs the third one."""
    declared = {"inputs": INPUTS, "entry": {"output": 4}}
    server = start(wrap_image(HANDLERS, [[0], [1, 4], [2, 3]], mechanism=mechanism, **declared))
    for size in (1, 300_000, 10_000_000, 2):
        answer = server.request(body=str(size))
        assert (answer.status, answer.json) == (200, [[letter, size] for letter in "abcd"])


def test_a_process_tells_of_what_ended_before_what_that_began(start: Any, wrap_image: Any) -> None:
    """However its threads take turns: hence so often."""
    declared = {"inputs": INPUTS, "entry": {"output": 4}, "mechanism": "pool"}
    server = start(wrap_image(HANDLERS, [[], [0, 1, 2, 3, 4]], **declared))
    answers = [server.request(body="1") for _ in range(500)]
    assert {answer.text for answer in answers} == {'[["a", 1], ["b", 1], ["c", 1], ["d", 1]]'}


#: A diamond whose sides are of different lengths, beside a chain.
NEEDS = {0: [], 1: [0], 2: [0], 3: [1], 4: [1, 2], 5: [4, 3], 6: [], 7: [6, 0], 8: [5, 7]}
STAGES = [[0, 6], [1, 2, 7], [3, 4], [5], [8]]
NAMED = """
    import time

    def handle(req):
        time.sleep({pause})
        return "f{task}(" + req + ")"
"""


def expected(task: int, request: str) -> str:
    given = [expected(each, request) for each in NEEDS[task]]
    text = json.dumps(given, separators=(",", ":")) if len(given) > 1 else (given or [request])[0]
    return f"f{task}({text})"


@pytest.mark.parametrize(("mechanism", "kind"), [("fork", "stage"), ("pool", "data")])
def test_any_placement_answers_the_same_with_either_trigger(
    mechanism: str, kind: str, start: Any, wrap_image: Any, gateway: Any, in_background: Any
) -> None:
    """Over two wraps with further processes, of which some are called several times."""
    from wrap.core.triggers import buckets

    order = random.Random(mechanism)
    inputs = {t: each if len(each) > 1 else next(iter(each), None) for t, each in NEEDS.items()}
    names = ["test-wrap1", "test-wrap2"]
    where = {task: (order.choice(names), order.randrange(3)) for task in NEEDS}
    made = buckets(NEEDS, STAGES, kind)
    for name in reversed(names):
        own = {task: f"f{task}" for task in NEEDS if where[task][0] == name}
        known = set(NEEDS) if name == names[0] else set(own)
        others = {task: f"f{task}" for task in NEEDS if task not in own}
        handlers = {
            function: NAMED.format(task=task, pause=order.choice([0, 0, 0.02]))
            for task, function in own.items()
        }
        image = wrap_image(
            handlers,
            [[task for task in own if where[task][1] == number] for number in range(3)],
            tasks=own,
            name=name,
            mechanism=mechanism,
            inputs={task: inputs[task] for task in NEEDS if task in known},
            buckets=[
                ([task for task in bucket.awaits if task in known], starts)
                for bucket in made
                if (starts := [task for task in bucket.starts if task in known])
            ],
            entry={"output": 8, "remotes": {names[1]: others}} if name == names[0] else None,
        )
        server = start(image, gateway_url=gateway.url, WAITRESS_THREADS="16")
        gateway.ports[name] = server.port
    asked = {text: in_background(server.request, body=text) for text in map(str, range(20))}
    for text, answer in asked.items():
        assert answer.result(60).text == expected(8, text)
