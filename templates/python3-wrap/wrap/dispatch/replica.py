"""This replica of durable buckets: what is kept begins here, or where there is room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from wrap.cluster.durable import DurableBuckets, Order
from wrap.cluster.durable_records import Held
from wrap.core.buckets.flow import Firing
from wrap.core.buckets.ready import by_session
from wrap.core.buckets.triggers import Item
from wrap.values.quota import Quota
from wrap.values.value import Object

if TYPE_CHECKING:
    from wrap.dispatch.bucket_runs import BucketRuns


class Replica:
    """What `wrap.cluster.durable` tells the buckets of this replica, and what they have it keep.

    As `wrap.cluster.durable.Holder` says. Its methods may be called by any thread, but for `keep`.
    """

    def __init__(self, buckets: BucketRuns, durable: DurableBuckets, names: Iterable[str]) -> None:
        self.durable = durable
        self._buckets = buckets
        self._names = frozenset(names)
        self._term = b""

    @property
    def term(self) -> bytes:
        """As `Holder` says."""
        return self._term

    @property
    def may_evaluate(self) -> bool:
        """As `Holder` says."""
        return not self._buckets.ready.stopped

    @property
    def size(self) -> int:
        """As `Holder` says."""
        return self._buckets.size

    @property
    def free(self) -> int:
        """How many further sessions would begin here, of those that any replica can have."""
        with self._buckets.lock:
            return self._buckets.ready.free(self._buckets.most)

    @property
    def quota(self) -> Quota:
        """As `Holder` says."""
        return self._buckets.quota

    @property
    def bytes_left(self) -> int:
        """What sessions of others may take: all that there is where nothing is in hand."""
        return self.quota.left if self._buckets.ready.in_hand else self.quota.most

    @property
    def offered(self) -> int:
        """How many sessions any replica may have; known where the evaluator is."""
        return self.durable.offered if self._term else 0

    def evaluate(self, term: bytes) -> None:
        """Be the evaluator, of the objects that are to come."""
        buckets = self._buckets
        with buckets.lock:
            if not buckets.ready.stopped:
                self._term = term
                buckets.flow.let_go()
                buckets.follow([])
            else:
                self.durable.resign(term)
        buckets.work()

    def no_longer_evaluate(self, term: bytes) -> None:
        """Be it no longer, if it is for that term."""
        with self._buckets.lock:
            if term == self._term:
                self._term = b""
                self._buckets.flow.let_go()

    def resign(self) -> None:
        """Have another replica be the evaluator; with the lock."""
        term, self._term = self._term, b""
        if term:
            self._buckets.flow.let_go()
            self.durable.resign(term)

    def arrived(self, term: bytes, items: Iterable[Held]) -> None:
        """Have buckets hold what came of sessions of others, if it is the evaluator for `term`."""
        buckets = self._buckets
        with buckets.lock:
            if term == self._term:
                buckets.follow(buckets.flow.hold(self._known(items), buckets.now()))
        buckets.work()

    def resume(
        self, requests: Iterable[tuple[int, Object]], fired: Iterable[Sequence[Held]]
    ) -> None:
        """Begin sessions that another replica has had, or has fired."""
        buckets = self._buckets
        with buckets.lock:
            for batch in fired:
                for bucket, items in _by_bucket(self._known(batch)).items():
                    buckets.ready.add(buckets.flow.fired_before(bucket, items, buckets.now()))
            for number, given in requests:
                events = buckets.objects.items(given)
                buckets.follow(buckets.flow.take(number, events, buckets.now()))
        buckets.work()

    def have_room(self) -> None:
        """Go on, and take what is offered or is to be held, if there is room for it."""
        self._buckets.work()
        self.take_more()

    def take_more(self) -> None:
        """Take what is offered or is to be held, if there is room for it."""
        self.durable.read_more()
        if self.durable.offers and (free := self.free) > 0:
            self.durable.claim(free)

    def begin_anew(self) -> list[Order]:
        """Have nothing any more, as others have it; what `DurableBuckets.forget` gives."""
        with self._buckets.lock:
            self._term = b""
            self._buckets.begin_anew()
            return self.durable.forget()

    def keep(self, fired: Sequence[Firing[str, Object]]) -> None:
        """Have what begins a session run when that is kept, and what comes of one be held then.

        With the lock.
        """
        ready, durable = self._buckets.ready, self.durable
        sessions, others = by_session(fired)
        ready.add(others)
        for session, firings in sessions.items():
            is_own = not durable.others or ready.has_hands
            if is_own:
                ready.promise(len(firings))
            items = [(firings[0].bucket, item) for item in firings[0].items]
            then = partial(self._fired, firings, is_own)
            size = sum(each.size for each in firings)
            durable.fired(self._term, session, items, size, is_own, then)
        for settled in self._buckets.flow.settled():
            durable.settled(self._term, settled, partial(self._settled, settled.given))

    def _fired(self, firings: Sequence[Firing[str, Object]], is_own: bool, begins: bool) -> None:
        """What has fired is kept, and begins here or elsewhere; or another one is the evaluator."""
        buckets = self._buckets
        with buckets.lock:
            if is_own:
                buckets.ready.kept(len(firings))
            if begins:
                buckets.ready.add(firings)
            else:
                buckets.flow.withdraw(firings)
        buckets.work()

    def _settled(self, given: Sequence[Held], is_to_hold: bool) -> None:
        """What came of a session is kept; the evaluator holds it."""
        buckets = self._buckets
        with buckets.lock:
            if is_to_hold:
                buckets.follow(buckets.flow.commit(given, buckets.now()))
            else:
                buckets.flow.release(given)
        buckets.work()

    def _known(self, items: Iterable[Held]) -> Iterator[Held]:
        """Those of buckets that there are: another version may have had others."""
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
