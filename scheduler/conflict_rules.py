"""The conflicts of functions by profiles, environments and constraints, each with its reason."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, combinations_with_replacement
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeAlias

from chiron.openfaas.handler_folder import parse_line
from chiron.scheduler.conflicts import Conflicts, Pair
from chiron.scheduler.folder_settings import Environments
from chiron.workflow.constraints import Constraints
from chiron.workflow.errors import ChironError
from chiron.workflow.profile import ANY_NAME, IN_CONTAINER, Profile
from chiron.wrap.functions.leftovers import THREADS_RUN_ON

if TYPE_CHECKING:
    from packaging.requirements import Requirement

#: A function, and one of its required packages.
Need: TypeAlias = "tuple[str, Requirement]"
#: Paths that are no files, and paths below them that are.
_OF_KERNEL, _SHARED_MEMORY = ("/dev/", "/proc/"), "/dev/shm/"  # noqa: S108
#: Packages by the names of their modules, if the names differ; several install some modules.
_PACKAGES = {
    "Crypto": "pycryptodome pycrypto",
    "MySQLdb": "mysqlclient",
    "PIL": "pillow pillow-simd",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python opencv-python-headless opencv-contrib-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "jwt": "pyjwt",
    "magic": "python-magic",
    "psycopg2": "psycopg2 psycopg2-binary",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
#: Appended to a version, the next version that any bound can distinguish from it.
_NEXT = ".0.0.0.1"
#: A version below every usual bound.
_FIRST = "0"


def find_conflicts(
    functions: Iterable[str], profile: Profile, constraints: Constraints, environments: Environments
) -> Conflicts:
    """Return the conflicts of `functions` by their profiles, environments and `constraints`.

    Modules of one name are no conflict, since the wrap runtime gives each function its own.

    Raises ``unknown-function`` if a constraint names none of `functions`; ``bad-requirement``.
    """
    names = tuple(sorted(functions))
    constraints.check_functions(names)
    wrap = {
        **_isolated(names, constraints, "wrap"),
        **_files(names, profile),
        **_ports(names, profile),
        **_patched_at_import(names, profile),
        **_in_container(names, profile),
        **variable_conflicts({name: environments[name] for name in names if name in environments}),
        **_requirements(names, profile),
        **_optional_imports(names, profile),
        **_runtimes(names, profile, alike=True),
    }
    process = {
        **_isolated(names, constraints, "process"),
        **_runtimes(names, profile, alike=False),
        **_set_at_import(names, profile),
        **unshareable_conflicts({name: _of_process(name, profile) for name in names}),
        **wrap,
    }
    return Conflicts(names, process, wrap, constraints.together)


def _isolated(names: Sequence[str], constraints: Constraints, level: str) -> dict[Pair, str]:
    return {
        _pair(name, other): f"constraints.json wants {name} in a {level} of its own"
        for name in sorted(constraints.isolate)
        if constraints.isolate[name] == level
        for other in names
        if other != name
    }


def _of_process(name: str, profile: Profile) -> tuple[str, ...]:
    """Return a function's changes to its process, without those of its container.

    A thread that it leaves running changes nothing for other functions.
    """
    return tuple(
        each
        for each in profile.functions[name].unshareable
        if each not in (IN_CONTAINER, THREADS_RUN_ON)
    )


def unshareable_conflicts(changes: Mapping[str, Sequence[str]]) -> dict[Pair, str]:
    """Return the conflicts by changes to a process, also with further tasks of the same function.

    `changes` has the changes of each function.
    """
    pairs = combinations_with_replacement(sorted(changes), 2)
    return _changing(pairs, changes, "{} changes what its whole process shares ({})")


def _set_at_import(names: Sequence[str], profile: Profile) -> dict[Pair, str]:
    """Return conflicts by imports that set something in every process that runs the function."""
    changes = {name: profile.functions[name].set_at_import for name in names}
    reason = "the import of {} sets what its whole process shares ({})"
    return _changing(combinations(names, 2), changes, reason)


def _patched_at_import(names: Sequence[str], profile: Profile) -> dict[Pair, str]:
    """Return conflicts by imports that patch a wrap, whose processes all import all functions."""
    changes = {name: profile.functions[name].patched_at_import for name in names}
    reason = "the import of {} changes what all processes of its wrap share ({})"
    return _changing(combinations(names, 2), changes, reason)


def _in_container(names: Sequence[str], profile: Profile) -> dict[Pair, str]:
    """Return conflicts by paths in a function's folder, which exists only in a wrap of its own."""
    changes = {name: profile.functions[name].unshareable for name in names}
    found = {name: {IN_CONTAINER}.intersection(its) for name, its in changes.items()}
    return _changing(combinations(names, 2), found, "{} names a file where it is alone ({})")


def _changing(
    pairs: Iterable[Pair], changes: Mapping[str, Collection[str]], reason: str
) -> dict[Pair, str]:
    """Return the `pairs` with a change; `reason` has places for the function and its changes."""
    return {
        (a, b): reason.format(one, ", ".join(changes[one]))
        for a, b in pairs
        for one in [a if changes[a] else b]
        if changes[one]
    }


def _requirements(names: Sequence[str], profile: Profile) -> dict[Pair, str]:
    """Return conflicts by packages, of which a wrap has one version each."""
    needs: list[Need] = []
    for name in names:
        needs += [(name, _parsed(text, name)) for text in profile.functions[name].requirements]
    return {(a, b): reason for (a, b), reason in excluding(needs) if a != b}


def _optional_imports(names: Sequence[str], profile: Profile) -> dict[Pair, str]:
    """Return conflicts by packages that one function can do without and another requires."""
    optional = {name: profile.functions[name].optional_imports for name in names}
    if not any(optional.values()):
        return {}
    from packaging.utils import canonicalize_name  # loaded only if there is something to compare

    required = {
        name: {
            canonicalize_name(_parsed(text, name).name)
            for text in profile.functions[name].requirements
        }
        for name in names
    }
    return {
        _pair(name, other): f"{name} uses {module} where it is installed, and {other} requires it"
        for name in names
        for module in optional[name]
        for package in map(canonicalize_name, _PACKAGES.get(module, module).split())
        for other in names
        if package in required[other] - required[name]
    }


def excluding(needs: Sequence[Need]) -> Iterator[tuple[Pair, str]]:
    """Yield the pairs of functions that need incompatible versions of a package, and why.

    They come in the order of `needs`; a function may be in a pair with itself.
    """
    if not needs:
        return
    from packaging.utils import canonicalize_name  # loaded only if there is something to compare

    by_package: dict[str, list[Need]] = {}
    for function, requirement in needs:
        if requirement.marker is None or requirement.marker.evaluate():
            package = canonicalize_name(requirement.name)
            by_package.setdefault(package, []).append((function, requirement))
    for asking in by_package.values():
        for (a, one), (b, other) in combinations(asking, 2):
            if not _satisfiable(one, other):
                yield (a, b), f"{a} needs {one} and {b} needs {other}"


def _satisfiable(one: Requirement, other: Requirement) -> bool:
    """Return whether some version satisfies both; the installer finds out whether it exists.

    Between two neighbouring bounds all versions are equivalent, so one of each suffices.
    """
    if one.url and other.url:
        return one.url == other.url
    if one.specifier == other.specifier:
        return True
    named = [s for r in (one, other) for s in r.specifier if s.operator != "==="]
    bounds = {s.version.removesuffix(".*") for s in named}
    candidates = {_FIRST, *bounds, *(bound + _NEXT for bound in bounds if bound[-1].isdigit())}
    return any(
        one.specifier.contains(version, prereleases=True)
        and other.specifier.contains(version, prereleases=True)
        for version in candidates
    )


def _parsed(text: str, function: str) -> Requirement:
    """Return one requirement of `function`; ``bad-requirement`` unless it is like ``name==1.0``."""
    try:
        return parse_line(text)
    except ValueError as error:
        raise ChironError(
            "bad-requirement",
            f"{text[:60]!a} of function {function} {error}",
            path=f"functions.{function}.requirements",
            functions=[function],
        ) from None


def _runtimes(names: Sequence[str], profile: Profile, *, alike: bool) -> dict[Pair, str]:
    """Return conflicts by runtimes: a wrap has one interpreter a language, a process one language.

    The runtimes of a pair differ only in version if `alike`, else in language. A profile without a
    runtime conflicts with none.
    """
    runtime = {name: profile.functions[name].runtime for name in names}
    known = [name for name in names if runtime[name]]
    return {
        (a, b): f"{a} needs {runtime[a]} and {b} {runtime[b]}"
        for a, b in combinations(known, 2)
        if runtime[a] != runtime[b] and (_language(runtime[a]) == _language(runtime[b])) == alike
    }


def _language(runtime: str) -> str:
    return re.split(r"\d", runtime)[0]


def _files(names: Sequence[str], profile: Profile) -> dict[Pair, str]:
    """Return conflicts by files: a wrap's processes share the file system that each had alone."""
    touching: dict[str, set[str]] = {}
    for name in names:
        function = profile.functions[name]
        for path in {*function.files_read, *function.files_written}:
            touching.setdefault(path, set()).add(name)
    return {
        _pair(name, other): f"{name} writes {path}, which {other} {how}"
        for name in names
        for path in profile.functions[name].files_written
        if path.startswith(_SHARED_MEMORY) or not path.startswith(_OF_KERNEL)
        for place, how in ((str(PurePosixPath(path).parent), "lists"), (path, "opens too"))
        if PurePosixPath(place).name != ANY_NAME
        for other in sorted(touching.get(place, ()))
        if other != name
    }


def _ports(names: Sequence[str], profile: Profile) -> dict[Pair, str]:
    """Return conflicts by ports: a wrap's processes share its addresses."""
    users: dict[int, list[str]] = {}
    for name in names:
        for port in profile.functions[name].ports:
            users.setdefault(port, []).append(name)
    return {
        (a, b): f"{a} and {b} both take port {port}"
        for port, taking in users.items()
        for a, b in combinations(taking, 2)
    }


def variable_conflicts(environments: Environments) -> dict[Pair, str]:
    """Return conflicts by variables: a wrap has one environment.

    A function accepts any value of a variable that it does not set. So it is with other fields of
    stack.yaml: see `chiron.openfaas.sharing.one_valued`. Values may be secrets, so reasons omit
    them.
    """
    return {
        (a, b): _different(variable, {a: environments[a][variable], b: environments[b][variable]})
        for a, b in combinations(sorted(environments), 2)
        for variable in sorted(environments[a].keys() & environments[b].keys())
        if environments[a][variable] != environments[b][variable]
    }


def _different(variable: str, values: Mapping[str, str]) -> str:
    """Say that two functions have different values; an empty one may be an unset one."""
    setting = " and ".join(name for name, value in values.items() if value)
    other = next((name for name, value in values.items() if not value), None)
    if other is None:
        return f"{setting} want different values of {variable}"
    return f"{setting} sets {variable}, and {other}, which does not, may depend on that"


def _pair(a: str, b: str) -> Pair:
    return (a, b) if a < b else (b, a)
