"""A function that starts processes as Python does: ``multiprocessing.Process`` per request.

That forks the server with all of its threads; the wrap runtime uses a fork server instead.
"""

import json
import multiprocessing
import time
from multiprocessing.connection import Connection

_CONTEXT = multiprocessing.get_context("fork")


def _first_instruction(answer: Connection) -> None:
    answer.send(time.monotonic())


def handle(req: str) -> str:
    """Start `req` processes; return when each began, in milliseconds since this call."""
    asked = time.monotonic()
    started = []
    for _ in range(int(req)):
        ours, theirs = _CONTEXT.Pipe(duplex=False)
        process = _CONTEXT.Process(target=_first_instruction, args=(theirs,))
        process.start()
        theirs.close()
        started.append((process, ours))
    began = [answer.recv() for _, answer in started]
    for process, answer in started:
        process.join()
        answer.close()
    return json.dumps([(moment - asked) * 1000 for moment in began])
