"""Stand-ins for wraps, for tests of what is deployed when: they start ten times as fast.

Each runs all functions of a workflow itself: one after another, or all on the request.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from chiron.deployment.deploy import Builder
from chiron.gateway.build import FunctionSource, build
from chiron.gateway.images import ImageStore, images_folder
from chiron.openfaas.stack import read_stack

_TEMPLATE = Path(__file__).parents[1] / "gateway" / "minimal_template"
_HANDLER = """
import json
from pathlib import Path
from runpy import run_path

WRAP = {name!r}
FUNCTIONS = [run_path(str(file))["handle"] for file in sorted(Path("function").rglob("own.py"))]


def handle(request):
    if request.path == "/_/wrap":
        return WRAP
    if request.command != "POST":
        return ""
    text = request.body.decode()
    if {joined!r}:
        return json.dumps([each(text) for each in FUNCTIONS], separators=(",", ":"))
    for each in FUNCTIONS:
        text = each(text)
    return text
"""


def stand_ins(*, joined: bool) -> Builder:
    """What builds them; `joined` says that no function needs another one."""

    def build_them(stack_file: Path) -> None:
        functions = read_stack(stack_file, {}).functions
        store = ImageStore(images_folder())
        code = {
            name: [*(stack_file.parent / name).glob("functions/*/function/handler.py")]
            for name in functions
        }
        of_wraps = [file for files in code.values() for file in files]
        with tempfile.TemporaryDirectory() as scratch:
            templates = Path(scratch) / "templates"
            for template in ("plain", "python3-wrap"):
                shutil.copytree(_TEMPLATE, templates / template)
            for name, function in functions.items():
                own = of_wraps if code[name] else [stack_file.parent / name / "handler.py"]
                folder = Path(scratch) / name
                for file in own:
                    place = folder / file.parents[1].name
                    place.mkdir(parents=True)
                    shutil.copy(file, place / "own.py")
                is_joined = joined and len(own) > 1
                (folder / "handler.py").write_text(_HANDLER.format(name=name, joined=is_joined))
                source = FunctionSource(name, function.image, function.lang, folder)
                build(source, templates, store)

    return build_them
