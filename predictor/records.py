"""The records that the compiled kernel works on: what is given to it, and what it keeps there.

Every field has 8 bytes, so that a record needs no padding and `struct` packs what numba reads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

#: An array of records, whose fields are attributes to numba, of which Python's types know nothing.
Records = Any

KINDS = (
    *("cpu", "native", "block", "helper", "join", "start", "started", "wait-gil"),
    *("emit", "emitted", "await", "awaited"),
)
CPU, NATIVE, BLOCK, HELPER, JOIN, START, STARTED, WAIT_GIL, *_BESIDE = range(len(KINDS))
EMIT, EMITTED, AWAIT, AWAITED = _BESIDE


class Record(NamedTuple):
    """The names of a record's fields: first the integers, then the times.

    ``given`` is the format by which `struct` packs those that the kernel is given; the others,
    which it keeps for itself or answers with, are zero then.
    """

    integers: tuple[str, ...]
    times: tuple[str, ...]
    given: str

    @property
    def format(self) -> str:
        """The format of one record, all fields, for `struct`."""
        return "q" * len(self.integers) + "d" * len(self.times)

    @property
    def words(self) -> int:
        """How many words of 8 bytes it takes."""
        return len(self.integers) + len(self.times)

    def place(self, field: str) -> int:
        """Which of its words `field` is."""
        return (*self.integers, *self.times).index(field)


def _record(integers: str, times: str) -> Record:
    """A record whose given fields stand before a bar, where there are others too."""
    fields, given = list[tuple[str, ...]](), "="
    for names, kind in ((integers, "q"), (times, "d")):
        before, _, after = names.partition("|")
        fields.append((*before.split(), *after.split()))
        given += kind * len(before.split()) + "8x" * len(after.split())
    return Record(fields[0], fields[1], given)


PERIOD = _record("kind", "duration_ms")

#: ``begin`` to ``end`` are a function's periods; ``leading_ms`` is how long it computes before it
#: waits for the first time; -1 for an output and -2 for what is awaited, neither of which runs.
#: What is ``cooperative`` lets the lock of its process go when it waits, and only then.
FUNCTION = _record("begin end cooperative", "leading_ms")

#: Cores that some processes share. ``heap`` is where its heap of those that compute without the GIL
#: begins, and how long that may get is ``room``. ``running`` counts what has a core or wants one,
#: ``waiting`` the processes in which some thread waits for the GIL; ``place`` is its own among the
#: active ones. The time as threads that compute see it, and how long one that computes has had a
#: core, pass at ``rate`` and ``share``. ``used_ms`` is what was computed, added up.
GROUP = _record(
    "cores heap room | running waiting place",
    "| virtual_ms core_ms rate share used_ms",
)

#: A wrap: its group, its main process, and `chiron.predictor.mechanisms.mechanism.Costs`.
#: ``forked`` is the process that was forked last; ``free_ms`` is when the next one can be.
WRAP = _record(
    "group main blocks_computing | forked",
    "ready_ms first_block_ms block_ms computing_ms main_ms core_wait_ms gather_ms first_gather_ms "
    "| free_ms",
)

#: Its wrap, the group of that, and the thread of its first task. ``holder`` has the GIL, with
#: ``left_ms`` of its period to compute, ``last_holder`` had it before; ``head`` and ``tail`` have
#: waited for it longest, since ``asked_ms``, and shortest. ``queue`` and ``queued`` are the first
#: and last thread to be started, ``unfinished`` counts those which are not done. ``alive`` is
#: 1 from when its start is begun, ``idle`` is 1 while no thread is about to be started, ``parked``
#: while its starter waits for the thread it started last. ``forked`` is 1 until what forks it has
#: computed, 2 after that, and ``follower`` the process that is forked next. ``gave`` says whether
#: it has given a result before, ``gatherer`` is the node that gathered one last. ``computing_ms``
#: is what it computes before it starts a thread, ``forking_ms`` what is computed for it before
#: that. As the answer, ``end_ms`` is when its last thread has ended.
PROCESS = _record(
    "wrap group first | holder last_holder head tail queue queued unfinished alive idle parked "
    "forked follower gave gatherer",
    "| left_ms taken_ms asked_ms switching_ms end_ms computing_ms forking_ms",
)

#: First the starter of every process, then a thread for every task, slot by slot, and process by
#: process. ``links`` to ``links_end`` are the nodes that await the task. ``begin`` to ``end`` are
#: its periods, ``at`` is the one it is in, ``doing`` its kind; ``behind`` is the thread that waits
#: for the GIL, or for its start, after it; ``helpers`` counts its helpers that compute;
#: ``gathered`` says whether its result is. Of what is awaited, ``behind`` is the thread that waits
#: for it, and ``helpers`` is how often it was started: the second time it is there. ``since_ms`` is
#: when it began what it does, ``since_core_ms`` what its group's ``core_ms`` was then. Its periods
#: take ``ratio`` times as long as the function's, and those that compute ``slower`` times that. As
#: the answer, ``node`` started the task at ``triggered_ms``, and it ended at ``end_ms``.
THREAD = _record(
    "process slot function links links_end | begin end at doing behind helpers gathered node",
    "| ratio slower remaining_ms since_ms since_core_ms triggered_ms end_ms",
)

#: `chiron.predictor.execution.Node`. It waits for ``needs`` things, of which ``missing`` are still
#: to come. The tasks to gather, those to start, and other nodes, the ``calls`` called ones first,
#: are ranges of the links, which hold the numbers of threads and nodes. ``queue`` is where they
#: hold the first and the last node of its queue, if it has one, and ``behind`` is the node that is
#: sent after it. ``sending`` is how many wraps have not done so, negative when all have. As the
#: answer, ``last`` is the thread, or the node (from the number of threads on), that came last, at
#: ``complete_ms``, and ``fired_ms`` when it fired.
NODE = _record(
    "wrap slot needs awaits awaits_end starts starts_end then then_end calls place to queue "
    "| missing last sending behind",
    "delay_ms sends_ms | complete_ms fired_ms",
)

#: Memory of one execution of a program: ranges of threads and nodes, and in the links its
#: processes, which are new for each execution. ``reply`` is the node with which the client has all,
#: ``factors`` how many rows of draws there are before the ratios of its tasks. ``request`` is what
#: it executes, ``left`` what of that is not done; its last call left at ``called_ms``. The slots of
#: a replica, and of each of its programs, are in a row.
SLOT = _record(
    "threads threads_end nodes nodes_end processes processes_end reply factors | request left",
    "| called_ms",
)

#: A replica of the wrap that gets the requests: of these every n-th is its own. ``inflight`` of
#: them are in slots, ``admitted`` have been.
REPLICA = _record("| inflight admitted", "")

#: Which program is executed, by which of the draws. Where ``arrival_ms`` is infinite it arrives
#: when another has its reply. As the answer, ``replied_ms`` is when it had.
REQUEST = _record("program draw", "arrival_ms | replied_ms")

#: As `chiron.predictor.simulator.Span` has them; ``wait_core_ms`` last. A helper's span has no end
#: until the helper is done.
SPAN = _record("process thread kind", "start_ms end_ms wait_core_ms")

#: How many records there are of each kind, how many items a heap may have, and for how many spans
#: there is memory; and whether a call arrives when it has computed. ``spans`` counts all of those,
#: ``active`` the groups in which something computes, ``holding`` the processes whose GIL is held. A
#: replica has ``limit`` slots of each of the ``programs``. Of the ``requests`` the arrivals of
#: ``known`` are known, ``arrived`` have arrived, and ``left`` are not done; some may be admitted if
#: ``admits``.
#:
#: The constants of `chiron.predictor.simulator.Interpreter` (``thread_ready_ms`` < 0 stands for
#: None), by how much computing takes longer while GILs are handed on and all cores are wanted,
#: those of `chiron.predictor.execution.Calls`, and the time: as it is, and what passes for one
#: instant.
CLOCK = _record(
    "groups wraps processes threads nodes slots replicas most most_spans computed_calls "
    "limit programs draws requests known | spans left active holding arrived admits",
    "switch_interval_ms switch_cost_ms thread_startup_ms thread_ready_ms short_release_ms "
    "contention_overhead call_ms invoke_ms call_computing_ms | now_ms instant_ms",
)

#: An item of a heap.
ENTRY = _record("item", "key")
