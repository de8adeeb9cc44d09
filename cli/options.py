"""Options that several verbs share; those about a plan are made from `chiron.scheduler.choices`."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

import click
from click.core import ParameterSource

from chiron.gateway.names import BackendName as Backend
from chiron.generator.settings import SHORTEST_TIMEOUT_S, TIMEOUT_FACTOR
from chiron.scheduler.choices import Choices, MechanismChoice, PlannerChoice, Strategy
from chiron.workflow.documents import require_writable
from chiron.workflow.errors import ChironError
from chiron.workflow.paths import PathKind
from chiron.workflow.units import parse_duration_ms, parse_rate_per_s
from chiron.wrap.core.triggers import TriggerKind

Command = TypeVar("Command", bound=Callable[..., Any])


class Quantity(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """A number with a unit; `parse` reads its text. Errors name the option."""

    def __init__(self, name: str, parse: Callable[[str, str], float]) -> None:
        self.name = name
        self._parse = parse

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        try:
            return self._parse(value, (param.name if param else None) or self.name.lower())
        except ChironError as error:
            self.fail(error.message, param, ctx)


#: Milliseconds, and requests per second.
DURATION = Quantity("DURATION", parse_duration_ms)
RATE = Quantity("RATE", parse_rate_per_s)


class WholeNumber(click.IntRange):
    """A whole number in a range, without a unit."""

    name = "whole number without a unit"


class FiniteRange(click.FloatRange):
    """A finite number in a range; click's own ranges accept NaN."""

    name = "number without a unit"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not finite", param, ctx)
        return number


class DeployedName(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """The name of a deployed workflow; other verbs take a folder instead."""

    name = "workflow"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if os.sep in value or value in (os.curdir, os.pardir):
            self.fail(f"{value} is a folder: give the name that chiron list shows", param, ctx)
        return value


deployed_workflow = click.argument("workflow", type=DeployedName())


class Output(click.Path):
    """A file or folder to write; an unwritable one is refused at once."""

    def __init__(self, *, folder: bool = False) -> None:
        super().__init__(path_type=Path, file_okay=not folder, dir_okay=folder)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        try:
            require_writable(path, folder=self.dir_okay)
        except ChironError as error:
            self.fail(error.message, param, ctx)
        return path


def is_given(name: str) -> bool:
    """Return whether the running command was given its parameter `name`."""
    source = click.get_current_context().get_parameter_source(name)
    return source is not ParameterSource.DEFAULT


def seconds(duration_ms: float | None) -> float | None:
    return None if duration_ms is None else duration_ms / 1000


workflow_folder = click.argument(
    "folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False)
)
gateway = click.option("-g", "--gateway", metavar="URL", help="OpenFaaS gateway (or OPENFAAS_URL).")
gateway_url_inside = click.option(
    "--gateway-url-inside",
    metavar="URL",
    default="",
    help="Where functions reach the gateway (default: as its provider has it).",
)
store = click.option(
    "--store",
    metavar="URL",
    default="",
    help="The store for --path store, or for Maps over S3: redis://HOST:PORT, "
    "s3://KEY@HOST:PORT/BUCKET; its password is in CHIRON_STORE_PASSWORD, or in the secret "
    "chiron-store.",
)
tls_no_verify = click.option("--tls-no-verify", is_flag=True, help="Do not verify certificates.")
backend = click.option(
    "--backend",
    type=click.Choice(get_args(Backend)),
    help="What runs the functions of the embedded gateway (default: process).",
)
trace = click.option(
    "--trace", type=Output(), metavar="FILE", help="Write what ran when, for Perfetto."
)
timeline = click.option(
    "--timeline",
    "timeline_file",
    type=Output(),
    metavar="FILE",
    help="Write what ran when, as JSON (chiron schema timeline).",
)
as_json = click.option("-j", "--json", "as_json", is_flag=True, help="Print JSON on stdout.")
deployed_planner = click.option(
    "--planner",
    type=click.Choice(get_args(PlannerChoice)),
    help="The planner of the deployment, if there are several.",
)
slo = click.option("--slo", type=DURATION, required=True, help="Latency SLO, such as 200ms.")
rate = click.option(
    "--rate", type=RATE, help="Requests that arrive at random, in the mean, such as 50/s."
)
timeout = click.option(
    "--timeout",
    type=DURATION,
    help=f"Most that a request may take (default: {TIMEOUT_FACTOR:g} times the highest latency "
    f"predicted, and {SHORTEST_TIMEOUT_S:g} s at least).",
)
profile = click.option(
    "--profile",
    type=click.Path(path_type=Path),
    help="What the functions do (default: profile.json in DIR, here or in out).",
)
platform = click.option(
    "--platform",
    type=click.Path(path_type=Path),
    help="What the platform costs (default: platform.json in DIR, here or in out).",
)

given_platform = click.option(
    "--platform", type=click.Path(path_type=Path), help="Use this platform instead of measuring."
)
check = click.option(
    "--check/--no-check",
    default=True,
    help="Compare answers with those of the functions alone (default: yes).",
)


def output(default: str) -> Callable[[Command], Command]:
    """Return the option for the output file, or folder if `default` has no suffix."""
    kind = Output(folder=not Path(default).suffix)
    return click.option("-o", "--output", type=kind, default=default, show_default=True)


def local(command: Command) -> Command:
    """Add --local and --backend as one argument `local`: the embedded backend, or None."""

    @click.option(
        "--local",
        is_flag=True,
        help="Start the embedded gateway for the length of the command; .secrets/ of the current "
        "folder has its secrets.",
    )
    @backend
    @functools.wraps(command)
    def with_local(*arguments: Any, local: bool, backend: Backend | None, **others: Any) -> Any:
        if backend and not local:
            raise click.UsageError("--backend is the embedded gateway's: add --local")
        return command(*arguments, local=(backend or "process") if local else None, **others)

    return cast(Command, with_local)


def _option(*names: str, **settings: Any) -> Callable[[Command], Command]:
    """Return the option for a field, with its help and default."""
    field = Choices.model_fields[names[-1].removeprefix("--").replace("-", "_")]
    shown = not settings.get("is_flag", False)
    return click.option(
        *names, default=field.default, show_default=shown, help=field.description, **settings
    )


percentile = _option("--percentile", type=FiniteRange(1, 100), metavar="PERCENT")


def choices(command: Command) -> Command:
    """Add the options about the plan as one argument `choices`."""

    @_option("--planner", type=click.Choice(get_args(PlannerChoice)))
    @_option("--mechanism", type=click.Choice(get_args(MechanismChoice)))
    @_option("--trigger", type=click.Choice(get_args(TriggerKind)))
    @_option("--path", type=click.Choice(get_args(PathKind)))
    @_option("--attempts", type=WholeNumber(1, 10))
    @_option("--strategy", type=click.Choice(get_args(Strategy)))
    @percentile
    @_option("--max-functions", type=WholeNumber(min=1))
    @_option("--node-memory", "node_memory_mib", type=WholeNumber(min=1), metavar="MIB")
    @functools.wraps(command)
    def with_choices(*arguments: Any, **others: Any) -> Any:
        chosen = Choices(**{name: others.pop(name) for name in Choices.model_fields})
        return command(*arguments, choices=chosen, **others)

    return cast(Command, with_choices)
