"""LSTM and graph neural network of Chiron §6.1, with PyTorch.

Inputs are standardised, training stops early, and equal samples give equal results.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch  # type: ignore[import-not-found,unused-ignore]
from torch import Tensor

from chiron.evaluation.prediction.baselines.features import (
    Graph,
    Sample,
    delay_ms,
    latency_ms,
    plan_graph,
    plan_sequence,
)
from chiron.evaluation.prediction.baselines.learning import (
    Baseline,
    Candidate,
    Fold,
    Group,
    Model,
    folds,
    groups,
)

_EPOCHS = 300
#: Epochs without a better validation error before training ends.
_PATIENCE = 30
_BATCH = 32
_WEIGHT_DECAY = 1e-3
_LARGEST_GRADIENT = 1.0
#: One in this many structures is for validation, which decides when to stop.
_VALIDATION_ONE_IN = 5
#: Features are clamped to this many standard deviations: training has no values beyond.
_FARTHEST = 3.0
_SEED = 1
#: Rounds of messages in the graph network: the levels from a task up to the workflow.
_ROUNDS = 4

#: features (samples, nodes, features), mask (samples, nodes), adjacency (samples, nodes, nodes)
#: with 1 in row p and column n if p is the parent of node n.
Batch = tuple[Tensor, Tensor, Tensor]


class Architecture(NamedTuple):
    """A network: its input from a plan, its layers, and its forward pass.

    `build` gets the number of features and the width; `forward` returns one number a sample.
    """

    graph: Callable[[Sample], Graph]
    build: Callable[[int, int], torch.nn.Module]
    forward: Callable[[torch.nn.Module, Batch], Tensor]


class _Scale(NamedTuple):
    """Mean and deviation; a feature that was constant in training becomes 0."""

    mean: Tensor
    deviation: Tensor

    def apply(self, values: Tensor) -> Tensor:
        varied = self.deviation > 1e-6
        scaled = (values - self.mean) / torch.where(varied, self.deviation, 1.0)
        return (scaled * varied).clamp(-_FARTHEST, _FARTHEST)


def fit(samples: Sequence[Sample], *, architecture: Architecture, width: int, rate: float) -> Model:
    """Train a network; return it as of its smallest error on the validation samples."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        features, mask, adjacency = _tensors([architecture.graph(each) for each in samples])
        rows = features[mask > 0]
        scale = _Scale(rows.mean(dim=0), rows.std(dim=0, unbiased=False))
        batch = (scale.apply(features) * mask.unsqueeze(2), mask, adjacency)
        values = torch.tensor([delay_ms(each) for each in samples])
        middle, spread = values.mean(), values.std(unbiased=False).clamp(min=1e-3)
        network = architecture.build(features.shape[2], width)
        fold = next(folds(samples, _group(samples), _VALIDATION_ONE_IN))
        _train(network, architecture.forward, batch, (values - middle) / spread, fold, rate)

    def predict(asked: Sequence[Sample]) -> list[float]:
        features, mask, adjacency = _tensors([architecture.graph(each) for each in asked])
        with torch.no_grad():
            scaled = scale.apply(features) * mask.unsqueeze(2)
            answers = architecture.forward(network, (scaled, mask, adjacency))
        return list(map(latency_ms, (answers * spread + middle).tolist(), asked))

    return predict


def _train(
    network: torch.nn.Module,
    forward: Callable[[torch.nn.Module, Batch], Tensor],
    batch: Batch,
    values: Tensor,
    fold: Fold,
    rate: float,
) -> None:
    loss = torch.nn.SmoothL1Loss()
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=_WEIGHT_DECAY)
    train, test = torch.tensor(fold.train), torch.tensor(fold.test)
    best, best_error, best_epoch = copy.deepcopy(network.state_dict()), float("inf"), 0
    for epoch in range(_EPOCHS):
        for part in torch.split(train[torch.randperm(len(train))], _BATCH):
            optimizer.zero_grad()
            loss(forward(network, _rows(batch, part)), values[part]).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), _LARGEST_GRADIENT)
            optimizer.step()
        with torch.no_grad():
            error = float(loss(forward(network, _rows(batch, test)), values[test]))
        if error < best_error:
            best, best_error, best_epoch = copy.deepcopy(network.state_dict()), error, epoch
        elif epoch - best_epoch >= _PATIENCE:
            break
    network.load_state_dict(best)


def _rows(batch: Batch, indices: Tensor) -> Batch:
    features, mask, adjacency = batch
    return features[indices], mask[indices], adjacency[indices]


def _tensors(graphs: Sequence[Graph]) -> Batch:
    most = max(len(graph.nodes) for graph in graphs)
    features = torch.zeros(len(graphs), most, len(graphs[0].nodes[0]))
    mask = torch.zeros(len(graphs), most)
    adjacency = torch.zeros(len(graphs), most, most)
    for number, graph in enumerate(graphs):
        features[number, : len(graph.nodes)] = torch.tensor(graph.nodes)
        mask[number, : len(graph.nodes)] = 1.0
        for node, parent in graph.edges:
            adjacency[number, parent, node] = 1.0
    return features, mask, adjacency


def _group(samples: Sequence[Sample]) -> Group:
    """Return the group for validation: structures if there are several, else single samples."""
    if len(groups(samples, "structure")) > 1:
        return lambda sample: sample.structure
    numbers = {id(sample): str(number) for number, sample in enumerate(samples)}
    return lambda sample: numbers[id(sample)]


def _build_lstm(features: int, width: int) -> torch.nn.Module:
    lstm = torch.nn.LSTM(features, width, batch_first=True)
    return torch.nn.ModuleDict({"lstm": lstm, "answer": torch.nn.Linear(width, 1)})


def _answer_lstm(network: torch.nn.Module, batch: Batch) -> Tensor:
    """Return the output for the state after each sample's last task."""
    features, mask, _ = batch
    layers = dict(network.named_children())
    lengths = mask.sum(dim=1).to(torch.int64)
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        features, lengths, batch_first=True, enforce_sorted=False
    )
    _, (state, _) = layers["lstm"](packed)
    answer: Tensor = layers["answer"](state[-1]).squeeze(1)
    return answer


def _build_gnn(features: int, width: int) -> torch.nn.Module:
    sides = ("own", "below", "above")
    rounds = [
        torch.nn.ModuleDict({s: torch.nn.Linear(width, width, bias=s == "own") for s in sides})
        for _ in range(_ROUNDS)
    ]
    return torch.nn.ModuleDict(
        {
            "read": torch.nn.Linear(features, width),
            "rounds": torch.nn.ModuleList(rounds),
            "answer": torch.nn.Linear(width, 1),
        }
    )


def _answer_gnn(network: torch.nn.Module, batch: Batch) -> Tensor:
    """Return the output of node 0, the workflow, after all rounds of message passing.

    In each round, a node receives the mean state of its children and the state of its parent.
    """
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


def _baseline(name: str, architecture: Architecture, *settings: tuple[float, int]) -> Baseline:
    """Return the baseline of `architecture`, with candidate learning rates and widths."""
    candidates = (
        Candidate(
            f"learning rate {rate}, {width} hidden units",
            partial(fit, architecture=architecture, width=width, rate=rate),
        )
        for rate, width in settings
    )
    return Baseline(name, tuple(candidates))


#: Reads the sequence of tasks; the paper's learning rate of 0.01 and a tenth of it.
LSTM = _baseline(
    "LSTM", Architecture(plan_sequence, _build_lstm, _answer_lstm), (0.01, 32), (0.001, 64)
)
#: Reads tasks, processes, wraps, stages and the workflow; two learning rates.
GNN = _baseline("GNN", Architecture(plan_graph, _build_gnn, _answer_gnn), (0.01, 32), (0.003, 32))
