"""The simulation of threads under the GIL, in processes on shared cores; compiled by numba.

A discrete-event simulation that generalises Chiron's Algorithm 1. When tasks end, the nodes that
awaited them fire and start further tasks, in running or new processes. A thread's ``cpu`` period
needs the GIL and a core, a ``native`` period only a core, a ``block`` period neither. Threads and
processes that a function starts are helpers; each needs a core. All runnable threads of a group
share its cores equally (processor sharing). A waiter requests the GIL after the switch interval.
The holder then drops the GIL, and also before every period that is not ``cpu``.

While GILs change hands and all cores are in demand, a core still idles now and then. A woken thread
waits for the core on which it was woken although another is free (Lozi et al., The Linux Scheduler:
a Decade of Wasted Cores, EuroSys'16). All computing then slows down by one factor.

Three rules follow CPython instead of Algorithm 1:

- The GIL goes to the thread that has waited longest. Algorithm 1 chooses the thread with the least
  CPU time, as the kernel's scheduler does for cores. But a thread waits for the GIL on a condition
  variable, which ignores CPU time. In CPython 3.11 a thread that has computed for a second gets the
  GIL as often as each of three new threads.
- A thread that releases the GIL wakes the next waiter, which takes the GIL at once on a free core.
  If all cores are busy, a thread that releases the GIL for a short call finds it free and goes on.
  The waiter was woken in vain and restarts its interval. So many short calls do not delay a
  function. A task that has not begun leaves short calls to the task before it even so.
- ``Thread.start`` returns when the new thread has signalled that it runs. Until then the starter
  waits, first for the thread, then for the GIL, which the thread keeps up to the switch interval.
  So new threads that compute begin a switch interval apart. Idle threads only receive their work.
  On the published testbed, this wait reduces the mean error from 6.4 to 5.8 % (mr) and leaves it at
  0.6 % (finra5), with the other constants fitted to each.

Each process has a starter, the thread that starts its tasks' threads one after another. The starter
of a new process first computes for the fork. Then it waits for tasks, as the starter of a wrap's
main process does from the beginning.

Threads are numbered: first the starters, by process; then the threads of tasks, process by process.
The number is also their order at one instant. Nodes follow. Heaps hold future events; the end of
computing on shared cores is in virtual time, which passes at the rate of the group. Helpers have
negative numbers, before all others: see `chiron.predictor.kernel.threads`.

These modules are imported only for compilation: see `chiron.predictor.compiling`. They allocate
nothing; the caller, `chiron.predictor.simulator`, passes all memory.

References
----------
Chiron (SC'23), §3.3, equations (2) to (4) and Algorithm 1; CPython's ``ceval_gil`` and
``threading.Thread.start``.
"""
