"""Platforms that are kept between commands, each until a quick probe of its place disagrees."""

from __future__ import annotations

import os
import platform as machine
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from chiron.deployment.background_load import disturbance, is_quiet
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

Progress = Callable[[str], None]
#: How often the probe runs each of its plans with each work.
_ROUNDS = 12


@dataclass(frozen=True)
class KeptPlatforms:
    """The platforms in ``folder``, one file for each place."""

    folder: Path

    def platform(self, launcher: Launcher, progress: Progress) -> Platform:
        """The platform of `launcher`'s place: the kept one if it holds, else measured and kept.

        It is as at the speed that the place has now.

        Raises what `calibrate` does.
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
        """Keep `platform` for the next command at `launcher`'s place, or say why it is not kept."""
        try:
            write_atomically(self._file(launcher), dump(platform))
        except ChironError:
            why = f"{self.folder} cannot be written: set CHIRON_HOME"
            progress(f"warning: the next command calibrates again, as {why}")

    def _kept(self, launcher: Launcher) -> Platform | None:
        try:
            return read_document(Platform, self._file(launcher), "platform")
        except ChironError:
            return None  # none yet, or of a format before

    def _file(self, launcher: Launcher) -> Path:
        """The file of a place, of what runs there, and of the store that its objects go by."""
        runs = digest_of(TEMPLATES / WRAP), machine.python_version()
        cpus = str(len(os.sched_getaffinity(0)))
        known = (*runs, cpus, launcher.store.url, *Platform.model_fields)
        return self.folder / f"{digest([launcher.place, *known])}.json"


def platform_of(
    given: Platform | None, kept: KeptPlatforms | None, launcher: Launcher, progress: Progress
) -> Platform:
    """The `given` platform, or the `kept` one of `launcher`'s place, or what is measured now."""
    if given is not None:
        return given
    return kept.platform(launcher, progress) if kept else calibrate(launcher, progress=progress)


def outdated(kept: Platform, error: float, quiet: Callable[[], bool]) -> str | None:
    """Why the platform `kept`, whose predictions of known work are `error` off, does not hold.

    Only a `quiet` machine is a reason to measure it again: while others keep the cores busy, a
    new platform is off too, and what is deployed is measured anyway. None where it holds.
    """
    if is_off(error) and quiet():
        return f"predictions of known work are {error:.0%} off"
    if is_off(kept.prediction_error) and quiet():
        return f"predictions of known work were {kept.prediction_error:.0%} off from the start"
    if disturbance(kept.others) and quiet():
        return "the platform was measured on a busy machine, which is quiet now"
    return None


def is_off(error: float) -> bool:
    """Whether predictions of known work that are `error` off are not to be relied on."""
    return error > LARGEST_ERROR


def probed(platform: Platform, launcher: Launcher, progress: Progress) -> tuple[Platform, float]:
    """The platform at the speed of now, and how far off its predictions of known work are.

    That is the median of three plans with each work: one function, two processes and two wraps.
    Raises what deploying raises.
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
