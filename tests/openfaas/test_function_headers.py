"""What clients of ours say of a body."""

from __future__ import annotations

import pytest

from chiron.openfaas.function_headers import function_headers


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"a": 1}', "application/json"),
        (b" [1]", "application/json"),
        (b"", "text/plain"),
        (b"5", "text/plain"),
        (b'"a"', "text/plain"),
        (b"{a", "text/plain"),
        (b"[NaN]", "text/plain"),
        (b"\xff", "text/plain"),
        (b"[" * 100_000, "text/plain"),
    ],
)
def test_an_object_or_a_list_alone_is_called_json(body: bytes, kind: str) -> None:
    assert function_headers(body)["Content-Type"] == kind
