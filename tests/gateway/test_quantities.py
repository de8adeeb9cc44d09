"""Quantities of memory, CPU and time mean what Kubernetes, Docker and Go take them for."""

from __future__ import annotations

import pytest

from chiron.gateway.deployment import cpu_cores, duration_s, memory_bytes
from chiron.workflow.errors import ChironError
from tests.rows import each_row


@each_row(
    ("text", "expected"),
    [("128Mi", 128 << 20), ("1.5Gi", 3 << 29), ("1M", 10**6), ("40m", 40 << 20), ("512", 512)],
)
def test_memory(text, expected):
    assert memory_bytes(text) == expected


@each_row(("text", "expected"), [("500m", 0.5), ("2", 2.0), ("0.25", 0.25)])
def test_cpu(text, expected):
    assert cpu_cores(text) == expected


@each_row(
    ("text", "expected"),
    [("60s", 60), ("1m30s", 90), ("500ms", 0.5), ("1.5h", 5400), ("10", 10), ("0", 0)],
)
def test_duration(text, expected):
    assert duration_s(text) == expected


@each_row("parse", [memory_bytes, cpu_cores, duration_s])
@each_row("text", ["", "x", "-1", "1 ", "1x", "Mi", "1s2"])
def test_what_is_no_quantity_is_refused_by_its_text(parse, text):
    with pytest.raises(ChironError, match="write it like"):
        parse(text)
