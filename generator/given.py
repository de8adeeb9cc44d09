"""What the stack.yaml gave a deployed wrap: what differs there by now was set by somebody else."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from chiron.openfaas.stack import StackFunction, StackResources
from chiron.workflow.documents import Document, parse_json, validate
from chiron.workflow.errors import ChironError

#: Annotations that begin so are set by nobody but this program.
PREFIX = "chiron."
#: The annotation that tells it.
GIVEN = f"{PREFIX}given"
#: Most characters: faasd makes a label of containerd's of each annotation, which has 4096 bytes.
_MOST = 3900
#: A variable may be a credential: of its value stays as much as tells whether it has changed.
_DIGITS = 6
#: A variable that the image of each wrap has, and no stack.yaml.
_OF_IMAGE = "upstream_url"


class Given(Document):
    """The fields of a wrap that somebody may set by hand; its annotations without `is_ours`.

    ``environment`` has a digest of each value; it is None if there was no room for all.
    """

    labels: dict[str, str]
    annotations: dict[str, str]
    constraints: tuple[str, ...]
    secrets: tuple[str, ...]
    limits: StackResources | None
    requests: StackResources | None
    readonly_root_filesystem: bool
    environment: dict[str, str] | None


def is_ours(annotation: str) -> bool:
    """Whether nobody but this program sets an annotation."""
    return annotation.startswith(PREFIX)


def given(function: StackFunction) -> str:
    """The annotation by which `given_of` knows what `function` was given."""
    found = Given(
        labels=dict(function.labels),
        annotations={k: v for k, v in function.annotations.items() if not is_ours(k)},
        constraints=function.constraints,
        secrets=function.secrets,
        limits=function.limits,
        requests=function.requests,
        readonly_root_filesystem=function.readonly_root_filesystem,
        environment={k: digested(v) for k, v in sorted(function.environment.items())},
    )
    told = found.model_dump_json()
    if len(told) <= _MOST:
        return told
    return found.model_copy(update={"environment": None}).model_dump_json()


def is_told(environment: Mapping[str, str]) -> bool:
    """Whether a provider tells the variables that a wrap was given, and not those of its image."""
    return _OF_IMAGE not in environment


def given_of(annotations: Mapping[str, str]) -> Given | None:
    """What a wrap with these annotations was given; None where it does not say."""
    try:
        return validate(Given, parse_json(annotations[GIVEN], GIVEN), GIVEN)
    except (KeyError, ChironError):
        return None


def cut_variables(environment: Mapping[str, str], known: Mapping[str, str]) -> list[str]:
    """The variables of a wrap of which a provider tells only the beginning.

    faasd tells the variables of the process, those of the image among them, and of each value what
    is before an equals sign.

    Args:
        environment: as the provider tells it.
        known: the digests of what the wrap was given.
    """
    if is_told(environment):
        return []
    return [name for name, digest in known.items() if digest.endswith("=")]


def digested(value: str) -> str:
    """What is kept of the value of a variable: whether it has an equals sign, too."""
    return sha256(value.encode()).hexdigest()[:_DIGITS] + "=" * ("=" in value)
