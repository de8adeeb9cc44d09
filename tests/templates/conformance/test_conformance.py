"""Handlers behave in wraps, wherever they run, and in the plain runner as on their template."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from alone import ALONE, BOUND_S, answers, items
from behaviour import Family
from differences import DOCUMENTED, listed
from families import AT_IMPORTS, FAMILIES

RECORDED: dict[str, dict[str, Any]] = json.loads(ALONE.read_text())["answers"]
#: Row of the table in templates/README.md -> what differs for that reason.
STAYING = {each: row for row, places in DOCUMENTED.items() for each in listed(places)}
README = Path(__file__).parents[3] / "templates" / "README.md"
#: Where a wrap runs the handler.
WRAPS: dict[str, dict[str, Any]] = {
    "thread": {},
    "fork": {"processes": [[], [0]]},
    "pool": {"processes": [[], [0]], "mechanism": "pool"},
    "two wraps": {},
}
PLACES = ("plain", *WRAPS)
#: Where behaviours at the import differ: the process that imports serves requests, or is forked.
IMPORTING = ("thread", "fork")
#: After so many seconds the plain runner has not answered what the template never answers.
NO_ANSWER_S = 1.0
#: What a failed request of a wrap may have as its code where the template answers 500 or nothing.
CODES = {"raised", "exited", "bad-output", "status", "process-died"}


def _chosen() -> Iterator[Any]:
    """Each family in each place, but imports in one; one place of each is for every day."""
    for number, name in enumerate(FAMILIES):
        places = IMPORTING if name in AT_IMPORTS else PLACES
        daily = places[number % len(places)]
        for place in [daily] if name in AT_IMPORTS else places:
            yield pytest.param(name, place, marks=[] if place == daily else [pytest.mark.slow])


def _never_answered(name: str, behaviour: str) -> bool:
    recorded = RECORDED[name][behaviour]
    return isinstance(recorded, list) and any(each[0] == "no answer" for each in recorded)


@pytest.fixture(scope="module")
def setting() -> Iterator[Any]:
    """The settings that name the server which handlers ask."""
    with items() as settings:
        yield settings


@pytest.fixture
def serve(
    start: Any, plain_image: Any, wrap_image: Any, gateway: Any, setting: Any
) -> Callable[[str, str], int]:
    """Starts a family's server in a place; returns its port."""

    def serve(name: str, place: str) -> int:
        family = FAMILIES[name]
        settings = {**setting, **family.settings}
        files = {"handler.py": family.handler, **family.files}
        if place == "plain":
            image = plain_image(family.handler)
            for path, text in family.files.items():
                file = image / "function" / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            return start(image, handler_style=family.style, **settings).port
        fields = {"styles": {"one": family.style}, "answers": 0, "timeout_s": 20.0}
        settings |= {"pool_concurrency": "4", "gateway_url": gateway.url}
        if place == "two wraps":
            near = {"output": 0, "styles": [family.style], "remotes": {"test-wrap2": {0: "one"}}}
            port = start(wrap_image({}, entry=near), **settings).port
            far = wrap_image({"one": files}, name="test-wrap2", **fields)
            gateway.ports["test-wrap2"] = start(far, **settings).port
            return port
        image = wrap_image({"one": files}, entry={"output": 0}, **fields, **WRAPS[place])
        return start(image, **settings).port

    return serve


@pytest.mark.parametrize(("name", "place"), list(_chosen()))
def test_a_handler_behaves_as_on_its_template(serve: Any, name: str, place: str) -> None:
    family, port = FAMILIES[name], serve(name, place)
    differs, as_alone = {}, {}
    for behaviour, requests in family.behaviours.items():
        waits = place == "plain" and _never_answered(name, behaviour)
        found = answers(port, requests, NO_ANSWER_S if waits else BOUND_S)
        alone = RECORDED[name][behaviour]
        same = compared(found, alone, family.headers) == compared(alone, alone, family.headers)
        if (name, behaviour, place) not in STAYING:
            differs |= {} if same else {behaviour: f"{found}, alone {alone}"}
        elif found == alone:
            as_alone[behaviour] = found
    assert not differs, "\n".join(f"{each}: {how}" for each, how in differs.items())
    assert as_alone == {}, "they are as alone: the table of differences is out of date"


def compared(found: Any, alone: Any, headers: bool) -> Any:
    """What of the answers `found` has to be as in `alone`.

    Of a failed request of a wrap that is only that it failed: each has its own words for that.
    """
    if isinstance(found, dict):
        return found
    pairs = zip(found, alone, strict=True)
    return [
        "failed" if _failed(each, known) else each if headers else [each[0], each[2]]
        for each, known in pairs
    ]


def _failed(found: list[Any], alone: list[Any]) -> bool:
    if alone[0] not in (500, "no answer"):
        return False
    if found == alone:
        return True
    try:
        return found[0] == 500 and json.loads(found[2])["code"] in CODES
    except ValueError:
        return False


def test_every_behaviour_has_a_recorded_answer() -> None:
    known: dict[str, Family] = FAMILIES
    assert {name: list(each) for name, each in RECORDED.items()} == {
        name: list(family.behaviours) for name, family in known.items()
    }


def test_what_differs_names_behaviours() -> None:
    all_of_them = {
        (name, behaviour, place)
        for name, family in FAMILIES.items()
        for behaviour in family.behaviours
        for place in PLACES
    }
    of_tables = [each for places in DOCUMENTED.values() for each in listed(places)]
    assert set(of_tables) <= all_of_them
    assert len(of_tables) == len(set(of_tables))


def test_every_documented_difference_has_a_behaviour() -> None:
    _, _, text = README.read_text().partition("## What differs from a function alone\n")
    rows = [line for line in text.partition("\n## ")[0].split("\n") if line.startswith("| ")]
    assert [row.split("|")[1].strip() for row in rows[1:]] == list(DOCUMENTED)
    assert len(DOCUMENTED) <= 8
