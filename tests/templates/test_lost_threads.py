"""Threads that go on after they were given up: how many are too many; no thread is started."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from wrap.core.errors import TaskError
from wrap.dispatch.lost_threads import LostThreads

from tests.rows import each_row

LIMIT = 64


@dataclass(eq=False)
class Work:
    name: str = "f"
    over: bool = False
    is_cancelled: bool = True

    @property
    def lost(self) -> bool:
        return self.is_cancelled and not self.over


def given_up(*groups: tuple[int, Work], tasks: int = 0) -> LostThreads:
    """So many of each work were given up."""
    threads = LostThreads(tasks)
    for count, like in groups:
        for _ in range(count):
            threads.add(Work(like.name, like.over, like.is_cancelled))
    return threads


@each_row(
    ("threads", "too_many"),
    [
        (given_up((LIMIT - 1, Work())), 0),
        (given_up((LIMIT, Work()), (1000, Work(over=True))), LIMIT),
        (given_up((LIMIT - 1, Work()), (1000, Work(over=True))), 0),
        (given_up((LIMIT, Work()), tasks=LIMIT // 2), LIMIT),
        (given_up((199, Work()), tasks=100), 0),
        (given_up((200, Work()), tasks=100), 200),
    ],
)
def test_those_that_go_on_are_counted_up_to_two_requests_of_them(threads, too_many):
    assert len(threads.too_many()) == too_many
    assert threads.are_too_many == bool(too_many)


def test_nothing_begins_while_there_are_too_many_and_one_that_comes_back_makes_room() -> None:
    last = Work("g")
    threads = given_up((LIMIT // 2, Work("g")), (LIMIT // 2 - 1, Work("f")))
    threads.check()
    threads.add(last)
    with pytest.raises(TaskError, match=r"64 threads of f, g are still running") as raised:
        threads.check()
    error = raised.value
    assert (error.code, error.status, error.function) == ("threads-lost", 503, "f, g")
    last.over = True
    assert not threads.too_many()
    threads.check()


def test_the_program_goes_on_while_some_may_still_end_by_themselves() -> None:
    """Those of a request that failed run on to their own limits before they are cancelled."""
    threads = given_up((LIMIT - 1, Work()), (1, Work(is_cancelled=False)))
    assert threads.too_many() and not threads.are_too_many
