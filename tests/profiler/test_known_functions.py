"""Functions of which is known what they do, profiled for real: kinds, latency, facts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

import pytest

from chiron.deployment.launcher import Launcher
from chiron.evaluation.profiler import KNOWN, write_known
from chiron.profiler.profile import profile
from chiron.workflow.profile import FunctionProfile

pytestmark = [pytest.mark.slow, pytest.mark.quiet]
#: Shares are right within this: what is taken for another kind shows.
#: How right they are where nothing else runs, `chiron evaluate profiler` tells.
BOUND = 0.15
#: What has threads of its own takes longer for computing where others have the cores, how much of
#: a write is waiting is the disk's matter, and a call that takes 0.03 ms is a tenth of tiny reads.
WIDER = dict.fromkeys(
    ("write", "tiny-reads", "python-threads", "native-threads", "waiting-threads"), 0.3
)


@pytest.fixture(scope="module")
def profiled(
    launcher: Launcher, strace: str, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, FunctionProfile]:
    folder = write_known(tmp_path_factory.mktemp("known"))
    return profile(folder, launcher, samples=8, brief=True).functions


def shares(function: FunctionProfile) -> dict[str, float]:
    found = {
        kind: function.time_ms(kind) / function.latency_ms for kind in ("cpu", "native", "block")
    }
    return found | {"free": found["native"] + found["block"]}


@pytest.mark.strace
@pytest.mark.parametrize("name", KNOWN)
def test_each_kind_has_its_share(profiled: Mapping[str, FunctionProfile], name: str) -> None:
    found = shares(profiled[name])
    for kind, share in KNOWN[name].truth.items():
        assert found[kind] == pytest.approx(share, abs=WIDER.get(name, BOUND)), profiled[
            name
        ].periods


@pytest.mark.strace
def test_a_wait_has_the_name_of_its_system_call(profiled: Mapping[str, FunctionProfile]) -> None:
    longest = {
        name: max(
            (period for period in function.periods if period.kind == "block"),
            key=lambda period: period.duration_ms,
        ).syscall
        for name, function in profiled.items()
        if shares(function)["block"] > 0.3
    }
    assert longest["sleep"] == longest["mixture"] == "clock_nanosleep"
    assert longest["socket"] == "recvfrom"
    assert longest["waiting-threads"] == "futex"


@pytest.mark.strace
def test_the_parts_come_in_their_order(profiled: Mapping[str, FunctionProfile]) -> None:
    kinds = [p.kind for p in profiled["mixture"].periods if p.duration_ms > 3]
    assert [kind for kind, _ in groupby(kinds)] == ["cpu", "block", "cpu", "native"]
