"""Keeps in Redis what buckets hold, so that nothing is lost with the process.

A session is all that comes of a request, or of what a window has fired. Kept are requests that have
not ended, what buckets hold that fire for many requests, and what these have fired that has not
ended. What a session gives replaces it, in one step: after a crash it is either begun anew, from
the same objects and with the same numbers, or it is over.

Only the last process that has come may write: what one that was taken for dead still does,
is refused.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from wrap.errors import TaskError
from wrap.objects import Object
from wrap.stores.redis import Answer, Redis
from wrap.streams.flow import Settled
from wrap.streams.triggers import Item, Number

Command = Sequence[bytes | memoryview]

#: Does commands in one step, each after the number of its words, if the caller owns the keys.
_SCRIPT = b"""
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return redis.error_reply('another replica has taken over')
end
local at = 2
while at <= #ARGV do
  local words = tonumber(ARGV[at])
  redis.call(unpack(ARGV, at + 1, at + words))
  at = at + words + 1
end
return 'OK'
"""
#: Pairs, or names, of one command.
_AT_ONCE = 1000
#: How long a write may take, and the pause before it is tried again, in seconds.
_WRITING_S, _PAUSE_S = 10.0, 0.2


class Kept(NamedTuple):
    """What a process before this one has left: requests by number, objects, and what has fired.

    Of what has fired, the objects are in no bucket any more.
    """

    requests: list[tuple[int, Object]]
    held: list[tuple[str, Item[Object]]]
    fired: list[tuple[str, list[Item[Object]]]]


class Keeper:
    """Writes are done in their order, several at once where they come faster than they are done.

    Parameters
    ----------
    name
        Of the workflow, whose keys begin with ``chiron:NAME:``.
    """

    def __init__(self, redis: Redis, name: str) -> None:
        self._redis = redis
        self._prefix = f"chiron:{name}:".encode()
        self._token = os.urandom(16).hex().encode()
        self._waiting: list[tuple[list[Command], Callable[[], None] | None]] = []
        self._changed = threading.Condition()
        self._writes = False
        #: The objects of each session that a window has begun.
        self._objects: dict[Number, Sequence[tuple[str, Number]]] = {}

    def load(self) -> Kept:
        """Take over, and read all that is there. Raises TaskError, ``store``."""
        deadline = time.monotonic() + _WRITING_S
        owner, *names = map(self._key, ("owner", "requests", "held", "fired"))
        reads = [(b"HGETALL", name) for name in names]
        _, *found = self._redis.run([(b"SET", owner, self._token), *reads], deadline)
        requests, held, fired = map(_pairs, found)
        objects = {key: _read(record) for key, record in held.items()}
        batches = list[tuple[str, list[Item[Object]]]]()
        for session, keys in fired.items():
            items = [objects.pop(key.encode()) for key in json.loads(keys)]
            batches.append((items[0][0], [item for _, item in items]))
            self._note(_number(session), items)
        return Kept(
            sorted((int(number), _object(record)) for number, record in requests.items()),
            sorted(objects.values(), key=lambda each: each[1].number),
            batches,
        )

    def request(self, number: int, given: Object, then: Callable[[], None]) -> None:
        """Keep a request."""
        record = _record([given.content_type], given)
        self._write([(b"HSET", self._key("requests"), b"%d" % number, record)], then)

    def fired(
        self, session: Number, bucket: str, items: Sequence[Item[Object]], then: Callable[[], None]
    ) -> None:
        """Note what a bucket has fired, which begins a session."""
        keys = [_key_of(bucket, item.number) for item in items]
        self._note(session, [(bucket, item) for item in items])
        command = (b"HSET", self._key("fired"), _name(session).encode(), json.dumps(keys).encode())
        self._write([command], then)

    def settled(self, settled: Settled[Object], then: Callable[[], None]) -> None:
        """Keep what came of a session in its place."""
        session, given = settled
        pairs = [
            (_key_of(bucket, item.number).encode(), _kept(bucket, item)) for bucket, item in given
        ]
        commands = self._several(b"HSET", "held", pairs)
        objects = self._objects.pop(session, None)
        if objects is None:
            commands.append((b"HDEL", self._key("requests"), b"%d" % session[0]))
        else:
            commands.append((b"HDEL", self._key("fired"), _name(session).encode()))
            names = [(_key_of(*each).encode(),) for each in objects]
            commands += self._several(b"HDEL", "held", names)
        self._write(commands, then)

    def close(self, deadline: float) -> bool:
        """Wait until all is written; whether it is."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not (self._waiting or self._writes), max(0.0, deadline - time.monotonic())
            )

    def _note(self, session: Number, items: Iterable[tuple[str, Item[Object]]]) -> None:
        self._objects[session] = [(bucket, item.number) for bucket, item in items]

    def _key(self, what: str) -> bytes:
        return self._prefix + what.encode()

    def _several(self, verb: bytes, key: str, words: Sequence[Sequence[bytes]]) -> list[Command]:
        return [
            (verb, self._key(key), *(word for each in words[at : at + _AT_ONCE] for word in each))
            for at in range(0, len(words), _AT_ONCE)
        ]

    def _write(self, commands: list[Command], then: Callable[[], None] | None) -> None:
        with self._changed:
            self._waiting.append((commands, then))
            if self._writes:
                return
            self._writes = True
        threading.Thread(target=self._write_all, name="keeper", daemon=True).start()

    def _write_all(self) -> None:
        """Write as long as there is something."""
        while True:
            with self._changed:
                writes, self._waiting = self._waiting, []
                if not writes:
                    self._writes = False
                    self._changed.notify_all()
                    return
            words = list[bytes | memoryview]()
            for commands, _ in writes:
                for command in commands:
                    words += (b"%d" % len(command), *command)
            self._until_done((b"EVAL", _SCRIPT, b"1", self._key("owner"), self._token, *words))
            for _, then in writes:
                if then is not None:
                    then()

    def _until_done(self, command: Command) -> None:
        """What is written twice is written once; so it may be tried again."""
        said = ""
        while True:
            try:
                self._redis.run([command], time.monotonic() + _WRITING_S)
                return
            except TaskError as error:
                if str(error) != said:
                    said = str(error)
                    print(f"nothing can be kept: {said}")
                time.sleep(_PAUSE_S)


def _name(number: Number) -> str:
    return ".".join(map(str, number))


def _key_of(bucket: str, number: Number) -> str:
    """One object may be in several buckets."""
    return f"{_name(number)} {bucket}"


def _number(name: bytes) -> Number:
    return tuple(map(int, name.split(b".")))


def _record(said: Sequence[object], value: Object) -> bytes:
    """What is said of an object in a line, then its bytes."""
    return json.dumps(said).encode() + b"\n" + value.view()


def _kept(bucket: str, item: Item[Object]) -> bytes:
    said = [item.value.content_type, bucket, item.number, item.name, item.group, item.size]
    return _record(said, item.value)


def _object(record: bytes) -> Object:
    said, _, content = record.partition(b"\n")
    return Object(content, json.loads(said)[0])


def _read(record: bytes) -> tuple[str, Item[Object]]:
    _, bucket, number, name, group, size = json.loads(record.partition(b"\n")[0])
    return bucket, Item(tuple(number), _object(record), tuple(number), name, group, size)


def _pairs(found: Answer) -> dict[bytes, bytes]:
    words = [word for word in found if isinstance(word, bytes)] if isinstance(found, list) else []
    return dict(zip(words[::2], words[1::2], strict=True))
