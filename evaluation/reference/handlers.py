"""Calls of handlers of each kind in the reference executor, and the outputs that handlers emit."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import IO, Any, NamedTuple

from flask import Flask
from werkzeug.exceptions import HTTPException

from chiron.workflow.data import bytes_of, text_of
from chiron.workflow.errors import ChironError
from chiron.workflow.model import ANSWER, output_name
from chiron.wrap.core.statemachine.errors import StatesError, cause_of

#: With this content type, python3-http-debian sends the body unchanged.
_OCTETS = "application/octet-stream"
#: A placeholder in a command: the path of a stream to read, or of an output to write.
_NAMED = re.compile(r"(\{(in|out):([^{}]+)\})")


class StatusError(Exception):
    """A handler answered with status 400 or above."""

    code = "status"


class ExitedError(StatusError):
    """A command ended with a status other than 0."""

    code = "exited"


class Emitted(ModuleType):
    """The module ``chiron_io`` of handlers; stores what the last handler emitted and wrote."""

    def __init__(self) -> None:
        super().__init__("chiron_io")
        self.values: dict[str, Any] = {}
        self.streams: dict[str, str] = {}
        #: Names, groups and values emitted into buckets; None if the workflow has no buckets.
        self.objects: list[tuple[str, str | None, Any]] | None = None

    def begin(self, streams: dict[str, str]) -> None:
        """Prepare for a handler that may open `streams`."""
        self.values, self.streams = {}, streams

    def emit(self, name: str, value: Any, group: str | None = None) -> None:
        """Store an emitted value; refuse a repeated name unless the workflow has buckets."""
        if self.objects is None:
            self._keep(name, value)
        else:
            self.objects.append((name, None if group is None else str(group), value))

    def _keep(self, name: str, value: Any) -> None:
        if name in self.values:
            raise ValueError(f"{name} was emitted before")
        self.values[name] = value

    def open_input(self, name: str | None = None) -> IO[bytes]:
        """Open a whole stream; without a name, the only stream."""
        (text,) = self.streams.values() if name is None else (self.streams[name],)
        return io.BytesIO(bytes_of(text))

    def open_output(self, name: str = ANSWER) -> IO[bytes]:
        """Return a file that stores the written output."""
        written = _Written()
        self._keep(name, written)
        return written

    def written(self, value: Any) -> bytes | None:
        """Return the output that a handler wrote or yielded; None if it did neither."""
        value = self.values.pop(ANSWER, value)
        if isinstance(value, _Written):
            return value.getvalue()
        if isinstance(value, Iterator):
            return b"".join(bytes_of(each) if isinstance(each, str) else each for each in value)
        return None

    def of(self, app: Flask, task: str, awaited: list[str]) -> dict[str, str]:
        """Return the `awaited` outputs of `task`, and forget all emitted values."""
        values, self.values = self.values, {}
        missing = [name for name in awaited if output_name(name) not in values]
        if missing:
            raise ValueError(f"the handler has ended without emitting {', '.join(missing)}")
        given = {name: values[output_name(name)] for name in awaited}
        return {
            name: text_of(value.getvalue())
            if isinstance(value, _Written)
            else flask_answer(app, value)
            for name, value in given.items()
        }


class _Written(io.BytesIO):
    """A buffer for written output that stays readable after the handler closes it."""

    def close(self) -> None:
        """Do nothing: keep the content."""


class Command:
    """A command instead of a handler; it reads and writes pipes, or files on disk."""

    def __init__(
        self, folder: str, environment: dict[str, str], words: list[str], emitted: Emitted
    ) -> None:
        self._folder = folder
        self._environment = {**os.environ, **environment}
        self._words = words
        self._emitted = emitted

    def __call__(self, _app: Flask, body: str) -> str:
        """Return the answer to `body`; streams without a placeholder replace it on stdin."""
        with tempfile.TemporaryDirectory() as scratch:
            given, answer = Path(scratch, "in"), Path(scratch, "out")
            whole = "\0".join(self._words)
            streams = dict(self._emitted.streams)
            outputs = dict[str, Path]()
            for number, (place, kind, name) in enumerate(_NAMED.findall(whole)):
                path = Path(scratch, str(number))
                path.write_bytes(bytes_of(streams.pop(name)) if kind == "in" else b"")
                whole = whole.replace(place, str(path))
                if kind == "out":
                    outputs[name] = path
            given.write_bytes(bytes_of("".join(streams.values()) or body))
            answer.touch()
            words = whole.replace("{in}", str(given)).replace("{out}", str(answer)).split("\0")
            with Path(os.devnull if "{in}" in whole else given).open("rb") as stdin:
                done = subprocess.run(
                    words,
                    cwd=self._folder,
                    env=self._environment,
                    stdin=stdin,
                    capture_output=True,
                    check=False,
                )
            if done.returncode:
                said = done.stderr.decode(errors="replace").strip()
                raise ExitedError(f"{self._words[0]} ended with {done.returncode}: {said}")
            for name, path in outputs.items():
                self._emitted.emit(name, path.read_bytes())
            return text_of(answer.read_bytes() if "{out}" in whole else done.stdout)


class Function:
    """A handler whose modules are in ``sys.modules`` only while it runs.

    Functions may ship modules of the same names, as each has its own container in OpenFaaS. Only
    one handler runs at a time, so removing its modules isolates it sufficiently.
    """

    def __init__(
        self, folder: str, style: str, environment: dict[str, str], emitted: Emitted
    ) -> None:
        self._folder = folder
        self._emitted = emitted
        self._style = style
        self._environment = {**os.environ, **environment}
        self._modules: dict[str, ModuleType] = {}
        with self._in_place():
            _import_package(folder)
            if Path(folder, "chiron_io.py").is_file():  # a copy for the function alone
                sys.modules["function.chiron_io"] = emitted
            self._handle = importlib.import_module("function.handler").handle

    def __call__(self, app: Flask, body: str) -> str:
        content = bytes_of(body)
        with self._in_place(), app.test_request_context(method="POST", data=content):
            if self._style != "flask":
                event = SimpleNamespace(body=content, headers={}, method="POST", query={}, path="/")
                context = SimpleNamespace(hostname=socket.gethostname())
                usual = partial(_http_answer, self._style)
                return self._answer(app, partial(self._handle, event, context), usual)
            raw = os.environ.get("RAW_BODY", "").lower() in ("1", "true")
            given = content if raw else content.decode(errors="replace")
            return self._answer(app, partial(self._handle, given), flask_answer)

    def _answer(
        self, app: Flask, handle: Callable[[], Any], usual: Callable[[Flask, Any], str]
    ) -> str:
        try:
            value = handle()
        except HTTPException as error:
            value = error
        written = self._emitted.written(value)
        return usual(app, value) if written is None else text_of(written)

    @contextmanager
    def _in_place(self) -> Iterator[None]:
        sys.path.append(self._folder)  # as in a solo run: it shadows no installed package
        sys.modules.update(self._modules)
        importlib.invalidate_caches()
        before = _swap_environment(self._environment)
        try:
            yield
        finally:
            self._environment = _swap_environment(before)
            self._modules |= {n: m for n, m in sys.modules.items() if self._owns(n, m)}
            for name in self._modules:
                sys.modules.pop(name, None)
            sys.path.remove(self._folder)

    def _owns(self, name: str, module: ModuleType) -> bool:
        if name.partition(".")[0] == "function":
            return True
        file = getattr(module, "__file__", None)
        return file is not None and Path(file).is_relative_to(self._folder)


class Program:
    """A handler of another language, called by that language's `program`."""

    def __init__(
        self, program: list[str], folder: str, style: str, environment: dict[str, str]
    ) -> None:
        self._words = [*program, folder, style]
        self._folder = folder
        self._environment = {**os.environ, **environment}

    def __call__(self, _app: Flask, body: str) -> str:
        answer = called(self._words, self._folder, self._environment, bytes_of(body))
        if answer.status >= 400:
            said = answer.body.decode(errors="replace")
            raise StatusError(f"the handler answered {answer.status}: {said}")
        return text_of(answer.body)


class Remote:
    """A function deployed on its own, at `url`."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, _app: Flask, body: str) -> str:
        kind = {"Content-Type": "text/plain"}
        asked = urllib.request.Request(self._url, bytes_of(body), kind)  # noqa: S310 (ours)
        try:
            with urllib.request.urlopen(asked) as answer:  # noqa: S310
                return text_of(answer.read())
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
            raise StatusError(f"the function answered {error.code}: {said}") from None


#: A callable that returns the answer to a body.
Handler = Function | Command | Remote | Program


def function_of(
    emitted: Emitted,
    folder: str,
    style: str,
    environment: dict[str, str],
    command: list[str],
    url: str,
    reference: list[str],
) -> Handler:
    """Return the function of `style` in `folder`; `emitted` stores the outputs that it emits."""
    if reference:
        return Program(reference, folder, style, environment)
    match style:
        case "command":
            return Command(folder, environment, command, emitted)
        case "remote":
            return Remote(url)
    return Function(folder, style, environment, emitted)


def _import_package(folder: str) -> None:
    """Import the package ``function``, with the user's ``__init__.py`` if there is one."""
    init = Path(folder) / "__init__.py"
    loader = SourceFileLoader("function", str(init)) if init.is_file() else None
    spec = ModuleSpec("function", loader, origin=str(init), is_package=True)
    spec.submodule_search_locations = [folder]
    sys.modules["function"] = package = module_from_spec(spec)
    if loader is not None:
        loader.exec_module(package)


def _swap_environment(environment: dict[str, str]) -> dict[str, str]:
    """Replace the process's environment by `environment`; return the previous environment."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environment)
    return before


def flask_answer(app: Flask, value: Any) -> str:
    """Return the body that Flask sends for a handler's return value; raise StatusError."""
    response = app.make_response(value)
    response.direct_passthrough = False
    if response.status_code in (204, 304):  # responses without a body
        return ""
    if response.status_code >= 400:
        raise StatusError(f"the handler answered {response.status_code}: {response.get_data(True)}")
    return text_of(response.get_data())


def _http_answer(style: str, app: Flask, value: Any) -> str:
    if value is None:
        return ""
    if type(value) is not dict:
        return flask_answer(app, value)
    headers, body = value.get("headers", []), value.get("body", "")
    if style == "http-debian" and "headers" in value and headers.get("Content-type") == _OCTETS:
        body = value["body"]
    elif type(body) is not dict:
        body = str(body)
    return flask_answer(app, (body, value.get("statusCode", 200), headers))


class Answer(NamedTuple):
    """The status and the body of a handler's answer."""

    status: int
    body: bytes


def called(
    program: Sequence[str], folder: str, environment: Mapping[str, str], body: bytes
) -> Answer:
    """Call the handler in `folder` on `body`; raise StatesError or ``no-program``."""
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb") as answers:
        with os.fdopen(theirs, "wb") as end:
            try:
                process = subprocess.Popen(
                    [*program, str(end.fileno())],
                    cwd=Path(folder).parent,
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=sys.stderr,
                    pass_fds=[end.fileno()],
                )
            except FileNotFoundError:
                message = f"{program[0]} is not on the PATH: install it"
                raise ChironError("no-program", message) from None
        with process, process.stdin or contextlib.nullcontext() as given:
            if given is not None:
                with contextlib.suppress(BrokenPipeError):
                    given.write(body)
                    given.close()
            said = answers.read()
    if not said:
        how = f"{program[0]} ended with {process.returncode}"
        raise StatesError("exited", cause_of("exited", how))
    found = json.loads(said)
    if "error" in found:
        cause = cause_of(found["error"], found["message"], found["frames"])
        raise StatesError(found["error"], cause)
    return Answer(found["status"], b64decode(found["body"]))
