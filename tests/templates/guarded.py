"""Runs index.py as a program, and says what breaks a law of the runtime.

The event loop opens no file. Each execution has a twin: rules of their own, fed with the same
events, give the same commands.
"""

import os
import runpy
import sys
import threading
from pathlib import Path
from typing import Any

#: What the log of a wrap says that has broken a law.
BROKEN = "a law is broken:"
#: How much later the twin of an execution may look at the time of day, in seconds.
_MOMENT_S = 10.0


def _say(what: str) -> None:
    os.write(2, f"{BROKEN} {what}\n".encode())


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event != "open" or threading.current_thread().name != "loop":
        return
    path = str(arguments[0])
    # What the kernel tells and memory that is shared are on no disk; tracebacks show lines.
    if not path.startswith(("/proc/", "/sys/")) and not path.endswith(".py"):
        _say(f"the event loop opened {path}")


def same(one: Any, other: Any) -> bool:
    """Whether two lists of commands are the same, but for the moments in which they were made."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or abs(one - other) < _MOMENT_S
    if isinstance(one, Exception):
        return str(one) == str(other)
    if isinstance(one, list | tuple):
        both = zip(one, other, strict=False)
        alike = type(one) is type(other) and len(one) == len(other)
        return alike and all(same(mine, its) for mine, its in both)
    return bool(one == other)


def replay() -> None:
    """Give each run a twin from now on."""
    from wrap.core.dag import Engine
    from wrap.core.events import Began
    from wrap.core.placement import Deciding, Instances
    from wrap.core.run import Run
    from wrap.values.inputs import Inputs

    def remembered(kind: Any) -> None:
        begin = kind.__init__

        def initialise(self: Any, *arguments: Any) -> None:
            begin(self, *arguments)
            self.made_of = arguments

        kind.__init__ = initialise

    for kind in (Engine, Instances, Deciding):
        remembered(kind)
    begin, handle = Run.__init__, Run.handle

    def initialise(self: Any, program: Any, *rules: Any) -> None:
        begin(self, program, *rules)
        self.twin = Run.__new__(Run)
        begin(self.twin, type(program)(*program.made_of), *rules)
        attempt_of, attempt_of_twin = self.attempts.attempt_of, self.twin.attempts.attempt_of

        def attempt_of_both(task: int) -> Any:
            attempt_of_twin(task)
            return attempt_of(task)

        self.attempts.attempt_of = attempt_of_both

    def twice(self: Any, event: Any) -> Any:
        again = event
        if isinstance(event, Began) and isinstance(event.objects, Inputs):
            objects = {key: event.objects[key] for key in event.sizes}
            again = event._replace(objects=Inputs(objects))
        commands = handle(self, event)
        others = handle(self.twin, again)
        if not same(commands, others):
            _say(f"{event} leads to {commands}, and to {others} once more")
        return commands

    Run.__init__, Run.handle = initialise, twice  # type: ignore


def main() -> None:
    """Run index.py of the current folder."""
    sys.addaudithook(_note)
    sys.argv[0] = "index.py"
    sys.path[0] = str(Path.cwd())
    if (Path.cwd() / "wrap" / "core" / "run.py").is_file():
        replay()
    runpy.run_path(str(Path.cwd() / "index.py"), run_name="__main__")


if __name__ == "__main__":
    main()
