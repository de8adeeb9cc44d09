"""Find the environment variables that a function's code reads, as far as its text shows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path

_CODE = frozenset({".java", ".js", ".py", ".sh"})
_READS = re.compile(r"environ|getenv|process\.env")
_NAMED = re.compile(r"""["'](\w+)["']|process\.env\.(\w+)|\$\{?(\w+)""")
#: Code that reads only the variables that it names.
_BY_NAME = re.compile(
    r"""^\s*from\s+os\s+import\b.*$|["']\w+["']\s+(?:not\s+)?in\s+(?:os\.)?environ\b""",
    re.MULTILINE,
)
#: Code that reads all variables, or computed names; and packages that do.
_ALL = re.compile(
    r"\benvironb?(?:\.(?:items|keys|values|copy)\b|\s*(?:$|[^\w\s.\[]|(?:if|for|or|and)\b))"
    r"""|(?:environb?(?:\.get)?|getenv)\s*[(\[]\s*(?:\)|f["']|["'][^"'\n]*["']\s*[+%.])"""
    r"|process\.env\s*(?:$|[^\w\s.\[]|\[\s*[^\"'\s])"
    r"|\b(?:BaseSettings|decouple|dynaconf|environs)\b",
    re.MULTILINE,
)
#: Variables that affect the C library, the interpreter or any HTTP client.
_OF_ANY = re.compile(
    r"TZ|LANG|LANGUAGE|LC_\w+|HOME|PATH|TMPDIR|TEMP|TMP|(ALL|FTP|HTTPS?|NO)_PROXY"
    r"|SSL_CERT_(FILE|DIR)|(CURL|REQUESTS)_CA_BUNDLE|OPENSSL_CONF|LD_(LIBRARY_PATH|PRELOAD)"
    r"|PYTHON(DEVMODE|HASHSEED|INTMAXSTRDIGITS|IOENCODING|OPTIMIZE|PATH|UTF8|WARNINGS)",
    re.IGNORECASE,
)
_IMPORTED = re.compile(r"""^\s*(?:import|from)\s+(\w+)|\brequire\(\s*["'](\w+)""", re.MULTILINE)
#: Prefixes of variables that differ from the package's name, and the package.
_PACKAGES = {"aws": "boto"}
#: Suffix of code -> the prefix of variables that its runtime, or any package, reads: ``NODE_ENV``.
_RUNTIMES = {".java": "java", ".js": "node"}


def read_of(variables: Collection[str], places: Iterable[Path]) -> set[str]:
    """Return those of `variables` that the code in `places`, or its imports, may read."""
    texts = dict(_texts(places))
    text = "\n".join(texts.values())
    if _ALL.search(_BY_NAME.sub("", text)):
        return set(variables)
    names = set[str]()
    if _READS.search(text) or any(file.suffix == ".sh" for file in texts):
        names.update(chain.from_iterable(_NAMED.findall(text)))
    imported = chain.from_iterable(_IMPORTED.findall(text))
    packages = set(chain.from_iterable(map(_words, imported)))
    packages |= {_RUNTIMES[file.suffix] for file in texts if file.suffix in _RUNTIMES}
    return {
        each
        for each in variables
        if each in names or _OF_ANY.fullmatch(each) or _package(each) in packages
    }


def _texts(places: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    for place in places:
        for file in [place] if place.is_file() else place.rglob("*"):
            if file.suffix in _CODE and file.is_file():
                yield file, file.read_text("utf-8", "replace")


def _words(package: str) -> list[str]:
    return [each.rstrip("0123456789") for each in package.lower().split("_")]


def _package(variable: str) -> str:
    first = variable.partition("_")[0].lower()
    return _PACKAGES.get(first, first)
