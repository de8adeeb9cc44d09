"""Which engine a search simulates with: the compiled kernel at once where that is sure to pay."""

from __future__ import annotations

import sys
from contextlib import suppress

from predictor.predict import Predictor
from workflow.model import Workflow
from workflow.platform import Platform
from workflow.profile import Profile

#: Periods of a stage's distinct functions from which a search asks for so much that Python would
#: only be a detour: the kernel is loaded in 0.6 s, and a stage of 700 such periods takes 4 s of
#: Python before that. Tasks of one function add little: what is simulated is remembered.
LARGE_STAGE = 500
_KERNEL = "predictor.compiled"


def predictor_for(workflow: Workflow, profile: Profile, platform: Platform) -> Predictor:
    """A predictor that begins with the kernel where that is loaded already or a stage is large."""
    if _KERNEL in sys.modules or _largest_stage(workflow, profile) >= LARGE_STAGE:
        with suppress(ImportError):  # without numba all stays in Python
            return Predictor(profile, platform, engine_name="compiled")
    return Predictor(profile, platform)


def _largest_stage(workflow: Workflow, profile: Profile) -> int:
    """The most periods that the functions of a stage have together."""
    return max(
        sum(len(profile.functions[name].periods) for name in {*map(workflow.function_of, stage)})
        for stage in workflow.stages
    )
