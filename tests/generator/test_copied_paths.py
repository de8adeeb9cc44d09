"""What ``configuration.copy`` of stack.yaml names is beside every handler, as with faas-cli."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from chiron.deployment.local_launcher import LocalLauncher
from chiron.evaluation.reference.sources import reference_run
from chiron.generator.fingerprint import source_of
from chiron.generator.generate import Sources, generate
from chiron.openfaas.stack import read_stack
from chiron.profiler.shared_resources import unshareable
from chiron.scheduler.folder_settings import read_settings
from chiron.workflow.errors import ChironError

COMMON = {"configuration": {"copy": ["./shared/common", "text.txt"]}}
READS_COMMON = """\
from pathlib import Path

from .shared.common import words

def handle(req):
    return words.WORD + Path(__file__).with_name("text.txt").read_text()
"""


@pytest.fixture
def with_common(write_folder, tmp_path):
    """A workflow of one task that uses what ``configuration.copy`` names, and a function beside."""
    folder = write_folder(
        tmp_path / "f", {"tasks": {"t": "wave"}}, dict.fromkeys(("wave", "side"), READS_COMMON), {}
    )
    (folder.path / "shared" / "common").mkdir(parents=True)
    (folder.path / "shared" / "common" / "words.py").write_text("WORD = 'copied '\n")
    (folder.path / "text.txt").write_text("too")
    stack = json.loads(folder.stack_file.read_text()) | COMMON
    folder.stack_file.write_text(json.dumps(stack))
    return folder


def test_copied_paths_are_beside_every_handler(with_common, plan_of, tmp_path):
    plan = plan_of(with_common.workflow)
    out = generate(plan, Sources.read(with_common, {}), tmp_path / "build").parent
    wave = out / plan.wraps[0].name / "functions" / "wave" / "function"
    for place in (wave, out / "side"):
        assert (place / "shared" / "common" / "words.py").is_file()
        assert (place / "text.txt").read_text() == "too"
    assert read_stack(out / "stack.yaml", {}).configuration is None


def test_a_wrap_and_the_reference_run_with_copied_paths(with_common, plan_of):
    plan = plan_of(with_common.workflow)
    reference = reference_run(Sources.read(with_common, {}), b"", "http://127.0.0.1:9")
    with LocalLauncher(lambda _: None).launch(with_common.workflow, with_common, plan) as running:
        answer = running.gateway.invoke(plan.wraps[0].name, b"")
    assert (answer.text, reference.output) == ("copied too", "copied too")


def test_a_change_of_what_is_copied_or_of_a_field_is_another_source(with_common):
    def now() -> str:
        return source_of(Sources.read(with_common, {}))

    seen = [now(), now()]
    (with_common.path / "shared" / "common" / "words.py").write_text("WORD = 'other '\n")
    seen.append(now())
    stack = json.loads(with_common.stack_file.read_text())
    stack["functions"]["wave"]["labels"] = {"team": "a"}
    with_common.stack_file.write_text(json.dumps(stack))
    seen.append(now())
    assert seen[0] == seen[1]
    assert len({*seen}) == 3


def test_what_copied_code_reads_and_changes_counts_for_every_function(write_folder, tmp_path):
    folder = write_folder(
        tmp_path / "f",
        {"tasks": {"t": "wave", "u": "side"}},
        dict.fromkeys(("wave", "side"), READS_COMMON),
        {},
        {"wave": {"environment": {"MODE": "debug"}}},
    )
    (folder.path / "shared" / "common").mkdir(parents=True)
    code = "import os\nWORD = os.environ.get('MODE')\ndef apart():\n    os.chdir('/')\n"
    (folder.path / "shared" / "common" / "words.py").write_text(code)
    (folder.path / "text.txt").write_text("too")
    folder.stack_file.write_text(json.dumps(json.loads(folder.stack_file.read_text()) | COMMON))
    found = read_settings(folder, {}).environments
    assert {name: found[name]["MODE"] for name in found} == {"wave": "debug", "side": ""}
    handlers = Sources.read(folder, {}).handlers.values()
    assert [unshareable(*each.places) for each in handlers] == [("os.chdir",)] * 2


def test_requirements_that_are_copied_are_those_of_the_wrap(with_common, plan_of, tmp_path):
    (with_common.path / "requirements.txt").write_text("flask==3.0.0\n")
    stack = json.loads(with_common.stack_file.read_text())
    stack["configuration"]["copy"].append("requirements.txt")
    with_common.stack_file.write_text(json.dumps(stack))
    plan = plan_of(with_common.workflow)
    out = generate(plan, Sources.read(with_common, {}), tmp_path / "build").parent
    assert (out / plan.wraps[0].name / "requirements.txt").read_text() == "flask==3.0.0\n"


def shrinkwrapped(faas_cli: str, folder: Path, name: str) -> dict[str, bytes]:
    """What faas-cli gives to the build of a function's image, of its own code."""
    command = [faas_cli, "build", "-f", "stack.yaml", "--filter", name, "--shrinkwrap"]
    environment = {"HOME": str(folder), "PATH": ""}
    subprocess.run(
        command, cwd=folder, env=environment, check=True, capture_output=True, timeout=60
    )
    context = folder / "build" / name / "function"
    return {
        str(path.relative_to(context)): path.read_bytes()
        for path in sorted(context.rglob("*"))
        if path.is_file()
    }


@pytest.mark.usefixtures("whole_template")
@pytest.mark.faas_cli
def test_faas_cli_copies_the_same_from_both_files(faas_cli, with_common, plan_of, tmp_path):
    stack = json.loads(with_common.stack_file.read_text())
    stack["functions"]["side"] |= {"lang": "mine", "unknown": {"to": "faas-cli"}}
    with_common.stack_file.write_text(json.dumps(stack))
    plan = plan_of(with_common.workflow)
    out = generate(plan, Sources.read(with_common, {}), tmp_path / "build").parent
    for folder in (with_common.path, out):
        template = folder / "template" / "mine"
        template.mkdir(parents=True)
        (template / "template.yml").write_text("language: mine\nfprocess: cat\n")
    theirs = shrinkwrapped(faas_cli, with_common.path, "side")
    assert {*theirs} == {"handler.py", "text.txt", "shared/common/words.py"}
    assert shrinkwrapped(faas_cli, out, "side") == theirs
    wrap = shrinkwrapped(faas_cli, out, plan.wraps[0].name)
    assert {f"functions/wave/function/{path}" for path in theirs} <= wrap.keys()


@pytest.mark.parametrize("path", ["../x", "/etc", ".", "", "a/../..", "nowhere", "a\0b"])
def test_paths_that_cannot_be_copied_are_named(folder_of, path):
    folder = folder_of({}, configuration={"copy": [path]})
    with pytest.raises(ChironError) as refused:
        Sources.read(folder, {})
    assert (refused.value.code, refused.value.path) == ("bad-copy", "configuration.copy[0]")


def test_a_link_among_what_is_copied_leads_nowhere_else(with_common):
    (with_common.path / "shared" / "common" / "hosts").symlink_to("/etc/hosts")
    with pytest.raises(ChironError) as refused:
        Sources.read(with_common, {})
    assert refused.value.code == "bad-link"
