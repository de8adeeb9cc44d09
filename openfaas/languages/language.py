"""What a language says of itself: the seam between stack.yaml and what wraps can run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from chiron.openfaas.handlers import Extra, Handler
from chiron.openfaas.stack import StackFunction
from chiron.workflow.reference import HandlerStyle


class Language(Protocol):
    """The functions of one language, which run inside wraps.

    Attributes
    ----------
    styles
        What `lang` in stack.yaml says -> how a wrap calls the handler.
    start
        What starts such a function where it is deployed by itself; empty if it cannot be.
    only_answers
        Whether such functions neither emit outputs nor read streams.
    build_args
        Arguments of the Dockerfile of a wrap that runs such functions.
    """

    @property
    def styles(self) -> Mapping[str, HandlerStyle]: ...
    @property
    def start(self) -> str: ...
    @property
    def only_answers(self) -> bool: ...
    @property
    def build_args(self) -> Mapping[str, str]: ...

    def handler(self, name: str, function: StackFunction, folder: Path, extra: Extra) -> Handler:
        """The handler of `function`, called `name`, in the workflow's `folder`, not run.

        Raises ``no-handler``, ``bad-link``, or what the language refuses, with the function's name.
        """

    def uses_fprocess(self, function: StackFunction) -> bool:
        """Whether a wrap does what the fprocess of `function` says; if not, a warning tells it."""
