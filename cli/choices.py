"""The options about a plan that verbs share, made from what `scheduler.choices` defines."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast, get_args

import click

from cli.options import Command
from scheduler.choices import Choices, Strategy
from workflow.plan import Mechanism, Model


def choices(command: Command) -> Command:
    """The options about the plan, as one argument `choices`."""

    @_option("--model", type=click.Choice(get_args(Model)))
    @_option("--mechanism", type=click.Choice([*get_args(Mechanism), "auto"]))
    @_option("--strategy", type=click.Choice(get_args(Strategy)))
    @_option("--headroom", is_flag=True)
    @_option("--max-functions", type=click.IntRange(min=1))
    @_option("--node-memory", "node_memory_mib", type=click.IntRange(min=1), metavar="MIB")
    @functools.wraps(command)
    def with_choices(*arguments: Any, **others: Any) -> Any:
        chosen = Choices(**{name: others.pop(name) for name in Choices.model_fields})
        return command(*arguments, choices=chosen, **others)

    return cast(Command, with_choices)


def _option(*names: str, **settings: Any) -> Callable[[Command], Command]:
    """An option whose meaning and default are those of the field of its name."""
    field = Choices.model_fields[names[-1].removeprefix("--").replace("-", "_")]
    shown = not settings.get("is_flag", False)
    return click.option(
        *names, default=field.default, show_default=shown, help=field.description, **settings
    )
