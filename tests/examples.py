"""How many examples a property test has whose examples take long."""

from __future__ import annotations

from hypothesis import settings

#: 10 in `make test`, 32 with --hypothesis-profile=new.
FEWER = settings(max_examples=settings.default.max_examples * 2 // 5)
