"""The command `chiron`, which measures as little as it can: for what it says, does and leaves."""

from __future__ import annotations

from chiron.cli.main import main
from chiron.deployment import verdict
from chiron.profiler import calibrate, kept_platform, profile

#: Rounds that count, where `chiron` has as many as it has time for.
ROUNDS = 4
LEAST = calibrate.Effort(budget_s=60.0, object_rounds=ROUNDS, numerous_times=1, quiet_s=0.0)

if __name__ == "__main__":
    calibrate._WARM_UP = 1
    calibrate._NUMEROUS_ROUNDS = ROUNDS
    calibrate.calibrate.__kwdefaults__ |= {"effort": LEAST, "rounds": ROUNDS}
    kept_platform.BRIEF = LEAST
    profile._FURTHER_S = verdict.LONG_S = 0.0
    main()
