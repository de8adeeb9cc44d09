"""The simulation: threads under the GIL, of processes on shared cores; compiled by numba.

A discrete-event simulation of one execution that generalises Chiron's Algorithm 1. Tasks end, and
nodes that awaited them fire and start others, in processes that are there or have to be started.
Of threads, a ``cpu`` period needs the GIL and a core, a ``native`` period a core only, a ``block``
period neither. Threads and processes that a function starts itself are helpers, which need a core
each. The runnable threads of all processes that share cores do so equally (processor sharing). A
waiter asks for the GIL after the switch interval; the holder drops it then, and before every period
that is not ``cpu``.

While GILs are handed on and all cores are wanted, some core idles now and then all the same: a
thread that is woken waits for the core that it was woken on, though another is free (Lozi et al.,
The Linux Scheduler: a Decade of Wasted Cores, EuroSys'16). All computing then takes longer by one
share.

Three things are as CPython does them and not as Algorithm 1 has them:

- The GIL goes to the thread that has waited longest. Algorithm 1 gives it to the one that has had
  the least CPU, as the operating system's scheduler gives cores; but a thread that waits for the
  GIL sleeps on a condition variable, which knows nothing of that. In CPython 3.11 a thread that has
  computed for a second gets the GIL as often as three that have just begun.
- A thread that lets the GIL go wakes the next one, which takes it when it runs: on a free core at
  once. Where all are busy, a thread that has let it go for a short call only finds it free and goes
  on; the other was woken in vain, and begins its interval anew. A function of many short calls is
  not held up then.
- ``Thread.start`` returns when the new thread has run far enough to say so. Until then the
  starter waits, first for the thread, then for the GIL, which the thread keeps as long as others
  may. So new threads that compute begin a switch interval apart. Threads that wait already are
  only handed their work. On the published testbed, waiting for new threads takes the mean error
  from 6.4 to 5.8 % (mr) and leaves it at 0.6 % (finra5), the other constants fitted to each.

A process has a starter, the thread that starts those of its tasks, one after another. Where the
process is new, the starter is what is forked and computes first; then it waits for tasks, as that
of a wrap's main process does from the beginning.

Threads are numbers: the starter of every process has its process's, those of tasks come after them,
process by process, which is also their order at one instant. After these come nodes. What they do
next lies in heaps, and what shares cores ends by a clock that runs as fast as these let it (virtual
time). Helpers come before all of them: their items are negative, see
`chiron.predictor.kernel.threads`.

These modules are loaded only to be compiled: see `chiron.predictor.compiling`. They allocate
nothing; the caller, `chiron.predictor.simulator`, hands over all memory.

References
----------
Chiron (SC'23), §3.3, equations (2) to (4) and Algorithm 1; CPython's ``ceval_gil`` and
``threading.Thread.start``.
"""
