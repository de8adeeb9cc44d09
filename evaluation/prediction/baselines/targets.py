"""What baselines learn of a plan: its delay, so that long and short workflows are alike."""

from __future__ import annotations

from evaluation.prediction.baselines.samples import Sample


def delay_ms(sample: Sample) -> float:
    """By how much the plan took longer than the longest functions of its stages take alone.

    On the published testbed this generalises best from one workflow to another: without their own
    workflow, baselines that learn the latency or its ratio to the solo latencies instead are wrong
    by 47 to 115 %, those that learn the delay by 15 to 33 %.
    """
    return sample.measured_ms - sample.solo_ms


def latency_ms(delay: float, sample: Sample) -> float:
    """The latency of `sample` with this delay; never negative, whatever a model extrapolates."""
    return max(sample.solo_ms + delay, sample.solo_ms / 2)
