"""Which variables of others a function's code reads: by name, all, or by what it imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from chiron.openfaas.sharing import with_unset
from chiron.openfaas.variables_read import read_of

#: Those that any code may read without naming them.
ANY = {"TZ", "HOSTNAME", "https_proxy", "PYTHONWARNINGS", "LD_PRELOAD"}
NAMED = {"MODE", "APP_MODE", "OPENAI_API_KEY", "AWS_REGION", "NODE_ENV", "JAVA_TOOL_OPTIONS"}
VARIABLES = ANY | NAMED
ROWS: dict[str, tuple[str, set[str]]] = {
    "nothing": ("def handle(req):\n    return req", set()),
    "a name that is none of a variable": ("X = 'MODE'", set()),
    "by name": ("import os\nos.environ['MODE']", {"MODE"}),
    "by name, with a default": ("from os import environ, path\nenviron.get('MODE', '')", {"MODE"}),
    "by name, if it is there": ("import os\nif 'MODE' in os.environ: pass", {"MODE"}),
    "by a constant": ("import os\nKEY = 'MODE'\nos.getenv(KEY)", {"MODE"}),
    "in a loop": ("import os\nfor k, v in os.environ.items(): pass", VARIABLES),
    "as a whole": ("import os\nsettings = dict(os.environ)", VARIABLES),
    "for a program": ("import os\nrun(env={**os.environ, 'A': 'b'})", VARIABLES),
    "by a name that it makes": ("import os\nos.environ.get(f'APP_{name}')", VARIABLES),
    "by a sum of names": ("import os\nos.getenv('APP_' + name)", VARIABLES),
    "by a name and more": ("import os\nos.environ[prefix + '_MODE']", VARIABLES),
    "by a name that it changes": ("import os\nos.getenv(name.upper())", VARIABLES),
    "by words": ("import os\n[os.getenv(n) for n in 'LEVEL MODE'.split()]", {"MODE"}),
    "by a class": ("from pydantic_settings import BaseSettings", VARIABLES),
    "by a package": ("import openai\nfrom boto3 import client", {"OPENAI_API_KEY", "AWS_REGION"}),
    "by a package of another name": ("import botocore.session", {"AWS_REGION"}),
}


@pytest.mark.parametrize(("code", "found"), ROWS.values(), ids=ROWS)
def test_variables_that_code_reads(code: str, found: set[str], tmp_path: Path) -> None:
    (tmp_path / "handler.py").write_text(code)
    assert read_of(VARIABLES, [tmp_path]) == found | ANY


@pytest.mark.parametrize(
    ("file", "code", "found"),
    [
        ("run.sh", "echo $MODE", {"MODE"}),
        ("handler.js", "const m = process.env.MODE;", {"MODE", "NODE_ENV"}),
        ("handler.js", "const c = require('openai');", {"OPENAI_API_KEY", "NODE_ENV"}),
        ("handler.js", "const { MODE } = process.env;", VARIABLES),
        ("handler.js", "process.env[name]", VARIABLES),
        ("Handler.java", 'System.getenv("MODE");', {"MODE", "JAVA_TOOL_OPTIONS"}),
        ("Handler.java", "System.getenv().get(name);", VARIABLES),
        ("notes.txt", "os.environ['MODE']", set()),
    ],
)
def test_variables_of_other_languages(
    file: str, code: str, found: set[str], tmp_path: Path
) -> None:
    (tmp_path / file).write_text(code)
    assert read_of(VARIABLES, [tmp_path]) == found | ANY


def test_a_constant_may_be_in_another_file_or_in_what_is_copied(tmp_path: Path) -> None:
    common = tmp_path / "common.py"
    common.write_text("import os\ndef setting(name):\n    return os.environ[name]\n")
    folder = tmp_path / "function"
    folder.mkdir()
    (folder / "handler.py").write_text("from .common import setting\nsetting('MODE')\n")
    assert read_of({"MODE", "OTHER"}, [folder, common]) == {"MODE"}


def test_a_variable_that_its_own_function_does_not_name_is_of_the_packages_it_imports(
    tmp_path: Path,
) -> None:
    codes = {
        "own": "import json, odd.client\nfrom . import util\n",
        "same": "from odd import client\n",
        "other": "import json\nfrom . import util\n",
    }
    for name, code in codes.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "util.py").touch()
        (tmp_path / name / "handler.py").write_text(code)
    variables = {"own": {"ODDLY_NAMED": "x", "write_debug": "true"}, "same": {}, "other": {}}
    found = with_unset(variables, {name: [tmp_path / name] for name in codes})
    assert found == {**variables, "same": {"ODDLY_NAMED": ""}}
