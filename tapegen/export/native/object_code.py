"""Object code: compiled source as an object file with numba's native function, without the parts that need Python.

numba's native function returns a status, writes its result through its first argument and its exception through
its second; arguments are flat (an array is its owner, its parent, number of items, item size, address, sizes, strides).
An exception is a pickled constant of the module; here a number replaces it, which the C interface returns.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
from numba import types

from tapegen.backend.numba.build import build_numba, compile_failure
from tapegen.backend.printer.source import PythonSource
from tapegen.errors import BuildError
from tapegen.export.native.entry_points import C_TYPES
from tapegen.ir.types import Array, ListOf, RandomGenerator, Scalar, Type

FIRST_ERROR = 16
"""Smaller numbers represent errors of the interface itself."""

_PICKLED = re.compile(r'^(@"?\.const\.pickledata\.[0-9a-f]+(?:\.\d+)*"?) = internal constant \[\d+ x i8\] c"(.*)"(.*)$')
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|\\)")


@dataclass(frozen=True, slots=True)
class NativeObject:
    """The machine code of one generated function.

    Attributes
    ----------
    symbol : str
        Name of the function in the object file.
    code : bytes
        The object file.
    needs : frozenset of str
        The functions that it calls and does not contain.
    """

    symbol: str
    code: bytes
    needs: frozenset[str]


@dataclass(frozen=True, slots=True)
class Processor:
    """The processor that code is generated for.

    Attributes
    ----------
    name : str
        The user's name of it.
    cpu, attributes : str
        LLVM's names.
    features : tuple of str
        Required features of a machine, in the spelling of C compilers.
    """

    name: str
    cpu: str
    attributes: str
    features: tuple[str, ...]


_LEVELS = {
    "x86-64-v2": ("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt"),
    "x86-64-v3": ("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "avx", "avx2", "bmi", "bmi2", "fma"),
}
_CHECKED = (*_LEVELS["x86-64-v3"], "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")


def processor(name: str) -> Processor:
    """The processor of a name: a level of x86-64, or `native`.

    Raises
    ------
    BuildError
        For another name, or one of another architecture than this machine's.
    """
    if name == "native":
        found = llvm.get_host_cpu_features()
        features = tuple(feature for feature in _CHECKED if found.get(feature))
        return Processor(name, llvm.get_host_cpu_name(), found.flatten(), features)
    if name in _LEVELS and llvm.get_process_triple().startswith("x86_64"):
        return Processor(name, name, "", _LEVELS[name])
    raise BuildError(f"the processor '{name}' is unknown here.", f"Give {', '.join(_LEVELS)} or native.")


class Errors:
    """Numbers of the exceptions that the functions of a library raise."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}

    def number(self, kind: str, text: str) -> int:
        """The number of an exception of this class with this message."""
        return self._numbers.setdefault((kind, text), FIRST_ERROR + len(self._numbers))

    def items(self) -> list[tuple[int, str, str]]:
        """Number, class and message of each."""
        return [(number, kind, text) for (kind, text), number in self._numbers.items()]


def numba_type(type_: Type) -> Any:
    """The numba type of a parameter; BuildError for what a C function does not accept."""
    if isinstance(type_, ListOf) and isinstance(type_.item, Scalar | Array):
        return types.List(numba_type(type_.item))
    if isinstance(type_, RandomGenerator):
        raise BuildError(
            "the function draws from a generator of random numbers, which no C function takes.",
            "Make the numbers an argument: an array that is drawn outside.",
        )
    if not isinstance(type_, Scalar | Array):
        raise BuildError(
            "a value that a loop keeps for the backward sweep is a list of lists or tuples, which the two functions of "
            "the split form cannot pass on.",
            "Build the other modes, or store the values of the loop in arrays.",
        )
    if type_.dtype not in C_TYPES:
        raise BuildError(
            f"a value is of {type_.dtype}, which the C functions of a library neither take nor keep.",
            "Use another dtype; or build modes that keep no such value (--mode value,grad).",
        )
    dtype: Any = getattr(types, "boolean" if type_.dtype == "bool" else type_.dtype)
    if isinstance(type_, Scalar):
        return dtype
    layout: Any = type_.layout if type_.rank else "C"
    return types.Array(dtype, type_.rank, layout)


def native_object(
    source: PythonSource,
    parameters: Sequence[Type],
    results: Sequence[Type],
    symbol: str,
    errors: Errors,
    target: Processor,
) -> NativeObject:
    """Compile a source for these parameters.

    Parameters
    ----------
    source : PythonSource
        The source for numba.
    parameters : sequence of Type
        Types of the parameters of its entry.
    results : sequence of Type
        Types of its results, by which the C functions read them.
    symbol : str
        The name to give to the entry.
    errors : Errors
        Collects the exceptions that the code raises.
    target : Processor
        The processor to generate code for.

    Raises
    ------
    BuildError
        If numba cannot compile a part of the source, or infers other types.
    """
    dispatcher: Any = build_numba(source, from_start=True)
    try:
        dispatcher.compile(tuple(numba_type(type_) for type_ in parameters))
    except Exception as error:
        failure = compile_failure(error, source)
        if failure is None:
            raise
        raise BuildError(
            failure[0], "A library holds compiled code only; write this differently.", failure[1]
        ) from None
    (compiled,) = dispatcher.overloads.values()
    returned: Any = compiled.signature.return_type
    found = [] if isinstance(returned, types.NoneType) else list(getattr(returned, "types", [returned]))
    for type_ in results:
        numba_type(type_)  # refuses types that cannot be returned
    if len(found) != len(results) or not all(map(_agree, found, results)):
        raise BuildError(
            f"numba gives {returned} for {source.entry}, where the C functions expect {', '.join(map(str, results))}.",
            "Build the other modes, or write this differently.",
        )
    text = compiled.library.get_llvm_str()
    return _machine_code(_numbered(text, errors), compiled.fndesc.llvm_func_name, symbol, target)


def _agree(found: Any, type_: Type) -> bool:
    """Whether values of both types have the same memory representation, except for the order of axes."""
    found = types.unliteral(found)
    if isinstance(type_, ListOf):
        return isinstance(found, types.List) and _agree(found.dtype, type_.item)
    if isinstance(type_, Array):
        return isinstance(found, types.Array) and found.ndim == type_.rank and str(found.dtype) == type_.dtype
    return isinstance(type_, Scalar) and str(found) == type_.dtype


def _numbered(text: str, errors: Errors) -> str:
    """The module with numbers in place of pickled exceptions."""
    lines = text.splitlines()
    for k, line in enumerate(lines):
        if line.startswith(("@.const.pickledata.", '@".const.pickledata.')) and (found := _PICKLED.match(line)):
            data = _ESCAPE.sub(_byte, found[2].encode("latin-1"))
            raised = pickle.loads(data)  # made by numba in this process
            if isinstance(raised, tuple) and raised and isinstance(raised[0], type):
                number = errors.number(raised[0].__name__, ", ".join(map(str, raised[1] or ())))
                bytes_ = "".join(f"\\{byte:02X}" for byte in number.to_bytes(4, "little"))
                lines[k] = f'{found[1]} = internal constant [4 x i8] c"{bytes_}", align 4'
    return "\n".join(lines) + "\n"


def _byte(code: re.Match[bytes]) -> bytes:
    return b"\\" if code[1] == b"\\" else bytes([int(code[1], 16)])


def _machine_code(text: str, entry: str, symbol: str, processor_: Processor) -> NativeObject:
    """The object file in which only the entry is externally visible, by its new name."""
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    for function in module.functions:
        if not function.is_declaration and function.name != entry:
            function.linkage = llvm.Linkage.internal
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = llvm.Linkage.internal
    found = module.get_function(entry)
    found.name = symbol
    found.visibility = "hidden"
    target = llvm.Target.from_triple(module.triple).create_target_machine(
        cpu=processor_.cpu, features=processor_.attributes, opt=3, reloc="pic", codemodel="default"
    )
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=0)))
    needs = frozenset(function.name for function in module.functions if function.is_declaration)
    return NativeObject(symbol, bytes(target.emit_object(module)), needs)
