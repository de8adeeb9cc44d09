"""Start of a process that a handler spawned: creates the package ``function``, as it is alone.

`multiprocessing` runs this file as ``__mp_main__``. The last folder of ``sys.path`` is the
function's.
"""

import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path

folder = Path(sys.path[-1])
init = folder / "__init__.py"
loader = SourceFileLoader("function", str(init)) if init.is_file() else None
spec = ModuleSpec("function", loader, origin=str(init), is_package=True)
spec.submodule_search_locations = [str(folder)]
sys.modules["function"] = package = module_from_spec(spec)
if loader is not None:
    loader.exec_module(package)
