"""Functions that numba makes machine code, once on a machine, and that are loaded without numba.

A process that only runs them pays for llvmlite's loader and not for numba, which takes several times as long to import
and brings objects that a Spark worker's garbage collection would look at after every task (docs/adr/0012).
"""

import ctypes
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from llvmlite import binding

from kgs_core.adapters.system.cache_dir import build_once, cache_directory, flush
from kgs_core.errors import PermanentError

_C = {"memcpy", "memset", "strlen"}  # what a compiler makes of loops over bytes
Loop = Callable[..., int]
_NAMES = "names"
_engines: list[Any] = []
"""What owns the code that was loaded: it stays for the process's life."""


def machine_code(module: str, sources: Sequence[str]) -> Mapping[str, Loop]:
    """The functions of `module` that its `ENTRIES` name, each of so many int64 to one.

    The first process compiles, the others wait for it or load. They must not raise, nor make an array.

    Args:
        module: imported only to be compiled, since it imports numba.
        sources: names of the modules that the code depends on besides; they are not imported.

    Raises:
        PermanentError: the cache directory does not have them and cannot be written, or has lost a part of them.
    """
    folder = build_once(
        _folder(module, [_file_of(name) for name in (module, *sources)]), lambda directory: _build(module, directory)
    )
    try:
        return {name: _load(folder / f"{name}.o") for name in (folder / _NAMES).read_text().split()}
    except (OSError, ValueError, RuntimeError) as e:
        raise PermanentError(f"{folder}: what is kept there is damaged ({e}): remove it, it is made anew") from e


def _file_of(module: str) -> Path:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ImportError(f"{module}: not found")
    return Path(spec.origin)


def _folder(module: str, files: Sequence[Path]) -> Path:
    """Named by all that the code depends on."""
    what = hashlib.sha256(f"{version('numba')} {version('llvmlite')} {_host()}".encode())
    for source in (Path(__file__), *files):
        what.update(hashlib.sha256(source.read_bytes()).digest())
    return cache_directory() / f"{module.rpartition('.')[2]}-{what.hexdigest()[:16]}"


def _host() -> tuple[str, str, str]:
    """What is compiled for, by the settings that numba goes by, too (NUMBA_CPU_NAME=generic: for any processor)."""
    name, features = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    if features is None:
        features = "" if name == "generic" else binding.get_host_cpu_features().flatten()
    return binding.get_process_triple(), name or binding.get_host_cpu_name(), features


def _target() -> Any:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    triple, name, features = _host()
    return binding.Target.from_triple(triple).create_target_machine(cpu=name, features=features, opt=3)


def _build(module: str, directory: Path) -> None:
    """An object file for each function; its one symbol that counts is in the file beside it."""
    import numba

    to_c: Any = numba.cfunc
    types, source = numba.types, import_module(module)
    for name, arguments in source.ENTRIES.items():
        signature = types.int64(*[types.int64] * arguments)
        compiled = to_c(signature, error_model="numpy", _nrt=False)(getattr(source, name))
        assembly = _alone(binding.parse_assembly(compiled.inspect_llvm()), compiled.native_name)
        called = {f.name for f in assembly.functions if f.is_declaration and not f.name.startswith("llvm.")}
        if not called <= _C:  # numba's own are not there where the code is loaded
            raise ValueError(f"{module}.{name} calls {', '.join(sorted(called - _C))}")
        code = _target().emit_object(assembly)
        (directory / f"{name}.o").write_bytes(code)
        (directory / f"{name}.symbol").write_text(f"{arguments} {compiled.native_name}")
    (directory / _NAMES).write_text("\n".join(source.ENTRIES))
    flush(directory)


def _alone(assembly: Any, name: str) -> Any:
    """The code with that one name to the outside: what numba keeps for functions that raise is then seen to be dead."""
    for function in assembly.functions:
        if not function.is_declaration and function.name != name:
            function.linkage = "internal"
    passes = binding.create_pass_builder(_target(), binding.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(assembly, passes)
    return assembly


def _load(path: Path) -> Loop:
    arguments, _, symbol = path.with_suffix(".symbol").read_text().partition(" ")
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _target())
    engine.add_object_file(binding.ObjectFileRef.from_path(str(path)))
    engine.finalize_object()
    _engines.append(engine)
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * int(arguments))
    loop: Loop = kind(engine.get_function_address(symbol))
    return loop
