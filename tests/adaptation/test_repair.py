"""Wraps that have ended on a gateway that starts nothing anew are deployed again by the watcher."""

from __future__ import annotations

import pytest

from chiron.adaptation.version import serving
from chiron.openfaas.objects import LogLine


@pytest.fixture
def gateway(strict):
    return strict[1]


def limits(gateway):
    return {f.name: f.limits.memory_mib for f in gateway.functions()}


@pytest.mark.parametrize(
    ("role", "logged", "factor"),
    [
        ("entry", "Forked function has terminated: signal: killed", 2),
        pytest.param("other", "Segmentation fault", 1, marks=pytest.mark.slow),
    ],
)
def test_a_wrap_that_was_killed_is_named_and_deployed_again(
    role, logged, factor, kill, watcher, place, monkeypatch
):
    watcher().run(once=True)
    current = serving(place.gateway, "pair", "pgp")
    (other,) = [f.name for f in current.wraps if f != current.entry]
    name = current.entry.name if role == "entry" else other
    before = limits(place.gateway)
    lines = [LogLine(name=name, text=logged)]
    monkeypatch.setattr(place.gateway, "logs", lambda *_: lines)
    kill(name)
    failed = place.gateway.invoke("pair-wrap1", b"x")
    if role == "entry":
        assert failed.status_code == 500
    else:  # it is waited for, as most gateways start it anew
        assert failed.status_code == 504
        assert f"{other} ended, and was not there again in time" in failed.text
    place.events.clear()
    watcher().run(once=True)
    assert [e.kind for e in place.events[:2]] == ["gone", "repaired"]
    assert f"{name} " in place.events[0].message
    assert f"with {factor * before[name]} MiB" in place.events[0].message
    assert place.answer() == "second first x"
    assert "adapting" not in place.kinds()
    assert limits(place.gateway) == before | {name: factor * before[name]}
    told = place.gateway.describe(name).env_vars["WRAP_MEMORY_MIB"]
    assert told == str(factor * before[name])
