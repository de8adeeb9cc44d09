"""The scheduler's settings in the files of a workflow folder, beside its workflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chiron.openfaas.handlers import extra_of
from chiron.openfaas.languages import called_in, language_of, settled
from chiron.openfaas.sharing import OF_GUARDS, OF_LOGS, OF_WRAPS, is_on, one_valued, with_unset
from chiron.openfaas.stack import StackFunction, environment, read_stack
from chiron.openfaas.store_function import with_store_function
from chiron.workflow.constraints import NO_CONSTRAINTS, Constraints
from chiron.workflow.folder import WorkflowFolder

#: Function -> variable, or field of `chiron.openfaas.sharing.one_valued` -> value.
Environments = Mapping[str, Mapping[str, str]]
#: Function -> the names of its secrets.
Secrets = Mapping[str, Sequence[str]]

#: The variable by which a template chooses between text and bytes for its handler, and the styles
#: of these templates.
_RAW_BODY, _READS_RAW_BODY = "RAW_BODY", ("flask", "node", "node22")
#: The most bytes of a body, for the styles whose template reads the variables; and its default.
_LIMITS, _READS_LIMITS, _LIMIT = ("MAX_JSON_SIZE", "MAX_RAW_SIZE"), ("node", "node22"), "100kb"


@dataclass(frozen=True)
class FolderSettings:
    """The user's constraints, each function's secrets, and settings of which a wrap has one value.

    ``called`` are the functions that run in no wrap, without such values.
    """

    constraints: Constraints = NO_CONSTRAINTS
    environments: Environments = field(default_factory=dict)
    secrets: Secrets = field(default_factory=dict)
    called: tuple[str, ...] = ()


NO_SETTINGS = FolderSettings()


def read_settings(folder: WorkflowFolder, variables: Mapping[str, str]) -> FolderSettings:
    """Return the settings in constraints.json and stack.yaml, which are optional.

    `variables` are the values of ``${VAR}`` in stack.yaml, usually ``os.environ``.

    Raises what `chiron.openfaas.stack.read_stack`, `environment` and `extra_of` raise.
    """
    constraints = folder.constraints()
    if not folder.stack_file.exists():
        return FolderSettings(constraints)
    functions = folder.workflow.functions
    stack = settled(read_stack(folder.stack_file, variables), folder.path)
    stack = with_store_function(stack, functions)
    called = called_in(stack, functions)
    used = {name: stack.functions[name] for name in functions if name not in called}
    fields = one_valued(used)
    copied = [source for _, source in extra_of(stack, folder.path)]
    variables_of = with_unset(
        {name: environment(function, folder.path) for name, function in used.items()},
        {name: [folder.path / each.handler, *copied] for name, each in used.items()},
    )
    return FolderSettings(
        constraints,
        environments={
            name: wanted(variables_of[name], _style_of(function)) | fields[name]
            for name, function in used.items()
        },
        secrets={name: function.secrets for name, function in used.items() if function.secrets},
        called=called,
    )


def _style_of(function: StackFunction) -> str | None:
    language = language_of(function)
    return language.styles[function.lang] if language else None


def wanted(variables: Mapping[str, str], style: str | None = None) -> dict[str, str]:
    """Return the variables of which a function needs its own value in its wrap.

    A variable that its template reads has the template's default if unset: a handler expects text
    without RAW_BODY.
    """
    found = {key: value for key, value in variables.items() if key not in OF_WRAPS | OF_LOGS}
    if style in _READS_RAW_BODY:
        found[_RAW_BODY] = "true" if _is_raw(variables.get(_RAW_BODY, ""), style) else "false"
    if style in _READS_LIMITS:
        found |= {each: variables.get(each) or _LIMIT for each in _LIMITS}
    for each in found.keys() & OF_GUARDS:
        found[each] = str(is_on(found[each])).lower()
    return found


def _is_raw(value: str, style: str) -> bool:
    """Return whether the template of `style` reads this value of RAW_BODY as a wish for bytes."""
    return value.lower() in ("1", "true") if style == "flask" else value == "true"
