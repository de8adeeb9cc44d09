"""What a language says of itself: the seam between stack.yaml and what wraps can run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from chiron.openfaas.handlers import Extra, Handler
from chiron.openfaas.stack import StackFunction


class Language(ABC):
    """The functions of one language, which run inside wraps."""

    #: What `lang` in stack.yaml says -> how a wrap calls the handler.
    styles: ClassVar[Mapping[str, str]]
    #: What starts such a function where it is deployed by itself; empty if it cannot be.
    start: ClassVar[str] = ""
    #: What else may stand as fprocess of a handler that a wrap calls.
    usual: ClassVar[tuple[str, ...]] = ()
    #: Whether such functions neither emit outputs nor read streams.
    only_answers: ClassVar[bool] = False
    #: Arguments of the Dockerfile of a wrap that runs such functions.
    build_args: ClassVar[Mapping[str, str]] = {}
    #: Debian packages that such a wrap needs.
    packages: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def handler(self, name: str, function: StackFunction, folder: Path, extra: Extra) -> Handler:
        """The handler of `function`, called `name`, in the workflow's `folder`, not run.

        Raises ``no-handler``, ``bad-link``, or what the language refuses, with the function's name.
        """

    def outside(self, function: StackFunction, folder: Path) -> str:
        """Why no wrap can run `function` of the workflow's `folder`; empty if nothing is known."""
        return ""

    def uses_fprocess(self, function: StackFunction) -> bool:
        """Whether a wrap does what the fprocess of `function` says; if not, a warning tells it."""
        return function.fprocess.strip() in ("", self.start, *self.usual)
