"""C wrapper generator: the C functions of a library around the native functions of the generated source.

An array is an address and its sizes (`u`, `u_n0`, `u_n1`), with strides counted in items (`u_s0`) where it need not be
contiguous.  A complex number is the address of its two parts.  Results go to memory of the caller: a cotangent has the
sizes of its argument; the sizes of another result array are in `value_shape`, on entry those of the
caller's memory, on return those of the result.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.resources import files

import numpy as np

from tapegen.export.native.c_header import folded, signature
from tapegen.export.native.entry_points import C_TYPES, STATUS, Entry, Parameter, Result
from tapegen.export.native.object_code import Errors
from tapegen.ir.types import Array, ListOf, Scalar, Type, is_complex


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
        The exceptions they raise.
    features : sequence of str
        The required features of the processor, as C compilers name them.
    products : str
        C text with the matrix products.
    """
    found = [t.item if isinstance(t, ListOf) else t for entry in entries for t in _types(entry)]
    ranks = sorted({t.rank for t in found if isinstance(t, Array)})
    has_lists = any(isinstance(t, ListOf) for entry in entries for t in _types(entry))
    parts = [
        _file("room.c"),
        _file("runtime.c"),
        products,
        f'#include "{library}.h"\n',
        '#define API __attribute__((visibility("default")))\n',
        *(_array_struct(rank) for rank in ranks),
        _file("calls.c"),
        *([_file("lists.c")] if has_lists else []),
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
    lines += [f"API uint32_t {library}_abi(void) {{ return {library.upper()}_ABI; }}", ""]
    return "\n".join(lines)


def _c_string(text: str) -> str:
    """A C string literal for any text, as UTF-8."""
    plain = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in text.encode()
    )
    return f'"{plain}"'


def _member(type_: Type) -> str:
    if isinstance(type_, Array):
        return f"struct tg_array{type_.rank}"
    if isinstance(type_, ListOf):
        return "struct tg_list"
    assert isinstance(type_, Scalar)
    return _item(type_)


def _item(type_: Scalar | Array) -> str:
    """The C type of one scalar in memory."""
    return f"struct tg_{type_.dtype}" if is_complex(type_) else C_TYPES[type_.dtype]


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
    for k in entry.rooms:
        native += _native_parameter(entry.results[k].type, f"room{k}")
    lines += folded(f"extern int32_t {entry.symbol}(", native, ");")
    if entry.kind == "record":
        lines += [f"struct {entry.tape} {{", *(f"    {_member(r.type)} k{k};" for k, r in enumerate(entry.kept))]
        lines += [f"    int64_t v{k}[{type_.rank}];" for k, type_ in _shaped(entry)]
        lines += ["    int failed;", "};", ""]
    for k, parameter in enumerate(entry.parameters):
        if isinstance(parameter.value, np.ndarray) and parameter.value.size:
            lines += _constant(f"{entry.symbol}_v{k}", parameter.value)
    lines += folded(f"API int {entry.name}(", signature(entry), ") {")
    body = list(_body(entry, struct))
    lines += [f"    {line}" if line else "" for line in body]
    lines += ["}", ""]
    if entry.kind == "record":
        lines += [f"API void {entry.tape}_free({entry.tape} *tape) {{", "    if (tape == NULL)", "        return;"]
        owned = [k for k, r in enumerate(entry.kept) if isinstance(r.type, Array | ListOf)]
        lines += [f"    tg_release(tape->k{k}.owner);" for k in owned]
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
        parts = ("_re", "_im") if is_complex(type_) else ("",)
        return [f"{C_TYPES[type_.dtype]} {name}{part}" for part in parts]
    if isinstance(type_, ListOf):
        return [f"void *{name}_owner", f"void *{name}_parent"]
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
    for shared in _shared(entry, early=True):
        yield f"if ({shared})"
        yield f"    return {_status('ALIAS')};"
    if entry.results:
        yield f"{struct} result;"
        yield "memset(&result, 0, sizeof result);"
    else:
        yield "void *result = NULL;"
    yield "void *raised = NULL;"
    if entry.kind == "pullback":
        yield from _copied_lists(entry)
    arguments = ["&result", "&raised"]
    for k, parameter in enumerate(entry.parameters):
        arguments += _argument(entry, k, parameter)
    for k in entry.rooms:
        arguments += _lent(entry, entry.results[k])
    yield from folded(f"int32_t code = {entry.symbol}(", arguments, ");")
    yield "if (code != 0 && code != -2) {"
    if entry.kind == "pullback":
        if entry.marks:
            yield "    tape->failed = 1;"
        yield from (f"    tg_keep_items(&tape->k{k}, {item.rank}, 1);" for k, item in _lists_of_arrays(entry))
    yield "    return tg_failed(raised);"
    yield "}"
    if entry.kind == "pullback":
        yield from (f"tg_release(copies[{n}].owner);" for n in range(len(_lists(entry))))
    yield "int status = tg_noticed();"
    for k, result in enumerate(entry.returned):
        yield from _checked_result(k, result)
    for shared in _shared(entry, early=False):
        yield f"if (status == {_status('OK')} && {shared})"
        yield f"    status = {_status('ALIAS')};"
    if entry.kind == "record":
        yield from _taped(entry)
    yield f"if (status == {_status('OK')}) {{"
    for k, result in enumerate(entry.returned):
        if isinstance(result.type, Array):
            yield f"    if ({_copied(entry, k, result)})"
            yield f"        tg_copy((char *){result.name}, {_described(f'result.r{k}', result.type)});"
        else:
            yield f"    if ({result.name} != NULL)"
            yield f"        memcpy({result.name}, &result.r{k}, sizeof result.r{k});"
    if entry.kind == "record":
        yield "    *tape = made;"
    yield "}"
    for k, result in enumerate(entry.returned):
        if isinstance(result.type, Array):
            yield f"tg_release(result.r{k}.owner);"
    if entry.kind == "record" and _lists_of_arrays(entry):
        yield f"if (status == {_status('OK')}) {{"
        yield from (f"    tg_keep_items(&made->k{k}, {item.rank}, 0);" for k, item in _lists_of_arrays(entry))
        yield "}"
    yield f"if (status != {_status('OK')})"
    yield "    tg_abandon();"
    yield "return status;"


def _status(name: str) -> str:
    return str(next(number for known, number, _ in STATUS if known == name))


def _checks(entry: Entry) -> Iterator[str]:
    """Checks of the interface itself: sizes, addresses, shared memory."""
    wrong: list[str] = []
    if entry.kind == "pullback" or entry.kind == "record":
        wrong.append("tape == NULL")
    for parameter in entry.given:
        type_ = parameter.type
        if not isinstance(type_, Array):
            wrong += [f"{parameter.name} == NULL"] if is_complex(type_) else []
            continue
        wrong.append(f"!tg_holds({_span(entry, parameter, given=True)})")
    for result in entry.returned:
        if isinstance(result.type, Array) and result.type.rank and result.like is None:
            wrong.append(f"({result.name} != NULL && {result.name}_shape == NULL)")
    if wrong:
        yield f"if ({' || '.join(wrong)})"
        yield f"    return {_status('SIZE')};"
    if entry.kind == "pullback":
        yield "if (tape->failed)"
        yield f"    return {_status('TAPE')};"
    arrays = [parameter for parameter in entry.given if isinstance(parameter.type, Array)]
    for k, parameter in enumerate(arrays):
        for other in arrays[k + 1 :]:
            if parameter.written or other.written:
                yield f"if (tg_overlap({_span(entry, parameter)}, {_span(entry, other)}))"
                yield f"    return {_status('ALIAS')};"


def _shared(entry: Entry, *, early: bool) -> Iterator[str]:
    """Error conditions: each result needs memory that overlaps neither an argument nor another result.

    Results of known sizes are checked before the call, which may write there, the rest when all sizes are known.
    """
    arrays = [_span(entry, parameter) for parameter in entry.given if isinstance(parameter.type, Array)]
    rooms = [_result_buffer(entry, k, result, early=early) for k, result in enumerate(entry.returned)]
    known = [_size_before(entry, result) is not None for result in entry.returned]
    for k, room in enumerate(rooms):
        if known[k] == early:
            yield from (f"tg_overlap({room}, {other})" for other in arrays)
        for n in range(k + 1, len(rooms)):
            both = known[k] and known[n]
            if both == early or (early and (k in entry.rooms or n in entry.rooms)):
                yield f"tg_overlap({room}, {rooms[n]})"


def _sizes(entry: Entry, parameter: Parameter) -> list[str]:
    """The sizes of an array, as C expressions."""
    assert isinstance(parameter.type, Array)
    axes = range(parameter.type.rank)
    if entry.kind == "pullback":
        return [f"tape->v{parameter.like}[{axis}]" for axis in axes]
    return [f"{parameter.like or parameter.name}_n{axis}" for axis in axes]


def _buffer_sizes(entry: Entry, result: Result) -> list[str]:
    """The sizes of a result with the shape of an argument, before the call."""
    return _sizes(entry, next(parameter for parameter in entry.given if parameter.name == result.like))


def _span(entry: Entry, parameter: Parameter, *, given: bool = False) -> str:
    """Address, item size, rank, sizes and strides in items, as arguments of a function of `calls.c`.

    With `given`, strides that the caller does not pass are omitted: they overflow where the sizes are too large.
    """
    type_ = parameter.type
    assert isinstance(type_, Array)
    sizes = _sizes(entry, parameter)
    strides = _strides(parameter.name, type_, sizes)
    rank = type_.rank
    shape = f"(int64_t[]){{{', '.join(sizes)}}}" if rank else "NULL"
    steps = f"(int64_t[]){{{', '.join(strides)}}}" if rank and (type_.layout == "A" or not given) else "NULL"
    return f"(const char *){parameter.name}, sizeof({_item(type_)}), {rank}, {shape}, {steps}"


def _result_buffer(entry: Entry, k: int, result: Result, *, early: bool) -> str:
    """The memory of a result, as a vector of bytes; empty where it is not wanted.

    Before the call a result of unknown sizes counts as one scalar.
    """
    assert isinstance(result.type, Scalar | Array)
    one = f"sizeof({_item(result.type)})"
    size = _size_before(entry, result) or (one if early else f"result.r{k}.items * result.r{k}.item_size")
    bytes_ = f"{result.name} == NULL ? 0 : (int64_t)({size})"
    return f"(const char *){result.name}, 1, 1, (int64_t[]){{{bytes_}}}, (int64_t[]){{1}}"


def _size_before(entry: Entry, result: Result) -> str | None:
    """The bytes of a result, as a C expression, where they are known before the call."""
    type_ = result.type
    assert isinstance(type_, Scalar | Array)
    sizes: list[str] = []
    if isinstance(type_, Array) and type_.rank:
        if entry.kind != "call" or result.like not in {parameter.name for parameter in entry.given}:
            return None
        sizes = _buffer_sizes(entry, result)
    return " * ".join([*sizes, f"sizeof({_item(type_)})"])


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
    """The arguments of a native function for a parameter."""
    type_ = parameter.type
    if entry.kind == "pullback" and k < entry.count:
        kept = f"tape->k{k}"
        if isinstance(type_, Scalar):
            return [f"{kept}.re", f"{kept}.im"] if is_complex(type_) else [kept]
        if isinstance(type_, ListOf):
            return [f"copies[{[place for place, _ in _lists(entry)].index(k)}].owner", "NULL"]
        assert isinstance(type_, Array)
        axes = [f"{kept}.{what}[{axis}]" for what in ("shape", "strides") for axis in range(type_.rank)]
        return ["NULL", "NULL", f"{kept}.items", f"{kept}.item_size", f"{kept}.data", *axes]
    if isinstance(type_, Scalar):
        if parameter.value is not None:
            return _number(parameter.value, type_)
        return [f"{parameter.name}[0]", f"{parameter.name}[1]"] if is_complex(type_) else [parameter.name]
    assert isinstance(type_, Array)
    c_type = _item(type_)
    value = parameter.value
    if isinstance(value, np.ndarray):
        where = f"(void *){entry.symbol}_v{k}" if value.size else "NULL"
        axes = [*(str(n) for n in value.shape), *(str(n) for n in value.strides)]
        return ["NULL", "NULL", str(value.size), f"sizeof({c_type})", where, *axes]
    sizes = _sizes(entry, parameter)
    steps = [f"({stride}) * (int64_t)sizeof({c_type})" for stride in _strides(parameter.name, type_, sizes)]
    return ["NULL", "NULL", " * ".join(sizes) or "1", f"sizeof({c_type})", f"(void *){parameter.name}", *sizes, *steps]


def _lent(entry: Entry, result: Result) -> list[str]:
    """The caller's memory for a result, as an array; without items where the result is not wanted."""
    assert isinstance(result.type, Array)
    sizes = [f"({result.name} == NULL ? 0 : {size})" for size in _buffer_sizes(entry, result)]
    c_type = _item(result.type)
    strides = _strides(result.name, replace(result.type, layout="C"), sizes)
    steps = [f"({stride}) * (int64_t)sizeof({c_type})" for stride in strides]
    return ["NULL", "NULL", " * ".join(sizes), f"sizeof({c_type})", f"(void *){result.name}", *sizes, *steps]


def _copied(entry: Entry, k: int, result: Result) -> str:
    """Whether a result has yet to be copied to the caller's memory."""
    made_there = f" && result.r{k}.data != (char *){result.name}" if k in entry.rooms else ""
    return f"{result.name} != NULL{made_there}"


def _number(value: object, type_: Scalar) -> list[str]:
    """A constant, as arguments of a native function."""
    if is_complex(type_):
        pair = complex(value)  # type: ignore[call-overload]
        return [_float(pair.real), _float(pair.imag)]
    if type_.dtype.startswith("float"):
        return [_float(float(value))]  # type: ignore[arg-type]
    number = int(value)  # type: ignore[call-overload]
    if number == -(2**63):
        return ["INT64_MIN"]
    return [f"{number}{'u' if type_.dtype.startswith('u') else ''}ll"]


def _float(number: float) -> str:
    if number != number:
        return '__builtin_nan("")'
    if number in (float("inf"), float("-inf")):
        return "-__builtin_inf()" if number < 0 else "__builtin_inf()"
    return number.hex()


def _described(expr: str, type_: Array) -> str:
    axes = f"{expr}.shape, {expr}.strides" if type_.rank else "NULL, NULL"
    return f"{expr}.data, {expr}.item_size, {type_.rank}, {axes}"


def _checked_result(k: int, result: Result) -> Iterator[str]:
    """Check that a result array fits."""
    type_ = result.type
    if not isinstance(type_, Array) or not type_.rank or result.like is not None:
        return
    differs = f"memcmp({result.name}_shape, result.r{k}.shape, sizeof result.r{k}.shape) != 0"
    yield f"if ({result.name}_shape != NULL) {{"
    yield f"    if ({result.name} != NULL && {differs})"
    yield f"        status = {_status('SHAPE')};"
    yield f"    memcpy({result.name}_shape, result.r{k}.shape, sizeof result.r{k}.shape);"
    yield "}"


def _lists(entry: Entry) -> list[tuple[int, ListOf]]:
    """The lists on a tape, with their positions there."""
    types_ = [part.type for part in (entry.kept if entry.kind == "record" else entry.parameters[: entry.count])]
    return [(k, type_) for k, type_ in enumerate(types_) if isinstance(type_, ListOf)]


def _lists_of_arrays(entry: Entry) -> list[tuple[int, Array]]:
    """Those whose items are arrays, with the type of these."""
    return [(k, type_.item) for k, type_ in _lists(entry) if isinstance(type_.item, Array)]


def _rank_of_items(type_: ListOf) -> int:
    return type_.item.rank if isinstance(type_.item, Array) else -1


def _offset_of_items(type_: ListOf) -> int:
    """The offset of the items: after two integers and a mark, as C aligns them."""
    size = np.dtype(type_.item.dtype).alignment if isinstance(type_.item, Scalar) else 8
    return -(-17 // size) * size


def _copied_lists(entry: Entry) -> Iterator[str]:
    """Copy lists for the pullback, which removes their items."""
    lists = _lists(entry)
    if not lists:
        return
    yield f"struct tg_list copies[{len(lists)}];"
    for n, (k, type_) in enumerate(lists):
        where = f"{_offset_of_items(type_)}, sizeof({_member(type_.item)}), {_rank_of_items(type_)}"
        yield f"if (!tg_copy_list(&copies[{n}], &tape->k{k}, {where})) {{"
        yield from (f"    tg_keep_items(&tape->k{m}, {item.rank}, 1);" for m, item in _lists_of_arrays(entry))
        yield "    tg_abandon();"
        yield f"    return {_status('MEMORY')};"
        yield "}"


def _order(type_: Array) -> str:
    """The memory order in which a pullback accepts an array."""
    return {"C": "TG_ORDER_C", "F": "TG_ORDER_F"}.get(type_.layout, "TG_ORDER_ANY") if type_.rank else "TG_ORDER_C"


def _taped(entry: Entry) -> Iterator[str]:
    """Move the saved values of a pullback into a tape; what is in memory of the caller is copied."""
    yield f"{entry.tape} *made = status == {_status('OK')} ? calloc(1, sizeof *made) : NULL;"
    yield f"if (status == {_status('OK')} && made == NULL)"
    yield f"    status = {_status('MEMORY')};"
    arrays = [(k, r.type) for k, r in enumerate(entry.kept) if isinstance(r.type, Array)]
    yield "if (made != NULL) {"
    for k in range(len(entry.kept)):
        yield f"    made->k{k} = result.r{entry.count + k};"
    for k, _ in _shaped(entry):
        yield f"    memcpy(made->v{k}, result.r{k}.shape, sizeof made->v{k});"
    written = int(entry.marks)
    for k, type_ in arrays:
        axes = f"made->k{k}.shape, made->k{k}.strides" if type_.rank else "NULL, NULL"
        yield f"    if (status == {_status('OK')})"
        yield f"        status = tg_settle(&made->k{k}.owner, &made->k{k}.data, made->k{k}.item_size, {type_.rank},"
        yield f"                           {axes}, {_order(type_)}, {written});"
    for k, item in _lists_of_arrays(entry):
        yield f"    if (status == {_status('OK')})"
        yield f"        status = tg_settle_items(&made->k{k}, {item.rank}, {_order(item)}, {written});"
    yield f"    if (status == {_status('OK')}) {{"
    for k, _ in arrays:
        yield f"        tg_unlist(made->k{k}.owner);"
    for k, list_type in _lists(entry):
        yield f"        tg_unlist_items(&made->k{k}, {_rank_of_items(list_type)});"
    yield "    } else"
    yield "        free(made);"
    yield "}"


__all__ = ["implementation"]
