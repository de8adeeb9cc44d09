"""Functions that no wrap runs, copied to a generated folder from the user's stack.yaml."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from chiron.generator.annotations import FOR_WRAPS
from chiron.generator.fingerprint import with_definition
from chiron.openfaas.handlers import SKIPPED, extra_of, handler_folder, lay_out, own_template
from chiron.openfaas.languages import language_of
from chiron.openfaas.stack import Configuration, StackFunction, environment

if TYPE_CHECKING:
    from chiron.generator.generate import Sources


def copied(sources: Sources, name: str, draft: Path) -> StackFunction:
    """Return a supporting function of the user's stack.yaml, and copy its code if it has some."""
    function, place = sources.stack.functions[name], sources.folder.path.resolve()
    variables = sources.common_variables | environment(function, sources.folder.path)
    settings: dict[str, object] = {"environment": variables, "environment_file": ()}
    language = language_of(function)
    if function.handler:
        code = handler_folder(name, function, sources.folder.path, "with its code")
        lay_out(code, extra_of(sources.stack, sources.folder.path), draft / name)
        settings["handler"] = f"./{name}"
        settings["image"] = function.image if function.skip_build else sources.image(function.image)
    if not function.fprocess and language is not None:
        settings["fprocess"] = language.start
    if not function.lang:
        settings["skip_build"] = True  # its image exists: faas-cli would refuse to build it
    if function.build_secrets:  # faas-cli resolves them in its working directory
        files = {key: str(place / file) for key, file in function.build_secrets.items()}
        settings["build_secrets"] = files
    copied = function.model_copy(update=settings)
    template = own_template(function.lang, sources.folder.path)
    defined = with_definition(copied, draft / name if function.handler else None, template)
    if name not in sources.called:
        return defined
    annotations = {**defined.annotations, FOR_WRAPS: "true"}
    return defined.model_copy(update={"annotations": annotations})


def copy_templates(sources: Sources, target: Path) -> None:
    """Copy the user's templates of those functions that are deployed unchanged."""
    for lang in {sources.stack.functions[name].lang for name in sources.supporting}:
        own = own_template(lang, sources.folder.path)
        if own is not None and not (target / lang).exists():
            shutil.copytree(own, target / lang, ignore=SKIPPED)


def configuration_of(sources: Sources) -> Configuration | None:
    """Return the sources of the supporting functions' templates, if stack.yaml has some."""
    configuration = sources.stack.configuration
    langs = {sources.stack.functions[name].lang for name in sources.supporting}
    templates = configuration.templates if configuration else ()
    kept = tuple(each for each in templates if each.name in langs)
    return Configuration(templates=kept) if kept else None
