"""Graph neural network (GNN) over tasks, processes, wraps, stages and the workflow (Chiron §6.1).

Every round, a node takes in the mean state of what belongs to it and the state of what it belongs
to; after four rounds, as many as there are levels from a task up to the workflow, that one answers.
"""

from __future__ import annotations

from functools import partial

import torch  # type: ignore[import-not-found,unused-ignore]
from torch import Tensor

from evaluation.prediction.baselines.graph import plan_graph
from evaluation.prediction.baselines.learning import Baseline, Candidate
from evaluation.prediction.baselines.network import Architecture, Batch, fit

_ROUNDS = 4


def gnn() -> Baseline:
    """Two learning rates."""
    return Baseline(
        "GNN",
        tuple(
            Candidate(
                f"learning rate {rate}, {width} hidden units",
                partial(fit, architecture=ARCHITECTURE, width=width, rate=rate),
            )
            for rate, width in ((0.01, 32), (0.003, 32))
        ),
    )


def _build(features: int, width: int) -> torch.nn.Module:
    rounds = [
        torch.nn.ModuleDict(
            {
                "own": torch.nn.Linear(width, width),
                "below": torch.nn.Linear(width, width, bias=False),
                "above": torch.nn.Linear(width, width, bias=False),
            }
        )
        for _ in range(_ROUNDS)
    ]
    return torch.nn.ModuleDict(
        {
            "read": torch.nn.Linear(features, width),
            "rounds": torch.nn.ModuleList(rounds),
            "answer": torch.nn.Linear(width, 1),
        }
    )


def _forward(network: torch.nn.Module, batch: Batch) -> Tensor:
    """The answer of node 0, the workflow, after all rounds of message passing."""
    features, mask, adjacency = batch
    layers = dict(network.named_children())
    share = adjacency / adjacency.sum(dim=2, keepdim=True).clamp(min=1.0)
    state = torch.relu(layers["read"](features)) * mask.unsqueeze(2)
    for layer in layers["rounds"].children():
        message = dict(layer.named_children())
        state = torch.relu(
            message["own"](state)
            + message["below"](share @ state)
            + message["above"](adjacency.transpose(1, 2) @ state)
        ) * mask.unsqueeze(2)
    answer: Tensor = layers["answer"](state[:, 0]).squeeze(1)
    return answer


ARCHITECTURE = Architecture(plan_graph, _build, _forward)
