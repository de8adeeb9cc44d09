"""How often it is asked where the replicas of a wrap are, and who waits until that is known."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from wrap.core.errors import TaskError
from wrap.net import replicas
from wrap.net.replicas import Replicas

ADDRESS = "10.0.0.1 4000"


class Network:
    """What lets connections through, refuses them or gives no sign."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.error: type[OSError] | None = None
        self.tried = 0

    def reach(self, _: str) -> None:
        self.tried += 1
        if self.error is not None:
            raise self.error


def replicas_of(ask: Callable[[], str | None], reach: Callable[[str], None]) -> Replicas:
    """Replicas that are looked for before their caller goes on."""
    return Replicas(ask, reach, lambda look: look())


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    network = Network()
    monkeypatch.setattr(replicas.time, "monotonic", lambda: network.now)
    return network


@pytest.mark.parametrize(("error", "times"), [(TimeoutError, 2), (ConnectionRefusedError, 20)])
def test_one_that_gives_no_sign_is_seldom_tried(network, error, times):
    known = replicas_of(lambda: ADDRESS, network.reach)
    network.error = error
    for _ in range(100):
        assert known.of(0) is None
        network.now += 1
    assert network.tried == times
    network.error = None
    assert known.of(0, within_s=0.0) == ADDRESS, "after a loss it is tried at once"


@pytest.mark.parametrize(
    ("error", "is_stranger"),
    [
        (ConnectionError, True),  # it ends the connection without the proof that it waits for
        (ConnectionResetError, True),
        (ConnectionRefusedError, False),
        (TimeoutError, False),
    ],
)
def test_a_replica_of_another_build_ends_the_connection(network, error, is_stranger):
    known = replicas_of(lambda: ADDRESS, network.reach)
    network.error = error
    assert known.of(0) is None
    assert known.is_stranger is is_stranger
    network.error, network.now = None, network.now + 100
    assert known.of(0) == ADDRESS
    assert not known.is_stranger


def test_a_replica_that_takes_no_messages_is_of_another_build(network: Network) -> None:
    """An execution that looks for a replacement then hands its request on."""
    named: list[str | None] = [ADDRESS, None]
    known = replicas_of(lambda: named.pop(0), network.reach)
    assert known.of(0) == ADDRESS
    assert not known.is_stranger
    known.forget(ADDRESS)
    assert known.of(0) is None
    assert known.is_stranger


def test_of_one_that_has_ended_since_it_was_named_the_gateway_knows(network: Network) -> None:
    """An execution that begins then waits for the replacement, as those do that run."""
    named = iter([ADDRESS])

    def ask() -> str:
        for address in named:
            return address
        raise TaskError("remote", "the gateway reaches none")

    known = replicas_of(ask, network.reach)
    network.error = ConnectionRefusedError
    assert known.of(0) is None
    assert known.lost


def test_one_in_place_of_what_has_ended_is_found_at_once(network: Network) -> None:
    named = [ADDRESS, "10.0.0.2 4000"]

    def reach(address: str) -> None:
        if address == ADDRESS:
            raise ConnectionRefusedError

    assert replicas_of(lambda: named.pop(0), reach).of(0) == "10.0.0.2 4000"


def test_nobody_waits_for_who_looks_whether_one_is_silent_still(network: Network) -> None:
    looks, go_on = threading.Event(), threading.Event()

    def reach(_: str) -> None:
        looks.set()
        assert go_on.wait(60)
        raise TimeoutError

    known = replicas_of(lambda: ADDRESS, reach)
    go_on.set()
    assert known.of(0) is None
    network.now += 100
    go_on.clear()
    looks.clear()
    looking = threading.Thread(target=known.of, args=(0,))
    looking.start()
    assert looks.wait(60)
    assert known.of(0) is None
    go_on.set()
    looking.join()


def test_nobody_waits_for_the_gateway_while_a_replica_is_known(network: Network) -> None:
    """While wraps are replaced, the gateway may name a replica that answers after seconds."""
    looks: list[Callable[[], None]] = []
    named = [ADDRESS, "10.0.0.2 4000"]
    known = Replicas(lambda: named[0], network.reach, looks.append)
    assert known.of(0) == ADDRESS
    network.now += 100
    named.reverse()
    assert [known.known() for _ in range(3)] == [(ADDRESS,)] * 3
    (look,) = looks
    look()
    assert known.known() == tuple(sorted(named))


def test_while_a_replica_stays_out_of_reach_all_are_reached_through_the_gateway(
    network: Network,
) -> None:
    """If the only replica in reach ended, no other one could go on with what it had."""
    far = "10.0.1.1 4000"
    named = [ADDRESS]

    def reach(address: str) -> None:
        if address == far:
            raise TimeoutError

    known = replicas_of(lambda: named[0], reach)
    assert known.of(0) == ADDRESS
    named[0] = far
    assert known.of(0, within_s=0.0) == ADDRESS, "it may just have ended"
    named[0] = ADDRESS
    assert known.of(0, within_s=0.0) == ADDRESS
    named[0] = far
    assert known.of(0, within_s=0.0) is None


def test_the_silence_of_a_replica_counts_anew_after_it_has_answered(network: Network) -> None:
    late, named = "10.0.1.1 4000", [ADDRESS]
    silent: set[str] = set()

    def reach(address: str) -> None:
        if address in silent:
            raise TimeoutError

    known = replicas_of(lambda: named[0], reach)
    assert known.of(0) == ADDRESS
    named[0] = late
    for is_silent in (True, False, True):
        silent.clear()
        silent.update([late] if is_silent else [])
        known.forget(late)
        known.of(0, within_s=0.0)
    assert known.known() == (ADDRESS,)


def test_replicas_that_end_as_they_are_named_change_nothing(network: Network) -> None:
    named = [ADDRESS, *(f"10.0.1.{number} 4000" for number in range(1, 4))]

    def reach(address: str) -> None:
        if address != ADDRESS:
            raise TimeoutError

    known = replicas_of(lambda: named.pop(0), reach)
    assert [known.of(0, within_s=0.0) for _ in range(4)] == [ADDRESS] * 4


def test_where_there_is_a_new_one_others_are_soon_asked_for(network: Network) -> None:
    addresses = [f"10.0.0.{number} 4000" for number in range(1, 9)]
    there, asked = addresses[:1], 0

    def ask() -> str:
        nonlocal asked
        asked += 1
        return there[asked % len(there)]

    known = replicas_of(ask, network.reach)

    def seconds_pass(seconds: float) -> None:
        for _ in range(int(10 * seconds)):
            known.of(0)
            network.now += 0.1

    seconds_pass(60)
    assert asked < 20
    there = addresses
    seconds_pass(7)
    assert known.known() == tuple(addresses)


def test_one_that_is_ending_is_asked_only_where_no_other_one_is_known(network: Network) -> None:
    there = [ADDRESS, "10.0.0.2 4000"]
    known = replicas_of(lambda: there[0], network.reach)
    assert known.of(0) == ADDRESS
    known.mark_ending(ADDRESS)
    assert (known.of(0), known.known(), known.is_ending(ADDRESS)) == (ADDRESS, (), True)
    network.now += 0.1
    there.reverse()
    assert [known.of(number) for number in range(2)] == [there[0], there[0]]
    known.forget(ADDRESS)
    assert not known.is_ending(ADDRESS)
    known = replicas_of(lambda: ADDRESS, network.reach)
    assert known.of(0) == ADDRESS
    known.mark_ending(ADDRESS)
    network.now += 61  # its address may be another one's by now
    assert known.known() == (ADDRESS,)
