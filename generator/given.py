"""The fields that stack.yaml gave a deployed wrap: later differences were made by somebody else."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from chiron.openfaas.objects import PRO_LABELS
from chiron.openfaas.stack import StackFunction, StackResources
from chiron.workflow.documents import Document, parse_json, validate
from chiron.workflow.errors import ChironError

#: The prefix of annotations that only this program sets.
PREFIX = "chiron."
#: The annotation with the fields given to a wrap.
GIVEN = f"{PREFIX}given"
#: The maximum length: faasd stores annotations as labels of containerd, limited to 4096 bytes.
_MOST = 3900
#: Digits stored of a variable's digest: enough to detect a change, as it may be a credential.
_DIGITS = 6
#: A variable in the image of each wrap, and in no stack.yaml.
_OF_IMAGE = "upstream_url"


class Given(Document):
    """The fields of a wrap that users may set by hand; its annotations without `is_ours`.

    ``environment`` has a digest of each value; it is None if all together are too long.
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
    """Return whether only this program sets an annotation."""
    return annotation.startswith(PREFIX)


def given(function: StackFunction) -> str:
    """Return the annotation from which `given_of` reads the fields given to `function`."""
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
    """Return whether a provider reports a wrap's own variables, without those of its image."""
    return _OF_IMAGE not in environment


def given_of(annotations: Mapping[str, str]) -> Given | None:
    """Return the fields given to a wrap with these annotations; None if unknown."""
    try:
        return validate(Given, parse_json(annotations[GIVEN], GIVEN), GIVEN)
    except (KeyError, ChironError):
        return None


def labels_of(labels: Mapping[str, str], given: Given) -> dict[str, str]:
    """Return the `labels` of a deployed wrap, with given labels that its gateway refuses."""
    refused = given.labels if PRO_LABELS.isdisjoint(labels) else {}
    return {**{k: v for k, v in refused.items() if k in PRO_LABELS}, **labels}


def cut_variables(environment: Mapping[str, str], known: Mapping[str, str]) -> list[str]:
    """Return the variables of a wrap whose values a provider truncates.

    faasd reports the variables of the process, including those of the image, and cuts each value at
    an equals sign.

    Args:
        environment: as the provider reports it.
        known: the digests of the given variables.
    """
    if is_told(environment):
        return []
    return [name for name, digest in known.items() if digest.endswith("=")]


def digested(value: str) -> str:
    """Return the short digest of a variable's value, which marks values with an equals sign."""
    return sha256(value.encode()).hexdigest()[:_DIGITS] + "=" * ("=" in value)
