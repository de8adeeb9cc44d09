"""Which processes a mechanism starts, keeps and ends; no process is started."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from wrap.workers.idle_workers import IdleWorkers
from wrap.workers.mechanisms import kind_of
from wrap.workers.mechanisms.mechanism import Mechanism

from chiron.predictor.mechanisms import MECHANISMS
from tests.rows import each_row


class Process:
    """A process that only says what became of it."""

    executions = 1

    def __init__(self, number: int) -> None:
        self.number = number
        self.fate = "runs"

    def alive(self) -> bool:
        return self.fate == "runs"

    def close(self) -> None:
        self.fate = "closed"

    def end(self) -> None:
        self.fate = "killed"


class ForkClient:
    """Has what it was asked for."""

    def __init__(self) -> None:
        self.spawned: list[Process] = []

    def spawn(self, number: int = 0) -> Any:
        self.spawned.append(Process(number))
        return self.spawned[-1]

    @property
    def numbers(self) -> list[int]:
        """The processes of the plan for which it was asked, 0 for any."""
        return [each.number for each in self.spawned]


def started(name: str, slots: int, unforked: tuple[int, ...] = (), **environment: str) -> Any:
    client: Any = ForkClient()
    mechanism = kind_of(name)(slots, environment, unforked)
    mechanism.start(client)
    return mechanism, client


@each_row(
    ("is_sound", "executions", "idle", "fate"),
    [
        (True, 1, 0, "runs"),
        (True, 1, 1, "runs"),
        (True, 1, 2, "closed"),  # as many wait as may
        (True, 9, 0, "runs"),
        (True, 10, 0, "closed"),  # it is worn
        (False, 1, 0, "killed"),  # it may still run something
        (False, 10, 2, "killed"),
    ],
)
def test_what_becomes_of_a_worker_that_is_given_back(is_sound, executions, idle, fate):
    workers: Any = IdleWorkers(ForkClient().spawn, most=2, executions=10)
    for _ in range(idle):
        workers.add()
    worker = Process(0)
    worker.executions = executions
    assert workers.give(worker, is_sound) == (fate == "runs")
    assert worker.fate == fate


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_runtime_has_the_mechanisms_that_plans_have(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", MECHANISMS[name].python)
    mechanism = kind_of(name)(0, {}, ())
    assert isinstance(mechanism, Mechanism)
    assert mechanism.name == name


def test_an_older_python_than_a_mechanism_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 12, 1))
    needs = "^mechanism interpreters needs Python 3.13 or later, and this is 3.12$"
    with pytest.raises(ValueError, match=needs):
        kind_of("interpreters")(0, {}, ())


def test_an_unknown_mechanism_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match="'magic' is none of fork, pool"):
        kind_of("magic")
    with pytest.raises(ValueError, match="pool_requests is 'many'"):
        kind_of("pool")(0, {"pool_requests": "many"}, ())


def test_fork_keeps_only_processes_that_cannot_be_forked() -> None:
    fork, client = started("fork", 2, unforked=(1,))
    assert (fork.lasting, client.numbers) == (1, [2])
    forked, kept = fork.take(0), fork.take(1)
    assert client.numbers == [2, 0]
    fork.give(0, forked, sound=True)
    fork.give(1, kept, sound=True)
    assert forked.fate == "closed"
    assert fork.take(1) is kept


def test_a_worker_that_died_while_it_waited_is_not_taken() -> None:
    pool, client = started("pool", 1)
    client.spawned[0].fate = "died"
    assert pool.take(0) is client.spawned[1]
    assert client.spawned[0].fate == "killed"


def test_the_worker_that_was_free_last_is_taken_first() -> None:
    pool, _ = started("pool", 1)
    first, second = pool.take(0), pool.take(0)
    pool.give(0, second, sound=True)
    pool.give(0, first, sound=True)
    assert pool.take(0) is first


def test_another_worker_takes_the_place_of_a_worn_or_unsound_one() -> None:
    for sound, fate in ((True, "closed"), (False, "killed")):
        pool, client = started("pool", 1, pool_requests="1")
        worker = pool.take(0)
        pool.give(0, worker, sound)
        assert (worker.fate, client.numbers) == (fate, [1, 1])
        assert pool.take(0) is client.spawned[1]


def test_a_pool_keeps_no_more_workers_than_executions_may_be_here() -> None:
    pool, client = started("pool", 1, pool_concurrency="1")
    workers = [pool.take(0), pool.take(0)]  # the second while all others waited for other wraps
    for each in workers:
        pool.give(0, each, sound=True)
    assert [each.fate for each in workers] == ["runs", "closed"]
    assert len(client.spawned) == 2
