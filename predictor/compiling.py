"""Compiles the kernel once and keeps its machine code, which loads without numba.

numba loads in half a second and compiles in many. llvmlite, numba's compiler, loads the finished
machine code in a twentieth of a second. Each file holds the code of one source, one numba and one
processor. If no file can be written, every process compiles.
"""

from __future__ import annotations

import ctypes
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite.binding as llvm

from chiron.workflow.documents import write_atomically
from chiron.workflow.errors import ChironError

Function = TypeVar("Function", bound=Callable[..., object])

_log = logging.getLogger(__name__)
#: The sources of the machine code besides the modules of `chiron.predictor.kernel`.
_SOURCES = ("compiling.py", "records.py")
#: Functions of numba for errors and for releasing memory. The machine code refers to them and never
#: calls them; numba is not loaded with it.
_NEVER_CALLED = ("NRT_MemInfo_call_dtor", "numba_gil_ensure", "numba_gil_release")
_DIGEST_BYTES = sha256().digest_size


def inner(function: Function) -> Function:
    """Compile `function` as a part of the kernel; it may not allocate, and Python cannot call it.

    The kernel's caller keeps all arrays alive. Without counting references, it is five times as
    fast.
    """
    import numba

    options: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
    options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # Python never calls it
    compiled: Function = numba.njit(**options)(function)
    return compiled


@cache
def kernel() -> Callable[..., int]:
    """Return `chiron.predictor.kernel.simulate` as machine code; arguments are addresses."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    files = list(_files())
    code = next(filter(None, map(_read, files)), None)
    if code is None:
        _log.warning("compiling the simulation, which takes some seconds, once")
        code = _compiled()
        _keep(code, files)
    for name in _NEVER_CALLED:
        if not llvm.address_of_symbol(name):
            llvm.add_symbol(name, llvm.address_of_symbol("abort"))
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    function: Any = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 19)(
        engine.get_function_address("simulate")
    )
    function.engine = engine  # the engine owns the code
    return cast(Callable[..., int], function)


def _files() -> Iterator[Path]:
    """Yield the places of the machine code: beside the source, then in the user's cache."""
    here = Path(__file__).parent
    key = sha256()
    for part in (llvm.get_host_cpu_name(), _features(), version("numba"), version("llvmlite")):
        key.update(part.encode() + b"\0")
    for file in (*(here / name for name in _SOURCES), *sorted((here / "kernel").glob("*.py"))):
        key.update(file.read_bytes())
    name = f"kernel-{key.hexdigest()[:16]}.o"
    yield here / "__pycache__" / name
    with suppress(RuntimeError):  # a user without a home, as in a container
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "chiron" / name


def _read(file: Path) -> bytes | None:
    """Return the machine code in `file` if its digest matches, else None."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return code if sha256(code).digest() == digest else None


def _keep(code: bytes, files: list[Path]) -> None:
    """Write `code` to the first writable one of `files`."""
    for file in files:
        try:
            write_atomically(file, sha256(code).digest() + code)
        except (ChironError, OSError):
            continue
        return


def _compiled() -> bytes:
    """Return the kernel as an object file with one function, ``simulate``."""
    import numba
    from numba.core.compiler_lock import global_compiler_lock

    from chiron.predictor.kernel.simulate import SIGNATURE, simulate

    with global_compiler_lock, _without_machine_code():
        compiled = numba.cfunc(SIGNATURE, error_model="numpy")(simulate)
    text = compiled.inspect_llvm().replace(compiled.native_name, "simulate")
    module, machine = llvm.parse_assembly(text), _machine()
    for function in module.functions:
        if not function.is_declaration and function.name != "simulate":
            function.linkage = "internal"
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    passes.getModulePassManager().run(module, passes)
    return bytes(machine.emit_object(module))


@contextmanager
def _without_machine_code() -> Iterator[None]:
    """Restrict numba to linking in a block: no optimisation, no machine code.

    numba would optimise and emit each function again with every caller, and compile it again for
    every number that callers write out.
    """
    from numba.core import config, types
    from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
    from numba.core.dispatcher import Dispatcher

    template = Dispatcher.get_call_template

    def for_any_number(one: Any, arguments: Any, named: Any) -> Any:
        return template(one, tuple(map(types.unliteral, arguments)), named)

    instead: list[tuple[Any, str, Any]] = [
        (config, "OPT", type(config.OPT)(0)),  # type: ignore[attr-defined]
        (JITCodeLibrary, "_finalize_specific", lambda _: None),
        (JITCodeLibrary, "get_pointer_to_function", lambda one, _: one._ensure_finalized() or 0),
        (JITCPUCodegen, "set_env", lambda *_: None),
        (Dispatcher, "get_call_template", for_any_number),
    ]
    usual = [(owner, name, getattr(owner, name)) for owner, name, _ in instead]
    for each in instead:
        setattr(*each)
    try:
        yield
    finally:
        for each in usual:
            setattr(*each)


def _machine() -> llvm.TargetMachine:
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(), opt=3, jit=True
    )


def _features() -> str:
    return str(llvm.get_host_cpu_features().flatten())
