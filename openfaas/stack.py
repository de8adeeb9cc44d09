"""stack.yaml, faas-cli's file: read with its variables expanded, written without variables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field, PrivateAttr

from chiron.openfaas.objects import FunctionSpec, NullIsAbsent, Resources
from chiron.openfaas.substitution import escape, expand, unset
from chiron.workflow.documents import Document, read_file, validate, write_atomically
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import check_links
from chiron.workflow.names import check_name, shown
from chiron.workflow.strict_yaml import dump_yaml, load_yaml

#: The variable that names the registry of images.
PREFIX = "OPENFAAS_PREFIX"
_REGISTRY = re.compile(
    r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?::[0-9]+)?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
)
#: The build argument with Debian packages for the image.
PACKAGES = "ADDITIONAL_PACKAGE"
#: A package with its architecture, and a version or a release (Debian Policy 5.6.7, 5.6.12). A
#: final hyphen is excluded, as it makes apt-get remove the package.
_PACKAGE = re.compile(
    r"[a-z0-9][a-z0-9+.-]*[a-z0-9+.](?::[a-z0-9][a-z0-9-]*)?"
    r"(?:=[0-9][A-Za-z0-9.+~:-]*|/[A-Za-z0-9][A-Za-z0-9.+~_-]*)?"
)
#: The maximum size of stack.yaml, in bytes, which takes YAML seconds to parse.
_FILE_LIMIT = 1024 * 1024
#: The section by which a file is known as one of faas-cli's.
_FUNCTIONS = re.compile(rb"^functions:", re.MULTILINE)
_NO_FILE = "create it, or remove it from environment_file"
#: A value of a map: YAML's null is the empty string, as in faas-cli.
_Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]


def image_prefix(variables: Mapping[str, str]) -> str:
    """Return the registry, such as ``docker.io/NAME``; empty if unset. Raises ``bad-prefix``."""
    prefix = variables.get(PREFIX, "").rstrip("/")
    if prefix and not _REGISTRY.fullmatch(prefix):
        message = f"{PREFIX} is {shown(prefix)}: name a registry, such as docker.io/NAME"
        raise ChironError("bad-prefix", message)
    return prefix


class _Section(Document, NullIsAbsent, strict=False, extra="allow"):
    """A mapping of stack.yaml.

    It is not strict, since every scalar of the file is text: ``yes`` and ``true`` are flags.
    faas-cli ignores unknown fields; here they are kept, and `unknown_fields` names them.
    """


class Provider(_Section):
    """The provider of the functions."""

    name: Literal["openfaas"] = "openfaas"
    gateway: str = ""


class TemplateSource(_Section):
    """The source from which faas-cli pulls a template."""

    name: str
    source: str = ""


class Configuration(_Section):
    """Build-time settings of the whole stack."""

    templates: tuple[TemplateSource, ...] = ()
    copy_: tuple[str, ...] = Field(default=(), alias="copy")


class StackResources(Resources, extra="allow"):
    """Memory and CPU in Kubernetes' notation; faas-cli ignores other resources."""

    def at_least(self, others: Iterable[StackResources | None]) -> StackResources:
        """Return the maximum of these resources and `others`, for memory and CPU separately."""
        found = [self, *(other for other in others if other)]
        mib, millicores = (max(map(attrgetter(n), found)) for n in ("memory_mib", "millicores"))
        cpu = f"{millicores}m" if millicores % 1000 else str(millicores // 1000)
        return StackResources(memory=f"{mib}Mi", cpu=cpu)


class StackFunction(_Section):
    """One function, with the fields of faas-cli."""

    lang: str = ""
    handler: str = ""
    image: str = ""
    fprocess: str = ""
    environment: Mapping[str, _Text] = {}
    environment_file: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    labels: Mapping[str, _Text] = {}
    annotations: Mapping[str, _Text] = {}
    limits: StackResources | None = None
    requests: StackResources | None = None
    constraints: tuple[str, ...] = ()
    readonly_root_filesystem: bool = False
    namespace: str = ""
    skip_build: bool = False
    build_options: tuple[str, ...] = ()
    build_args: Mapping[str, _Text] = {}
    build_secrets: Mapping[str, _Text] = {}
    platforms: str = ""
    _outside: str = PrivateAttr("")

    @property
    def outside(self) -> str:
        """The reason, found in its code, why no wrap can run it; empty if there is none."""
        return self._outside

    def left_outside(self, reason: str) -> StackFunction:
        """Return the function marked as impossible in wraps for `reason`, unless that is empty."""
        if not reason:
            return self
        made = self.model_copy()
        made._outside = reason
        return made


class StackFile(_Section):
    """A stack.yaml; its functions by name, in the file's order."""

    version: Literal["1.0"] = "1.0"
    provider: Provider = Provider()
    functions: Mapping[str, StackFunction] = {}
    configuration: Configuration | None = None

    def function(self, name: str) -> StackFunction:
        """Return the function `name`; ``unknown-function`` lists the known functions."""
        if name in self.functions:
            return self.functions[name]
        known = ", ".join(self.functions) or "none"
        raise ChironError(
            "unknown-function",
            f"stack.yaml has no function {shown(name)} (it has: {known}): add it under functions",
            path="functions",
            functions=(name,),
        )


def read_stack(
    path: Path, variables: Mapping[str, str], *, refuse_unset: bool = False
) -> StackFile:
    """Read the stack.yaml at `path`, with ``${VAR}`` from `variables` (usually ``os.environ``).

    With `refuse_unset`, a variable that is not set needs a default.

    Fields unknown to faas-cli are no fault: see `unknown_fields`.

    Raises ``missing-file``, ``bad-substitution``, ``bad-yaml``, ``duplicate-key``, ``bad-name``,
    ``bad-package``, or ``bad-document`` with the path of the fault, such as
    ``functions.side.handler``.
    """
    what = f"stack file {path}"
    written = _text(path, what, _where(path))
    text = expand(written, variables, what, refuse_unset=refuse_unset)
    try:
        value = load_yaml(text, what)
        if isinstance(value, dict):
            # Sections that only define anchors, as in compose files.
            value = {key: part for key, part in value.items() if not str(key).startswith("x-")}
        stack = validate(StackFile, value, what)
    except ChironError as error:
        if names := unset(written, variables):
            mend = f"not set are {', '.join(names[:8])}: a default is ${{{names[0]}:-default}}"
            raise error.changed(error.path, f"{error.message}; {mend}") from None
        raise
    for name, function in stack.functions.items():
        check_name(name, "function", f"functions.{shown(name)}")
        _check_packages(name, function.build_args.get(PACKAGES, ""))
    return stack


def unset_warning(path: Path, variables: Mapping[str, str]) -> str:
    """Return a warning with the variables of the stack.yaml at `path` that are empty in it."""
    lines = _text(path, f"stack file {path}", "").splitlines()
    names = unset("\n".join(each for each in lines if not each.lstrip().startswith("#")), variables)
    if not names:
        return ""
    mend = f"export them, or write a default: ${{{names[0]}:-default}}"
    return f"stack.yaml: not set, and so empty, are {', '.join(names[:8])}: {mend}"


def _check_packages(function: str, packages: str) -> None:
    """Refuse words that apt-get would treat as an option, a file, or a package to remove."""
    for package in filter(None, re.split("[ \t\r\n]+", packages)):  # as the shell splits them
        if not _PACKAGE.fullmatch(package):
            raise ChironError(
                "bad-package",
                f"function {function}: {PACKAGES} has {shown(package)}, which is no Debian package:"
                " write names, such as ffmpeg, ffmpeg:arm64, ffmpeg=7:5.1 or"
                " ffmpeg/bookworm-backports",
                path=f"functions.{function}.build_args.{PACKAGES}",
                functions=(function,),
            )


def unknown_fields(stack: StackFile, folder: Path) -> Iterator[str]:
    """Yield a warning for each field unknown to faas-cli, with its path.

    The fields are those of `stack` and of the environment files of its functions in `folder`.
    """
    yield from _unknown(stack, "", "stack.yaml")
    files = chain.from_iterable(each.environment_file for each in stack.functions.values())
    for name in dict.fromkeys(files):
        yield from _unknown(_read_variables(folder, name), "", name)


def _unknown(section: BaseModel, place: str, file: str) -> Iterator[str]:
    known = {field.alias or name: name for name, field in type(section).model_fields.items()}
    for key in section.model_extra or ():
        if key.startswith("x-"):
            continue
        alike = get_close_matches(key, known, 1)
        mend = f"did you mean {alike[0]}?" if alike else "remove it, or start its name with x-"
        if isinstance(section, _EnvironmentFile):
            mend = "variables are below environment"
        yield f"{file}: {place}{shown(key)} is no field of faas-cli and is ignored: {mend}"
    for key, name in known.items():
        value = getattr(section, name)
        within: Iterable[tuple[str, object]] = ((key, value),)
        if isinstance(value, Mapping):
            within = ((f"{key}.{each}", item) for each, item in value.items())
        elif isinstance(value, tuple):
            within = ((f"{key}[{number}]", item) for number, item in enumerate(value))
        for path, item in within:
            if isinstance(item, BaseModel):
                yield from _unknown(item, f"{place}{path}.", file)


def write_stack(path: Path, stack: StackFile) -> None:
    """Write `stack` so that faas-cli reads exactly these values, even if they contain ``$``."""
    # faas-cli requires these two fields, even with default values.
    head = {"version": stack.version, "provider": stack.provider.model_dump()}
    content = stack.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude={"version", "provider"}
    )
    write_atomically(path, escape(dump_yaml(head | content)))


def environment(function: StackFunction, folder: Path) -> dict[str, str]:
    """Return the variables of `function` in `folder`; environment files override inline values."""
    merged = dict(function.environment)
    for name in function.environment_file:
        merged |= _read_variables(folder, name).environment
    return merged


def _read_variables(folder: Path, name: str) -> _EnvironmentFile:
    check_links(folder / name, folder)
    what = f"environment file {folder / name}"
    return validate(_EnvironmentFile, load_yaml(_text(folder / name, what, _NO_FILE), what), what)


def deployment(stack: StackFile, name: str, folder: Path) -> FunctionSpec:
    """Return what ``faas-cli deploy`` would send for `name` of the stack.yaml in `folder`."""
    function = stack.function(name)
    if not function.image:
        raise ChironError(
            "no-image",
            f"function {name} has no image: give it one, such as image: {name}:latest",
            path=f"functions.{name}.image",
            functions=(name,),
        )
    return FunctionSpec(
        service=name,
        image=function.image,
        namespace=function.namespace,
        env_process=function.fprocess,
        env_vars=environment(function, folder),
        constraints=function.constraints,
        secrets=function.secrets,
        labels=function.labels,
        annotations=function.annotations,
        limits=function.limits,
        requests=function.requests,
        read_only_root_filesystem=function.readonly_root_filesystem,
    )


class _EnvironmentFile(_Section):
    environment: Mapping[str, _Text] = {}


def _where(path: Path) -> str:
    """Return a hint for a missing stack.yaml at `path`: many projects have others, or several."""
    files = sorted(filter(Path.is_file, path.parent.glob("*.y*ml")))
    others = [each.name for each in files if _FUNCTIONS.search(each.read_bytes())]
    if len(others) > 1:
        return f"copy the functions of {', '.join(others)} into one {path.name}"
    if others:
        return f"{others[0]} has functions: rename it to {path.name}"
    return "it is the OpenFaaS file with your functions, which faas-cli new makes"


def _text(path: Path, what: str, mend: str) -> str:
    if not os.path.lexists(path):
        raise ChironError("missing-file", f"{what} is not there: {mend}")
    try:
        return read_file(path, what, _FILE_LIMIT).decode()
    except UnicodeDecodeError:
        raise ChironError("bad-yaml", f"{what} is not UTF-8") from None
