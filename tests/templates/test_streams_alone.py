"""When a task that is run alone reads and writes its streams, as the profiler asks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.templates.streams import READER

ALONE = {
    "takes all and answers": """
        import time
        from chiron_io import open_input

        def handle(req):
            time.sleep(0.1)
            found = open_input().read()
            time.sleep(0.1)
            return found
    """,
    "takes and gives piece by piece": """
        import time
        from chiron_io import open_input

        def handle(req):
            time.sleep(0.1)
            with open_input() as stream:
                while data := stream.read(1 << 16):
                    time.sleep(0.1)
                    yield data
    """,
    "takes and writes": """
        import time
        from chiron_io import open_input, open_output

        def handle(req):
            time.sleep(0.1)
            with open_input() as stream, open_output() as out:
                while data := stream.read(1 << 16):
                    time.sleep(0.1)
                    out.write(data)
    """,
}


@pytest.mark.parametrize(
    ("reader", "reads_ms", "writes_ms"),
    [
        ("takes all and answers", [100, 100], None),
        ("takes and gives piece by piece", [100, 200], 200),
        ("takes and writes", [100, 200], 200),
    ],
)
def test_of_a_task_alone_the_timeline_says_when_it_reads_and_writes(
    reader: str, reads_ms: list[float], writes_ms: float | None, start: Any, wrap_image: Any
) -> None:
    image = wrap_image(
        {"reader": ALONE[reader]},
        [[READER]],
        tasks={READER: "reader"},
        inputs={READER: None},
        streams={READER: {"writer": -1}},
        entry={"output": READER},
    )
    stream = "x" * 100_000  # of two pieces
    answer = start(image, chiron_trace_key="key").request(
        body=json.dumps({"input": "", "streams": {"writer": stream}}), X_Chiron_Trace="key"
    )
    assert answer.json["output"] == stream
    (row,) = answer.json["timeline"]["spans"]
    slept_ms = 200 if writes_ms is None else 300
    for moment, expected_ms in zip(row["reads_ms"], reads_ms, strict=True):
        assert_between_sleeps(row, moment, expected_ms, slept_ms)
    if writes_ms is None:
        assert "writes_ms" not in row
    else:
        assert_between_sleeps(row, row["writes_ms"], writes_ms, slept_ms)


def assert_between_sleeps(
    row: dict[str, Any], moment: float, before_ms: float, slept_ms: float
) -> None:
    """A run sleeps for `before_ms` until a moment, and for the rest of `slept_ms` after it.

    A busy machine makes both longer, and neither shorter.
    """
    assert moment - row["start_ms"] > before_ms - 1
    assert row["end_ms"] - moment > slept_ms - before_ms - 1


def test_of_a_command_alone_the_timeline_says_when_it_reads_and_writes(
    start: Any, wrap_image: Any
) -> None:
    """It takes all but what fits into the pipe after 0.1 s, and answers 0.1 s later."""
    image = wrap_image(
        {"reader": {"run.sh": "#!/bin/sh\nsleep 0.1\nwc -c\nsleep 0.1\n"}},
        [[READER]],
        tasks={READER: "reader"},
        inputs={READER: []},
        streams={READER: {"writer": -1}},
        styles={"reader": "command"},
        commands={"reader": ["./run.sh"]},
        entry={"output": READER},
    )
    (image / "function" / "functions" / "reader" / "function" / "run.sh").chmod(0o755)
    stream = "x" * 300_000
    answer = start(image, chiron_trace_key="key").request(
        body=json.dumps({"input": "", "streams": {"writer": stream}}), X_Chiron_Trace="key"
    )
    assert answer.json["output"] == "300000\n"
    (row,) = answer.json["timeline"]["spans"]
    moments = [*row["reads_ms"], row["writes_ms"]]
    # The wrap sees from outside what the command does, and may see it late.
    for moment, before_ms in zip(moments, [0, 100, 100], strict=True):
        assert row["start_ms"] + before_ms - 1 < moment < row["end_ms"]
