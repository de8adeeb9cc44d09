"""Tables fit into a line of 100 characters, and lose nothing for it."""

from __future__ import annotations

import pytest

from cli.output import table


@pytest.mark.parametrize(
    ("columns", "cells"),
    [
        (["what", "ms"], ["one", "1.5"]),
        (["what", *(f"figure-{n:02}" for n in range(20))], [f"cell-{n:02}" for n in range(21)]),
        (["what", "a header of several words"] * 9, [f"figure-{n:02}" for n in range(18)]),
        (["what", "remark", "why"], ["word " * 30, "reason " * 30, "cause " * 30]),
    ],
    ids=["narrow", "many columns", "long headers", "long cells"],
)
def test_a_table_is_at_most_100_characters_wide_and_whole(columns, cells, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    table("a title", columns, [cells], notes=["ms: " + "milliseconds " * 20])
    shown = capsys.readouterr().err
    assert max(map(len, shown.splitlines())) <= 100
    assert shown.split().count("milliseconds") == 20
    assert {word for text in (*columns, *cells) for word in text.split()} <= set(shown.split())


def test_what_does_not_fit_goes_on_below_beside_the_first_columns(capsys):
    columns = ["variant", "workflow", *(f"figure-of-some-length-{n}" for n in range(5))]
    table("a title", columns, [["pgp", "finra", *"12345"]], keys=2)
    shown = capsys.readouterr().err
    assert shown.count("a title") == 1
    rows = [line.split() for line in shown.splitlines() if "pgp" in line]
    assert rows == [["pgp", "finra", *"123"], ["pgp", "finra", *"45"]]
