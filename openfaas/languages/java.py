"""Java handlers, as OpenFaaS's templates java8, java11 and java17 call them."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import ClassVar

from chiron.openfaas.handlers import Extra, Handler, handler_folder, there
from chiron.openfaas.languages.language import Language
from chiron.openfaas.stack import StackFunction

_SOURCES = "src/main/java"
_HANDLER = f"{_SOURCES}/com/openfaas/function/Handler.java"
_JARS = "lib*/*.jar"
_PACKAGE = re.compile(r"^\s*package\s+([\w.]+)\s*;", re.MULTILINE)
_IMPORT = re.compile(r"^\s*import\s+(?:static\s+)?([\w.]+\*?)", re.MULTILINE)
#: A line of build.gradle that adds to the run time's class path; its modules: group and name.
_NEEDS = re.compile(r"\s*(?:api|compile|implementation|runtime|runtimeOnly)\b(?!.*\bplatform\b)")
_MODULE = re.compile(
    r"""["']([\w.-]+):([\w.-]+)[:"'@]|"""
    r"""group\s*[:=]\s*["']([\w.-]+)["']\s*,\s*name\s*[:=]\s*["']([\w.-]+)["']"""
)
#: Modules in the templates' own build.gradle, which its code uses if it imports them.
_OF_TEMPLATES = re.compile(
    r"com\.openfaas:.*|org\.apache\.commons:commons-math3|com\.google\.guava:guava"
)
#: The packages of a JDK and of the templates.
_JAVAX = (
    "accessibility annotation.processing crypto imageio lang.model management naming net print rmi "
    "script security sound sql swing tools transaction.xa xml"
)
_OTHERS = "com.openfaas.model com.sun java jdk org.ietf.jgss org.w3c.dom org.xml.sax"
_KNOWN = (*_OTHERS.split(), *(f"javax.{each}" for each in _JAVAX.split()))
#: The time of a JVM to compile the code that a handler runs, in seconds.
_WARM_UP_S = 3.0


class Java(Language):
    """A class com.openfaas.function.Handler that extends AbstractHandler or implements IHandler."""

    styles: ClassVar = {"java8": "java", "java11": "java", "java17": "java"}
    start = "java -XX:+UseContainerSupport com.openfaas.entrypoint.App"
    only_answers = True
    packages = ("default-jdk-headless",)

    def handler(self, name: str, function: StackFunction, folder: Path, extra: Extra) -> Handler:
        return Handler(
            name,
            handler_folder(name, function, folder, f"with its {_HANDLER}"),
            self.styles[function.lang],
            extra=extra,
            runtime="java",
            parallel=True,
            warm_up_s=_WARM_UP_S,
        )

    def outside(self, function: StackFunction, folder: Path) -> str:
        place = folder / function.handler
        if not function.handler or not there(place.is_dir):
            return ""  # which is an error in wraps and outside
        if not there((place / _HANDLER).is_file):
            return f"it has no {_HANDLER}"
        try:
            sources = sorted((place / _SOURCES).rglob("*.java"))
            texts = [each.read_text("utf-8") for each in sources]
            jars = sorted(place.glob(_JARS))
            known = {*_KNOWN, *chain(*map(_in_jar, jars))}
            modules = list(_modules(place))
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            return f"its code cannot be read ({error})"
        for source, text in zip(sources, texts, strict=True):
            for package in _PACKAGE.findall(text):
                known.update(_named(f"{package}.{source.stem}"))
        for name in chain(*map(_IMPORT.findall, texts)):
            if not any(part in known for part in _parts(name)):
                return f"it imports {name}, which no jar in its folder lib has: copy it there"
        for file, group, name in modules:
            if not any(_is_of(jar, group, name) for jar in jars):
                needs = f"its {file} names {group}:{name}"
                return f"{needs}, which no jar in its folder lib is: copy it there"
        return ""


JAVA = Java()


def _modules(place: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the file, group and name of each module that its Gradle build adds at run time."""
    for file in sorted(place.glob("build.gradle*")):
        for line in filter(_NEEDS.match, file.read_text("utf-8").splitlines()):
            for found in _MODULE.finditer(line):
                group, name = filter(None, found.groups())
                if not _OF_TEMPLATES.fullmatch(f"{group}:{name}"):
                    yield file.name, group, name


def _is_of(jar: Path, group: str, name: str) -> bool:
    """Return whether `jar` is named as the module, or says that it has it."""
    if jar.stem == name or jar.stem.startswith(f"{name}-"):
        return True
    with zipfile.ZipFile(jar) as file:
        return any(each.startswith(f"META-INF/maven/{group}/{name}/") for each in file.namelist())


def _in_jar(jar: Path) -> Iterator[str]:
    """Yield the classes in a jar, and an asterisk for their packages."""
    with zipfile.ZipFile(jar) as file:
        for name in file.namelist():
            if name.endswith(".class"):
                yield from _named(name.removesuffix(".class").replace("/", "."))


def _named(name: str) -> Iterator[str]:
    """Yield a class, and the wildcard of its package."""
    yield from (name, f"{name.rpartition('.')[0]}.*")


def _parts(name: str) -> Iterator[str]:
    """Yield an imported name, and its prefixes up to a dot."""
    while name:
        yield name
        name = name.rpartition(".")[0]
