"""Which engine a search simulates with: the compiled kernel at once where that is sure to pay."""

from __future__ import annotations

import sys

from predictor.predict import Predictor
from workflow.model import Workflow
from workflow.platform import Platform
from workflow.profile import Profile

#: Periods times functions, summed over the stages, from which a search asks for so much that Python
#: would only be a detour: the kernel is loaded in 0.6 s, and a stage of 140 functions with five
#: periods each takes 4 s of Python before that. Tasks of one function add little: what is simulated
#: is remembered.
LARGE = 25_000
_KERNEL = "predictor.compiled"


def predictor_for(workflow: Workflow, profile: Profile, platform: Platform) -> Predictor:
    """A predictor that begins with the kernel where that is loaded, or much is to be asked."""
    if _KERNEL in sys.modules or _size(workflow, profile) >= LARGE:
        return Predictor(profile, platform, engine_name="compiled")
    return Predictor(profile, platform)


def _size(workflow: Workflow, profile: Profile) -> int:
    """The periods of every stage's functions times the number of those functions, summed."""
    stages = ({*map(workflow.function_of, stage)} for stage in workflow.stages)
    return sum(
        len(names) * sum(len(profile.functions[name].periods) for name in names) for names in stages
    )
