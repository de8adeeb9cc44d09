"""Every benchmark has the stages, widths and functions of the published workflow."""

from pathlib import Path

from chiron.workflow.folder import WorkflowFolder
from tests.rows import each_row

STAGES = {
    "finra": [5, 1],
    "slapp": [4, 3],
    "slapp-v": [1, 2, 5, 1, 1],
    "finra-java": [5, 1],
    "slapp-java": [4, 3],
    "social-network": [1, 5, 1, 3],
    "movie-review": [1, 4, 1, 3],
    "illegal-recognizer": [1, 3, 2, 1, 1],
}
FUNCTIONS = {
    "slapp-v": {"disk-io", "factorial", "fibonacci", "network-io", "pbkdf2", "pi"},
    "social-network": {
        "compose-post", "upload-media", "upload-creator", "upload-text", "upload-user-mentions",
        "upload-unique-id", "compose-and-upload", "post-storage", "upload-user-timeline",
        "upload-home-timeline",
    },
    "movie-review": {
        "compose-review", "upload-user-id", "upload-movie-id", "mr-upload-text",
        "mr-upload-unique-id", "mr-compose-and-upload", "store-review", "upload-user-review",
        "upload-movie-review",
    },
    "illegal-recognizer": {
        "upload", "adult-detector", "violence-detector", "extract", "translate", "word-censor",
        "mosaic", "mosaic-words",
    },
    "wordcount": {"wordcount-start", "wordcount-count", "wordcount-merge"},
    "svd": {"svd-start", "svd-compute", "svd-merge"},
}  # fmt: skip


@each_row("name", STAGES)
def test_width_of_every_stage(name: str, benchmarks: Path) -> None:
    workflow = WorkflowFolder.open(benchmarks / name).workflow
    assert [len(stage) for stage in workflow.stages] == STAGES[name]


@each_row("name", FUNCTIONS)
def test_functions_have_their_published_names(name: str, benchmarks: Path) -> None:
    assert set(WorkflowFolder.open(benchmarks / name).workflow.functions) == FUNCTIONS[name]
