"""Stores the contents of buckets in Redis for all replicas of a wrap: they survive any replica.

A session is everything that follows from one request or one fired window. Redis stores three
things: requests that have not ended, the objects of buckets that fire across requests, and the
unfinished firings of such buckets. The outputs of a session replace the session in one atomic step.
Only the replica that owns the session can do this step. So a session counts once, however often it
restarts: the same objects give the same numbers.

One replica, the evaluator, holds these buckets and decides what they fire. It is the evaluator for
a term; commands of earlier terms have no effect. A replica that sends nothing for a while counts as
dead: its sessions are offered to the others, and its later commands are refused.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wrap.cluster.durable_records import (
    Held,
    item_of,
    item_record,
    keys_of,
    name_of,
    number_of,
    numbers_of,
    object_of,
    record_of,
)
from wrap.core.buckets.flow import Settled
from wrap.core.buckets.triggers import Number
from wrap.core.errors import TaskError
from wrap.event_loop.liveness import essential
from wrap.net.object_store.redis import Redis
from wrap.values.value import Object

if TYPE_CHECKING:
    from wrap.dispatch.replica import Replica

Word = bytes | memoryview

_SCRIPT = Path(__file__).with_name("durable.lua").read_bytes()
_SHA = hashlib.sha1(_SCRIPT, usedforsecurity=False).hexdigest().encode()
#: The timeout of a write, and the pause before a retry, in seconds.
_WRITING_S, _PAUSE_S = 10.0, 0.2
#: The interval of beats, and the silence after which a replica counts as dead, in seconds.
_BEAT_S, _ALIVE_S = 0.5, 3.0
#: How many offered sessions a replica claims at once, so that others get some too.
_CLAIMED = 4
#: A session that has killed `_SUSPECT` replicas runs while no other such session runs on its
#: replica; after `_DEADLY` deaths it is a dead letter. durable.lua counts.
_SUSPECT, _DEADLY = 2, 3
#: Bytes of a command beside its words, bytes of a word beside its content, and the number of copies
#: while they are sent.
_COMMAND_BYTES, _WORD_BYTES, _COPIES = 1000, 60, 2


class StoreCommand(NamedTuple):
    """A command to durable.lua: `then` gets its answer, or `refused` is called."""

    words: Sequence[Word]
    then: Callable[[Any], None]
    refused: Callable[[], None]


def _nothing(*_: object) -> None:
    pass


class DurableBuckets:
    """Sends commands to Redis in sequence, in batches if they come faster than they are done.

    Args:
        name: the name of the workflow, whose keys begin with ``chiron:NAME:``.

    Attributes:
        place: the URL of Redis, without credentials.
        numbers: request numbers, unique among replicas and rising with time. For one thread at a
            time.
        other_replicas: how many other replicas there are.
        held_elsewhere: bytes of the evaluator's objects, if another replica is the evaluator.
        offered: how many sessions any replica could claim at the last beat.
        may_have_offers: whether there may be offered sessions.
        size: bytes of the commands that have not been done.
        dead_letters: how many sessions were set aside at the last beat.
    """

    def __init__(self, redis: Redis, name: str) -> None:
        self.numbers: Iterator[int] = iter(())
        self.other_replicas = self.held_elsewhere = self.offered = 0
        self.may_have_offers = False
        self.size = self.dead_letters = 0
        self.place = redis.place
        self._redis = redis
        self._prefix = f"chiron:{name}:".encode()
        self._replica = b""
        self._batch_number = 0
        self._joins = True
        self._left = False
        self._waiting = list[StoreCommand]()
        self._changed = threading.Condition()
        self._writes = False
        #: Session that a window began on this replica -> the keys of its objects.
        self._objects: dict[Number, Sequence[bytes]] = {}
        self._beats = self._beats_again = self._claims = False
        #: The term of the current read, whether to read again after it, and the term and count of
        #: the last read.
        self._reading, self._reads_again = b"", False
        self._has_read = (b"", 0)
        #: Whether there may be more to read, and whether the log says that buckets are full.
        self._has_more = self._says_full = False
        #: The sessions of this replica that may have killed replicas.
        self._suspects = set[bytes]()

    def join(self, owner: Replica) -> None:
        """Register this replica. Raises TaskError, ``store``."""
        deadline = time.monotonic() + _WRITING_S
        load, count = (b"SCRIPT", b"LOAD", _SCRIPT), (b"INCR", self._prefix + b"numbers")
        self._owner = owner
        number: Any
        _, number = self._redis.run([load, count], deadline)
        self._replica = number
        self.numbers = numbers_of(int(self._replica))
        self._beat()
        essential(self._listen, "durable")

    def store_request(
        self,
        number: int,
        given: Object,
        size: int,
        then: Callable[[], None],
        refused: Callable[[], None],
    ) -> None:
        """Store a request that takes `size` bytes in memory."""
        record = record_of([given.content_type], given)
        words = (b"take", b"%d" % number, b"%d\n%b" % (size, record))
        self._enqueue(StoreCommand(words, lambda _: then(), refused))

    def store_firing(
        self,
        term: bytes,
        session: Number,
        items: Sequence[Held],
        size: int,
        is_own: bool,
        then: Callable[[bool], None],
    ) -> None:
        """Store a firing of a bucket, which begins a session here or at a replica with room.

        It takes `size` bytes in memory. `then` is told whether the session begins here.
        """
        keys = keys_of(items)
        if is_own:
            self._objects[session] = keys

        def over(answer: bytes) -> None:
            begins = answer == b"1" and is_own
            if not begins:
                self._objects.pop(session, None)
            then(begins)

        listed = json.dumps([key.decode() for key in keys]).encode()
        words = (b"fire", term, name_of(session), b"%d\n%b" % (size, listed), b"%d" % is_own)
        self._enqueue(StoreCommand(words, over, _nothing))

    def store_outputs(
        self, term: bytes, settled: Settled[Object], then: Callable[[bool], None]
    ) -> None:
        """Replace a session in the store by its outputs.

        `then` is told whether this replica, the evaluator for `term`, is to hold them.
        """
        session, given = settled
        words = list[Word]([b"settle", term, name_of(session), b"%d" % len(given)])
        for key, (bucket, item) in zip(keys_of(given), given, strict=True):
            words += (key, item_record(bucket, item))
        words += self._objects.pop(session, ())
        self._suspects.discard(name_of(session))
        self._enqueue(StoreCommand(words, lambda answer: then(answer == b"2"), _nothing))

    def claim(self, free: int) -> None:
        """Claim offered sessions, at most `free`."""
        with self._changed:
            if self._claims or not self.may_have_offers:
                return
            self._claims, self.may_have_offers = True, False
        owner, wanted = self._owner, min(free, _CLAIMED)
        bounds = (owner.bytes_left, owner.quota.most, not self._suspects)
        words = (b"claim", b"%d" % wanted, *(b"%d" % bound for bound in bounds))
        self._enqueue(StoreCommand(words, partial(self._claim_answered, wanted), _nothing))

    def manage_dead_letters(
        self, verb: bytes, which: Sequence[bytes], then: Callable[[Any], None]
    ) -> None:
        """Show (``show``), run again (``retry``) or drop (``discard``) dead letters.

        `which` lists names of sessions; an empty list means all. `then` gets for each session its
        name, the number of replicas it has killed, its bytes, and the beginning of its content.
        """
        self._enqueue(StoreCommand((b"letters", verb, *which), then, partial(then, [])))

    def resign(self, term: bytes) -> None:
        """Let another replica become the evaluator."""
        self._enqueue(StoreCommand((b"resign", term), _nothing, _nothing))

    def leave(self, deadline: float) -> None:
        """Offer unfinished sessions to the others; returns after all writes or at `deadline`."""
        self._left = True
        self._enqueue(StoreCommand((b"leave",), _nothing, _nothing))
        with self._changed:
            self._changed.wait_for(
                lambda: not (self._waiting or self._writes), max(0.0, deadline - time.monotonic())
            )

    def forget(self) -> list[StoreCommand]:
        """Return the waiting commands, which will not be sent, and reset the state."""
        with self._changed:
            waiting, self._waiting = self._waiting, []
            self.size -= sum(map(_size, waiting))
            self._objects.clear()
            self._suspects.clear()
            self._beats = self._beats_again = self._claims = self._reads_again = False
            self._reading = b""
        return waiting

    def _enqueue(self, command: StoreCommand) -> None:
        with self._changed:
            self._waiting.append(command)
            self.size += _size(command)
            if self._writes:
                return
            self._writes = True
        essential(self._write_all, "durable-writes")

    def _write_all(self) -> None:
        """Send commands until none is left."""
        while True:
            with self._changed:
                commands, self._waiting = self._waiting, []
                if not commands:
                    self._writes = False
                    self._changed.notify_all()
                    return
            answers = self._answers(commands)
            with self._changed:
                self.size -= sum(map(_size, commands))
            if answers is not None:
                self._joins = False
                for command, answer in zip(commands, answers, strict=True):
                    _do(command.then, answer)
                _do(self._owner.continue_work)
            elif not self._left:
                print("other replicas have taken this one for dead, and have what it had")
                self._joins = True
                self._reset(commands)

    def _reset(self, commands: Sequence[StoreCommand]) -> None:
        for command in (*commands, *self._owner.reset()):
            _do(command.refused)

    def _answers(self, commands: Sequence[StoreCommand]) -> Any:
        """Return Redis's answer to each command; None if it refuses all. Retries without limit."""
        self._batch_number += 1
        head = (self._prefix, self._replica, b"%d" % self._batch_number, b"%d" % self._joins)
        words = list[Word]([b"EVALSHA", _SHA, b"1", *head, b"%d" % (_ALIVE_S * 1000)])
        for command in commands:
            words += (b"%d" % len(command.words), *command.words)
        said = ""
        while True:
            try:
                return self._redis.run([words], time.monotonic() + _WRITING_S)[0]
            except TaskError as error:
                if "NOSCRIPT" in str(error):  # Redis has restarted
                    words[:2] = (b"EVAL", _SCRIPT)
                    continue
                if str(error) != said:
                    said = str(error)
                    print(f"nothing can be kept: {said}")
                time.sleep(_PAUSE_S)

    def _listen(self) -> None:
        """Send beats, and wait for notices of new work, until the replica leaves."""
        seen = {self._prefix + b"wake:" + whom: b"0" for whom in (b"all", b"evaluator")}
        every, evaluator = seen
        beat_at = time.monotonic() + _BEAT_S
        while not self._left:
            streams = [every, evaluator] if self._owner.term else [every]
            left_s = max(0.001, beat_at - time.monotonic())
            block = (b"XREAD", b"BLOCK", b"%d" % (left_s * 1000 + 1), b"STREAMS", *streams)
            try:
                (found,) = self._redis.run(
                    [(*block, *(seen[name] for name in streams))],
                    time.monotonic() + left_s + _WRITING_S,
                )
            except TaskError:
                found = None
                time.sleep(_PAUSE_S)
            woken = _last(found)
            seen |= woken
            if every in woken or time.monotonic() >= beat_at:
                beat_at = time.monotonic() + _BEAT_S
                self._beat()
            if evaluator in woken:
                self._read_next(self._owner.term)

    def _beat(self) -> None:
        with self._changed:
            if self._left:
                return
            if self._beats:  # that beat may miss the current change
                self._beats_again = True
                return
            self._beats = True
        owner = self._owner
        words = (b"beat", owner.term, b"%d" % owner.may_evaluate, b"%d" % owner.size)
        self._enqueue(StoreCommand(words, partial(self._beat_answered, owner.term), _nothing))

    def _beat_answered(self, said: bytes, answer: Any) -> None:
        term, is_over, replicas, size, offered, arrived, letters = answer
        with self._changed:
            self._beats = False
            again, self._beats_again = self._beats_again, False
        self.other_replicas = int(replicas) - 1
        if int(letters) > self.dead_letters:
            print(
                f"{int(letters)} dead letters: each has killed {_DEADLY} replicas or does not fit "
                "into memory; look at them with chiron dead-letters"
            )
        self.dead_letters = int(letters)
        if term:
            self._owner.evaluate(term)
        elif is_over == b"1":
            self._owner.stop_evaluating(said)
        self.held_elsewhere = 0 if self._owner.term else int(size)
        self.offered = int(offered)
        if self.offered:
            self.may_have_offers = True
            self._owner.continue_work()
        if int(arrived):
            self._read_next(self._owner.term)
        if again:
            self._beat()

    def _claim_answered(self, wanted: int, found: Any) -> None:
        requests, fired = list[tuple[int, Object]](), list[Sequence[Held]]()
        self._claims = False
        for name, session, records, deaths in found:
            if int(deaths) >= _SUSPECT:
                self._suspects.add(name)
            if b"." in name:
                items = list(map(item_of, filter(None, records)))
                self._objects[number_of(name)] = keys_of(items)
                fired.append(items)
            else:
                requests.append((int(name), object_of(session.partition(b"\n")[2])))
        if len(found) == wanted:
            self.may_have_offers = True
        self._owner.resume(requests, fired)
        self._owner.continue_work()

    def _read_next(self, term: bytes) -> None:
        """Read objects for the evaluator: outputs of other replicas' sessions, or of earlier terms.

        They arrive in pieces, and stay in Redis while there is no room.
        """
        left = self._owner.quota.left
        with self._changed:
            if not term:
                return
            if left <= 0:
                if not self._says_full:
                    print("buckets are full: objects wait in Redis until some of these have fired")
                self._has_more = self._says_full = True
                return
            if self._reading == term:
                self._reads_again = True
                return
            self._reading = term
            read, count = self._has_read
            self._has_more = self._says_full = False
        words = (b"read", term, b"%d" % (count if read == term else 0), b"%d" % left)
        self._enqueue(StoreCommand(words, partial(self._read_answered, term), _nothing))

    def read_more(self) -> None:
        """Read the objects that had to wait, if there is room."""
        if self._has_more:
            self._read_next(self._owner.term)

    def _read_answered(self, term: bytes, records: Sequence[bytes]) -> None:
        with self._changed:
            if self._reading != term:
                return
            self._reading = b""
            again, self._reads_again = self._reads_again, False
            self._has_read = (term, len(records))
        if records:
            self._owner.arrived(term, map(item_of, filter(None, records)))
        if records or again:
            self._read_next(term)


def _size(command: StoreCommand) -> int:
    """Return the bytes of a command until it is done."""
    return _COMMAND_BYTES + _COPIES * sum(len(word) + _WORD_BYTES for word in command.words)


def _last(found: Any) -> dict[bytes, bytes]:
    """Return the last entry of each stream that has new entries."""
    return {name: entries[-1][0] for name, entries in found or ()}


def _do(action: Callable[..., None], *arguments: Any) -> None:
    """Call `action`; an error is printed, so that the other answers are still processed."""
    try:
        action(*arguments)
    except Exception:
        traceback.print_exc()
