"""Placeholder: `chiron generate` writes the declaration of a wrap here."""

from wrap.core.wrap_spec import Wrap

WRAP = Wrap(
    workflow="empty",
    name="empty",
    mechanism="fork",
    functions={},
    tasks={},
    stages={},
    timeout_s=60.0,
)
