"""Random forest regression (RFR) on a plan's vector, with scikit-learn (Chiron §6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sklearn.ensemble import RandomForestRegressor

from evaluation.prediction.baselines.learning import Baseline, Candidate, Model
from evaluation.prediction.baselines.plan_features import plan_features
from evaluation.prediction.baselines.samples import Sample
from evaluation.prediction.baselines.targets import delay_ms, latency_ms

_TREES = 300
_SEED = 1


def random_forest() -> Baseline:
    """The paper's default parameters first, then shallower and more diverse trees."""
    return Baseline(
        "RFR",
        tuple(
            Candidate(
                f"{leaf} samples a leaf, {share:.0%} of the features a split",
                partial(fit, leaf=leaf, share=share),
            )
            for leaf, share in ((1, 1.0), (3, 1.0), (1, 0.4))
        ),
    )


def fit(samples: Sequence[Sample], *, leaf: int, share: float) -> Model:
    """A forest whose trees split on `share` of the features down to `leaf` samples.

    Features are not scaled: to a tree only their order matters.
    """
    forest = RandomForestRegressor(
        n_estimators=_TREES, min_samples_leaf=leaf, max_features=share, random_state=_SEED
    )
    forest.fit(list(map(plan_features, samples)), list(map(delay_ms, samples)))

    def predict(asked: Sequence[Sample]) -> list[float]:
        delays = forest.predict(list(map(plan_features, asked))).tolist()
        return list(map(latency_ms, delays, asked))

    return predict
