"""Which names functions, workflows and tasks may have."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from workflow.errors import ChironError

NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)

#: Longest name of a state in Amazon States Language.
TASK_NAME_LIMIT = 80
_FORBIDDEN_IN_TASKS = frozenset('<>{}[]?*"#%\\^|~`$&,;:/')


def check_name(name: object, what: str, path: str) -> str:
    """`name` if it can name a function or a workflow in OpenFaaS, else ``bad-name``."""
    if isinstance(name, str) and NAME.fullmatch(name):
        return name
    raise ChironError(
        "bad-name",
        f"{what} name {shown(name)} has to match ^[a-z]([-a-z0-9]{{0,61}}[a-z0-9])?$: "
        "lower-case letters, digits and hyphens, at most 63",
        path=path,
    )


def workflow_name(name: str, path: str) -> str:
    """The name of a workflow that calls itself `name`: lower case, hyphens between the words."""
    return check_name(re.sub(r"[\s_]+", "-", name.strip().lower()), "workflow", path)


def check_task_name(name: str, path: str) -> str:
    """`name` if States Language allows it as a state's name, else ``bad-name``."""
    wrong = next((c for c in name if c in _FORBIDDEN_IN_TASKS or not c.isprintable()), None)
    if wrong is not None:
        raise ChironError(
            "bad-name", f"task name {shown(name)} must not contain {wrong!a}", path=path
        )
    if not name.strip() or len(name) > TASK_NAME_LIMIT:
        raise ChironError(
            "bad-name",
            f"task name {shown(name)} has to have 1 to {TASK_NAME_LIMIT} characters",
            path=path,
        )
    return name


def check_distinct(names: Iterable[str], path: str) -> None:
    """Refuse two task names that a reader cannot tell apart.

    Names are compared after NFKC, case folding and with runs of spaces, hyphens and underscores
    taken as one, so that ``Last Px`` and ``last_px`` are alike and ``a-11`` and ``a-1-1`` are not.
    """
    seen: dict[str, str] = {}
    for name in names:
        key = re.sub(r"[\s_-]+", "-", unicodedata.normalize("NFKC", name).casefold())
        if key in seen:
            raise ChironError(
                "alike-names",
                f"tasks {shown(seen[key])} and {shown(name)} normalise to the same name: "
                "rename one",
                path=path,
                functions=(seen[key], name),
            )
        seen[key] = name


def shown(value: object) -> str:
    """`value` quoted for a message, on one line and never longer than a line."""
    text = ascii(value) if isinstance(value, str) else f"of type {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."
