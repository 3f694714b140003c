"""What each loop pass is good for: `python -m benchmarks.passes [--time] [--write]`.

For each optimization of `tapegen.loops.pipeline`: its lines of code, and on how many programs of tests/programs and on
which kernels it fires, that is, the compiled text of the gradient or of the tangent is another one without it.
`--time` adds how much faster a gradient is with it, on the kernels where it fires (geometric mean).  `--write` puts the
table into `benchmarks/passes.md`.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import math
import pathlib
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import tapegen as tg
from benchmarks.kernels.__main__ import ORDER
from benchmarks.measure import least
from tapegen.errors import BadArgument, TapegenError
from tapegen.ir.nodes import Function
from tapegen.ir.passes import deep, run_passes, without_passes
from tapegen.ir.printer import function_text
from tapegen.loops.legalize.short_axes import ShortAxes
from tapegen.loops.pipeline import PASSES, lower_to_loops
from tapegen.pipeline.artifacts.program import Program
from tests.test_programs import ACCEPTED

HERE = pathlib.Path(__file__).parent
_OPTIONS: dict[str, Any] = {
    name: parameter.default
    for name, parameter in inspect.signature(lower_to_loops).parameters.items()
    if name not in ("function", "watch")
}
NAMES = tuple(dict.fromkeys(each.name for each in PASSES if each.optimization))


def lines_of(name: str) -> int:
    """Lines of the module that a pass stands in."""
    run = next(each.run for each in PASSES if each.name == name)
    return len(inspect.getsource(sys.modules[run.__module__]).splitlines())


def _text(function: Function) -> str:
    return "\n".join(line for line in function_text(function).splitlines() if not line.lstrip().startswith("#"))


def firing(function: Function, short_axes: ShortAxes) -> set[str]:
    """The passes without which the compiled text of a derivative is another one."""
    options = _OPTIONS | {"short_axes": short_axes}
    programs: dict[str, Function] = {"": function}
    with deep():
        final = _text(lower_to_loops(function, watch=programs.__setitem__, **options))
        inputs = list(programs.values())
        texts = [_text(each) for each in inputs]
        found: set[str] = set()
        for k, each in enumerate(PASSES):
            if not each.optimization or texts[k] == texts[k + 1] or each.name in found:
                continue
            with without_passes(frozenset({each.name})):
                without = run_passes(PASSES[k:], inputs[k], **options)
            if _text(without) != final:
                found.add(each.name)
    return found


def fires_on(program: Program) -> set[str]:
    """The passes that fire on the gradient or the tangent of a program."""
    found: set[str] = set()
    for derive in (_joint, lambda program: program.pushed):
        try:
            found |= firing(derive(program), program.short_axes)
        except TapegenError:  # it has no derivative, or no compiled form
            continue
    return found


def _joint(program: Program) -> Function:
    try:
        return program.stages(scalar=True).joint
    except BadArgument:
        return program.stages(scalar=False).joint


def times(kernel: Any, name: str) -> tuple[float, float]:
    """Seconds of a gradient with all passes, and without one of them."""
    args = kernel.args()
    call = tg.differentiable(wrt=kernel.WRT)(kernel.f).value_and_grad

    def without() -> Any:
        with tg.debug(disable=name):
            return call(*args)

    with_all, without_one = least([partial(call, *args), without])
    return with_all, without_one


def report(programs: Mapping[str, int], kernels: Mapping[str, Sequence[str]], gains: Mapping[str, float] | None) -> str:
    """The table: on how many programs, on which kernels each pass fires, and what it gains there, if that is known."""
    timed = gains is not None
    lines = [
        "# Loop passes, measured",
        "",
        f"On how many of {len(ACCEPTED)} programs under tests/programs, and on which of {len(ORDER)} kernels, a pass",
        "fires: the compiled text of the gradient or of the tangent is another one without it.",
        "Lines are those of its module.",
        *(["Gain: time of the gradient without it to that with it, geometric mean over these kernels."] * timed),
        "",
        f"Made by `python -m benchmarks.passes{' --time' * timed} --write`.",
        "",
        "| pass | lines | programs | kernels |" + " gain |" * timed,
        "|---|--:|--:|---|" + "--:|" * timed,
    ]
    for name in NAMES:
        found = list(kernels.get(name, ()))
        shown = f"{len(found)}: {', '.join(found)}" if found else "0"
        gain = "" if gains is None else f" {gains[name]:.2f} |" if name in gains else " |"
        lines.append(f"| {name} | {lines_of(name)} | {programs.get(name, 0)} | {shown} |{gain}")
    return "\n".join(lines) + "\n"


def firing_kernels(modules: Mapping[str, Any]) -> dict[str, list[str]]:
    """For each pass the kernels on which it fires."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for kernel, module in modules.items():
        program = tg.differentiable(wrt=module.WRT)(module.f)._specialise(module.small(), {}).program
        for name in fires_on(program):
            found[name].append(kernel)
    return dict(found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.passes", description=__doc__)
    parser.add_argument("--time", action="store_true", help="also time gradients with and without each pass")
    parser.add_argument("--write", action="store_true", help="write benchmarks/passes.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    programs: Counter[str] = Counter()
    for each in ACCEPTED:
        programs.update(fires_on(each.decorated("auto")._specialise(each.args(), each.kwargs()).program))
    modules = {name: importlib.import_module(f"benchmarks.kernels.{name}") for name in ORDER}
    kernels = firing_kernels(modules)
    gains: dict[str, float] | None = None
    if options.time:
        gains = {}
        for name, found in kernels.items():
            ratios = [without / own for own, without in (times(modules[kernel], name) for kernel in found)]
            gains[name] = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
    text = report(programs, kernels, gains)
    print(text)
    if options.write:
        (HERE / "passes.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
