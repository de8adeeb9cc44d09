"""Long short-term memory (LSTM) over the sequence of a plan's tasks (Chiron §6.1)."""

from __future__ import annotations

from functools import partial

import torch  # type: ignore[import-not-found,unused-ignore]
from torch import Tensor

from evaluation.prediction.baselines.graph import plan_sequence
from evaluation.prediction.baselines.learning import Baseline, Candidate
from evaluation.prediction.baselines.network import Architecture, Batch, fit


def lstm() -> Baseline:
    """The paper's learning rate of 0.01 and a tenth of it, with two widths."""
    return Baseline(
        "LSTM",
        tuple(
            Candidate(
                f"learning rate {rate}, {width} hidden units",
                partial(fit, architecture=ARCHITECTURE, width=width, rate=rate),
            )
            for rate, width in ((0.01, 32), (0.001, 64))
        ),
    )


def _build(features: int, width: int) -> torch.nn.Module:
    return torch.nn.ModuleDict(
        {
            "lstm": torch.nn.LSTM(features, width, batch_first=True),
            "answer": torch.nn.Linear(width, 1),
        }
    )


def _forward(network: torch.nn.Module, batch: Batch) -> Tensor:
    """The answer to the state after each sample's last task."""
    features, mask, _ = batch
    layers = dict(network.named_children())
    lengths = mask.sum(dim=1).to(torch.int64)
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        features, lengths, batch_first=True, enforce_sorted=False
    )
    _, (state, _) = layers["lstm"](packed)
    answer: Tensor = layers["answer"](state[-1]).squeeze(1)
    return answer


ARCHITECTURE = Architecture(plan_sequence, _build, _forward)
