"""The files that the function of a ResultWriter gets, as AWS documents them.

Source: AWS Step Functions Developer Guide, "ResultWriter (Map)", "Exporting to Amazon S3".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from chiron.workflow.asl import parse_states
from chiron.workflow.execute import execute
from chiron.wrap.core.statemachine import map_run
from chiron.wrap.core.statemachine.distributed import Tolerance
from chiron.wrap.core.statemachine.errors import StatesError

PROCESSOR = {
    "ProcessorConfig": {"Mode": "DISTRIBUTED"},
    "StartAt": "P",
    "States": {"P": {"Type": "Task", "Resource": "work", "End": True}},
}


def exported(
    request: Any, config: Mapping[str, str] | None = None, failing: str = "", **fields: Any
) -> tuple[dict[str, str], StatesError | None]:
    """The bodies of the files by their names, the manifest last; and the error of the machine.

    Functions fail for the input `failing`, and answer all others as they are.
    """
    writer = {"Resource": "write", "Parameters": {"Bucket": "b", "Prefix": "p"}}
    writer |= {} if config is None else {"WriterConfig": config}
    state = {"Type": "Map", "ResultWriter": writer, "ItemProcessor": PROCESSOR, "End": True}
    machine = {"StartAt": "M", "States": {"M": state | fields}}
    files = dict[str, str]()

    def run(function: str, text: str) -> str:
        if function == "write":
            file = json.loads(text)
            assert file.keys() == {"Body", "Bucket", "Key"}
            assert file["Bucket"] == "b"
            files[file["Key"]] = file["Body"]
        elif text == failing:
            raise StatesError("Bad", "why")
        return text

    done = execute(parse_states(machine, "demo"), json.dumps(request).encode(), run)
    folders = {key.rpartition("/")[0] for key in files}
    assert len(folders) == 1
    manifest = json.loads([*files.values()][-1])
    assert manifest["DestinationBucket"] == "b"
    assert folders == {f"p/{manifest['MapRunArn'].rpartition(':')[2]}"}
    told = [each for group in manifest["ResultFiles"].values() for each in group]
    assert sorted(each["Key"] for each in told) == sorted([*files][:-1])
    assert [each["Size"] for each in told] == [len(files[each["Key"]].encode()) for each in told]
    return {key.rpartition("/")[2]: body for key, body in files.items()}, done.error


def statuses(body: str) -> list[tuple[str, str]]:
    """The inputs and statuses of the executions in a file."""
    return [(each["Input"], each["Status"]) for each in json.loads(body)]


def test_executions_that_succeeded_are_in_one_file() -> None:
    files, error = exported(["é", 2])
    assert error is None
    assert [*files] == ["SUCCEEDED_0.json", "manifest.json"]
    assert statuses(files["SUCCEEDED_0.json"]) == [('"é"', "SUCCEEDED"), ("2", "SUCCEEDED")]
    manifest = json.loads(files["manifest.json"])
    assert [*manifest["ResultFiles"]] == ["FAILED", "PENDING", "SUCCEEDED"]


def test_executions_that_failed_are_in_a_file_of_their_own() -> None:
    files, error = exported([1, 2, 3], failing="2", ToleratedFailureCount=1)
    assert error is None
    assert [*files] == ["SUCCEEDED_0.json", "FAILED_0.json", "manifest.json"]
    (failed,) = json.loads(files["FAILED_0.json"])
    assert (failed["Error"], failed["Cause"], failed["Status"]) == ("Bad", "why", "FAILED")
    assert statuses(files["SUCCEEDED_0.json"]) == [("1", "SUCCEEDED"), ("3", "SUCCEEDED")]


def test_of_a_run_that_failed_all_executions_are_written() -> None:
    files, error = exported([1, 2, 3, 4, 5], failing="2", MaxConcurrency=2)
    assert error is not None
    assert error.name == "States.ExceedToleratedFailureThreshold"
    assert [*files] == ["SUCCEEDED_0.json", "FAILED_0.json", "PENDING_0.json", "manifest.json"]
    assert statuses(files["SUCCEEDED_0.json"]) == [("1", "SUCCEEDED")]
    assert statuses(files["FAILED_0.json"]) == [("2", "FAILED"), ("3", "ABORTED")]
    pending = [{"Input": each, "InputDetails": {"Included": True}} for each in "45"]
    assert json.loads(files["PENDING_0.json"]) == [each | {"Status": "PENDING"} for each in pending]


def test_a_run_without_items_has_a_manifest_alone() -> None:
    assert [*exported([])[0]] == ["manifest.json"]


@pytest.mark.parametrize(
    ("config", "body"),
    [
        ({"Transformation": "COMPACT"}, "[[1,2],3]"),
        ({"Transformation": "FLATTEN"}, "[1,2,3]"),
        ({"Transformation": "COMPACT", "OutputType": "JSONL"}, "[1,2]\n3\n"),
        ({"Transformation": "FLATTEN", "OutputType": "JSONL"}, "1\n2\n3\n"),
    ],
)
def test_what_succeeded_is_written_in_the_form_that_is_asked_for(
    config: dict[str, str], body: str
) -> None:
    files, _ = exported([[1, 2], 3, 4], config, failing="4", ToleratedFailureCount=1)
    assert files["SUCCEEDED_0.json"] == body
    (failed,) = map(json.loads, files["FAILED_0.json"].strip("[]\n").split("\n"))
    assert (failed["Input"], failed["Error"]) == ("4", "Bad")


def test_many_results_are_in_several_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_run, "_LONGEST", 6)
    files, _ = exported(["aa", "bb", "x" * 10, "c"], {"Transformation": "COMPACT"})
    bodies = [files[f"SUCCEEDED_{number}.json"] for number in range(4)]
    assert bodies == ['["aa"]', '["bb"]', '["xxxxxxxxxx"]', '["c"]']


def test_a_long_input_takes_less_memory_until_it_is_written() -> None:
    run = map_run.MapRun("a/M", Tolerance(0, 0), {}, map_run.Destination("b", ""), lambda: "u")
    given = {"Items": [{"n": n, "name": f"\ud800 {n}"} for n in range(500)]}
    run.began(0, given, 0.0)
    child = run.ended(0, "SUCCEEDED", None, 1.0)
    text = json.dumps(given, separators=(",", ":"))
    assert len(child.given) < len(text) / 3
    run.write([child], (), None)
    (record,) = json.loads(next(run.files)["Body"])
    assert json.loads(record["Input"]) == given


def test_an_execution_has_its_times() -> None:
    (record,) = json.loads(exported([1])[0]["SUCCEEDED_0.json"])
    assert record["StartDate"] <= record["StopDate"]
    assert record["StartDate"].endswith("Z")
