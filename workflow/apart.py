"""Rules that keep functions apart in a plan, and the places where a plan breaks them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from chiron.workflow.documents import Document

if TYPE_CHECKING:
    from chiron.workflow.model import Workflow
    from chiron.workflow.plan import Plan


class Apart(Document):
    """A rule: `function` shares no process or wrap with `others`, which may include itself."""

    level: Literal["process", "wrap"]
    function: str
    others: tuple[str, ...]
    reason: str


class Broken(NamedTuple):
    """A wrap of a plan in which two functions share a process or wrap against a rule."""

    wrap: str
    level: str
    function: str
    other: str
    reason: str

    @property
    def line(self) -> str:
        """The warning for users."""
        with_whom = "another task of its own" if self.other == self.function else self.other
        return (
            f"wrap {self.wrap}: {self.function} shares a {self.level} with {with_whom}, although "
            f"{self.reason}: their answers may differ from those of the functions alone"
        )


def broken(plan: Plan, workflow: Workflow, rules: Iterable[Apart]) -> Iterator[Broken]:
    """Yield the places where `plan` breaks `rules`, each pair of functions once per wrap."""
    for rule in rules:
        for wrap in plan.wraps:
            shared = [wrap.tasks] if rule.level == "wrap" else wrap.processes
            for other in _beside(rule, shared, workflow):
                yield Broken(wrap.name, rule.level, rule.function, other, rule.reason)


def _beside(rule: Apart, shared: Sequence[Sequence[str]], workflow: Workflow) -> list[str]:
    """Return the rule's other functions that share a place with its function."""
    found = []
    for tasks in shared:
        uses = Counter(map(workflow.function_of, tasks))
        if rule.function in uses:
            found += [n for n in rule.others if uses[n] > (1 if n == rule.function else 0)]
    return list(dict.fromkeys(found))
