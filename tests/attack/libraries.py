"""Libraries of many kinds, called wrongly from C under valgrind.

    python -m tests.attack.libraries

Each argument of each C function is in turn what it must not be (NULL, of a negative size, of a size or stride that no
address space holds, in the memory of another) or what is unusual (no items, strides that go back, no alignment, NaN,
numbers out of range).  Each call must give a status that the header knows, and the documented one where there is one;
valgrind must find no memory error and no leak; results must stay as they are where nothing may be written; the next
call with right arguments, in the same memory and with the same tape, must give what it gave before.  Then four threads
call each function at the same time.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import tapegen as tg
from tapegen.export.library import build_library, default_modes
from tapegen.export.module import ExportRequest
from tests.attack.library_calls import Called, Memory, functions
from tests.attack.library_cases import LIBRARIES, Library
from tests.attack.library_program import ANY, RUNS, Change, program
from tests.libraries import run_program

OK, SIZE, SHAPE, ALIAS = 0, 3, 4, 5
_LARGEST = 2**63 - 1


def mutations(call: Called) -> Iterator[Change]:
    """Statements that change arguments, what they are, and the status that must come."""
    given = [each for each in call.memories if each.is_given]
    results = [each for each in call.memories if not each.is_given]
    for each in given:
        yield f"{each.name} is NULL", f"A->{each.name} = NULL;", SIZE
        yield f"{each.name} is not aligned", f"A->{each.name} = shifted(A, {_index(call, each)});", OK
        for byte in (0xFF, 0x7F, 0x00):
            yield (
                f"{each.name} is full of {byte:#x}",
                f"memset((void *)A->{each.name}, {byte}, {len(each.content)});",
                ANY,
            )
        yield from _sizes(each)
        yield from _steps(each)
    for each in results:
        where = f"A->{each.name}"
        yield f"no {each.name}", f"{where} = NULL;", OK
        yield f"{each.name} is not aligned", f"{where} = shifted(A, {_index(call, each)});", OK
        for other in call.memories:
            if other is each or (not other.is_given and results.index(other) < results.index(each)):
                continue
            if other.kind == "number":
                continue  # it has been read before anything is written
            yield f"{each.name} is {other.name}", f"{where} = (void *)A->{other.name};", ALIAS
            if len(other.content) > other.item:
                inside = f"{where} = (void *)((char *)A->{other.name} + {other.item});"
                yield f"{each.name} is in {other.name}", inside, ALIAS
        if each.has_shape:
            yield f"no {each.name}_shape", f"{where}_shape = NULL;", SIZE
            yield f"neither {each.name} nor its shape", f"{where} = NULL; {where}_shape = NULL;", OK
            for axis in range(len(each.shape)):
                for wrong in (-1, 0, each.shape[axis] + 1, _LARGEST):
                    yield f"{each.name}_shape[{axis}] is {wrong}", f"{where}_shape[{axis}] = {_c(wrong)};", SHAPE
    yield "no result is wanted", " ".join(f"A->{each.name} = NULL;" for each in results), OK
    for each in given:
        for other in given:
            if each is not other and len(other.content) >= len(each.content) and each.kind != "number" != other.kind:
                read = RUNS if each.c_type == other.c_type else ANY
                status = ALIAS if "written" in (each.kind, other.kind) else read
                yield f"{each.name} is {other.name}", f"A->{each.name} = (void *)A->{other.name};", status
    for c_type, name in call.params:
        if name in call.numbers and not re.fullmatch(r".*_[ns]\d", name):
            real = ("NAN", "INFINITY", "-INFINITY", "1e300", "-1e19", "5e-324", "-0.0")
            whole = (_c(k) for k in (0, -1, 2, -(2**63), _LARGEST, 2**40, 2**31))
            for text in real if c_type in ("double", "float") else whole:
                yield f"{name} is {text}", f"A->{name} = {text};", ANY
    if call.tape:
        yield "tape is NULL", "A->tape = NULL;", SIZE


def _index(call: Called, memory: Memory) -> int:
    return call.memories.index(memory)


def _c(number: int) -> str:
    return "INT64_MIN" if number == -(2**63) else f"{number}ll"


def _sizes(each: Memory) -> Iterator[Change]:
    """Sizes that are none, and none of any memory; smaller ones are somebody's right."""
    if not each.axes:
        return
    axes = range(len(each.shape))
    for axis in axes:
        size = f"A->{each.name}_n{axis}"
        for wrong in (-1, -(2**63)):
            yield f"{size} is {wrong}", f"{size} = {_c(wrong)};", SIZE
        yield f"{size} is 0", f"{size} = 0;", ANY
        yield f"{size} is 0, and {each.name} NULL", f"{size} = 0; A->{each.name} = NULL;", ANY
        yield f"{size} is 1", f"{size} = 1;", ANY
        yield f"{size} is one less", f"{size} = {each.shape[axis] - 1};", ANY
        huge = [_LARGEST, 2**63 // each.item, 2**64 // each.item + each.shape[axis]]
        for wrong in (number for number in huge if number <= _LARGEST):
            yield f"{size} is {wrong}", f"{size} = {_c(wrong)};", SIZE
    everything = " ".join(f"A->{each.name}_n{axis} = {{}};" for axis in axes)
    for wrong in (2**62, 2**32) if len(axes) > 1 else (2**62,):
        if wrong ** len(axes) * each.item > _LARGEST:
            yield f"{each.name} has {wrong} in each axis", everything.replace("{}", _c(wrong)), SIZE
    yield f"{each.name} has nothing in each axis", everything.replace("{}", "0"), ANY


def _steps(each: Memory) -> Iterator[Change]:
    if not each.steps:
        return
    for axis in range(len(each.shape)):
        step = f"A->{each.name}_s{axis}"
        yield f"{step} is 0", f"{step} = 0;", RUNS
        for wrong in (-(2**63), -(2**63) + 1, _LARGEST, 2**60, 2**61 + 1, -(2**60)):
            yield f"{step} is {wrong}", f"{step} = {_c(wrong)};", SIZE
        last = (each.shape[axis] - 1) * each.strides[axis] * each.item
        yield (
            f"{each.name} goes back",
            f"A->{each.name} = (void *)((char *)A->{each.name} + {last}); {step} = -({step});",
            RUNS,
        )
        if each.axes:
            yield f"one item and {step} anything", f"A->{each.name}_n{axis} = 1; {step} = INT64_MIN;", ANY


def attack(name: str, library: Library, folder: Path, *, valgrind: bool = True) -> tuple[int, list[str]]:
    """Build a library and attack it; returns how many calls were wrong or unusual, and what was not as it must be."""
    wanted = []
    for case in library.cases:
        f = tg.differentiable(case.function, wrt=case.wrt)
        wanted.append(ExportRequest(f, case.args, {}, case.modes or default_modes(f, case.args, {})))
    if not (folder / f"lib{name}.so").exists():
        build_library(wanted, folder, name, blas=library.blas())
    header = (folder / f"{name}.h").read_text(encoding="utf-8")
    calls = [call for case in library.cases for call in functions(name, header, case)]
    changes = {call.name: list(mutations(call)) for call in calls}
    count = sum(map(len, changes.values()))
    text = program(name, calls, changes)
    flags = ["-std=gnu11", "-g", "-pthread", "-Wno-unused-function"]
    try:
        found = run_program(folder, text, "cc", *flags, suffix=".c", valgrind=valgrind)
    except AssertionError as error:
        return count, [str(error)]
    return count, found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack.libraries", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(LIBRARIES), help="some of the libraries")
    parser.add_argument("--folder", type=Path, help="where libraries are built, or have been built before")
    given = parser.parse_args()
    if shutil.which("valgrind") is None:
        raise SystemExit("needs valgrind")
    failures = calls = 0
    with tempfile.TemporaryDirectory(prefix="attack") as made:
        for name in given.only or LIBRARIES:
            start = time.monotonic()
            count, found = attack(name, LIBRARIES[name], (given.folder or Path(made)) / name)
            calls += count
            failures += len(found)
            print(
                f"{name:12} {count:5} calls, {time.monotonic() - start:4.0f} seconds, {len(found)} failures", flush=True
            )
            print(*found, sep="\n", end="\n" if found else "")
    print(f"{calls} calls of {len(given.only or LIBRARIES)} libraries, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
