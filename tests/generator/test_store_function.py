"""The Maps of a state machine read and write an S3-compatible store by a function of ours."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from chiron.deployment.local_launcher import LocalLauncher
from chiron.evaluation.reference.sources import reference_run
from chiron.generator.generate import Sources, generate
from chiron.openfaas.stack import read_stack
from chiron.scheduler.folder_settings import read_settings
from chiron.templates import TEMPLATES
from chiron.workflow.asl import parse_states
from chiron.workflow.asl_resources import STORE_FUNCTION
from chiron.workflow.errors import ChironError
from chiron.workflow.execute import Execution, execute
from chiron.wrap.core.statemachine.errors import StatesError

ARN = "arn:aws:states:::s3:"
MOTO = pytest.mark.parametrize("store", ["moto"], indirect=True)
#: The bucket of the store of tests.
BUCKET = "objects"
READER = {"Resource": f"{ARN}getObject", "Parameters": {"Bucket": BUCKET, "Key.$": "$.key"}}
WRITER = {"Resource": f"{ARN}putObject", "Parameters": {"Bucket": BUCKET, "Prefix": "out"}}
ECHO = {"echo": "def handle(req):\n    return req\n"}


def machine(**fields: Any) -> dict[str, Any]:
    """A distributed Map whose items the function ``echo`` hands on."""
    task = {"Type": "Task", "Resource": "echo", "End": True}
    processor = {"StartAt": "Each", "States": {"Each": task}}
    spread = {"Type": "Map", "ItemReader": READER, "End": True}
    spread["ItemProcessor"] = processor | {"ProcessorConfig": {"Mode": "DISTRIBUTED"}}
    return {"StartAt": "Map", "States": {"Map": spread | fields}}


Run = Callable[[str, str], str]


@pytest.fixture
def run(emptied: Any, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the function, and ``echo``, in this process."""
    monkeypatch.setenv("chiron_s3", emptied.place.url)
    monkeypatch.setenv("CHIRON_STORE_PASSWORD", emptied.place.password)
    spec = spec_from_file_location("store_handler", TEMPLATES / "s3" / "handler.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)

    def run(function: str, text: str) -> str:
        if function != STORE_FUNCTION:
            return text
        try:
            answer: str = module.handle(SimpleNamespace(body=text.encode()), None)
        except Exception as error:
            raise StatesError(type(error).__name__, str(error)) from error
        return answer

    return run


def put(run: Run, key: str, body: str) -> None:
    asked = {"Action": "s3:putObject", "Parameters": {"Bucket": BUCKET, "Key": key, "Body": body}}
    assert run(STORE_FUNCTION, json.dumps(asked)) == ""


def executed(run: Run, document: dict[str, Any], key: str = "") -> Execution:
    return execute(parse_states(document, "demo"), json.dumps({"key": key}).encode(), run)


@MOTO
@pytest.mark.parametrize(
    ("config", "body", "items"),
    [
        ({}, '[1, "é"]', [1, "é"]),
        ({"InputType": "JSON"}, '\ufeff{"a": 1}', [{"Key": "a", "Value": 1}]),
        ({"InputType": "JSONL"}, '{"a": 1}\n2\n', [{"a": 1}, 2]),
        (
            {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"},
            "a,b\n1,é\n",
            [{"a": "1", "b": "é"}],
        ),
        ({"MaxItems": 1}, "[[1], [2]]", [[1]]),
    ],
)
def test_a_map_reads_an_object(run, config, body, items) -> None:
    put(run, "in/ä b.txt", body)
    done = executed(run, machine(ItemReader=READER | {"ReaderConfig": config}), "in/ä b.txt")
    assert done.error is None
    assert json.loads(done.output or "") == items


@MOTO
def test_a_map_reads_a_version_of_an_object(run) -> None:
    put(run, "in", "[1]")
    places = READER["Parameters"] | {"VersionId": "null"}  # that of a bucket without versions
    assert executed(run, machine(ItemReader=READER | {"Parameters": places}), "in").output == "[1]"
    places["VersionId"] = "another"
    error = executed(run, machine(ItemReader=READER | {"Parameters": places}), "in").error
    assert error is not None
    assert error.name == "States.ItemReaderFailed"


@MOTO
def test_a_map_reads_which_objects_there_are(run) -> None:
    for key, body in (("in/a", "1"), ("in/b/c", "22"), ("out/d", "3")):
        put(run, key, body)
    places = {"Bucket": BUCKET, "Prefix": "in/"}
    reader = {"Resource": f"{ARN}listObjectsV2", "Parameters": places}
    listed = json.loads(executed(run, machine(ItemReader=reader)).output or "")
    assert [(each["Key"], each["Size"]) for each in listed] == [("in/a", 1), ("in/b/c", 2)]
    first = listed[0]
    assert first.keys() == {"Etag", "Key", "LastModified", "Size", "StorageClass"}
    assert first["Etag"].startswith('"')
    assert isinstance(first["LastModified"], int)


def inventory(*keys: str) -> str:
    """A manifest of these files."""
    manifest = {"destinationBucket": f"arn:aws:s3:::{BUCKET}", "fileFormat": "CSV"}
    files = [{"key": key, "size": 1, "MD5checksum": ""} for key in keys]
    return json.dumps(manifest | {"fileSchema": "Bucket, Key", "files": files})


def put_bytes(emptied: Any, key: str, body: bytes) -> None:
    from minio import Minio  # takes a quarter of a second

    host = urlsplit(emptied.place.url).netloc.partition("@")[2]
    password = emptied.place.password
    client = Minio(endpoint=host, access_key="key", secret_key=password, secure=False)
    client.put_object(bucket_name=BUCKET, object_name=key, data=io.BytesIO(body), length=len(body))


@MOTO
def test_a_map_reads_the_packed_files_that_a_manifest_names(run, emptied) -> None:
    put(run, "manifest.json", inventory("1.csv.gz", "2.csv"))
    put_bytes(emptied, "1.csv.gz", gzip.compress('"s","é"\n"s","b"\n'.encode()))
    put(run, "2.csv", '"s","c"\n')
    reader = READER | {"ReaderConfig": {"InputType": "MANIFEST"}}
    done = executed(run, machine(ItemReader=reader), "manifest.json")
    assert done.error is None
    items = json.loads(done.output or "")
    assert items == [{"Bucket": "s", "Key": key} for key in ("é", "b", "c")]


@MOTO
def test_the_files_of_a_manifest_take_no_more_memory_than_there_is(
    run, emptied, monkeypatch
) -> None:
    put(run, "manifest.json", inventory("1", "2", "3"))
    row = f"s,{'k' * 97}\n"
    put(run, "1", row * 2_200)
    put(run, "2", row * 2_200)
    put_bytes(emptied, "3", gzip.compress((row * 2_200).encode()))
    reader = READER | {"ReaderConfig": {"InputType": "MANIFEST"}}
    monkeypatch.setenv("WRAP_MEMORY_MIB", "1")  # each file fits alone, as do the first two
    error = executed(run, machine(ItemReader=reader), "manifest.json").error
    assert error is not None
    assert error.name == "States.ItemReaderFailed"
    assert "s3://objects/3" in error.cause
    assert "files before" in error.cause


@MOTO
def test_an_object_that_is_no_text_is_an_error_that_says_so(run, emptied) -> None:
    put_bytes(emptied, "in", b"\x28\xb5\x2f\xfd")
    error = executed(run, machine(), "in").error
    assert error is not None
    assert "no text in UTF-8" in error.cause


@MOTO
def test_a_map_writes_its_results(run, emptied) -> None:
    put(run, "in", '["a", "é"]')
    done = executed(run, machine(ResultWriter=WRITER), "in")
    written = json.loads(done.output or "")["ResultWriterDetails"]
    assert written["Bucket"] == BUCKET
    folder = written["Key"].removesuffix("manifest.json")
    assert emptied.names() == ["in", f"{folder}SUCCEEDED_0.json", f"{folder}manifest.json"]
    places = {"Bucket": BUCKET, "Key": f"{folder}SUCCEEDED_0.json"}
    again = run(STORE_FUNCTION, json.dumps({"Action": "s3:getObject", "Parameters": places}))
    assert [json.loads(each["Output"]) for each in json.loads(again)] == ["a", "é"]


@MOTO
def test_what_cannot_be_read_is_an_error_that_a_catch_takes(run, monkeypatch) -> None:
    error = executed(run, machine(), "nothing").error
    assert error is not None
    assert error.name == "States.ItemReaderFailed"
    assert "NoSuchKey" in error.cause
    put(run, "large", "[" + "1," * 200_000 + "1]")
    monkeypatch.setenv("WRAP_MEMORY_MIB", "1")
    error = executed(run, machine(), "large").error
    assert error is not None
    assert "s3://objects/large" in error.cause
    assert "split the object" in error.cause


@MOTO
def test_a_wrap_answers_as_the_reference(
    emptied, run, write_folder, plan_by_hand, tmp_path, monkeypatch
) -> None:
    put(run, "in", f"s3://{BUCKET}/1\ns3://{BUCKET}/2\n")
    put(run, "1", '{"a": 1}\n')
    put(run, "2", '{"b": 2}\n')
    config = {"ManifestType": "ATHENA_DATA", "InputType": "JSONL"}
    reader = READER | {"ReaderConfig": config}
    folder = write_folder(tmp_path / "demo", machine(ItemReader=reader), ECHO, {})
    plan = plan_by_hand({"demo": [["Map.ItemReader", "Each"]]}, workflow="demo", trigger="data")
    request = b'{"key": "in"}'
    sources = Sources.read(folder, {}, store=emptied.place.url)
    expected = reference_run(sources, request, "http://127.0.0.1:9").output
    with LocalLauncher(print, store=emptied.place).launch(folder.workflow, folder, plan) as running:
        answer = running.gateway.invoke("demo", request)
    assert json.loads(answer.text) == json.loads(expected) == [{"a": 1}, {"b": 2}]


@pytest.fixture
def folder(write_folder, tmp_path):
    """A workflow whose Map reads and writes a store."""
    return write_folder(tmp_path / "demo", machine(ResultWriter=WRITER), ECHO, {})


def test_it_is_a_function_of_the_workflow(folder, plan_of, tmp_path) -> None:
    assert read_settings(folder, {}).called == ()
    sources = Sources.read(folder, {}, store="s3://key@h:9000/b")
    stack_file = generate(plan_of(folder.workflow), sources, tmp_path / "build")
    assert sources.warnings == []
    (wrap,) = read_stack(stack_file, {}).functions.items()
    assert wrap[1].environment["chiron_s3"] == "s3://key@h:9000/b"
    assert "chiron_store" not in wrap[1].environment, "objects go another way"
    assert wrap[1].secrets == ("chiron-store",)
    place = stack_file.parent / wrap[0]
    assert "minio" in (place / "requirements.txt").read_text()
    assert (place / "functions" / STORE_FUNCTION / "function" / "handler.py").is_file()


@pytest.mark.parametrize("store", ["", "redis://h"])
def test_without_an_s3_store_the_error_says_how_to_name_one(
    folder, plan_of, tmp_path, store
) -> None:
    with pytest.raises(ChironError, match=r"--store s3://.* functions\.json") as raised:
        generate(plan_of(folder.workflow), Sources.read(folder, {}, store=store), tmp_path / "b")
    assert raised.value.code == "no-store"


def test_a_function_of_the_same_name_takes_its_place(write_folder, plan_of, tmp_path) -> None:
    own = ECHO | {STORE_FUNCTION: "def handle(req):\n    return '[]'\n"}
    folder = write_folder(tmp_path / "demo", machine(), own, {})
    stack_file = generate(plan_of(folder.workflow), Sources.read(folder, {}), tmp_path / "build")
    assert "chiron_s3" not in stack_file.read_text()
