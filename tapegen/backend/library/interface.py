"""The C functions of a library: what a caller in C sees, around the native functions of the generated text.

An array is an address and its sizes (`u`, `u_n0`, `u_n1`), with strides counted in items (`u_s0`) where it need not be
contiguous.  Results go where the caller says: a cotangent has the sizes of its argument; the sizes of another
array that is a result stand in `value_shape`, on entry those of the caller's memory, on return those of the result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

import numpy as np

from tapegen.backend.library.objects import Errors
from tapegen.errors import BuildError
from tapegen.ir.types import Array, Scalar, Type

C_TYPES = {
    "float64": "double",
    "float32": "float",
    "int64": "int64_t",
    "int32": "int32_t",
    "int16": "int16_t",
    "int8": "int8_t",
    "uint64": "uint64_t",
    "uint32": "uint32_t",
    "uint16": "uint16_t",
    "uint8": "uint8_t",
    "bool": "uint8_t",
}

STATUS = (
    ("OK", 0, "no error"),
    ("MEMORY", 1, "out of memory"),
    ("PROCESSOR", 2, "the library was built for another processor"),
    ("SIZE", 3, "a size is negative, or an address is missing"),
    ("SHAPE", 4, "an array that is a result does not fit where it should go; its sizes are returned"),
    ("ALIAS", 5, "an array that is written shares memory with another"),
)
"""Status codes of the interface itself; what the program raises is counted from `objects.FIRST_ERROR`."""

_WORDS = frozenset(
    """alignas alignof and and_eq asm assert atomic_cancel auto bitand bitor bool break case catch char class co_await
    co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
    double dynamic_cast else enum errno explicit export extern false float for friend goto if import inline int linux
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t long main module mutable namespace new noexcept
    not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict return
    short signed sizeof static static_assert static_cast struct switch synchronized template this thread_local throw
    true try typedef typeid typename typeof union unix unsigned using virtual void volatile wchar_t while xor xor_eq
    I NULL NAN INFINITY BUFSIZ EOF stdin stdout stderr status result raised code made tape""".split()
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a native function.

    Attributes
    ----------
    name : str
        What it is called in C.
    type : Type
        A number or an array.
    written : bool
        Whether the function stores into it.
    value : object
        A number or array that the library holds itself; None for what the caller gives.
    like : str or None
        Of a tangent, the parameter whose sizes it has; of a cotangent, the position of its result, whose sizes are in
        the tape.
    """

    name: str
    type: Type
    written: bool = False
    value: object = None
    like: str | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """A result of a native function; `like` names the array parameter whose sizes it has."""

    name: str
    type: Type
    like: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One C function.

    Attributes
    ----------
    name : str
        Its name.
    doc : str
        What it does, in a line.
    symbol : str
        The native function.
    parameters, results
        What the native function takes and gives.
    kind : str
        "call"; "record": the results after the first `count` go into a tape; "pullback": the first `count` parameters
        come from one.
    count : int
    tape : str
        The type of the tape.
    """

    name: str
    doc: str
    symbol: str
    parameters: tuple[Parameter, ...]
    results: tuple[Result, ...]
    kind: Literal["call", "record", "pullback"] = "call"
    count: int = 0
    tape: str = ""

    @property
    def given(self) -> tuple[Parameter, ...]:
        """The parameters that the caller gives."""
        rest = self.parameters[self.count :] if self.kind == "pullback" else self.parameters
        return tuple(parameter for parameter in rest if parameter.value is None)

    @property
    def returned(self) -> tuple[Result, ...]:
        """The results that the caller gets."""
        return self.results[: self.count] if self.kind == "record" else self.results

    @property
    def kept(self) -> tuple[Result, ...]:
        """What a tape holds."""
        return self.results[self.count :] if self.kind == "record" else ()


def identifier(text: str, taken: Iterable[str] = ()) -> str:
    """A name for C: letters, digits and underscores, no word of C or C++, none of `taken`."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_") or "f"
    if plain[0].isdigit():
        plain = f"f_{plain}"
    base = f"{plain}_" if plain in _WORDS or plain.startswith(("tg_", "NRT_", "numba_")) else plain
    known = set(taken)
    count = 1
    name = base
    while name in known:
        count += 1
        name = f"{base}_{count}"
    return name


@dataclass(frozen=True, slots=True)
class Products:
    """Where products of matrices come from: C text, and files to link."""

    name: str
    text: str
    libraries: tuple[str, ...] = ()

    @classmethod
    def of(cls, choice: str) -> Products:
        """`builtin`, or `cblas:PATH`."""
        kind, _, path = choice.partition(":")
        if choice == "builtin":
            return cls("builtin", _file("products.c"))
        if kind != "cblas" or not path:
            raise BuildError(f"'{choice}' is no way to multiply matrices.", "Give builtin or cblas:PATH.")
        if not Path(path).is_file():
            raise BuildError(f"there is no file '{path}'.", "Give the path of a library with the functions of CBLAS.")
        return cls("cblas", _file("cblas.c"), (str(Path(path).resolve()),))


# ---- the header ----------------------------------------------------------------------------------------------------


def header(library: str, entries: Sequence[Entry], about: Sequence[str]) -> str:
    """The text of the header file."""
    upper = library.upper()
    lines = [
        "/* Generated by tapegen.",
        " *",
        *(f" * {comment(line)}".rstrip() for line in about),
        " *",
        " * Each function returns a status: 0, or a number that the function below explains.  A result that is not",
        " * wanted may go to NULL.  Arrays that are written hold anything after an error.  Threads may call these",
        " * functions at the same time; a tape serves one call at a time.",
        " */",
        f"#ifndef {upper}_H",
        f"#define {upper}_H",
        "",
        "#include <stdint.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        "enum {",
        *(f"    {upper}_{name} = {number}, /* {text} */" for name, number, text in STATUS),
        "};",
        "",
        "/* What a status means; never NULL. */",
        f"const char *{library}_strerror(int status);",
    ]
    for entry in entries:
        lines += ["", f"/* {comment(entry.doc)} */"]
        if entry.kind == "record":
            lines.append(f"typedef struct {entry.tape} {entry.tape};")
        lines += _folded(f"int {entry.name}(", _signature(entry), ");")
        if entry.kind == "record":
            lines.append(f"void {entry.tape}_free({entry.tape} *tape);")
    lines += ["", "#ifdef __cplusplus", "}", "#endif", "", "#endif"]
    return "\n".join(lines) + "\n"


def comment(text: str) -> str:
    """Any text inside a comment of C: printable ASCII that neither ends it nor goes on in the next line."""
    plain = "".join(c if " " <= c <= "~" else "?" for c in text)
    return plain.replace("*/", "* /").replace("/*", "/ *").replace("??/", "? ?/").replace("\\", "/")


def _signature(entry: Entry) -> list[str]:
    found: list[str] = []
    if entry.kind == "pullback":
        found.append(f"{entry.tape} *tape")
    for parameter in entry.given:
        found += _parameter(parameter)
    for result in entry.returned:
        type_ = result.type
        assert isinstance(type_, Scalar | Array)
        found.append(f"{C_TYPES[type_.dtype]} *{result.name}")
        if isinstance(type_, Array) and type_.rank and result.like is None:
            found.append(f"int64_t *{result.name}_shape")
    if entry.kind == "record":
        found.append(f"{entry.tape} **tape")
    return found or ["void"]


def _parameter(parameter: Parameter) -> list[str]:
    type_ = parameter.type
    if isinstance(type_, Scalar):
        return [f"{C_TYPES[type_.dtype]} {parameter.name}"]
    assert isinstance(type_, Array)
    found = [f"{'' if parameter.written else 'const '}{C_TYPES[type_.dtype]} *{parameter.name}"]
    if parameter.like is None:
        found += [f"int64_t {parameter.name}_n{axis}" for axis in range(type_.rank)]
    if type_.layout == "A":
        found += [f"int64_t {parameter.name}_s{axis}" for axis in range(type_.rank)]
    return found


def _folded(start: str, items: Sequence[str], end: str, width: int = 110) -> list[str]:
    """A list in parentheses on as many lines as it needs."""
    lines = [start]
    for k, item in enumerate(items):
        part = item + (end if k == len(items) - 1 else ",")
        if len(lines[-1]) + len(part) + 1 > width and lines[-1].strip():
            lines.append(" " * 4 + part)
        else:
            lines[-1] += part if lines[-1].endswith("(") else f" {part}"
    return lines if items else [start + end]


# ---- the implementation --------------------------------------------------------------------------------------------


def implementation(
    library: str, entries: Sequence[Entry], errors: Errors, features: Sequence[str], *, products: str
) -> str:
    """The text of the C file: the runtime, and the functions of the header.

    Parameters
    ----------
    library : str
        The prefix of all names.
    entries : sequence of Entry
        The functions.
    errors : Errors
        What they raise.
    features : sequence of str
        What the processor must have, as C compilers name it.
    products : str
        C text with the products of matrices.
    """
    ranks = sorted({t.rank for entry in entries for t in _types(entry) if isinstance(t, Array)})
    parts = [
        _file("runtime.c"),
        products,
        f'#include "{library}.h"\n',
        '#define API __attribute__((visibility("default")))\n',
        *(_array_struct(rank) for rank in ranks),
        _file("calls.c"),
        _processor(features),
        _strerror(library, errors),
        *(_function(entry) for entry in entries),
    ]
    return "\n".join(parts)


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _types(entry: Entry) -> Iterator[Type]:
    for parameter in entry.parameters:
        yield parameter.type
    for result in entry.results:
        yield result.type


def _array_struct(rank: int) -> str:
    axes = f"    int64_t shape[{rank}], strides[{rank}];\n" if rank else ""
    members = f"    void *owner, *parent;\n    int64_t items, item_size;\n    char *data;\n{axes}"
    return f"struct tg_array{rank} {{\n{members}}};\n"


def _processor(features: Sequence[str]) -> str:
    tests = " && ".join(f'__builtin_cpu_supports("{feature}")' for feature in features) or "1"
    return f"static int tg_processor(void) {{ return {tests}; }}\n"


def _strerror(library: str, errors: Errors) -> str:
    lines = [f"API const char *{library}_strerror(int status) {{", "    switch (status) {"]
    for _, number, text in STATUS:
        lines.append(f"    case {number}: return {json.dumps(text)};")
    for number, kind, text in errors.items():
        lines.append(f"    case {number}: return {_c_string(f'{kind}: {text}' if text else kind)};")
    lines += ['    default: return "unknown status";', "    }", "}", ""]
    return "\n".join(lines)


def _c_string(text: str) -> str:
    """A string literal of C for any text, as UTF-8."""
    plain = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in text.encode()
    )
    return f'"{plain}"'


def _member(type_: Type) -> str:
    if isinstance(type_, Array):
        return f"struct tg_array{type_.rank}"
    assert isinstance(type_, Scalar)
    return C_TYPES[type_.dtype]


def _function(entry: Entry) -> str:
    """The C text of one function."""
    lines: list[str] = []
    struct = f"struct {entry.symbol}_result"
    lines += [f"{struct} {{", *(f"    {_member(r.type)} r{k};" for k, r in enumerate(entry.results)), "};"]
    if not entry.results:
        struct = "void *"
        lines = []
    native = [f"{struct} *result", "void **raised"]
    for k, parameter in enumerate(entry.parameters):
        native += _native_parameter(parameter.type, f"p{k}")
    lines += _folded(f"extern int32_t {entry.symbol}(", native, ");")
    if entry.kind == "record":
        lines += [f"struct {entry.tape} {{", *(f"    {_member(r.type)} k{k};" for k, r in enumerate(entry.kept))]
        lines += [f"    int64_t v{k}[{type_.rank}];" for k, type_ in _shaped(entry)]
        lines += ["    char end;", "};", ""]
    for k, parameter in enumerate(entry.parameters):
        if isinstance(parameter.value, np.ndarray) and parameter.value.size:
            lines += _constant(f"{entry.symbol}_v{k}", parameter.value)
    lines += _folded(f"API int {entry.name}(", _signature(entry), ") {")
    body = list(_body(entry, struct))
    lines += [f"    {line}" if line else "" for line in body]
    lines += ["}", ""]
    if entry.kind == "record":
        lines += [f"API void {entry.tape}_free({entry.tape} *tape) {{", "    if (tape == NULL)", "        return;"]
        lines += [f"    tg_release(tape->k{k}.owner);" for k, r in enumerate(entry.kept) if isinstance(r.type, Array)]
        lines += ["    free(tape);", "}", ""]
    return "\n".join(lines)


def _shaped(entry: Entry) -> Iterator[tuple[int, Array]]:
    """The results that have sizes, with their positions."""
    for k, result in enumerate(entry.returned):
        if isinstance(result.type, Array) and result.type.rank:
            yield k, result.type


def _constant(name: str, value: np.ndarray) -> list[str]:
    """The bytes of an array that the library holds."""
    data = value.tobytes(order="A")
    lines = [f"static const _Alignas(64) unsigned char {name}[] = {{"]
    for k in range(0, len(data), 24):
        lines.append("    " + ", ".join(str(byte) for byte in data[k : k + 24]) + ",")
    return [*lines, "};"]


def _native_parameter(type_: Type, name: str) -> list[str]:
    if isinstance(type_, Scalar):
        return [f"{C_TYPES[type_.dtype]} {name}"]
    assert isinstance(type_, Array)
    axes = [f"int64_t {name}_{what}{axis}" for what in ("n", "s") for axis in range(type_.rank)]
    return [
        f"void *{name}_owner",
        f"void *{name}_parent",
        f"int64_t {name}_items",
        f"int64_t {name}_size",
        f"void *{name}",
        *axes,
    ]


def _body(entry: Entry, struct: str) -> Iterator[str]:
    yield "if (!tg_processor())"
    yield f"    return {_status('PROCESSOR')};"
    yield from _checks(entry)
    if entry.results:
        yield f"{struct} result;"
        yield "memset(&result, 0, sizeof result);"
    else:
        yield "void *result = NULL;"
    yield "void *raised = NULL;"
    arguments = ["&result", "&raised"]
    for k, parameter in enumerate(entry.parameters):
        arguments += _argument(entry, k, parameter)
    yield from _folded(f"int32_t code = {entry.symbol}(", arguments, ");")
    yield "if (code != 0 && code != -2)"
    yield "    return tg_failed(raised);"
    yield f"int status = {_status('OK')};"
    for k, result in enumerate(entry.returned):
        yield from _checked_result(entry, k, result)
    if entry.kind == "record":
        yield from _taped(entry)
    yield f"if (status == {_status('OK')}) {{"
    for k, result in enumerate(entry.returned):
        if isinstance(result.type, Array):
            yield f"    if ({result.name} != NULL)"
            yield f"        tg_copy((char *){result.name}, {_described(f'result.r{k}', result.type)});"
        else:
            yield f"    if ({result.name} != NULL)"
            yield f"        *{result.name} = result.r{k};"
    if entry.kind == "record":
        yield "    *tape = made;"
    yield "}"
    for k, result in enumerate(entry.returned):
        if isinstance(result.type, Array):
            yield f"tg_release(result.r{k}.owner);"
    yield f"if (status != {_status('OK')})"
    yield "    tg_abandon();"
    yield "return status;"


def _status(name: str) -> str:
    return str(next(number for known, number, _ in STATUS if known == name))


def _checks(entry: Entry) -> Iterator[str]:
    """What the interface itself looks at: sizes, addresses, shared memory."""
    wrong: list[str] = []
    if entry.kind == "pullback" or entry.kind == "record":
        wrong.append("tape == NULL")
    for parameter in entry.given:
        type_ = parameter.type
        if not isinstance(type_, Array):
            continue
        sizes = _sizes(entry, parameter)
        if parameter.like is None:
            wrong += [f"{size} < 0" for size in sizes]
        wrong.append(f"({parameter.name} == NULL{''.join(f' && {size} != 0' for size in sizes)})")
    for result in entry.returned:
        if isinstance(result.type, Array) and result.type.rank and result.like is None:
            wrong.append(f"({result.name} != NULL && {result.name}_shape == NULL)")
    if wrong:
        yield f"if ({' || '.join(wrong)})"
        yield f"    return {_status('SIZE')};"
    arrays = [parameter for parameter in entry.given if isinstance(parameter.type, Array)]
    for k, parameter in enumerate(arrays):
        for other in arrays[k + 1 :]:
            if parameter.written or other.written:
                yield f"if (tg_overlap({_span(entry, parameter)}, {_span(entry, other)}))"
                yield f"    return {_status('ALIAS')};"


def _sizes(entry: Entry, parameter: Parameter) -> list[str]:
    """The sizes of an array, as C expressions."""
    assert isinstance(parameter.type, Array)
    axes = range(parameter.type.rank)
    if entry.kind == "pullback":
        return [f"tape->v{parameter.like}[{axis}]" for axis in axes]
    return [f"{parameter.like or parameter.name}_n{axis}" for axis in axes]


def _span(entry: Entry, parameter: Parameter) -> str:
    """Address, item size, rank, sizes and strides in items, as arguments of a function of `calls.c`."""
    type_ = parameter.type
    assert isinstance(type_, Array)
    sizes = _sizes(entry, parameter)
    strides = _strides(parameter.name, type_, sizes)
    rank = type_.rank
    shape = f"(int64_t[]){{{', '.join(sizes)}}}" if rank else "NULL"
    steps = f"(int64_t[]){{{', '.join(strides)}}}" if rank else "NULL"
    return f"(const char *){parameter.name}, sizeof *{parameter.name}, {rank}, {shape}, {steps}"


def _strides(name: str, type_: Array, sizes: Sequence[str]) -> list[str]:
    """Strides in items, as C expressions."""
    rank = type_.rank
    if type_.layout == "A":
        return [f"{name}_s{axis}" for axis in range(rank)]
    found = []
    for axis in range(rank):
        inner = sizes[axis + 1 :] if type_.layout == "C" else sizes[:axis]
        found.append(" * ".join(inner) or "1")
    return found


def _argument(entry: Entry, k: int, parameter: Parameter) -> list[str]:
    """What a native function gets for a parameter."""
    type_ = parameter.type
    if entry.kind == "pullback" and k < entry.count:
        kept = f"tape->k{k}"
        if isinstance(type_, Scalar):
            return [kept]
        assert isinstance(type_, Array)
        axes = [f"{kept}.{what}[{axis}]" for what in ("shape", "strides") for axis in range(type_.rank)]
        return ["NULL", "NULL", f"{kept}.items", f"{kept}.item_size", f"{kept}.data", *axes]
    if isinstance(type_, Scalar):
        return [parameter.name if parameter.value is None else _number(parameter.value, type_)]
    assert isinstance(type_, Array)
    c_type = C_TYPES[type_.dtype]
    value = parameter.value
    if isinstance(value, np.ndarray):
        where = f"(void *){entry.symbol}_v{k}" if value.size else "NULL"
        axes = [*(str(n) for n in value.shape), *(str(n) for n in value.strides)]
        return ["NULL", "NULL", str(value.size), f"sizeof({c_type})", where, *axes]
    sizes = _sizes(entry, parameter)
    steps = [f"({stride}) * (int64_t)sizeof({c_type})" for stride in _strides(parameter.name, type_, sizes)]
    return ["NULL", "NULL", " * ".join(sizes) or "1", f"sizeof({c_type})", f"(void *){parameter.name}", *sizes, *steps]


def _number(value: object, type_: Scalar) -> str:
    if type_.dtype.startswith("float"):
        number = float(value)  # type: ignore[arg-type]
        if number != number:
            return '__builtin_nan("")'
        if number in (float("inf"), float("-inf")):
            return "-__builtin_inf()" if number < 0 else "__builtin_inf()"
        return number.hex()
    number = int(value)  # type: ignore[call-overload]
    if number == -(2**63):
        return "INT64_MIN"
    return f"{number}{'u' if type_.dtype.startswith('u') else ''}ll"


def _described(expr: str, type_: Array) -> str:
    axes = f"{expr}.shape, {expr}.strides" if type_.rank else "NULL, NULL"
    return f"{expr}.data, {expr}.item_size, {type_.rank}, {axes}"


def _checked_result(entry: Entry, k: int, result: Result) -> Iterator[str]:
    """An array that is a result must fit."""
    type_ = result.type
    if not isinstance(type_, Array) or not type_.rank or result.like is not None:
        return
    differs = f"memcmp({result.name}_shape, result.r{k}.shape, sizeof result.r{k}.shape) != 0"
    yield f"if ({result.name}_shape != NULL) {{"
    yield f"    if ({result.name} != NULL && {differs})"
    yield f"        status = {_status('SHAPE')};"
    yield f"    memcpy({result.name}_shape, result.r{k}.shape, sizeof result.r{k}.shape);"
    yield "}"


def _taped(entry: Entry) -> Iterator[str]:
    """Move what a pullback needs into a tape; what lies in memory of the caller is copied."""
    yield f"{entry.tape} *made = status == {_status('OK')} ? calloc(1, sizeof *made) : NULL;"
    yield f"if (status == {_status('OK')} && made == NULL)"
    yield f"    status = {_status('MEMORY')};"
    arrays = [(k, r.type) for k, r in enumerate(entry.kept) if isinstance(r.type, Array)]
    yield "if (made != NULL) {"
    for k in range(len(entry.kept)):
        yield f"    made->k{k} = result.r{entry.count + k};"
    for k, _ in _shaped(entry):
        yield f"    memcpy(made->v{k}, result.r{k}.shape, sizeof made->v{k});"
    for k, type_ in arrays:
        steps = f"made->k{k}.strides" if type_.rank else "NULL"
        sizes = f"made->k{k}.shape" if type_.rank else "NULL"
        fortran = int(type_.layout == "F")
        yield f"    if (made->k{k}.owner == NULL && !tg_own(&made->k{k}.owner, &made->k{k}.data, made->k{k}.item_size,"
        yield f"                                        {type_.rank}, {sizes}, {steps}, {fortran}))"
        yield f"        status = {_status('MEMORY')};"
    yield f"    if (status == {_status('OK')}) {{"
    for k, _ in arrays:
        yield f"        tg_unlist(made->k{k}.owner);"
    yield "    } else"
    yield "        free(made);"
    yield "}"


__all__ = [
    "C_TYPES",
    "STATUS",
    "Entry",
    "Parameter",
    "Products",
    "Result",
    "comment",
    "header",
    "identifier",
    "implementation",
]
