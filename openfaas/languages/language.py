"""The interface of a language: between stack.yaml and the functions that wraps can run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from chiron.openfaas.handlers import Extra, Handler
from chiron.openfaas.stack import StackFunction


class Language(ABC):
    """The functions of one language that run inside wraps."""

    #: The wrap's calling convention of a handler, by `lang` in stack.yaml.
    styles: ClassVar[Mapping[str, str]]
    #: The start command of a separately deployed function; empty if it cannot be deployed so.
    start: ClassVar[str] = ""
    #: Other values of fprocess that are equivalent to `start`.
    usual: ClassVar[tuple[str, ...]] = ()
    #: Whether such functions can neither emit outputs nor read streams.
    only_answers: ClassVar[bool] = False
    #: Build arguments of a wrap that runs such functions.
    build_args: ClassVar[Mapping[str, str]] = {}
    #: Debian packages that such a wrap needs.
    packages: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def handler(self, name: str, function: StackFunction, folder: Path, extra: Extra) -> Handler:
        """Return the handler of `function`, called `name`, in the workflow's `folder`, not run.

        Raises ``no-handler``, ``bad-link``, or the language's own errors, with the function's name.
        """

    def outside(self, function: StackFunction, folder: Path) -> str:
        """Return why no wrap can run `function` of the workflow's `folder`; empty if unknown."""
        return ""

    def remark(self, function: StackFunction) -> str:
        """Return how a wrap runs `function` differently from its template; empty if it does not."""
        return ""

    def uses_fprocess(self, function: StackFunction) -> bool:
        """Return whether a wrap honours the fprocess of `function`; if not, a warning is shown."""
        return function.fprocess.strip() in ("", self.start, *self.usual)
