"""The C functions of a library with right arguments, as its header and the functions of Python have them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.attack.library_cases import Case
from tests.libraries import leaves


@dataclass
class Memory:
    """An array or number of a C function in memory.

    Attributes
    ----------
    name : str
    c_type : str
    content : bytes
        What an argument holds, with its gaps; of a result, as many bytes as it has.
    item : int
        Bytes of one number.
    shape, strides : tuple of int
        Strides count numbers.
    kind : {"given", "written", "number", "result", "like"}
        An argument, one that is written, a complex number, a result, or one that may be made where it goes.
    axes, steps : bool
        Whether the function takes sizes and strides.
    """

    name: str
    c_type: str
    content: bytes
    item: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    kind: str
    axes: bool = False
    steps: bool = False
    has_shape: bool = False

    @property
    def is_given(self) -> bool:
        return self.kind not in ("result", "like")


@dataclass
class Called:
    """One C function with right arguments."""

    name: str
    params: list[tuple[str, str]]  # types and names
    memories: list[Memory] = field(default_factory=list)
    numbers: dict[str, str] = field(default_factory=dict)  # text of each
    tape: str = ""  # "", "given" or "made"


def functions(name: str, header: str, case: Case) -> Iterator[Called]:
    """The C functions of one function of Python, with arguments for each."""
    base = f"{name}_{case.function.__name__}"
    for found in re.finditer(rf"^int ({base}_\w+)\(([^)]*)\);", header, re.MULTILINE):
        yield _called(found[1], found[2].split(","), case)


def _called(name: str, params: list[str], case: Case) -> Called:
    role = name.rpartition("_")[2]
    names = case.function.__code__.co_varnames[: case.function.__code__.co_argcount]
    args = dict(zip(names, case.args, strict=True))
    value = leaves(case.function(*[arg.copy() if isinstance(arg, np.ndarray) else arg for arg in case.args]))
    results = iter(value if role != "hvp" else [])
    again = iter(value)  # of cotangents, or of the tangents of results
    call = Called(name, [])
    rng = np.random.default_rng(0)
    for text in params:
        found = re.fullmatch(r"\s*(.*?)(\w+)\s*", text, re.DOTALL)
        assert found is not None
        c_type, own = " ".join(found[1].split()), found[2]
        call.params.append((c_type, own))
        last = call.memories[-1] if call.memories else None
        if own == "tape":
            call.tape = "made" if c_type.endswith("**") else "given"
        elif re.fullmatch(r".*_[ns]\d", own):
            memory = next(each for each in call.memories if own[:-3] == each.name)
            axis = int(own[-1])
            call.numbers[own] = str((memory.shape if own[-2] == "n" else memory.strides)[axis])
            memory.axes, memory.steps = memory.axes or own[-2] == "n", memory.steps or own[-2] == "s"
        elif own.endswith("_shape") and last is not None and own == f"{last.name}_shape":
            last.has_shape = True
        elif own in args and (role != "pullback"):
            _given(call, c_type, own, args[own])
        elif own.endswith("_dot") and own[:-4] in args and "shape" not in own and not _is_result(c_type):
            _given(call, c_type, own, _like(args[own[:-4]], rng))
        elif role == "pullback" and not _is_result(c_type):
            _given(call, c_type, own, _like(next(again), rng))
        else:
            of = own.rpartition("_")[0]
            if own.endswith(("_bar", "_hvp")) and of in args:
                example, kind = args[of], "like" if np.ndim(args[of]) else "result"
            elif own.endswith("_dot"):
                example, kind = next(again), "result"
            else:
                example, kind = next(results), "result"
            array = np.asarray(example)
            dense = np.zeros(array.shape, array.dtype)
            call.memories.append(_memory(own, c_type.rstrip(" *"), dense, kind))
    return call


def _is_result(c_type: str) -> bool:
    return c_type.endswith("*") and not c_type.startswith("const")


def _like(value: Any, rng: np.random.Generator) -> Any:
    """Numbers for an argument or result, in the same places of memory."""
    if not np.ndim(value):
        return type(value)(0.5)
    made = np.zeros_like(value, subok=False) if value.flags.forc else np.repeat(np.zeros(value.shape), 2, -1)[..., ::2]
    made[...] = rng.uniform(0.5, 1.0, value.shape)
    return made


def _given(call: Called, c_type: str, name: str, value: Any) -> None:
    if not c_type.endswith("*"):
        call.numbers[name] = repr(float(value)) if isinstance(value, float | np.floating) else str(int(value))
        return
    array = np.asarray(value)
    kind = ("written" if _is_result(c_type) else "given") if array.ndim else "number"
    call.memories.append(_memory(name, c_type.removeprefix("const ").rstrip(" *"), array, kind))


def _memory(name: str, c_type: str, array: np.ndarray, kind: str) -> Memory:
    reach = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)) + array.itemsize
    whole = np.zeros(reach, np.uint8)
    np.ndarray(array.shape, array.dtype, whole, 0, array.strides)[...] = array
    strides = tuple(s // array.itemsize for s in array.strides)
    return Memory(name, c_type, whole.tobytes(), array.itemsize, array.shape, strides, kind)


__all__ = ["Called", "Memory", "functions"]
