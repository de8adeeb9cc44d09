"""The closed loop once more by another client, where there is one: is ours in the way?"""

from __future__ import annotations

from evaluation.bench.bench import Bench, Placed
from evaluation.bench.settings import Scale
from evaluation.load.closed import ClosedSample
from evaluation.load.wrk import installed, wrk_loop
from evaluation.measurements.rounds import Measurement, Round, Session

#: What wrk takes to start and to end, for the forecast.
_AROUND_S = 0.5


def _rounds(scale: Scale) -> int:
    return scale.checks if installed() else 0


def _seconds(scale: Scale, variants: int) -> float:
    return _rounds(scale) * variants * (max(1.0, scale.closed_s) + _AROUND_S)


def _sample(session: Session, number: int) -> dict[str, ClosedSample]:
    bench, scale = session.bench, session.scale
    return {
        label: _by_wrk(bench, placed, scale)
        for label, placed in bench.turns(number)
        if not placed.plan.called_by_client
    }


def _by_wrk(bench: Bench, placed: Placed, scale: Scale) -> ClosedSample:
    function, clients = placed.plan.wraps[0].name, scale.clients[-1]
    known = bench.expected
    exact = known.output if known and not (known.varies or known.any_order) else None
    return wrk_loop(bench.url, function, bench.body, exact, clients, scale.closed_s)


CHECK: Measurement[ClosedSample] = Measurement(
    "closed-loop-wrk", Round[ClosedSample], _rounds, _seconds, _sample
)
