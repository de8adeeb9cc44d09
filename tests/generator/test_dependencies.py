"""Dependencies that OpenFaaS's templates do not install are told."""

from __future__ import annotations

from chiron.generator.generate import Sources
from tests.rows import each_row

PROJECT = '[project]\nname = "f"\ndependencies = ["requests"]\n'
POETRY = '[tool.poetry.dependencies]\npython = "^3.11"\nrequests = "*"\n'


@each_row(
    ("files", "told"),
    [
        ({"pyproject.toml": PROJECT}, "pyproject.toml"),
        ({"pyproject.toml": POETRY}, "pyproject.toml"),
        ({"Pipfile": '[packages]\nrequests = "*"\n'}, "Pipfile"),
        ({"pyproject.toml": PROJECT, "requirements.txt": "requests\n"}, None),
        ({"pyproject.toml": "[tool.ruff]\nline-length = 100\n"}, None),
        ({"pyproject.toml": POETRY.replace("requests", "# requests")}, None),
        ({"pyproject.toml": "project ="}, None),
        ({"pyproject.toml": "project = 1\n"}, None),
        ({}, None),
    ],
)
def test_dependencies_that_are_not_installed_are_told(files, told, write_folder, tmp_path):
    number = len(list(tmp_path.iterdir()))
    handler = "def handle(req):\n    return req\n"
    folder = write_folder(
        tmp_path / f"w{number}", {"tasks": {"a": "wave"}, "edges": []}, {"wave": handler}
    )
    for name, text in files.items():
        (folder.path / "functions" / "wave" / name).write_text(text)
    lines = [line for line in Sources.read(folder, {}).warnings if "dependencies" in line]
    assert [f"function wave: the dependencies in {told} " in line for line in lines] == (
        [True] if told else []
    )
