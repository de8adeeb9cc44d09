"""Functions with a CPU limit are spread over the cores."""

from __future__ import annotations

from chiron.gateway.process_backend import Cores


def test_the_least_loaded_cores_are_taken():
    cores = Cores({0, 1, 2, 3})
    assert cores.take(2) == [0, 1]
    assert cores.take(3) == [2, 3, 0]
    assert cores.take(1) == [1]


def test_cores_given_back_are_taken_again():
    cores = Cores({0, 1})
    first = cores.take(1)
    assert cores.take(1) != first
    cores.give_back(first)
    assert cores.take(1) == first


def test_more_than_there_is_is_all_there_is():
    assert Cores({4, 7}).take(5) == [4, 7]


def test_without_a_limit_nothing_is_taken():
    cores = Cores({0, 1})
    assert cores.take(None) is None
    cores.give_back(None)
    assert cores.take(1) == [0]
