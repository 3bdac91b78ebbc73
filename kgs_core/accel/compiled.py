"""Functions that numba makes machine code, once on a machine, kept in the cache directory (docs/adr/0009).

Where the directory cannot be used, every process compiles for itself and warns: slower, never different.

- `machine_code` loads loops over bytes without numba: a Spark worker pays for llvmlite's loader alone. numba takes
  several times as long to import, and brings objects that a worker's garbage collection would look at after every task
  (docs/adr/0012).
- `compiled_once`, `compiled` and `compiled_loop` are for functions over arrays. numba loads them, for half a second: to
  be imported only where something is going to be computed.
"""

import ctypes
import hashlib
import inspect
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, cast

import numpy.typing as npt
from llvmlite import binding

from kgs_core.accel.cache_dir import build_once, cache_directory, flush
from kgs_core.errors import PermanentError

F = TypeVar("F", bound=Callable[..., object])
Loop = Callable[..., int]
LOOPS = tuple(f"kgs_core.accel.{name}" for name in ("loops", "avro_walk", "json_scan"))
"""The modules that are for `machine_code`."""
_LOOP = {"_nrt": False}
_C = {"memcpy", "memset", "strlen"}  # what a compiler makes of loops over bytes
_NAMES = "names"
_log = logging.getLogger(__name__)
_engines: list[Any] = []
"""What owns the code that was loaded: it stays for the process's life."""


@cache
def machine_code(module: str) -> Mapping[str, Loop]:
    """The functions of `module` that its `ENTRIES` name, each of so many int64 to one.

    The module is imported only to be compiled, since it imports numba. Its functions may call what lies in its folder;
    they must not raise, nor make an array.
    """

    def build(directory: Path) -> None:
        made = _objects(module)
        for name, (symbol, code) in made.items():
            (directory / f"{name}.o").write_bytes(code)
            (directory / f"{name}.symbol").write_text(symbol)
        (directory / _NAMES).write_text("\n".join(made))
        flush(directory)

    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ImportError(f"{module}: not found")
    folder = _kept(module.rpartition(".")[2], Path(spec.origin), build)
    if folder is not None:
        try:
            kept = [folder / name for name in (folder / _NAMES).read_text().split()]
            return {each.name: _loaded(_read(each, "symbol").decode(), _read(each, "o")) for each in kept}
        except (OSError, ValueError, RuntimeError) as e:
            _warn(f"{folder}: what is kept there is damaged ({e}): remove it")
    return {name: _loaded(*made) for name, made in _objects(module).items()}


def address_of(array: npt.NDArray[Any]) -> int:
    """Where a contiguous array begins: what a loop is given."""
    address: int = array.ctypes.data
    return address


def compiled(function: F) -> F:
    """Part of a function that is `compiled_once`; compiled with it, or anew in each process that calls it itself."""
    return cast(F, _jit(function))


def compiled_loop(function: F) -> F:
    """The same for a function that makes no array: none is counted, which makes the search four times as fast."""
    return cast(F, _jit(function, _LOOP))


def compiled_once(*example: object, loop: bool = False) -> Callable[[F], F]:
    """Decorator that makes a function machine code when it is imported: the first process compiles, later ones load.

    It may call compiled functions of its own folder; when a file there changes, it is compiled again.

    Args:
        example: arguments of the types that it is going to get; others are a TypeError.
        loop: it makes no array, as with `compiled_loop`.
    """
    from numba import typeof

    types = tuple(map(typeof, example))

    def decorate(function: F) -> F:
        return cast(F, _once(function, partial(_jit, function, _LOOP if loop else {}, types)))

    return decorate


def _kept(name: str, source: Path, build: Callable[[Path], None]) -> Path | None:
    """The folder with the code, made by `build`; None, and a warning: it is not there and cannot be made.

    It is named by all that the code depends on: every file beside `source`, who compiles, and what for.
    """
    what = hashlib.sha256(f"{source} {version('numba')} {version('llvmlite')} {sys.version} {_host()}".encode())
    for each in (Path(__file__), *sorted(source.parent.glob("*.py"))):
        what.update(hashlib.sha256(each.read_bytes()).digest())
    try:
        return build_once(cache_directory() / f"{name}-{what.hexdigest()[:16]}", build)
    except PermanentError as e:
        _warn(str(e))
        return None


def _warn(problem: str) -> None:
    _log.warning("every process compiles for itself, which takes seconds: %s", problem)


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


def _objects(module: str) -> Mapping[str, tuple[str, bytes]]:
    """Of each function its number of arguments with the one symbol that counts, and an object file."""
    import numba

    to_c: Any = numba.cfunc
    types, source = numba.types, import_module(module)
    made = {}
    for name, arguments in source.ENTRIES.items():
        signature = types.int64(*[types.int64] * arguments)
        function = to_c(signature, error_model="numpy", **_LOOP)(getattr(source, name))
        assembly = _alone(binding.parse_assembly(function.inspect_llvm()), function.native_name)
        called = {f.name for f in assembly.functions if f.is_declaration and not f.name.startswith("llvm.")}
        if not called <= _C:  # numba's own are not there where the code is loaded
            raise ValueError(f"{module}.{name} calls {', '.join(sorted(called - _C))}")
        made[name] = f"{arguments} {function.native_name}", _target().emit_object(assembly)
    return made


def _alone(assembly: Any, name: str) -> Any:
    """The code with that one name to the outside: what numba keeps for functions that raise is then seen to be dead."""
    for function in assembly.functions:
        if not function.is_declaration and function.name != name:
            function.linkage = "internal"
    passes = binding.create_pass_builder(_target(), binding.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(assembly, passes)
    return assembly


def _read(path: Path, kind: str) -> bytes:
    return path.with_name(f"{path.name}.{kind}").read_bytes()


def _loaded(symbol: str, code: bytes) -> Loop:
    arguments, _, name = symbol.partition(" ")
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _target())
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * int(arguments))
    loop: Loop = kind(engine.get_function_address(name))
    return loop


def _jit(
    function: Callable[..., object], options: Mapping[str, Any] | None = None, types: Any = None, *, keep: bool = False
) -> Any:
    from numba import njit

    return njit(types, error_model="numpy", cache=keep, **(options or {}))(function)


def _once(function: Callable[..., object], jit: Callable[..., Any]) -> Any:
    def build(directory: Path) -> None:
        with _numba_keeps_in(directory):
            jit(keep=True)
        flush(directory)

    folder = _kept(function.__name__, Path(inspect.getfile(function)), build)
    if folder is None:
        return jit()
    try:
        with _numba_keeps_in(folder):
            return jit(keep=True)
    except RuntimeError:  # it may not write there, and numba reads no folder that it could not write to
        with TemporaryDirectory() as copy, _numba_keeps_in(shutil.copytree(folder, copy, dirs_exist_ok=True)):
            return jit(keep=True)


@contextmanager
def _numba_keeps_in(folder: Path | str) -> Iterator[None]:
    """NUMBA_CACHE_DIR, and no other place: what lies beside the source may be of other source."""
    from numba import config

    settings = {"CACHE_DIR": str(folder), "CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator"}
    before = {name: getattr(config, name) for name in settings}
    try:
        vars(config).update(settings)
        yield
    finally:
        vars(config).update(before)
