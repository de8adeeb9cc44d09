"""Find the environment variables that a function's code reads, as far as its text shows."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from types import MappingProxyType

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
    r"|(?:environb?(?:\.get)?|getenv)\s*[(\[]\s*[A-Za-z_][\w.]*\s*[(+%]"
    r"|process\.env\s*(?:$|[^\w\s.\[]|\[\s*[^\"'\s])"
    r"|\b(?:BaseSettings|decouple|dynaconf|environs)\b",
    re.MULTILINE,
)
#: Code that reads a variable whose name it holds, maybe as a word of a longer text.
_HELD = re.compile(r"(?:environb?(?:\.\w+)?|getenv)\s*[(\[]\s*[A-Za-z_]")
#: Variables that affect the C library, the interpreter or any HTTP client.
_OF_ANY = re.compile(
    r"TZ|LANG|LANGUAGE|LC_\w+|HOME|PATH|TMPDIR|TEMP|TMP|HOSTNAME|(ALL|FTP|HTTPS?|NO)_PROXY"
    r"|SSL_CERT_(FILE|DIR)|(CURL|REQUESTS)_CA_BUNDLE|OPENSSL_CONF|LD_(LIBRARY_PATH|PRELOAD)"
    r"|PYTHON(DEVMODE|HASHSEED|INTMAXSTRDIGITS|IOENCODING|OPTIMIZE|PATH|UTF8|WARNINGS)",
    re.IGNORECASE,
)
_IMPORTED = re.compile(
    r"""^\s*from\s+(\w+)|^\s*import\s+([^#;\n]+)|\brequire\(\s*["'](\w+)""", re.MULTILINE
)
#: Variables without the name of a package, and the packages that read them.
_PACKAGES = {
    r"AWS_\w+|BOTO_\w+": r"\w*boto\w*|aws\w+|s3\w+|sagemaker|smart_open|pyarrow|polars|deltalake",
    r"AZURE_\w+": r"adlfs|msal",
    r"DD_\w+": r"ddtrace|datadog",
    r"(GCE|GCLOUD|GOOGLE)_\w+": r"google|gcsfs|firebase_admin|vertexai",
    r"GDAL_\w+|PROJ_\w+": r"fiona|geopandas|osgeo|pyproj|rasterio|shapely",
    r"(HF|HUGGINGFACE)_\w+": r"datasets|diffusers|huggingface_hub|\w*transformers",
    r"KUBECONFIG": r"kubernetes|kubernetes_asyncio",
    r"MYSQL_\w+": r"MySQLdb|pymysql|sqlalchemy",
    r"OTEL_\w+": r"opentelemetry",
    r"PG[A-Z]+": r"asyncpg|django|peewee|psycopg\w*|sqlalchemy",
    r"(CUDA|PYTORCH)_\w+": r"cupy|jax|keras|numba|tensorflow|torch\w*",
    r"TESSDATA_PREFIX": r"pytesseract|tesserocr",
}
#: Suffix of code -> the prefix of variables that its runtime, or any package, reads: ``NODE_ENV``.
_RUNTIMES = {".java": "java", ".js": "node"}


def read_of(
    variables: Collection[str],
    places: Iterable[Path],
    packages: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> set[str]:
    """Return those of `variables` that the code in `places`, or its imports, may read.

    Args:
        packages: variable -> the packages that may read it, from `packages_of`.
    """
    files = dict(texts(places))
    text = "\n".join(files.values())
    if _ALL.search(_BY_NAME.sub("", text)):
        return set(variables)
    names = set[str]()
    if _READS.search(text) or any(file.suffix == ".sh" for file in files):
        names.update(chain.from_iterable(_NAMED.findall(text)))
    if _HELD.search(text):
        names.update(re.findall(r"\w+", text))
    imported = _imported(text)
    words = set(chain.from_iterable(map(_words, imported)))
    words |= {_RUNTIMES[file.suffix] for file in files if file.suffix in _RUNTIMES}
    return {
        each
        for each in variables
        if each in names
        or _OF_ANY.fullmatch(each)
        or each.partition("_")[0].lower() in words
        or not imported.isdisjoint(packages.get(each, ()))
        or any(
            re.fullmatch(readers, package)
            for kind, readers in _PACKAGES.items()
            if re.fullmatch(kind, each)
            for package in imported
        )
    }


def packages_of(variables: Iterable[str], places: Iterable[Path]) -> dict[str, set[str]]:
    """Return those of `variables` that the Python code in `places` does not name.

    Each has the packages that the code imports, which may read it.
    """
    files = {file: text for file, text in texts(places) if file.suffix == ".py"}
    text = "\n".join(files.values())
    own = {part.removesuffix(".py") for file in files for part in file.parts}
    imported = _imported(text) - own - sys.stdlib_module_names
    return {each: imported for each in variables if each.isupper() and each not in text.upper()}


def texts(places: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Yield the files with code in `places`, each with its text."""
    for place in places:
        for file in [place] if place.is_file() else place.rglob("*"):
            if file.suffix in _CODE and file.is_file():
                yield file, file.read_text("utf-8", "replace")


def _imported(text: str) -> set[str]:
    """Return the names of the packages that code imports."""
    found = ",".join(chain.from_iterable(_IMPORTED.findall(text))).split(",")
    return {name[1] for each in found if (name := re.match(r"\s*(\w+)", each))}


def _words(package: str) -> list[str]:
    return [each.rstrip("0123456789") for each in package.lower().split("_")]
