"""Signals while a verb deploys, runs and removes: whenever they come, nothing stays deployed."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest

from chiron.gateway.embedded import EmbeddedGateway
from chiron.openfaas.client import Gateway


@pytest.mark.parametrize(
    ("first", "number"),
    [
        ("building", signal.SIGHUP),
        pytest.param("measuring", signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_a_second_signal_while_all_is_removed_leaves_nothing_deployed(
    first, number, start, artefacts, environment, wait_until
):
    images = Path(environment["CHIRON_HOME"]) / "images"
    with (
        EmbeddedGateway(images=images, strict="faasd", grace_s=10.0) as embedded,
        Gateway(embedded.url) as there,
    ):
        running = start(
            "deploy", "small", "--slo=1s", "-g", embedded.url, "--planner=one-to-one",
            "--profile=profile.json", "--platform=platform.json", "--no-check",
        )  # fmt: skip
        running.wait_for(re.compile(f"({first})"))
        if first == "building":
            wait_until(there.functions)
        running.signal(number)
        time.sleep(0.3)  # a removal takes as long as a watchdog sleeps: 1 s
        assert running.end(signal.SIGINT) == 128 + number
        assert "further signals are ignored" in running.said
        assert running.said.endswith("error: interrupted\n")
        assert there.functions() == []
