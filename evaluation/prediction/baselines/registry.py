"""Which baselines can run here, and what has to be installed for those that cannot."""

from __future__ import annotations

import importlib
from importlib.util import find_spec

from evaluation.prediction.baselines.learning import Baseline

#: Name -> the module and function that make it, the library it needs, and the extra with it.
_BASELINES = {
    "RFR": ("forest", "random_forest", "sklearn", "evaluation"),
    "LSTM": ("lstm", "lstm", "torch", "baselines"),
    "GNN": ("gnn", "gnn", "torch", "baselines"),
}
_LIBRARIES = {"sklearn": "scikit-learn", "torch": "PyTorch"}


def available() -> tuple[list[Baseline], dict[str, str]]:
    """The baselines whose library is installed, and for every other one why it does not run."""
    found, missing = [], {}
    for name, (module, function, library, extra) in _BASELINES.items():
        if find_spec(library) is None:
            missing[name] = (
                f"{_LIBRARIES[library]} is not installed: pip install 'chiron-openfaas[{extra}]'"
            )
        else:
            loaded = importlib.import_module(f"evaluation.prediction.baselines.{module}")
            found.append(getattr(loaded, function)())
    return found, missing
