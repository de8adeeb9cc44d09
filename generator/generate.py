"""The verb `generate`: write a plan as a folder of ordinary OpenFaaS functions."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from chiron.generator.declaration import declare, functions_in
from chiron.generator.fingerprint import tagged
from chiron.generator.merging import merge_requirements
from chiron.generator.render import render_handler
from chiron.generator.scale_labels import fewer_than_planned
from chiron.generator.settings import function_timeouts_s, functions_timeout_s, timeout_s
from chiron.generator.stack_check import (
    calling,
    check_answering,
    check_commands,
    check_stack,
    check_triggers,
    read_texts,
    warnings_of,
)
from chiron.generator.stores import needs_of, require_s3
from chiron.generator.unwrapped import configuration_of, copied, copy_templates
from chiron.generator.wrap_entry import WRAP, allowed, stack_function
from chiron.openfaas.handler_folder import STYLES
from chiron.openfaas.handlers import SKIPPED, TEMPLATE_FOLDER, Handler, lay_out, unread_dependencies
from chiron.openfaas.languages import called_in, find_handler, language_of, settled
from chiron.openfaas.sharing import united, without_triggers
from chiron.openfaas.stack import (
    StackFile,
    StackFunction,
    environment,
    image_prefix,
    read_stack,
    unset_warning,
    write_stack,
)
from chiron.openfaas.store_function import with_store_function
from chiron.predictor.forked import wrongly_forked
from chiron.templates import TEMPLATES
from chiron.workflow.apart import broken
from chiron.workflow.asl_queries import uses_jsonata
from chiron.workflow.documents import writing
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.plan import Plan, Wrap
from chiron.workflow.tracing import KEY_ANNOTATION, new_key

#: The requirement of a wrap whose state machine uses JSONata.
_JSONATA = "jlens>=0.25"
#: The name of a handler's folder below its working directory.
_FUNCTION = "function"
_STACK = "stack.yaml"
#: The style of a function that is deployed on its own.
REMOTE = "remote"


@dataclass(frozen=True)
class Sources:
    """The code behind a workflow: its stack.yaml, read, and the handlers that wraps run.

    Any other function of the workflow is ``called``: it stays an OpenFaaS function of its own.
    ``prefix`` is the registry for images without one; it may be empty. ``gateway_url`` is the
    default for functions that do not set it; it may be empty. ``store`` is the URL of the store for
    Maps and for plans with the path ``store``; it may be empty. ``left_out`` maps functions of
    stack.yaml that the gateway cannot build, which are not in ``stack``, to their languages.
    ``empty`` is the warning of its variables that are not set.
    """

    folder: WorkflowFolder
    stack: StackFile
    handlers: Mapping[str, Handler]
    called: tuple[str, ...] = ()
    prefix: str = ""
    gateway_url: str = ""
    store: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
    empty: str = ""

    @classmethod
    def read(
        cls,
        folder: WorkflowFolder,
        variables: Mapping[str, str] = os.environ,
        gateway_url: str = "",
        store: str = "",
    ) -> Sources:
        """Return the sources of all functions of the workflow in `folder`, checked but not run.

        The variable OPENFAAS_PREFIX, which faas-cli uses too, names the registry of images.

        Raises ``bad-prefix`` if it names no registry, and the errors of reading and checking
        stack.yaml.
        """
        prefix = image_prefix(variables)
        functions = folder.workflow.functions
        stack = settled(read_stack(folder.stack_file, variables), folder.path)
        stack = with_store_function(stack, functions, store)
        called = called_in(stack, functions)
        check_answering(folder.workflow, stack)
        check_commands(folder.workflow, stack)
        inside = [name for name in functions if name not in called]
        check_stack(stack, inside)
        handlers = {name: find_handler(stack, name, folder.path) for name in inside}
        empty = unset_warning(folder.stack_file, variables)
        return cls(folder, stack, handlers, called, prefix, gateway_url, store, empty=empty)

    @property
    def common_variables(self) -> dict[str, str]:
        """The variables of all functions, which a function's own variables override."""
        return {"gateway_url": self.gateway_url} if self.gateway_url else {}

    @property
    def warnings(self) -> list[str]:
        """Warnings about fields of stack.yaml without effect, with function, field and reason."""
        lines = [
            f"function {name} is not deployed: this gateway does not build lang {lang}; calls to "
            f"{name} fail; --backend docker, or another gateway, may build it"
            for name, lang in self.left_out.items()
        ]
        variables = self.variables(self.handlers)
        found = warnings_of(self.stack, self.folder, variables)
        given = read_texts(self.stack, [*self.handlers, *self.supporting], self.folder.path)
        files = {name: unread_dependencies(each) for name, each in self.handlers.items()}
        unread = (
            f"function {name}: the dependencies in {file} are not installed, as OpenFaaS's "
            "templates read requirements.txt alone: list them there"
            for name, file in files.items()
            if file
        )
        empty = [self.empty] * bool(self.empty)
        return [*empty, *found, *calling(given, self.handlers), *unread, *lines]

    def warnings_for(self, plan: Plan) -> list[str]:
        """Return these warnings, and those for rules on sharing and forking that `plan` breaks."""
        workflow = self.folder.workflow
        shared = (each.line for each in broken(plan, workflow, plan.apart))
        return [*self.warnings, *shared, *wrongly_forked(plan, workflow), *self._fewer(plan)]

    def _fewer(self, plan: Plan) -> list[str]:
        """Return a line for each wrap that may have fewer replicas than planned."""
        each = (
            fewer_than_planned(plan, index, united([*self.inside(wrap).values()]).labels)
            for index, wrap in enumerate(plan.wraps)
        )
        return [line for line in each if line]

    @property
    def untriggered(self) -> Sources:
        """The sources for a trial deployment: no connector calls its tasks.

        Supporting functions stay unchanged: a serving deployment may need them.
        """
        functions = dict(self.stack.functions)
        for name in self.handlers:
            annotations = without_triggers(functions[name].annotations)
            functions[name] = functions[name].model_copy(update={"annotations": annotations})
        return replace(self, stack=self.stack.model_copy(update={"functions": functions}))

    def inside(self, wrap: Wrap) -> dict[str, StackFunction]:
        """Return the functions that run in `wrap`, by name."""
        names = functions_in(wrap, self.folder.workflow)
        return {name: self.stack.functions[name] for name in names if name in self.handlers}

    def image(self, name: str, registry: str = "") -> str:
        """Return the image `name`, with the registry unless it has its own."""
        prefix = self.prefix or registry
        return f"{prefix}/{name}" if prefix and name and "/" not in name else name

    @property
    def styles(self) -> dict[str, str]:
        """The calling convention of each function."""
        inside = {name: handler.style for name, handler in self.handlers.items()}
        return inside | dict.fromkeys(self.called, REMOTE)

    @property
    def warm_up_s(self) -> float:
        """The time until all functions run at full speed, in seconds."""
        return max((each.warm_up_s for each in self.handlers.values()), default=0.0)

    @property
    def commands(self) -> dict[str, tuple[str, ...]]:
        """The commands of the functions that are commands."""
        return {name: each.command for name, each in self.handlers.items() if each.command}

    def variables(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return the variables that stack.yaml and its environment files set for its `names`."""
        functions = self.stack.functions
        return {n: environment(functions[n], self.folder.path) for n in names if n in functions}

    @property
    def limits_s(self) -> dict[str, float]:
        """The time limits in seconds of the functions whose variables set one."""
        return function_timeouts_s(self.variables(self.folder.workflow.functions))

    def timeout_s(self, plan: Plan, given_s: float | None = None) -> float:
        """Return the timeout in seconds of a request to `plan`, generated with `given_s`."""
        functions_s = functions_timeout_s(self.folder.workflow, self.limits_s)
        return timeout_s(plan, given_s, functions_s)

    def without(self, names: Collection[str]) -> Sources:
        left = {name: each for name, each in self.stack.functions.items() if name not in names}
        return replace(self, stack=self.stack.model_copy(update={"functions": left}))

    def buildable(self, langs: Collection[str]) -> Sources:
        """Return the sources without uncalled functions of languages other than `langs`."""
        uncalled = (name for name in self.supporting if name not in self.called)
        of = {name: self.stack.functions[name].lang for name in uncalled}
        left = {name: lang for name, lang in of.items() if lang not in langs}
        return replace(self.without(left), left_out=left)

    @property
    def supporting(self) -> list[str]:
        """Functions of stack.yaml that no wrap runs: tasks call them, or may call them.

        Functions that can only be deployed in a wrap, such as commands, are left out.
        """
        return [
            name
            for name, function in self.stack.functions.items()
            if name not in self.handlers and ((its := language_of(function)) is None or its.start)
        ]


def generate(
    plan: Plan,
    sources: Sources,
    out: Path,
    given_timeout_s: float | None = None,
    trace_key: str | None = None,
    marks: Mapping[str, str] | None = None,
    linked: bool = False,
) -> Path:
    """Write the deployable folder of `plan` to `out`; return the path of its stack.yaml.

    A request times out after `given_timeout_s`. The default follows from the prediction. It is no
    less than the sum of its functions' limits (``exec_timeout`` in stack.yaml), which stay in
    force. Wraps trace requests with `trace_key`, by default a random key. `marks` are extra
    annotations.

    The folder has a handler folder per wrap, and the template python3-wrap where faas-cli looks for
    it (`linked`: a link to the shipped one). It also has called functions, and the user's templates
    for them. It appears completely or not at all, and replaces only a generated folder.

    Raises ``name-taken``, ``environment-conflict``, ``stack-conflict``, ``requirements-conflict``,
    ``inner-trigger``, ``no-store``, ``not-generated``, or the errors of `Plan.check_against`.
    """
    workflow = sources.folder.workflow
    plan.check_against(workflow)
    if plan.orchestrator != "client":
        check_triggers(sources.stack, workflow)
    check_names([wrap.name for wrap in plan.wraps], sources)
    _check_target(out)
    place = out.resolve()  # a link stays a link, and its target is replaced
    marks = {**(marks or {}), KEY_ANNOTATION: trace_key or new_key()}
    most = allowed(plan, sources)
    durable = workflow.buckets is not None and workflow.buckets["durable"]
    needs = needs_of(plan, sources.store, durable=durable)
    require_s3(sources.stack, sources.store)
    limits_s, seconds = sources.limits_s, sources.timeout_s(plan, given_timeout_s)
    draft = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    with writing(out):
        draft.mkdir(parents=True)
    try:
        _add_template(draft, linked=linked)
        functions = {}
        for index, wrap in enumerate(plan.wraps):
            target = draft / wrap.name
            _write_wrap(plan, index, sources, needs.requirements, seconds, limits_s, target)
            function = stack_function(plan, most, index, sources, needs, seconds, marks)
            functions[wrap.name] = tagged(function, target, TEMPLATES / WRAP)
        for name in sources.supporting:
            functions[name] = copied(sources, name, draft)
        copy_templates(sources, draft / TEMPLATE_FOLDER)
        stack = StackFile(
            provider=sources.stack.provider,
            functions=functions,
            configuration=configuration_of(sources),
        )
        write_stack(draft / _STACK, stack)
        _replace(place, draft)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return out / _STACK


def _add_template(draft: Path, *, linked: bool) -> None:
    template = draft / TEMPLATE_FOLDER / WRAP
    if linked:
        template.parent.mkdir()
        template.symlink_to(TEMPLATES / WRAP)
    else:
        shutil.copytree(TEMPLATES / WRAP, template, ignore=SKIPPED)


def _replace(place: Path, draft: Path) -> None:
    """Move `draft` to `place` by renames alone, so that no partial folder is ever visible."""
    old = draft.with_name(f"{draft.name}.old")
    if place.exists():
        place.rename(old)
    try:
        draft.rename(place)
    except BaseException:
        if old.exists():
            old.rename(place)
        raise
    shutil.rmtree(old, ignore_errors=True)


def check_names(wraps: Collection[str], sources: Sources) -> None:
    """Raise ``name-taken`` if a wrap's name is that of a function, or of the templates' folder."""
    for name in wraps:
        if name in sources.supporting:
            raise ChironError(
                "name-taken",
                f"wrap {name} and a function of stack.yaml have one name: rename the function",
                functions=[name],
            )
    if TEMPLATE_FOLDER in (*wraps, *sources.supporting):
        raise ChironError(
            "name-taken",
            f"{TEMPLATE_FOLDER} is the folder of faas-cli's templates: rename the function",
            functions=[TEMPLATE_FOLDER],
        )


def _check_target(out: Path) -> None:
    generated = (out / TEMPLATE_FOLDER / WRAP).is_dir() and (out / _STACK).is_file()
    if out.exists() and not generated and not (out.is_dir() and not any(out.iterdir())):
        raise ChironError(
            "not-generated",
            f"{out} is there already and was not generated by chiron: name another with -o",
        )


def _write_wrap(
    plan: Plan,
    index: int,
    sources: Sources,
    store_requirements: Iterable[str],
    seconds: float,
    limits_s: Mapping[str, float],
    target: Path,
) -> None:
    workflow = sources.folder.workflow
    names = functions_in(plan.wraps[index], workflow)
    own_s = {name: limits_s[name] for name in names if name in limits_s}
    source = render_handler(
        declare(plan, index, workflow, sources.styles, seconds, own_s, sources.commands)
    )
    handlers = [sources.handlers[name] for name in names if name in sources.handlers]
    target.mkdir()
    for handler in handlers:
        place = target / "functions" / handler.function / _FUNCTION
        lay_out(handler.folder, handler.extra, place)
        if handler.style in STYLES.values():
            (place / "__init__.py").touch()  # as in the template
    for file in sources.folder.trigger_files:
        (target / "triggers").mkdir(exist_ok=True)
        shutil.copyfile(file, target / "triggers" / file.name)
    own = [("the store", line) for line in store_requirements]
    if index == 0 and plan.orchestrator != "client" and uses_jsonata(workflow.machine):
        own.append(("JSONata", _JSONATA))
    requirements = merge_requirements(handlers, own)
    (target / "requirements.txt").write_text("".join(f"{line}\n" for line in requirements))
    (target / "handler.py").write_text(source)
