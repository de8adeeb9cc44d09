"""Platforms kept between commands, each until a quick probe of its place disagrees."""

from __future__ import annotations

import os
import platform as machine
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from chiron.deployment.background_load import disturbance, is_quiet
from chiron.deployment.deploy import Progress
from chiron.deployment.launcher import Launcher
from chiron.generator.fingerprint import digest, digest_of
from chiron.generator.wrap_entry import WRAP
from chiron.predictor.mechanisms import DEFAULT_MECHANISM
from chiron.predictor.speed import platform_at
from chiron.profiler.calibrate import BRIEF, NoOps, calibrate
from chiron.profiler.noop_shapes import few, shape, write_folder
from chiron.profiler.self_check import LARGEST_ERROR, SelfCheck, alone_in
from chiron.templates import TEMPLATES
from chiron.workflow.documents import dump, read_document, write_atomically
from chiron.workflow.errors import ChironError
from chiron.workflow.platform import Platform

#: Runs of each plan with each work by the probe.
_ROUNDS = 12


@dataclass(frozen=True)
class KeptPlatforms:
    """The kept platforms in ``folder``, one file for each place."""

    folder: Path

    def platform(self, launcher: Launcher, progress: Progress) -> Platform:
        """Return the platform of `launcher`'s place, at its current speed.

        A kept platform that does not hold is measured again and kept.

        Raises the errors of `calibrate`.
        """
        kept = self._kept(launcher)
        if kept is not None:
            now, error = probed(kept, launcher, progress)
            reason = outdated(kept, error, quiet=is_quiet)
            if reason is None:
                progress(f"using the platform kept for {kept.place}: a probe was {error:.0%} off")
                if is_off(error):
                    progress("warning: predictions are that far off too while the machine is busy")
                return now
            progress(f"calibrating again: {reason}")
        measured = calibrate(launcher, effort=BRIEF, progress=progress)
        self.keep(measured, launcher, progress)
        return measured

    def keep(self, platform: Platform, launcher: Launcher, progress: Progress) -> None:
        """Keep `platform` for the next command at `launcher`'s place, or report why not."""
        try:
            write_atomically(self._file(launcher), dump(platform))
        except ChironError:
            why = f"{self.folder} cannot be written: set CHIRON_HOME"
            progress(f"warning: the next command calibrates again, as {why}")

    def _kept(self, launcher: Launcher) -> Platform | None:
        try:
            return read_document(Platform, self._file(launcher), "platform")
        except ChironError:
            return None  # no platform yet, or an older format

    def _file(self, launcher: Launcher) -> Path:
        """Return the file for a place, its runtime, and its object store."""
        runs = digest_of(TEMPLATES / WRAP), machine.python_version() + sys.abiflags
        cpus = str(len(os.sched_getaffinity(0)))
        known = (*runs, cpus, launcher.store.url, *Platform.model_fields)
        return self.folder / f"{digest([launcher.place, *known])}.json"


def platform_of(
    given: Platform | None, kept: KeptPlatforms | None, launcher: Launcher, progress: Progress
) -> Platform:
    """Return the `given` platform, else the `kept` one of the place, else measure one."""
    if given is not None:
        return given
    return kept.platform(launcher, progress) if kept else calibrate(launcher, progress=progress)


def outdated(kept: Platform, error: float, quiet: Callable[[], bool]) -> str | None:
    """Return why the platform `kept` is outdated; None if it holds.

    `error` is the error of its predictions of known work. Only a `quiet` machine is measured again.
    While other programs use the cores, a new platform is off too, and deployments are measured
    anyway.
    """
    if is_off(error) and quiet():
        return f"predictions of known work are {error:.0%} off"
    if is_off(kept.prediction_error) and quiet():
        return f"predictions of known work were {kept.prediction_error:.0%} off from the start"
    if disturbance(kept.others) and quiet():
        return "the platform was measured on a busy machine, which is quiet now"
    return None


def is_off(error: float) -> bool:
    """Return whether the predictions are unreliable at this error for known work."""
    return error > LARGEST_ERROR


def probed(platform: Platform, launcher: Launcher, progress: Progress) -> tuple[Platform, float]:
    """Return the platform at the current speed, and the error of its predictions of known work.

    The error is the median over three plans (one function, two processes, two wraps) with each
    work. Raises the errors of deploying.
    """
    progress("checking the kept platform with a probe")
    plans = [
        shape("one", [[1]]),
        shape(few(DEFAULT_MECHANISM), [[1] * 2]),
        shape("remote-few", [[1]] * 2),
    ]
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="chiron-probe-"))
        place = NoOps(launcher, write_folder(Path(scratch)), progress)
        deployed = place.deploy(stack, *plans)
        check = SelfCheck(alone_in(deployed[0]), list(zip(plans, deployed, strict=True)))
        for _ in range(_ROUNDS):
            check.measure()
        now = platform_at(platform, check.cpu_probe_ms)
        return now, check.typical_error(now)
