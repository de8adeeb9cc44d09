"""Starts a wrap: imports its functions, forks the fork server, serves.

The order matters:

1. Import the functions of worker processes, so that forked processes share their memory.
2. Fork the fork server, before any thread exists.
3. Import the functions of the main process, so that no other process inherits their descriptors.

If a worker's function opens resources that processes cannot share, the program restarts and imports
this function late: see `wrap.functions.loader`.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import math
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn, cast

from wrap.cluster.offload import Offload
from wrap.cluster.participant import Participant
from wrap.cluster.peers import PeerProtocol
from wrap.cluster.store_path import ByStore
from wrap.config import sandbox
from wrap.config.settings import GATEWAY_URL, TRACE_KEY, Settings
from wrap.core import memory_shares
from wrap.core.builds import build_of, is_handed_back
from wrap.core.ending import may_exit
from wrap.core.errors import TaskError
from wrap.core.program import MAIN
from wrap.core.wrap_spec import Wrap
from wrap.dispatch.lost_threads import LostThreads
from wrap.dispatch.runtime import Runtime
from wrap.event_loop.liveness import end_at_signal
from wrap.event_loop.loop import Loop
from wrap.event_loop.threads import ThreadPool, keep_idle
from wrap.functions import leftovers
from wrap.functions.exit_guard import contain
from wrap.functions.function_runner import FunctionRunner, Place
from wrap.functions.kinds import functions_of
from wrap.functions.loader import LIBRARIES, load_shared
from wrap.http.app import create_app
from wrap.http.probes import PROBES
from wrap.http.server import serving
from wrap.http.server.accepting import Hooks
from wrap.http.server.program import OneProcess, begin_anew
from wrap.http.traffic_switch import Route
from wrap.net.direct import Direct
from wrap.net.gateway_client import HANDED_HEADER, Gateway
from wrap.net.object_store import Store, store_of
from wrap.net.peer_server import PeerServer, own_host
from wrap.net.transport import GRACE_S, Transport
from wrap.observe import log
from wrap.observe.metrics import Metrics
from wrap.pipes import broker
from wrap.pipes.broker import Broker
from wrap.values import malloc
from wrap.values.budget import TTL_S, MemoryBudget
from wrap.values.disk import Disk
from wrap.values.memfd_pool import MEMFDS
from wrap.workers import reaper
from wrap.workers.fork_client import ForkClient
from wrap.workers.fork_server import ForkServer
from wrap.workers.forked import WorkerProgram
from wrap.workers.interpreters import InterpreterStarter
from wrap.workers.mechanisms import kind_of
from wrap.workers.mechanisms.mechanism import Mechanism
from wrap.workers.pulse import Pulse

if TYPE_CHECKING:
    from wrap.cluster.durable import DurableBuckets
    from wrap.dispatch.sessions import Events
    from wrap.net.object_store.redis import Redis
    from wrap.observe.spans import Exporter

#: The options: the descriptor by which a fork server is told what to do; functions to import late;
#: the libraries of these to import at once, which is empty where that leaves open what it must not;
#: what the addresses begin with at which further processes ask.
_FORK_SERVER, _LATE, _LIBRARIES, _ADDRESS = "--fork-server", "--late", "--libraries", "--address"
#: The status with which a wrap ends that of-watchdog waits for: it ends at once where its program
#: has failed, and sleeps on (``healthcheck_interval``) after 0.
_WAKES = 1
#: How long of-watchdog may take to hand on the last answer, in seconds, before that status ends it.
_HANDS_ON_S = 0.5
_WATCHDOG_BYTES = 16 << 20
#: The key of waitress for the header of a request that another entry handed on.
_HANDED = HANDED_HEADER.upper().replace("-", "_")
#: How long the server's loops may stand still beyond what a request may take, in seconds.
_SPARE_S = 2.0
#: How long spans may take in the end that have not been sent.
_FLUSH_S = 1.0


def main(arguments: list[str], image: Path, sockets: Sequence[socket.socket]) -> NoReturn:
    """Serve the wrap in the folder `image`, or be its fork server (``--fork-server DESCRIPTOR``).

    `sockets` come from `listen`. The other options pass on findings of an earlier start.
    """
    contain()  # before a function can import the unguarded names
    faulthandler.enable()  # logs where C code crashed
    log.install()
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    address = options.get(_ADDRESS) or f"chiron-{os.urandom(16).hex()}"
    broker.ask_at(f"{address}-streams")
    reaper.ask_at(f"{address}-programs")
    control = socket.socket(fileno=int(options[_FORK_SERVER])) if _FORK_SERVER in options else None
    try:
        settings = Settings.read(os.environ)
        os.environ.pop(TRACE_KEY, None)  # functions do not need it
        os.environ[GATEWAY_URL] = settings.gateway_url  # functions call others through it
        sandbox.keep_to_cores(settings.cpus)
        with OneProcess():
            wrap, functions = _load_shared(image, options, sockets, settings)
        unforked = _unforked(wrap, functions)
        mechanism = kind_of(wrap.mechanism)(wrap.slots, os.environ, unforked)
        gc.collect()
        kept = _keep(settings.memory_bytes, 1 + mechanism.lasting, max(map(len, wrap.processes)))
        program = WorkerProgram(wrap, functions)
        gc.freeze()  # a collection would write to every object, and unshare its memory
        contained = mechanism.lasting == 0
        programs = any(each.starts_programs for each in functions.values())
        be_fork_server = partial(_be_fork_server, program, contained, programs, sockets)
        if control is not None:
            be_fork_server(control)
            sys.exit(0)
        store = (
            store_of(settings.store_url, settings.store_password) if settings.store_url else None
        )
        if _is_durable(wrap) and not settings.store_url.startswith("redis"):
            raise ValueError("durable buckets are kept in Redis: chiron_store has to name one")
    except (ImportError, ValueError, OSError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
    found = [word for option in options.items() for word in option]
    command = [sys.executable, str(image / "index.py"), *found, _ADDRESS, address, _FORK_SERVER]
    longest = memory_shares.of_output(settings.memory_bytes)
    start = partial(ForkClient, be_fork_server, command, longest)
    lost_threads = LostThreads(len(wrap.processes[MAIN]))
    interpreters = None
    if mechanism.in_server:
        place = {"image": str(image), "address": address, "gateway_url": settings.gateway_url}
        names = [wrap.names(tasks) for tasks in wrap.processes]
        given = {**place, **kept, "longest": longest}
        interpreters = InterpreterStarter(given, longest, names, lost_threads.add)
    workers = (start, interpreters, mechanism, lost_threads)
    _serve(settings, wrap, functions, *workers, store, sockets, image)


def _keep(memory: int, processes: int, widest: int) -> dict[str, int]:
    """Keep memory and threads for reuse; `widest` is the most tasks at once in a process.

    Returns the arguments with which a sub-interpreter does so.
    """
    malloc.keep_freed(memory_shares.freed(memory, processes))
    shared = memory_shares.shared(memory, processes)
    idle = memory_shares.idle_threads(widest, memory, processes)
    MEMFDS.keep(shared)
    keep_idle(idle)
    return {"shared": shared, "idle_threads": idle}


def _serve(
    settings: Settings,
    wrap: Wrap,
    functions: dict[str, FunctionRunner],
    start: Callable[[], ForkClient],
    interpreters: InterpreterStarter | None,
    mechanism: Mechanism,
    lost_threads: LostThreads,
    store: Store | None,
    sockets: Sequence[socket.socket],
    image: Path,
) -> NoReturn:
    durable = _durable(wrap, store)
    store = None if durable is not None else store
    fork_client = start()
    end_at_signal()
    reaper.revive_by(fork_client.revive)
    _load_own(wrap, functions, lambda: mechanism.start(interpreters or fork_client))
    runtime, listener = _runtime(settings, wrap, functions, mechanism, lost_threads, store)
    participant = Participant(runtime, runtime.peer_protocol)
    if listener is not None:
        listener.serve(participant)
    is_called = wrap.entry is None and wrap.path != "gateway"
    drain_s = wrap.timeout_s + GRACE_S
    pulse = Pulse(runtime.loop, fork_client.beat, drain_s + _SPARE_S, runtime.threads.start)
    events = _events(settings, runtime, durable, image / "function" / "triggers")

    def close() -> int:
        pulse.stop()
        if events is not None:
            events.close(drain_s)
        if listener is not None:
            listener.close(drain_s)
        fork_client.close()
        for function in functions.values():
            function.close()
        if runtime.spans is not None:
            runtime.spans.close(_FLUSH_S)
        holds = is_called or (events is not None and durable is None)
        return _woken() if holds and settings.linger_s else 0

    build = build_of(settings.trace_key)
    hooks = Hooks(
        probes=PROBES,
        unqueued=lambda headers: is_handed_back(build, headers.get(_HANDED, "")),
        drain_s=drain_s,
        may_exit=lambda since_s: may_exit(
            since_s, settings.linger_s, is_called and bool(listener and listener.busy), drain_s
        ),
        ending=listener.end if listener is not None else lambda: None,
        close=close,
        worn=lambda: runtime.lost_threads.are_too_many,
        turned=pulse.turned,
        answered=runtime.metrics.answered,
    )
    app = create_app(runtime, pulse, listener, events, participant)
    route = runtime.route
    serving.serve(
        app, sockets, lambda: route.threads, settings.memory_bytes, runtime.threads.start, hooks
    )


def _woken() -> int:
    """Return the exit status of the program that wakes of-watchdog."""
    time.sleep(_HANDS_ON_S)
    return _WAKES


def _runtime(
    settings: Settings,
    wrap: Wrap,
    functions: dict[str, FunctionRunner],
    mechanism: Mechanism,
    lost_threads: LostThreads,
    store: Store | None,
) -> tuple[Runtime, PeerServer | None]:
    route = Route(settings.route, settings.threads)
    loop, threads = Loop(), ThreadPool()
    budget = _budget(settings, loop, threads)
    transport, listener, peer_protocol, offload = _network(settings, wrap, loop, threads, budget)
    stream_broker = None
    if wrap.live or wrap.answers in wrap.tasks or (wrap.entry and wrap.answers is not None):
        connect = None if peer_protocol is None else peer_protocol.connect
        stream_broker = Broker(wrap, threads, loop, connect)
        stream_broker.serve()
    if store is not None:
        transport = ByStore(wrap, transport, store)
    spans = _spans(settings, wrap)
    runtime = Runtime(
        wrap,
        functions,
        threads,
        loop,
        mechanism,
        transport,
        route,
        settings.trace_key,
        _most_request(settings),
        memory_shares.of_output(settings.memory_bytes),
        peer_protocol,
        offload,
        budget,
        store,
        stream_broker,
        spans=spans,
        metrics=Metrics(settings.slo_s, functions),
        lost_threads=lost_threads,
        most_state=settings.state_bytes or math.inf,
    )
    return runtime, listener


class _Network(NamedTuple):
    """The connections to and from other wraps; unused parts are None."""

    transport: Transport
    listener: PeerServer | None = None
    peer_protocol: PeerProtocol | None = None
    offload: Offload | None = None


def _network(
    settings: Settings, wrap: Wrap, loop: Loop, threads: ThreadPool, budget: MemoryBudget
) -> _Network:
    longest = memory_shares.of_output(settings.memory_bytes)
    gateway = Gateway(settings.gateway_url, settings.trace_key, longest, wrap.attempts)
    if not settings.direct_key or wrap.path == "gateway":
        return _Network(gateway)
    listener = _listener(settings, wrap, longest, loop, budget)
    direct = Direct(gateway, settings.direct_key, longest, loop, threads)
    peer_protocol = offload = None
    if listener is not None and not wrap.instances:
        if wrap.remotes:
            peer_protocol = PeerProtocol(wrap, direct, loop, listener.address)
        if wrap.path == "auto":
            after_s = settings.offload_after_s
            offload = Offload(direct, wrap.name, listener.address, after_s, threads)
    return _Network(direct, listener, peer_protocol, offload)


def _spans(settings: Settings, wrap: Wrap) -> Exporter | None:
    if not settings.traces_url:
        return None
    from wrap.observe.spans import exporter_of  # nobody else waits for that

    try:
        return exporter_of(wrap, settings.traces_url, os.environ)
    except ValueError as error:
        sys.exit(f"ValueError: {error}")


def _events(
    settings: Settings, runtime: Runtime, durable: DurableBuckets | None, folder: Path
) -> Events | None:
    """Return the events of a workflow of buckets; `folder` has users' triggers."""
    entry = runtime.wrap.entry
    if entry is None or entry.buckets is None:
        return None
    from wrap.core.buckets import triggers
    from wrap.core.buckets.own import MODULE, TriggerError, loaded
    from wrap.dispatch.sessions import Events
    from wrap.functions.module_file import module_of

    try:
        buckets = loaded(entry.buckets, lambda file: module_of(folder / file, MODULE, triggers))
        return Events(runtime, buckets, entry.states, settings.budget_bytes, durable)
    except (TaskError, TriggerError) as error:
        sys.exit(f"{getattr(error, 'code', 'trigger-failed')}: {error}")


def _listener(
    settings: Settings, wrap: Wrap, longest: int, loop: Loop, budget: MemoryBudget
) -> PeerServer | None:
    """Return the server for messages of other wraps and replicas, if there can be any."""
    if wrap.entry is not None and (wrap.instances or not (wrap.remotes or wrap.slots)):
        return None
    try:
        host = own_host(settings.gateway_url)
        return PeerServer(settings.direct_key, host, longest, loop, budget)
    except OSError as error:
        print(f"other wraps reach this one by the gateway alone: {error}")
        return None


def _budget(settings: Settings, loop: Loop, threads: ThreadPool) -> MemoryBudget:
    """Return the budget of executions' objects, which spills old or many objects to disk."""

    def tend() -> None:
        threads.start(budget.tend)

    def wake(when: float) -> None:
        loop.call_at(when, tend)

    return (budget := MemoryBudget(settings.budget_bytes, TTL_S, Disk().write, wake))


def _most_request(settings: Settings) -> int | None:
    """Return the size limit of a request in bytes; None if the wrap has no memory plan.

    The limit is the planned size plus a share of the memory that is free after all imports.
    """
    if settings.request_bytes is None:
        return None
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    taken = pages * os.sysconf("SC_PAGE_SIZE") + _WATCHDOG_BYTES
    return memory_shares.of_request(settings.memory_bytes, taken, settings.request_bytes)


def _load_shared(
    image: Path, options: dict[str, str], sockets: Sequence[socket.socket], settings: Settings
) -> tuple[Wrap, dict[str, FunctionRunner]]:
    """Return the wrap and its functions; import those of worker processes, except late ones.

    If further functions turn out to be late, restart the program.
    """
    wrap: Wrap = importlib.import_module("function.handler").WRAP
    for module in _needed(wrap):
        importlib.import_module(module)  # before functions can shadow it
    longest = memory_shares.of_output(settings.memory_bytes)
    folder = image / "function" / "functions"
    in_server = kind_of(wrap.mechanism).in_server
    functions = functions_of(
        Place(wrap, folder, settings.gateway_url, longest, one_process=in_server)
    )
    gc.freeze()  # collections skip the runtime's own modules
    gc.enable()
    before = leftovers.look()
    late, libraries = (
        list(filter(None, options.get(option, "").split(","))) for option in (_LATE, _LIBRARIES)
    )
    forked = [] if in_server else wrap.forked
    shared = [name for name in forked if functions[name].forkable and name not in late]
    left = load_shared(map(functions.__getitem__, shared), libraries)
    if left:
        for name, found in left.items():
            who = f"function {name}" if name else f"a library of {', '.join(late)}"
            print(
                f"{who} opens {', '.join(found.opens)} when it is imported, which processes "
                "cannot share: each process that runs it imports it"
            )
        leftovers.end_children()
        leftovers.look().since(before).close_at_exec()
        libraries += [module for found in left.values() for module in found.libraries]
        once_more = LIBRARIES not in left and options.get(_LIBRARIES) != ""
        found_out = {
            _LATE: ",".join([*late, *filter(None, left)]),
            _LIBRARIES: ",".join(libraries) if once_more else "",
        }
        words = [word for option in (options | found_out).items() for word in option]
        begin_anew(sockets, words)
    return wrap, functions


def _needed(wrap: Wrap) -> Iterator[str]:
    """Yield the modules that only some wraps need."""
    if wrap.entry is not None and wrap.entry.machine is not None:
        yield "wrap.core.statemachine.machine"
        yield "wrap.core.statemachine.indefinite"
    if wrap.entry is not None and wrap.entry.buckets is not None:
        yield "wrap.dispatch.sessions"
    if wrap.remotes:
        yield "urllib3"


def _unforked(wrap: Wrap, functions: Mapping[str, FunctionRunner]) -> list[int]:
    """Return the slots (worker processes) without any function that survives a fork."""
    return [
        slot
        for slot, tasks in enumerate(wrap.processes[1:])
        if not any(functions[wrap.function_of(task)].forkable for task in tasks)
    ]


def _load_own(
    wrap: Wrap, functions: dict[str, FunctionRunner], start_workers: Callable[[], None]
) -> None:
    """Start workers; import the functions of this process, and functions without a process."""
    try:
        start_workers()
        with OneProcess():
            own = {wrap.tasks[task] for task in wrap.processes[MAIN]}
            for name, function in functions.items():
                if name in own or name not in wrap.forked:
                    function.prepare()
    except (ImportError, ValueError, OSError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
    gc.collect()
    gc.freeze()


def _durable(wrap: Wrap, store: Store | None) -> DurableBuckets | None:
    if not _is_durable(wrap):
        return None
    from wrap.cluster.durable import DurableBuckets

    return DurableBuckets(cast("Redis", store), wrap.workflow)


def _is_durable(wrap: Wrap) -> bool:
    return wrap.entry is not None and wrap.entry.is_durable


def _be_fork_server(
    program: WorkerProgram,
    contained: bool,
    programs: bool,
    sockets: Sequence[socket.socket],
    control: socket.socket,
) -> None:
    for each in sockets:  # the server takes the requests
        each.close()
    ForkServer(control, program.serve, program.renew, contained=contained, commands=programs).run()
