"""A wrap answers what running its functions one after the other would give, wherever they run."""

from __future__ import annotations

from typing import Any

import pytest

ECHO = "def handle(req):\n    return req\n"
SIZED = "def handle(req):\n    return '{letter}' * int(req)\n"
LENGTHS = """
    import json
    def handle(req):
        return json.dumps([[text[0], len(text)] for text in json.loads(req)])
"""
#: Placements of tasks 0..3, and of task 4, which needs them all.
PLACEMENTS = {
    "threads": [[0, 1, 2, 3, 4]],
    "processes": [[0, 4], [1], [2], [3]],
    "both": [[0, 1, 4], [2, 3]],
    "called again": [[0], [1, 4], [2, 3]],
    "only further": [[], [0, 1, 2, 3, 4]],
}
INPUTS = {**dict.fromkeys(range(4)), 4: [0, 1, 2, 3]}
HANDLERS = {letter: SIZED.format(letter=letter) for letter in "abcd"} | {"join": LENGTHS}


@pytest.mark.parametrize("mechanism", ["fork", "pool"])
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_outputs_of_any_size_arrive_whole_and_in_order(
    placement: str, mechanism: str, start: Any, wrap_image: Any
) -> None:
    declared = {"inputs": INPUTS, "entry": {"output": 4}}
    image = wrap_image(HANDLERS, PLACEMENTS[placement], mechanism=mechanism, **declared)
    server = start(image)
    for size in (1, 300_000, 10_000_000, 2):
        answer = server.request(body=str(size))
        assert (answer.status, answer.json) == (200, [[letter, size] for letter in "abcd"])
