"""Connects the buckets of this replica to the store: stored sessions begin here or elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from wrap.cluster.durable import DurableBuckets, StoreCommand
from wrap.cluster.durable_records import Held
from wrap.core.buckets.flow import Firing
from wrap.core.buckets.ready import by_session
from wrap.core.buckets.triggers import Item
from wrap.values.quota import Quota
from wrap.values.value import Object

if TYPE_CHECKING:
    from wrap.dispatch.bucket_runs import BucketRuns


class Replica:
    """Applies the answers of the store to the buckets of this replica, and stores what they fire.

    Any thread may call its methods; `keep` and `resign` need the lock of the buckets.
    """

    def __init__(self, buckets: BucketRuns, durable: DurableBuckets, names: Iterable[str]) -> None:
        self.durable = durable
        self._buckets = buckets
        self._names = frozenset(names)
        #: The term in which it is the evaluator; empty if it is not.
        self.term = b""

    @property
    def may_evaluate(self) -> bool:
        """Whether it can become the evaluator."""
        return not self._buckets.ready.stopped

    @property
    def size(self) -> int:
        """Bytes of the objects that it holds."""
        return self._buckets.size

    @property
    def free(self) -> int:
        """How many more sessions could begin here now."""
        with self._buckets.lock:
            return self._buckets.ready.free(self._buckets.most)

    @property
    def quota(self) -> Quota:
        return self._buckets.quota

    @property
    def bytes_left(self) -> int:
        """Bytes that sessions of other replicas may take: the whole quota if nothing is in hand."""
        return self.quota.left if self._buckets.ready.in_hand else self.quota.most

    @property
    def offered(self) -> int:
        """How many sessions wait for any replica; 0 if another replica is the evaluator."""
        return self.durable.offered if self.term else 0

    def evaluate(self, term: bytes) -> None:
        """Become the evaluator; the objects follow with `arrived`."""
        buckets = self._buckets
        with buckets.lock:
            if not buckets.ready.stopped:
                self.term = term
                buckets.flow.let_go()
                buckets.follow([])
            else:
                self.durable.resign(term)
        buckets.work()

    def stop_evaluating(self, term: bytes) -> None:
        """Stop being the evaluator, if `term` is still the current term."""
        with self._buckets.lock:
            if term == self.term:
                self.term = b""
                self._buckets.flow.let_go()

    def resign(self) -> None:
        """Let another replica become the evaluator; needs the lock."""
        term, self.term = self.term, b""
        if term:
            self._buckets.flow.let_go()
            self.durable.resign(term)

    def arrived(self, term: bytes, items: Iterable[Held]) -> None:
        """Hold objects of other replicas, if this replica is the evaluator of `term`."""
        buckets = self._buckets
        with buckets.lock:
            if term == self.term:
                buckets.follow(buckets.flow.hold(self._known(items), buckets.now()))
        buckets.work()

    def resume(
        self, requests: Iterable[tuple[int, Object]], fired: Iterable[Sequence[Held]]
    ) -> None:
        """Begin sessions of another replica: its requests, and the batches that it has fired."""
        buckets = self._buckets
        with buckets.lock:
            for batch in fired:
                for bucket, items in _by_bucket(self._known(batch)).items():
                    buckets.ready.add(buckets.flow.fired_before(bucket, items, buckets.now()))
            for number, given in requests:
                events = buckets.objects.items(given)
                buckets.follow(buckets.flow.take(number, events, buckets.now()))
        buckets.work()

    def continue_work(self) -> None:
        """Begin waiting firings and take more sessions, as there is room again."""
        self._buckets.work()
        self.take_offered()

    def take_offered(self) -> None:
        """Take sessions and objects that the store offers, as far as there is room."""
        self.durable.read_more()
        if self.durable.may_have_offers and (free := self.free) > 0:
            self.durable.claim(free)

    def reset(self) -> list[StoreCommand]:
        """Drop everything: other replicas own it. Return what `DurableBuckets.forget` returns."""
        with self._buckets.lock:
            self.term = b""
            self._buckets.reset()
            return self.durable.forget()

    def keep(self, fired: Sequence[Firing[str, Object]]) -> None:
        """Store firings that begin sessions, which run afterwards, and outputs of sessions.

        Needs the lock.
        """
        ready, durable = self._buckets.ready, self.durable
        sessions, others = by_session(fired)
        ready.add(others)
        for session, firings in sessions.items():
            is_own = not durable.other_replicas or ready.has_few_firings
            if is_own:
                ready.announce(len(firings))
            items = [(firings[0].bucket, item) for item in firings[0].items]
            then = partial(self._firing_stored, firings, is_own)
            size = sum(each.size for each in firings)
            durable.store_firing(self.term, session, items, size, is_own, then)
        for settled in self._buckets.flow.settled():
            durable.store_outputs(self.term, settled, partial(self._outputs_stored, settled.given))

    def _firing_stored(
        self, firings: Sequence[Firing[str, Object]], is_own: bool, begins: bool
    ) -> None:
        """Handle stored firings: they begin here, or another replica runs them."""
        buckets = self._buckets
        with buckets.lock:
            if is_own:
                buckets.ready.remove_announced(len(firings))
            if begins:
                buckets.ready.add(firings)
            else:
                buckets.flow.withdraw(firings)
        buckets.work()

    def _outputs_stored(self, given: Sequence[Held], is_to_hold: bool) -> None:
        """Handle a session's stored outputs: the evaluator puts them into its buckets."""
        buckets = self._buckets
        with buckets.lock:
            buckets.flow.release(given)
            if is_to_hold:
                buckets.follow(buckets.flow.hold(given, buckets.now()))
        buckets.work()

    def _known(self, items: Iterable[Held]) -> Iterator[Held]:
        """Yield the items of existing buckets; another version of the wrap may have had others."""
        for bucket, item in items:
            if bucket in self._names:
                yield bucket, item
            else:
                print(f"an object of the bucket {bucket} is dropped, as there is none")


def _by_bucket(items: Iterable[Held]) -> Mapping[str, Sequence[Item[Object]]]:
    found: dict[str, list[Item[Object]]] = {}
    for bucket, item in items:
        found.setdefault(bucket, []).append(item)
    return found
