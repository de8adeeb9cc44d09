"""The records of the compiled kernel: its input, its state and its results.

Every field has 8 bytes, so that a record needs no padding and `struct` packs what numba reads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

#: An array of records; numba reads fields as attributes, which Python's types cannot express.
Records = Any

KINDS = (
    *("cpu", "native", "block", "helper", "join", "start", "started", "wait-gil"),
    *("emit", "emitted", "await", "awaited"),
)
CPU, NATIVE, BLOCK, HELPER, JOIN, START, STARTED, WAIT_GIL, *_BESIDE = range(len(KINDS))
EMIT, EMITTED, AWAIT, AWAITED = _BESIDE


class Record(NamedTuple):
    """The names of a record's fields: first the integers, then the times.

    ``given`` is the `struct` format of the kernel's input; all other fields start at zero. They are
    the kernel's state and results.
    """

    integers: tuple[str, ...]
    times: tuple[str, ...]
    given: str

    @property
    def format(self) -> str:
        """The `struct` format of one record, all fields."""
        return "q" * len(self.integers) + "d" * len(self.times)

    @property
    def words(self) -> int:
        """The size of a record, in words of 8 bytes."""
        return len(self.integers) + len(self.times)

    def place(self, field: str) -> int:
        """Return the index of the word that holds `field`."""
        return (*self.integers, *self.times).index(field)


def _record(integers: str, times: str) -> Record:
    """Return a record; input fields stand before a bar, state and results after it."""
    fields, given = list[tuple[str, ...]](), "="
    for names, kind in ((integers, "q"), (times, "d")):
        before, _, after = names.partition("|")
        fields.append((*before.split(), *after.split()))
        given += kind * len(before.split()) + "8x" * len(after.split())
    return Record(fields[0], fields[1], given)


PERIOD = _record("kind", "duration_ms")

#: ``begin`` to ``end`` are a function's periods. ``leading_ms`` is how long it computes before its
#: first wait; -1 for an output and -2 for an awaited task, neither of which runs. A ``cooperative``
#: function releases its process's lock when it waits, and only then.
FUNCTION = _record("begin end cooperative", "leading_ms")

#: Cores that some processes share. ``heap`` is the start of its heap of threads that compute
#: without the GIL, ``room`` the capacity of that heap. ``running`` counts the threads that hold or
#: need a core, ``waiting`` the processes in which a thread waits for the GIL. ``place`` is the
#: group's index among the active groups. ``virtual_ms`` is the time as computing threads experience
#: it, ``core_ms`` how long a computing thread has had a core; they pass at ``rate`` and ``share``.
#: ``used_ms`` is the total computing time.
GROUP = _record(
    "cores heap room | running waiting place",
    "| virtual_ms core_ms rate share used_ms",
)

#: A wrap: its group, its main process, and `chiron.predictor.mechanisms.mechanism.Costs`.
#: ``forked`` is the process forked last; the next fork can start at ``free_ms``.
WRAP = _record(
    "group main blocks_computing | forked",
    "ready_ms first_block_ms block_ms computing_ms main_ms core_wait_ms gather_ms first_gather_ms "
    "| free_ms",
)

#: A process: its wrap, its group, and the thread of its first task. ``holder`` has the GIL, with
#: ``left_ms`` of its period to compute; ``last_holder`` had it before. ``head`` and ``tail`` are
#: the first and last thread in the queue for the GIL; ``head`` asked at ``asked_ms``. ``queue`` and
#: ``queued`` are the first and last thread to be started; ``unfinished`` counts the threads not
#: done. ``alive`` is 1 once its start has begun, ``idle`` is 1 while no thread is about to start,
#: ``parked`` is 1 while its starter waits for the thread it started last. ``begun`` is the thread
#: whose task began last, at ``begun_ms``. ``forked`` is 1 until its
#: fork's computing is done, then 2; ``follower`` is the process forked next. ``gave``: whether it
#: returned a result before; ``gatherer`` is the node that gathered its last result.
#: ``computing_ms`` is computed before it starts a thread, ``forking_ms`` before that, for its fork.
#: Result: ``end_ms``, when its last thread ended.
PROCESS = _record(
    "wrap group first | holder last_holder head tail queue queued unfinished alive idle parked "
    "begun forked follower gave gatherer",
    "| left_ms taken_ms asked_ms switching_ms begun_ms end_ms computing_ms forking_ms",
)

#: First the starter of every process, then a thread for every task, slot by slot, process by
#: process. ``links`` to ``links_end`` are the nodes that await the task. ``begin`` to ``end`` are
#: its periods, ``at`` is the current period, ``doing`` its kind. ``behind`` is the next thread in
#: the queue for the GIL or for a start; ``helpers`` counts its helpers that compute; ``gathered``:
#: whether its result is gathered. For an awaited task, ``behind`` is the thread that awaits it, and
#: ``helpers`` counts its starts: the second completes it. ``since_ms`` is when its current activity
#: began, ``since_core_ms`` its group's ``core_ms`` then. Its periods take ``ratio`` times as long
#: as the function's, and computing ``slower`` times that. Result: ``node`` started the task at
#: ``triggered_ms``, and it ended at ``end_ms``.
THREAD = _record(
    "process slot function links links_end | begin end at doing behind helpers gathered node",
    "| ratio slower remaining_ms since_ms since_core_ms triggered_ms end_ms",
)

#: `chiron.predictor.execution.Node`. It waits for ``needs`` things, of which ``missing`` are still
#: to come. The tasks to gather, the tasks to start, and other nodes (the first ``calls`` are
#: called) are ranges of the links, which hold the numbers of threads and nodes. ``queue`` is where
#: the links hold the first and last node of its queue, if it has a queue; ``behind`` is the node
#: sent next. ``sending`` counts the wraps that have not sent; negative when all have. Result:
#: ``last`` is the thread, or the node (numbered from the number of threads on), that came last, at
#: ``complete_ms``; ``fired_ms`` is when it fired.
NODE = _record(
    "wrap slot needs awaits awaits_end starts starts_end then then_end calls place to queue "
    "| missing last sending behind",
    "delay_ms sends_ms | complete_ms fired_ms",
)

#: Memory of one execution of a program: ranges of threads and nodes, and in the links its
#: processes, which are new for each execution. The client has the reply at node ``reply``;
#: ``factors`` is the number of rows of draws before the ratios of its tasks. ``request`` is what it
#: executes, ``left`` its unfinished parts; its last call was sent at ``called_ms``. The slots of a
#: replica, and of each of its programs, are contiguous.
SLOT = _record(
    "threads threads_end nodes nodes_end processes processes_end reply factors | request left",
    "| called_ms",
)

#: A replica of the entry wrap, which serves every n-th request. ``inflight`` requests are in slots;
#: ``admitted`` counts all admitted so far.
REPLICA = _record("| inflight admitted", "")

#: The program executed, and its draw. If ``arrival_ms`` is infinite, the request arrives at
#: another's reply. Result: ``replied_ms``, the time of its reply.
REQUEST = _record("program draw", "arrival_ms | replied_ms")

#: The fields of `chiron.predictor.simulator.Span`, ``wait_core_ms`` last. A helper's span has no
#: end until the helper is done.
SPAN = _record("process thread kind", "start_ms end_ms wait_core_ms")

#: The number of records of each kind, the capacity of a heap (``most``), and of the spans' memory.
#: ``computed_calls``: a call arrives when it has computed. ``spans`` counts all spans, ``active``
#: the groups that compute, ``holding`` the processes whose GIL is held. A replica has ``limit``
#: slots of each of the ``programs``. Of the ``requests``, ``known`` have a known arrival,
#: ``arrived`` have arrived, ``left`` are not done. If ``admits``, some may be admitted. The times
#: begin with the constants of `chiron.predictor.simulator.Interpreter` (``thread_ready_ms`` < 0
#: stands for None) and the contention overhead. Those of `chiron.predictor.execution.Calls` follow.
#: ``now_ms`` is the time; ``instant_ms`` is the span that counts as one instant.
CLOCK = _record(
    "groups wraps processes threads nodes slots replicas most most_spans computed_calls "
    "limit programs draws requests known | spans left active holding arrived admits",
    "switch_interval_ms switch_cost_ms thread_startup_ms thread_ready_ms short_release_ms "
    "contention_overhead call_ms invoke_ms call_computing_ms | now_ms instant_ms",
)

ENTRY = _record("item", "key")
