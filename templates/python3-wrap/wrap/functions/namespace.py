"""A module namespace for each function, so that two may both ship ``util.py``.

A function's folder is a package with a unique name in ``sys.modules``. Its modules run with a
private copy of ``__builtins__``. The ``__import__`` there finds the function's own module for both
`import util` and `from function import util` (``function`` is OpenFaaS's name of the folder).
Modules and pickles have the ``__name__`` that OpenFaaS gives them, ``function.util``;
`wrap.functions.public` puts proxies under these names in ``sys.modules``.

Python functions keep the builtins of their module, so imports in handlers and threads work alike,
and so does ``open`` of files in ``function/``. Function folders in ``sys.path`` are searched too,
except folders with packages that pip installed. Names of the standard library and of installed
packages keep their meaning unless a function's folder precedes them.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import site
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from importlib.util import resolve_name, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import IO, Any

from wrap.functions import own_builtins, own_streams, public
from wrap.functions.own_builtins import OWN, SHARED
from wrap.functions.public import PACKAGE

#: The prefix of the functions' packages in ``sys.modules``.
_PREFIX = "_function_"
#: The module of the runtime that users copy beside handlers which also run alone.
_OURS = "chiron_io"
#: A line with an import statement, or a call that imports.
_IMPORT = re.compile(r"^.*(?:\bimport\b|\bimport_module\b|\b__import__\b).*$", re.MULTILINE)
#: Words of code that may answer an iterator, or values that `json` cannot encode.
_UNUSUAL = re.compile(r"\b(yield|iter|map|filter|dataclass|datetime|decimal|uuid)\b")


def _imports(folder: Path, *packages: str) -> tuple[list[bool], bool]:
    """Return whether modules below `folder` import each package, and whether any word is unusual.

    Unusual words are those of `_UNUSUAL`.
    """
    lines, unusual = set[str](), False
    for file in folder.rglob("*.py"):
        code = file.read_text(errors="replace")
        lines.update(_IMPORT.findall(code))
        unusual = unusual or _UNUSUAL.search(code) is not None
    text = "\n".join(lines)
    return [re.search(rf"\b{package}\b", text) is not None for package in packages], unusual


@functools.cache
def _installed_in() -> list[str]:
    return [*site.getsitepackages(), site.getusersitepackages()]


@functools.cache
def _is_installed(name: str) -> bool:
    """Whether an installed module has this name; a folder without code does not count."""
    ours = str(Path(__file__).parents[2])
    places = [each for each in sys.path if each != ours and public.package_at(each) is None]
    try:
        found = PathFinder.find_spec(name, places)
    except (ImportError, ValueError):  # its entry in sys.modules has no __spec__
        return True
    return found is not None and found.loader is not None


def function_of(names: Mapping[str, Any]) -> str | None:
    """Return the function whose module has the globals `names`, or None."""
    package = public.package_of(names)
    return package and package.removeprefix(_PREFIX).replace("_", "-")


class Namespace:
    """The modules of one function.

    Args:
        name: the function's name; names differ in more than ``-`` and ``_`` (no name has a ``_``).
        folder: where its modules are.

    Attributes:
        uses_flask, uses_io: whether its modules import Flask and `chiron_io` anywhere in their
            code.
        answers_unusually: whether Flask may be needed to build its answers.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.package = _PREFIX + name.replace("-", "_")
        # A handler may import both during its first run only, which needs them already.
        imports, self.answers_unusually = _imports(folder, "flask", _OURS)
        self.uses_flask, self.uses_io = imports
        self._folder = folder
        #: The folders with its modules, and the ones that precede the installed packages.
        self._places, self._first = [str(folder)], list[str]()
        self._known_path, self._checked = set(sys.path), set[str]()
        self._open_file: Callable[..., IO[Any]] = SHARED["open"]
        own = dict(zip(OWN, (self._import, self._open), strict=True))
        self._builtins = own_builtins.add(self.package, own)
        #: The modules that the function has imported by bare names.
        self._plain = set[str]()
        source, compiled = (
            partial(kind, own=self._builtins, plain=self._plain) for kind in (_Loader, _Compiled)
        )
        self._loaders: list[Any] = [
            (ExtensionFileLoader, EXTENSION_SUFFIXES),
            (source, SOURCE_SUFFIXES),
            (compiled, BYTECODE_SUFFIXES),
        ]
        self._importlib = self._private_importlib()
        sys.meta_path.insert(0, self)
        public.add(self.package, folder)
        if len(public.folders()) > 1:
            own_streams.share()

    def load(self, module: str) -> ModuleType:
        return importlib.import_module(f"{self.package}.{module}")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification of the function's own module `fullname`, or None."""
        if fullname == self.package:
            return self._package_spec()
        if not fullname.startswith(self.package + ".") or path is None:
            return None
        for folder in path:
            spec = FileFinder(folder, *self._loaders).find_spec(fullname)
            if spec is not None:
                ours: Any = _OfRuntime()
                is_copy = fullname == f"{self.package}.{_OURS}"
                return ModuleSpec(fullname, ours) if is_copy else spec
        return None

    def _package_spec(self) -> ModuleSpec:
        init = self._folder / "__init__.py"
        if not init.is_file():
            spec = ModuleSpec(self.package, None, is_package=True)
            spec.submodule_search_locations = self._places
            return spec
        loader = _Loader(self.package, str(init), own=self._builtins, plain=self._plain)
        found = spec_from_file_location(
            self.package, init, loader=loader, submodule_search_locations=self._places
        )
        if found is None:
            raise ImportError(f"{init} cannot be loaded")
        return found

    def _own(self, name: str) -> str | None:
        """Return the name in ``sys.modules`` of the function's own module `name`, or None."""
        top, _, rest = name.partition(".")
        if top == PACKAGE:
            return f"{self.package}.{rest}" if rest else self.package
        if not top or top in sys.stdlib_module_names:
            return None
        self._note_places()
        places = self._first if _is_installed(top) else self._places
        own = f"{self.package}.{top}"
        if (own in sys.modules and places) or any(self._is_in(each, own) for each in places):
            return f"{self.package}.{name}"
        return None

    def _note_places(self) -> None:
        """Add the function's folders that are new in ``sys.path`` to the places to search."""
        for number, place in enumerate(sys.path):
            if place not in self._known_path:
                self._known_path.add(place)
                folder = Path(place).resolve()
                if public.package_at(place) != self.package or not folder.is_dir():
                    continue
                if next(folder.glob("*.dist-info"), None) is None:
                    self._places.append(str(folder))
                    if set(_installed_in()) & set(sys.path[number:]):
                        self._first.append(str(folder))

    def _check(self, top: str) -> None:
        """Raise ImportError if the module `top` of this process comes from another function."""
        file = str(getattr(sys.modules.get(top), "__file__", None) or "/")
        other = public.package_at(file)
        if other not in (None, self.package):
            raise ImportError(
                f"module {top} is loaded from {file}, of another function: a wrap has one module "
                "of a name that sys.path finds; use a wrap for each of the functions",
                name=top,
            )
        self._checked.add(top)

    def _is_in(self, place: str, own: str) -> bool:
        spec = FileFinder(place, *self._loaders).find_spec(own)
        # A folder without __init__.py counts only if it holds code: `data/` is no package.
        return spec is not None and (
            spec.loader is not None
            or any(
                next(Path(place).glob("*.py"), None)
                for place in spec.submodule_search_locations or ()
            )
        )

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 (the protocol's names)
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        usual: Callable[..., ModuleType] = SHARED["__import__"]
        if level:  # the modules have public names; the import system uses the private ones
            package = str((globals or {}).get("__package__"))
            name = resolve_name("." * level + name, package)
            if not fromlist:
                return usual(name, globals, locals, (), 0)
        own = self._own(name)
        if own is not None:
            top = name.partition(".")[0]
            self._note_name(top)
            try:
                leaf = usual(own, globals, locals, fromlist or ("__name__",), 0)
            except ModuleNotFoundError as error:
                self._rename(error)
                raise
            if top != PACKAGE and not _is_installed(top):
                public.share_own(name)
            if fromlist:
                return leaf
            return sys.modules[self.package if top == PACKAGE else f"{self.package}.{top}"]
        if public.is_of_others(name):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if name == "flask" or name.startswith("flask."):
            self.uses_flask = True
        elif name == _OURS:
            self.uses_io = True
        module = usual(name, globals, locals, fromlist or (), 0)
        if (top := name.partition(".")[0]) not in self._checked:
            self._check(top)
        return self._importlib if module is importlib else module

    def _rename(self, error: ModuleNotFoundError) -> None:
        name = error.name or ""
        if name.startswith(f"{self.package}."):
            error.name = _public(name, self._plain)
            error.msg = error.msg.replace(name, error.name)

    def _note_name(self, top: str) -> None:
        """Name a module after its first import, `top` or ``function.top``, as Python does alone."""
        own = f"{self.package}.{top}"
        if top == PACKAGE or own in sys.modules or _is_installed(top):
            return
        if public.may_share(top):
            self._plain.add(own)

    def _open(self, file: object, *arguments: Any, **options: Any) -> IO[Any]:
        """Open a file; ``function/data.txt`` is the function's own file, as in its own sandbox."""
        if isinstance(file, str | bytes | Path):
            path = Path(os.fsdecode(file))
            if path.parts[:1] == (PACKAGE,):
                file = self._folder.joinpath(*path.parts[1:])
        return self._open_file(file, *arguments, **options)

    def _private_importlib(self) -> ModuleType:
        """Return a copy of importlib whose import_module also finds the function's own modules."""

        def import_module(name: str, package: str | None = None) -> ModuleType:
            if name.startswith(".") and package is not None:
                name = resolve_name(name, package)
            own = self._own(name)
            if own is not None:
                self._note_name(name.partition(".")[0])
            try:
                return importlib.import_module(own or name, package)
            except ModuleNotFoundError as error:
                self._rename(error)
                raise

        private = ModuleType("importlib", importlib.__doc__)
        private.__dict__["import_module"] = import_module
        private.__dict__["__path__"] = importlib.__path__
        private.__dict__["__getattr__"] = partial(getattr, importlib)
        return private


def _public(own: str, plain: Collection[str]) -> str:
    """Return the public name of the module `own`: a bare name if it is in `plain`."""
    package, _, name = own.partition(".")
    if f"{package}.{name.partition('.')[0]}" in plain:
        return name
    return f"{PACKAGE}.{name}" if name else PACKAGE


class _OfRuntime:
    """Loads the runtime's `chiron_io` for a function's own copy, which would emit nothing."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        self._module = importlib.import_module(_OURS)
        self._spec = self._module.__spec__
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Keep the module, and the name by which it is known."""
        module.__spec__ = self._spec


class _Loader(SourceFileLoader):
    """Loads a module that runs with the builtins of its function's namespace."""

    def __init__(
        self, fullname: str, path: str, *, own: dict[str, Any], plain: Collection[str]
    ) -> None:
        super().__init__(fullname, path)
        self._builtins, self._plain = own, plain

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the module's code; `fullname` may be the public name."""
        return super().get_code(self.name)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code under its public name."""
        module.__dict__["__builtins__"] = self._builtins
        name = _public(self.name, self._plain)
        module.__name__ = name
        module.__package__ = name if self.is_package(self.name) else name.rpartition(".")[0]
        if name.partition(".")[0] == PACKAGE:
            public.share(name)
        else:
            public.share_own(name)
        try:
            super().exec_module(module)
        finally:
            own_builtins.update(self._builtins)


class _Compiled(_Loader):
    """Loads a module of which only the compiled file is there."""

    def get_code(self, fullname: str) -> CodeType | None:
        return SourcelessFileLoader(self.name, self.path).get_code(self.name)

    def get_source(self, fullname: str) -> None:
        return None
