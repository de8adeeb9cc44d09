"""Deploys a plan for the duration of a ``with`` block: generate, build, deploy, then remove."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from chiron.deployment.deploy import (
    Builder,
    deploy_stack,
    remove_all,
    removed_on_failure,
    require_own_names,
)
from chiron.deployment.invoke import Answer, Invoker
from chiron.deployment.route import route_of
from chiron.generator.generate import Sources, generate
from chiron.generator.settings import client_timeout_s, wrap_environment
from chiron.generator.stores import NO_STORE, StorePlace, require_s3
from chiron.openfaas.client import HERE, Gateway
from chiron.openfaas.credentials import DEFAULT_GATEWAY
from chiron.openfaas.handler_folder import similar
from chiron.openfaas.objects import PRO_LABELS
from chiron.openfaas.store_function import SECRET
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.load import Load
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan
from chiron.workflow.tracing import new_key


@dataclass(frozen=True)
class Deployment:
    """A deployed plan: `names` are its wraps' functions in the plan's order, and requests with the
    `trace_key` are traced."""

    gateway: Gateway
    names: tuple[str, ...]
    invoker: Invoker
    trace_key: str

    def invoke(self, request: bytes, *, trace: bool = False) -> Answer:
        return self.invoker.invoke(request, trace=trace)


@dataclass(frozen=True)
class Launcher:
    """Deploys plans on one gateway; `build` makes the images.

    ``left`` are functions whose removal after their block failed: `remove_left` retries it.
    ``gateway_url`` is the gateway's URL for functions, if its provider does not report it.
    ``store`` is for plans that pass objects by one. `build` supports ``langs``, all if empty.
    """

    gateway: Gateway
    build: Builder
    left: set[str] = field(default_factory=set)
    gateway_url: str = ""
    store: StorePlace = NO_STORE
    langs: Collection[str] = ()

    @property
    def one_node(self) -> bool:
        """Whether all sandboxes share the cores of one machine."""
        return self.gateway.info().one_node

    @property
    def place(self) -> str:
        """The place where plans run; profiles and platforms name it and hold only there.

        It is the gateway's URL, or this machine for its embedded gateway, whose port may change.
        """
        info, url = self.gateway.info(), self.gateway.url
        if info.embedded and urlsplit(url).hostname in HERE:
            return f"{platform.node()} ({info.provider.orchestration})"
        return url

    def sources(self, folder: WorkflowFolder) -> Sources:
        """Read the code of `folder`, with the URL by which functions reach the gateway.

        Raises ``unknown-function`` for tasks whose function is neither in stack.yaml nor deployed,
        ``no-store`` if Maps read or write S3 without a store, ``secret-missing`` with all secrets
        that the gateway lacks: the images need not be built to find that.
        """
        url_inside = self.gateway_url or self.gateway.info().url_inside
        sources = Sources.read(folder, gateway_url=url_inside, store=self.store.url)
        require_s3(sources.stack, self.store.url)
        if before := [name for name in sources.called if name not in sources.stack.functions]:
            there = {each.name for each in self.gateway.functions()}
            for name in before:
                if name not in there:
                    where = f"{self.gateway.url}{similar(name, sources.stack.functions)}"
                    raise ChironError(
                        "unknown-function",
                        f"function {name} is not in stack.yaml, nor deployed on {where}: add it to "
                        "stack.yaml, or deploy it first",
                        path="functions",
                        functions=(name,),
                    )
        sources = sources.buildable(self.langs) if self.langs else sources
        self._require_secrets(sources)
        return sources

    def _require_secrets(self, sources: Sources) -> None:
        functions = sources.stack.functions
        named = [name for name in (*sources.handlers, *sources.supporting) if name in functions]
        needed = {name: {*functions[name].secrets} - {SECRET} for name in named}
        if not any(needed.values()):
            return
        try:
            there = self.gateway.secret_names()
        except ChironError:  # it may not list them, and says itself what it lacks
            return
        if lacking := [name for name, its in needed.items() if its - there]:
            missing = sorted(set().union(*needed.values()) - there)
            raise ChironError(
                "secret-missing",
                f"secrets that {self.gateway.url} has not: {', '.join(missing)}: create each with "
                "faas-cli secret create NAME; with --local, by a file .secrets/NAME in the "
                "current folder",
                functions=lacking,
            )

    def warnings(self, sources: Sources, load: Load | None = None) -> Iterator[str]:
        """Yield what of stack.yaml, and of a plan for `load`, this gateway does not do.

        A gateway that stack.yaml names is another one unless it is faas-cli's default.
        """
        named, url = sources.stack.provider.gateway.rstrip("/"), self.gateway.url
        info = self.gateway.info()
        if named not in ("", DEFAULT_GATEWAY, url) and not info.embedded:
            mend = f"this deploys on {url}, as OPENFAAS_URL or -g says: -g {named} deploys there"
            yield f"provider.gateway of stack.yaml is {named}: {mend}"
        functions = sources.stack.functions.items()
        own = [name for name, each in functions if not PRO_LABELS.isdisjoint(each.labels)]
        if info.is_community_kubernetes and (load or own):
            of = [*([f"the plan for {load.shown}"] if load else []), *own]
            yield (
                f"labels {', '.join(sorted(PRO_LABELS))} of {', '.join(of)} are left out: the "
                f"Community Edition on {url} refuses them; chiron watch scales instead"
            )

    def deploy(self, stack_file: Path) -> list[str]:
        """Deploy the generated functions; return those that were created, see `deploy_stack`."""
        return deploy_stack(self.gateway, stack_file, self.store.password)

    @contextmanager
    def launch(
        self, workflow: Workflow, folder: WorkflowFolder, plan: Plan
    ) -> Iterator[Deployment]:
        """Deploy `plan` of `workflow`, with the code of `folder`, for the duration of the block.

        The supporting functions of the folder's stack.yaml are deployed too, unless they run
        unchanged; those that existed stay. Functions of the folder's own workflow that `workflow`
        leaves out are not supporting: they may need features of wraps. No connector calls the
        deployed functions.
        """
        key = new_key()
        sources = self.sources(WorkflowFolder(folder.path, workflow)).untriggered
        sources = sources.without({*folder.workflow.functions}.difference(workflow.functions))
        with tempfile.TemporaryDirectory(prefix="chiron-") as scratch:
            # Only builders for other gateways read the template.
            linked = self.gateway.info().embedded
            build = Path(scratch) / "build"
            stack_file = generate(plan, sources, build, trace_key=key, linked=linked)
            require_own_names(self.gateway, stack_file)
            self.build(stack_file)
            names = tuple(wrap.name for wrap in plan.wraps)
            # Wraps that a killed command left are removed too.
            created = list(dict.fromkeys([*self.deploy(stack_file), *names]))
            with (
                removed_on_failure(self.gateway, created),
                invoker_for(plan, workflow, self.gateway, sources.timeout_s(plan), key) as invoker,
            ):
                yield Deployment(self.gateway, names, invoker, key)
            self.left.update(created)
            with suppress(ChironError):  # measurements in the block are valid all the same
                remove_all(self.gateway, created)
                self.left.difference_update(created)

    def remove_left(self) -> None:
        """Retry the removals that failed in `launch`; an error says what stays, and its removal."""
        remove_all(self.gateway, sorted(self.left))


def invoker_for(
    plan: Plan,
    workflow: Workflow,
    gateway: Gateway,
    given_timeout_s: float | None = None,
    trace_key: str = "",
) -> Invoker:
    """Return the invoker of `plan` of `workflow`, deployed behind `gateway`.

    `given_timeout_s` is the timeout its wraps were generated with, `trace_key` that of `generate`.
    """
    timeout_s = client_timeout_s(wrap_environment(plan, plan.wraps[0], given_timeout_s))
    return Invoker(
        gateway.url, route_of(plan, workflow), timeout_s, trace_key, options=gateway.pool_options
    )
