"""Which functions a deployed workflow has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from chiron.deployment.deployed import check_member, staying
from chiron.generator.annotations import FUNCTIONS, WORKFLOW
from chiron.generator.fingerprint import DEFINITION
from chiron.openfaas.objects import FunctionStatus
from chiron.workflow.errors import ChironError

GATEWAY = cast(
    Any,
    SimpleNamespace(
        functions=lambda: [
            FunctionStatus(name="pair-wrap1", annotations={FUNCTIONS: "first,second"}),
            FunctionStatus(name="other", annotations={}),
        ]
    ),
)


@pytest.mark.parametrize("name", ["first", "second", "pair-wrap1"])
def test_what_a_wrap_runs_is_there(name: str) -> None:
    check_member(GATEWAY, ["pair-wrap1"], name)


@pytest.mark.parametrize("name", ["nope", "other"])
def test_what_no_wrap_runs_is_refused_with_what_there_is(name: str) -> None:
    with pytest.raises(ChironError, match=f"'{name}' is in no wrap .* there are: first, second"):
        check_member(GATEWAY, ["pair-wrap1"], name)


def test_what_was_deployed_beside_workflows_stays_behind_the_last() -> None:
    there = [
        FunctionStatus(name="pair-wrap1", annotations={WORKFLOW: "pair"}),
        FunctionStatus(name="helper", annotations={DEFINITION: "1a2b"}),
        FunctionStatus(name="other", annotations={}),
    ]
    assert staying(cast(Any, SimpleNamespace(functions=lambda: there))) == ()
    assert staying(cast(Any, SimpleNamespace(functions=lambda: there[1:]))) == ("helper",)
