"""The command `chiron`: finds the verb, runs it, and turns errors into one line."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from cli.lazy_group import LazyGroup
from cli.output import error_line
from workflow.errors import ChironError

#: Every verb and what it does; its module is loaded only when it runs.
VERBS = {
    "build": "Build the images of a stack.yaml for the embedded gateway.",
    "calibrate": "Measure what the platform costs: platform.json.",
    "deploy": "Profile, schedule, generate, deploy and measure a workflow.",
    "diff": "Say what is different between two plans.",
    "doctor": "Say what is missing here, and the line that fixes it.",
    "evaluate": "Measure deployment models and the predictor.",
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
    "watch": "Keep a deployed workflow at its SLO, switching without loss.",
}

#: Exit status of a fault of the user's, which the message says how to mend.
EXIT_USAGE = 2
#: Exit status of a fault that is not the user's.
EXIT_FAILURE = 1


@click.group(cls=LazyGroup, modules={verb: (f"cli.{verb}", text) for verb, text in VERBS.items()})
@click.version_option(package_name="chiron-openfaas")
def chiron() -> None:
    """Find, generate and deploy the cheapest OpenFaaS deployment of a workflow that meets its SLO.

    \b
    Example:
      chiron deploy benchmarks/finra --slo 200ms --local
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0, 1 for a failure, 2 for what the caller can mend."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        status = chiron.main(arguments, prog_name="chiron", standalone_mode=False)
    except ChironError as error:
        if {"-j", "--json"} & set(arguments):
            print(json.dumps(error.as_dict()))
        error_line(str(error))
        sys.exit(EXIT_USAGE if error.status < 500 else EXIT_FAILURE)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error_line(_with_help(error))
        sys.exit(error.exit_code)
    except OSError as error:
        error_line(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))
        sys.exit(EXIT_FAILURE)
    except (click.Abort, KeyboardInterrupt):
        error_line("interrupted")
        sys.exit(130)
    sys.exit(status if isinstance(status, int) else 0)


def _terminate(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)  # runs what cleans up: nothing stays deployed or running


def _with_help(error: click.ClickException) -> str:
    """The message of `error` and, where the command line was wrong, where to look it up."""
    message = error.format_message()
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{message.rstrip('.')}: see {context.command_path} --help" if context else message
