"""The sections of the report: pictures and tables of one result, and what they are of."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation.experiments.catalogue import Result
from evaluation.report.boxes import error_boxes
from evaluation.report.extras import extra_pictures, extra_tables, prediction_errors
from evaluation.report.tables import Table, table_of

_TITLES = {
    "latency": "Latency",
    "breakdown": "Where the time goes",
    "slo": "SLO",
    "cpu": "CPU",
    "memory": "Memory",
    "throughput": "Throughput",
    "load": "Latency under load",
    "cost": "Cost",
}
_TEXTS = {
    "latency": "End-to-end latency of one request at a time, on the client's clock, after a "
    "warm-up (Chiron Figure 13); error is that of the prediction, (P̂ - P) / P.",
    "breakdown": "One traced request of each variant, the one with the median latency. Tracing "
    "costs a little. Waiting is how long handlers were kept from a core or the GIL, added up; "
    "it lies within the functions' time.",
    "slo": "Share of requests that take longer than the SLO for which our plans were made: "
    "Faastlane's mean and 10 ms (Chiron Figure 14). The columns on the right are against "
    "Faastlane's mean in the same rounds, since a machine's speed drifts.",
    "cpu": "CPU time of the sandboxes' process trees for one request, beside the CPUs that the "
    "plan is given (Chiron Figure 17 shows those: paper_cpus). Client and gateway are not in it.",
    "memory": "The most memory while requests run, forked processes included (Chiron Figure 16); "
    "idle_mib is between requests.",
    "throughput": "Closed loop: the most requests per second that are answered on the whole "
    "machine, which runs client and gateway as well, by one sandbox of each wrap. per_cpu is that "
    "divided by the plan's CPUs, of which a larger node holds more: so Chiron Figure 16 computes "
    "it. The columns with ms have the CPU time of a request by who uses it.",
    "load": "Open loop: requests arrive at a constant rate, and a latency counts from when the "
    "request was due. A cross is a rate at which requests were dropped or failed.",
    "cost": "USD for a million requests that hold their plan's CPUs and the measured memory as "
    "long as they last, at 0.0000025 USD per GB-s and 0.00001 USD per GHz-s (Chiron Figure 19). "
    "used is with the CPU time that they really used; transitions is what an orchestrator "
    "that bills state transitions takes on top for one-to-one, as the paper counts it.",
}


@dataclass(frozen=True)
class Image:
    """A picture inside of the page."""

    name: str
    uri: str

    @classmethod
    def of(cls, name: str, content: bytes) -> Image:
        """The PNG `content`."""
        return cls(name, f"data:image/png;base64,{base64.b64encode(content).decode()}")


@dataclass(frozen=True)
class Section:
    """What is shown of one result."""

    id: str
    title: str
    text: str
    images: tuple[Image, ...] = ()
    tables: tuple[Table, ...] = ()


def result_sections(results: Sequence[Result], drawn: Mapping[str, bytes]) -> list[Section]:
    """A section a result, in the order of the results."""
    return [
        Section(
            result.experiment,
            _TITLES[result.experiment],
            _TEXTS[result.experiment],
            images_of(result.experiment, drawn),
            (table_of(result),),
        )
        for result in results
    ]


def images_of(name: str, drawn: Mapping[str, bytes]) -> tuple[Image, ...]:
    """The pictures that are called `name`, or begin so."""
    chosen = [key for key in drawn if key == name or key.startswith(f"{name}-")]
    return tuple(Image.of(key, drawn[key]) for key in chosen)


def extra_sections(out: Path, known: Sequence[str]) -> list[Section]:
    """Sections of what other verbs have left in the folder `out`."""
    sections = []
    for name, tables in extra_tables(out, known).items():
        images = [Image.of(file.stem, file.read_bytes()) for file in extra_pictures(out, name)]
        if name == "prediction":
            images = [*_error_boxes(out), *images]
        text = f"What chiron evaluate {name} has found: all of it is in the files {name}.*"
        title = name.replace("-", " ").capitalize()
        sections.append(Section(name, title, text, tuple(images), tuple(tables)))
    return sections


def _error_boxes(out: Path) -> list[Image]:
    errors = prediction_errors(out)
    try:
        return [Image.of("prediction errors", error_boxes(errors))] if errors else []
    except ImportError:
        return []
