"""What clients of ours say of a body."""

from __future__ import annotations

import pytest

from chiron.openfaas.function_headers import function_headers
from chiron.workflow.data import Request, Typed


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


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (Typed("\udcff", "image/png"), "image/png"),
        (Typed("[1]", "text/csv"), "text/csv"),
        (Typed("7", "application/json"), "application/json"),
        (Typed("[1]", ""), None),
        (Typed("[1]", "text/html; charset=utf-8"), None),  # as Flask says where a handler does not
        ("[1]", "application/json"),
    ],
)
def test_what_a_function_has_answered_is_called_as_it_called_it(
    text: str, kind: str | None
) -> None:
    found = function_headers(Request(text))
    assert found.get("Content-Type") == kind
    assert ("X-Chiron-Untyped" in found) == (kind is None)
