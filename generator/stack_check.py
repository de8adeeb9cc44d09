"""Parts of a workflow's stack.yaml that no wrap supports: refused, or dropped with a warning."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from chiron.openfaas.handler_folder import meant, similar
from chiron.openfaas.handlers import OF_FAAS_CLI
from chiron.openfaas.languages import LANGS, called_in, kept_out, language_of
from chiron.openfaas.languages.command import COMMAND, on_stdin
from chiron.openfaas.objects import MAX_LABEL, MIN_LABEL, ZERO_LABEL
from chiron.openfaas.sharing import OF_LOGS, TRIGGERS, left_out, values_of
from chiron.openfaas.stack import StackFile, StackFunction, environment, unknown_fields
from chiron.templates import TEMPLATES
from chiron.workflow.errors import ChironError, Faults
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.model import NOTHING, Workflow
from chiron.workflow.names import shown
from chiron.workflow.strict_yaml import load_yaml
from chiron.wrap.core.buckets.routes import ALL

#: The namespace in which wraps call each other, and the gateway's clients call wraps.
_NAMESPACE = "openfaas-fn"
#: The owner of the templates that wraps replace.
_OPENFAAS = "github.com/openfaas/"
#: A path of the gateway by which a function is called.
_CALL = re.compile(r"(?<!\.)/(?:async-)?function/")
#: Folders of a handler folder without code of the function; suffixes of files without code; the
#: most bytes of a file of code.
_OTHERS = OF_FAAS_CLI | {".git", "node_modules", "vendor"}
_NO_CODE = {".json", ".lock", ".md", ".mod", ".rst", ".sum", ".txt", ".yaml", ".yml"}
_LONGEST = 1 << 20
_TEMPLATE = TEMPLATES / "python3-wrap" / "template.yml"


@cache
def build_options() -> dict[str, list[str]]:
    """Return the Debian packages of each build option of the wrap template."""
    template = load_yaml(_TEMPLATE.read_text(encoding="utf-8"), str(_TEMPLATE))
    return {option["name"]: option["packages"] for option in template["build_options"]}


def check_stack(stack: StackFile, tasks: Collection[str]) -> None:
    """Refuse settings of `tasks` that wraps do not support, and other namespaces of any function.

    Raises ``bad-namespace``, ``bad-build-option``, ``no-build-secrets``, each with its function.
    """
    faults = Faults()
    for name, function in stack.functions.items():
        for field, code, why in _refused(function, task=name in tasks):
            with faults.noting():
                message = f"function {name}: {why}"
                path = f"functions.{name}.{field}"
                raise ChironError(code, message, path=path, functions=[name])
    faults.raise_all()


def _refused(function: StackFunction, *, task: bool) -> Iterator[tuple[str, str, str]]:
    if function.namespace not in ("", _NAMESPACE):
        why = f"namespace {shown(function.namespace)} is out of the reach of wraps, which call "
        yield "namespace", "bad-namespace", f"{why}functions in {_NAMESPACE}: leave it out"
    if not task:
        return
    for option in function.build_options:
        if option not in build_options():
            why = f"build option {shown(option)} is none of wraps ({', '.join(build_options())}): "
            mend = "list Debian packages in build_args as ADDITIONAL_PACKAGE"
            yield "build_options", "bad-build-option", f"{why}{mend}"
    if function.build_secrets:
        why = f"build_secrets ({', '.join(function.build_secrets)}) do not reach the build of wraps"
        mend = "put what they unlock into the handler folder, or leave them out"
        yield "build_secrets", "no-build-secrets", f"{why}: {mend}"


def check_triggers(stack: StackFile, workflow: Workflow) -> None:
    """Refuse triggers of functions with which `workflow` does not begin.

    In a wrap only the workflow calls a function. A connector calls the entry wrap, in place of the
    function with which the workflow begins.

    Raises ``inner-trigger``.
    """
    first, called = first_function(workflow), called_in(stack, workflow.functions)
    for name in workflow.functions:
        annotations = {} if name in called else stack.functions[name].annotations
        found = sorted(TRIGGERS & annotations.keys())
        if found and name != first:
            place = f"give {first} the annotation" if first else "remove the annotation"
            raise ChironError(
                "inner-trigger",
                f"function {name} has the annotation {' and '.join(found)}, but the workflow "
                f"{workflow.name} does not begin with it alone, so that no connector can call it "
                f"in a wrap: {place}, or have a copy of {name} under another name in stack.yaml",
                path=f"functions.{name}.annotations",
                functions=(name,),
            )


def check_answering(workflow: Workflow, stack: StackFile) -> None:
    """Refuse functions that emit or stream but can only answer: ``only-answers``."""
    called = called_in(stack, workflow.functions)
    for name in workflow.functions:
        language = None if name in called else language_of(stack.functions[name])
        if language is not None and not language.only_answers:
            continue
        emitted = [f"{name}#{output}" for output in workflow.emits.get(name, ()) if output != ALL]
        streams = [each.name for each in workflow.first_using(name).streams]
        if emitted or streams:
            raise ChironError(
                "only-answers",
                f"function {name} can only answer, and neither emit outputs nor read streams "
                f"({', '.join([*emitted, *streams])}): use its answer",
                functions=(name,),
            )


def check_commands(workflow: Workflow, stack: StackFile) -> None:
    """Refuse commands that would lose a stream or their input, as stdin is only one of them.

    Raises ``bad-command``.
    """
    for task in workflow.tasks:
        function = stack.functions.get(task.function)
        if function is None or language_of(function) is not COMMAND:
            continue
        of_tasks = (each.name for each in task.streams if each.output is not None)
        streams = on_stdin(function, of_tasks)
        if len(streams) > 1 or (streams and task.source != NOTHING):
            others = "the input" if len(streams) == 1 else "another stream"
            raise ChironError(
                "bad-command",
                f"task {shown(task.name)} has its stream {streams[0]} on the stdin of its command, "
                f"and so {others} nowhere: write {{in:{streams[0]}}} in fprocess",
                path=f"functions.{task.function}.fprocess",
                functions=[task.function],
            )


def first_function(workflow: Workflow) -> str | None:
    """Return the one function with which every run of `workflow` begins; None without one."""
    machine = workflow.machine
    if machine is None:
        names = {workflow.function_of(task) for task in workflow.stages[0]}
        return names.pop() if len(names) == 1 else None
    state = machine["States"][machine["StartAt"]]
    while state["Type"] in ("Pass", "Wait") and "Next" in state:
        state = machine["States"][state["Next"]]
    return state["Resource"] if state["Type"] == "Task" and "Functions" not in state else None


def registry_of(functions: Iterable[StackFunction]) -> str:
    """Return the common registry of the images of all `functions`; empty if they differ."""
    found = {function.image.rpartition("/")[0] for function in functions}
    return found.pop() if len(found) == 1 else ""


def warnings_of(
    stack: StackFile, folder: WorkflowFolder, variables: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    """Yield a line for each field without effect, with the function, the reason and the fix.

    `variables` are those of each function that a wrap runs, including its environment files.
    """
    workflow = folder.workflow
    yield from workflow.warnings
    yield from unknown_fields(stack, folder.path)
    for name, function in stack.functions.items():
        language = language_of(function)
        if name not in workflow.functions and language is not None and not language.start:
            why = f"lang {function.lang} runs in wraps alone, and no task uses it"
            yield f"function {name} is not deployed: {why}"
    called = called_in(stack, workflow.functions)
    tasks = {name: stack.functions[name] for name in workflow.functions if name not in called}
    for name in called:
        if name not in stack.functions:
            alike = similar(name, stack.functions)
            yield f"function {name} is not in stack.yaml{alike}: it has to be deployed already"
            continue
        function = stack.functions[name]
        if function.outside or meant(function.lang, LANGS):
            yield f"function {name} stays a function of its own: {kept_out(function)}"
    for name, function in tasks.items():
        yield from left_out(name, function, variables[name])
        language = language_of(function)
        if language is not None and (remark := language.remark(function)):
            yield f"function {name}: {remark}"
        if language is not None and not language.uses_fprocess(function):
            yield (
                f"function {name}: fprocess {shown(function.fprocess)} is left out: a wrap calls "
                "the handler itself (lang: command runs a program)"
            )
    for key in sorted(OF_LOGS):
        if len(values_of(key, variables)) > 1:
            why = "a wrap of functions that differ in it has of-watchdog's default"
            yield f"environment.{key} differs from function to function: {why}"
    yield from _templates(stack, tasks.values())
    registries = {f.image.rpartition("/")[0] for f in tasks.values()}
    if len(registries) > 1:
        named = ", ".join(sorted(each or "none" for each in registries))
        yield (
            f"image: functions name several registries ({named}): a wrap of functions that differ "
            "in it names none, unless OPENFAAS_PREFIX does"
        )
    if workflow.buckets is not None and not workflow.buckets["durable"]:
        fixed = {MIN_LABEL, MAX_LABEL, ZERO_LABEL}
        for name, function in tasks.items():
            for label in sorted(fixed & function.labels.keys()):
                why = "buckets in memory are in one replica (durable: true lifts that)"
                yield f"function {name}: label {label} is left out: {why}"


def read_texts(stack: StackFile, names: Iterable[str], folder: Path) -> dict[str, str]:
    """Return the code of the functions `names`, in any language, their commands and variables."""
    found = {}
    for name in names:
        function = stack.functions[name]
        code = _code_in(folder / function.handler) if function.handler else ()
        variables = environment(function, folder).values()
        found[name] = "\n".join([function.fprocess, *variables, *code])
    return found


def _code_in(folder: Path) -> Iterator[str]:
    """Yield the texts in a handler folder that may be code of the function."""
    for place, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if each not in _OTHERS]
        for file in (Path(place, each) for each in files):
            if file.suffix not in _NO_CODE and file.is_file() and file.stat().st_size <= _LONGEST:
                content = file.read_bytes()
                if b"\0" not in content:
                    yield content.decode("utf-8", "replace")


def calling(given: Mapping[str, str], inside: Collection[str]) -> Iterator[str]:
    """Yield a line for each function that seems to call those of wraps through the gateway.

    Args:
        given: the texts of each function, from `read_texts`.
        inside: the functions that only wraps run.
    """
    for name, text in given.items():
        found = [
            each
            for each in inside
            if each != name and re.search(rf"/function/{each}(?![\w-])|[\"'`]{each}[\"'`]", text)
        ]
        if found and _CALL.search(text):
            called = ", ".join(found)
            yield (
                f"function {name} seems to call {called} through the gateway, which only wraps run "
                f"here: deploy {called} by faas-cli too, or let the workflow call"
            )


def _templates(stack: StackFile, tasks: Iterable[StackFunction]) -> Iterator[str]:
    used = {function.lang for function in tasks}
    for template in stack.configuration.templates if stack.configuration else ():
        if template.name in used and template.source and _OPENFAAS not in template.source:
            functions = ", ".join(n for n, f in stack.functions.items() if f.lang == template.name)
            yield (
                f"configuration.templates: {template.name} of {shown(template.source)} is not what "
                f"calls {functions} in a wrap, which stands in for OpenFaaS's own template"
            )
