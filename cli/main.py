"""The command `chiron`: finds the verb, runs it, and turns errors into one line."""

from __future__ import annotations

import errno
import gc
import importlib
import json
import os
import re
import shutil
import signal
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import click

from chiron.cli.output import error_line
from chiron.workflow.errors import ChironError

#: Every verb and what it does; its module is loaded only when it runs.
VERBS = {
    "build": "Build the images of a stack.yaml.",
    "calibrate": "Measure what the platform costs: platform.json.",
    "convert": "Write a workflow in another form, or as a picture.",
    "dead-letters": "Show, run again or forget what durable buckets set aside.",
    "deploy": "Profile, schedule, generate, deploy and measure a workflow.",
    "diff": "Show what differs between two plans.",
    "doctor": "Print what is missing here, and the line that fixes it.",
    "evaluate": "Measure planners and the predictor.",
    "generate": "Turn a plan into a deployable folder.",
    "init": "Make a workflow folder of a stack.yaml.",
    "invoke": "Run a deployed workflow.",
    "list": "List the workflows that are deployed.",
    "logs": "Print what the functions of a deployed workflow print.",
    "predict": "Predict the latency of plans.",
    "profile": "Record what each function does: profile.json.",
    "remove": "Remove a deployed workflow.",
    "schedule": "Find the cheapest plan that meets an SLO: plan.json.",
    "schema": "Print the JSON schema of an artefact.",
    "serve": "Run the web services and the embedded gateway.",
    "test-state": "Run a state machine, or one of its states, with mocks.",
    "watch": "Keep a deployed workflow at its SLO, switching without loss.",
}

#: Exit status of a fault of the user's, which the message says how to mend.
EXIT_USAGE = 2
#: Exit status of a fault that is not the user's.
EXIT_FAILURE = 1
#: Exit status if no plan keeps the SLO, and the code of the error that says so.
EXIT_MISSED, _MISSED = 3, "slo-missed"
#: Faults that a service answers with a status from 500 on, and that the caller of a verb can mend.
_MENDED_BY_CALLER = frozenset({"no-gateway", "no-metrics", "not-writable"})
#: Errors of the system that the caller of a verb can mend, and how.
_MENDS = {
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "free some space there",
    errno.EROFS: "name another place",
    errno.EACCES: "let this user read and write there",
    errno.EMFILE: "raise the limit, such as by ulimit -n 4096",
    errno.ENAMETOOLONG: "choose a shorter name",
}
#: How a copy tells of a file's error, and Python of all folders for temporary files.
_NUMBERED, _NO_TMPDIR = re.compile(r"\[Errno (\d+)\] ([^:]*)"), "No usable temporary directory"
_SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
_CLEANING = b"removing what was deployed and started: wait, further signals are ignored\n"


class LazyGroup(click.Group):
    """Commands by name, each with its place (``module`` of its ``command``, or ``module:name``) and
    its summary."""

    def __init__(self, *args: Any, modules: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._modules = modules
        self.commands = dict.fromkeys(modules, self)  # click says which names are alike

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._modules:
            return None
        module, _, name = self._modules[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name or "command")
        if not gc.isenabled():  # `start` has stopped it
            gc.freeze()  # no collection looks at modules, while something is timed, say
            gc.enable()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            helps = [(name, text) for name, (_, text) in sorted(self._modules.items())]
            formatter.write_dl(helps)


_MODULES = {verb: (f"chiron.cli.{verb.replace('-', '_')}", text) for verb, text in VERBS.items()}
_MODULES["evaluate"] = ("chiron.evaluation.commands", VERBS["evaluate"])


@click.group(
    cls=LazyGroup, modules=_MODULES, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="chiron-openfaas")
def chiron() -> None:
    """Find, generate and deploy the cheapest OpenFaaS deployment of a workflow that meets its SLO.

    \b
    Example:
      chiron deploy benchmarks/finra --slo 200ms --local
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: with the verb's status, 1 for failures, 2 for usage errors."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    _open_streams()
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # else the shell, or nohup, ignores it
            signal.signal(number, _hang_up if number == signal.SIGHUP else _interrupt)
    try:
        status = chiron.main(arguments, prog_name="chiron", standalone_mode=False)
        sys.stdout.flush()
    except ChironError as error:
        mended = error.status < 500 or error.code in _MENDED_BY_CALLER
        status = EXIT_USAGE if mended else EXIT_FAILURE
        _fail(error, EXIT_MISSED if error.code == _MISSED else status, arguments)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        _fail(ChironError("bad-command-line", _with_help(error)), error.exit_code, arguments)
    except OSError as error:
        _drop_output()
        message, status = _of_system(error)
        _fail(ChironError("failed", message), status, arguments)
    except _Interrupted as interruption:
        error_line("; ".join(("interrupted", *getattr(interruption, "__notes__", ()))))
        raise
    sys.exit(status if isinstance(status, int) else 0)


def _of_system(error: OSError) -> tuple[str, int]:
    """Return an error of the system as one line with its mend, and the exit status.

    A failed copy of a folder has an error for each file; only the first is shown.
    """
    number, said = error.errno, [error.strerror or str(error), *filter(None, [error.filename])]
    if isinstance(error, shutil.Error):
        _, place, reason = error.args[0][0]
        found = _NUMBERED.match(reason)
        number, said = int(found[1]) if found else None, [found[2] if found else reason, place]
    elif error.errno == errno.ENOENT and _NO_TMPDIR in said[0]:
        number, said = errno.ENOSPC, ["no folder for temporary files has space", "see TMPDIR"]
    mend = _MENDS.get(number or 0)
    line = ": ".join(map(str, [*said, *filter(None, [mend])]))
    return line, EXIT_FAILURE if mend is None else EXIT_USAGE


def _open_streams() -> None:
    """Open the descriptors 0 to 2 that are closed, on /dev/null.

    Else the first opened files would take their numbers and receive the output.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


def _drop_output() -> None:
    """Discard buffered output, so that Python does not try to write it again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _fail(error: ChironError, status: int, arguments: Sequence[str]) -> NoReturn:
    """Print `error` as a line, as JSON too if `arguments` have --json, and exit with `status`."""
    error_line(str(error))
    if {"-j", "--json"} & set(arguments):
        with suppress(OSError):  # the status tells of the error too
            print(json.dumps(error.as_dict()))
        _drop_output()
    sys.exit(status)


class _Interrupted(SystemExit):
    """Raised at a signal: cleanups run, then the process exits with the signal's status."""


def _interrupt(number: int, _frame: object) -> NoReturn:
    for each in _SIGNALS:
        signal.signal(each, _ignore)
    raise _Interrupted(128 + number)


def _hang_up(number: int, frame: object) -> NoReturn:
    """End at SIGHUP; the terminal is gone, so output of the cleanup is discarded."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for each in range(3):
        if stat.S_ISCHR(os.fstat(each).st_mode):
            os.dup2(nowhere, each)
    _interrupt(number, frame)


def _ignore(_number: int, _frame: object) -> None:
    """Ignore a second signal, as timeout(1) sends, so that the cleanup completes."""
    for each in _SIGNALS:
        signal.signal(each, lambda *_: None)
    os.write(sys.stderr.fileno(), _CLEANING)  # click may be printing just now


def _with_help(error: click.ClickException) -> str:
    """Return the message of `error`; for usage errors, with a hint at --help."""
    message = " ".join(error.format_message().split())
    if not isinstance(error, click.UsageError):
        return message
    verb = error.ctx.command_path if error.ctx else "chiron"  # of an option without its value
    return f"{message.rstrip('.')}: see {verb} --help"
