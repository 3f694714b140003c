"""`tapegen check`: a numerical check of the derivatives of a function."""

from __future__ import annotations

import argparse
import copy
import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegen.api import Differentiable
from tapegen.cli.axis_sizes import Sizes
from tapegen.cli.signature import signature_of
from tapegen.cli.target import check_arguments, load_functions
from tapegen.errors import BadArgument, TapegenError, printable
from tapegen.export.module import name_of
from tapegen.frontend.source.synthesize import function_from_text
from tapegen.frontend.values.pytree import flatten
from tapegen.testing import check_grads

EXAMPLES = """\
examples:
  python -m tapegen check heat.py::march --args "f8[:], f8, f8"
  python -m tapegen check heat.py::march --args "f8[:], f8, f8" --wrt u0 --points 10 --size 8
  python -m tapegen check heat.py            every function with @differentiable(signatures=[...])
"""
_MODES = ("reverse", "forward")


def add_parser(commands: argparse._SubParsersAction) -> None:
    """The arguments of the command."""
    parser = commands.add_parser(
        "check",
        help="compare derivatives with differences on random arguments",
        description="Compares derivatives with differences of the function itself on random arguments.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", metavar="FILE[::FUNCTION]")
    parser.add_argument("--args", action="append", metavar="TYPES", help='argument types ("f8[:], f8, n=3")')
    parser.add_argument("--wrt", help="arguments to check (default: all that hold floats)")
    parser.add_argument("--points", type=int, default=4, help="random arguments to try (default: 4)")
    parser.add_argument("--size", type=int, default=5, help="the size of every axis (default: 5)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random numbers")
    parser.add_argument("--backend", choices=("auto", "numba", "python"), default="auto", help="what is checked")
    parser.set_defaults(run=run)


@dataclass
class Verdict:
    """The result for one argument in one mode."""

    function: str
    argument: str
    mode: str
    right: int = 0
    without_value: int = 0
    wrong: str = ""

    @property
    def text(self) -> str:
        """The verdict and its reason."""
        if self.wrong:
            return self.wrong
        if not self.right:
            return "not checked: the function has no value at any of the points"
        return "right" + (f" (no value at {self.without_value} more points)" if self.without_value else "")


def run(options: argparse.Namespace) -> int:
    """Check, and print a table of verdicts."""
    if options.points < 1 or options.size < 2:
        raise BadArgument("there is nothing to check.", "Give --points of 1 or more and --size of 2 or more.")
    if options.seed < 0:
        raise BadArgument("no random numbers have a negative seed.", "Give --seed of 0 or more.")
    verdicts: list[Verdict] = []
    for function in load_functions(options.target):
        texts = options.args or function.options.signatures
        if not texts:
            name = name_of(function)
            raise BadArgument(f"the argument types of {name} are not known.", 'Give --args "f8[:], f8".')
        for text in texts:
            verdicts += _verdicts(function, text, options)
    rows = [("function", "argument", "mode", "points", "verdict")]
    rows += [(v.function, printable(v.argument), v.mode, str(v.right), printable(v.text)) for v in verdicts]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    return 0 if all(v.right and not v.wrong for v in verdicts) else 1


def _verdicts(function: Differentiable, text: str, options: argparse.Namespace) -> list[Verdict]:
    check_arguments(function, signature_of(text))
    points = [_arguments(function, text, options, point) for point in range(options.points)]
    names = _names(function, points[0], options.wrt)
    name = printable(name_of(function))
    verdicts = [Verdict(name, argument, mode) for argument in names for mode in _MODES]
    for point, arguments in enumerate(points):
        call, free = _positional(function, arguments)
        args = tuple(free.values())
        if not _has_value(call, args):
            for verdict in verdicts:
                verdict.without_value += 1
            continue
        for verdict in verdicts:
            if not verdict.wrong:
                _check(verdict, call, args, list(free).index(verdict.argument), options, point)
    return verdicts


def _check(
    verdict: Verdict,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    position: int,
    options: argparse.Namespace,
    k: int,
) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_grads(
                call, *args, wrt=position, modes=(verdict.mode,), seed=options.seed + k, backend=options.backend
            )
        verdict.right += 1
    except AssertionError as error:
        verdict.wrong = f"WRONG at point {k}: {error}"
    except TapegenError as error:
        place = f"{error.span.file}:{error.span.line}: " if error.span is not None else ""
        verdict.wrong = f"refused: {place}{error.reason}"


def _arguments(function: Differentiable, text: str, options: argparse.Namespace, point: int) -> dict[str, Any]:
    """Random arguments; at every second point all positive, where logarithms and roots are defined."""
    rng = np.random.default_rng((options.seed, point))
    low = 0.2 if point % 2 else -1.6

    def fill(shape: tuple[int, ...], dtype: type) -> np.ndarray:
        if issubclass(dtype, np.floating):
            return rng.uniform(low, 1.8, shape).astype(dtype)
        if issubclass(dtype, np.complexfloating):
            return (rng.uniform(low, 1.8, shape) + 1j * rng.uniform(low, 1.8, shape)).astype(dtype)
        if dtype is np.bool_:
            return rng.integers(0, 2, shape).astype(dtype)
        return rng.integers(1, options.size, shape).astype(dtype)  # indices into every axis

    signature = signature_of(text, fill, Sizes(options.size))
    return function._specializer.bind(signature.args, signature.kwargs)


def _names(function: Differentiable, arguments: dict[str, Any], wrt: str | None) -> list[str]:
    free = function._specializer.free_names()
    floating = [name for name in free if any(map(_is_floating, flatten(arguments[name])))]
    if not floating:
        raise BadArgument(
            f"no argument of {printable(name_of(function))} holds floats, so it has no derivative.",
            "Give types of floats: f8, f8[:].",
        )
    if wrt is None:
        return floating
    chosen = [free[int(p)] if p.isdecimal() and int(p) < len(free) else p for p in map(str.strip, wrt.split(","))]
    for name in chosen:
        if name not in floating:
            raise BadArgument(
                f"'{printable(name)}' is not an argument that holds floats.", f"Those are {', '.join(floating)}."
            )
    return chosen


def _is_floating(leaf: Any) -> bool:
    return np.asarray(leaf).dtype.kind in "fc"


def _positional(function: Differentiable, arguments: dict[str, Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function of its free arguments by position alone, and these arguments."""
    plain = function._specializer.function
    free = {name: arguments[name] for name in function._specializer.free_names()}
    bound = {f"the_{name}": value for name, value in arguments.items() if name not in free}
    kinds = {name: p.kind for name, p in function._specializer.signature.parameters.items()}
    unusual = {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    if not unusual & set(kinds.values()) and not bound:
        return plain, free
    given: dict[Any, str] = {
        inspect.Parameter.KEYWORD_ONLY: "{0}={0}",
        inspect.Parameter.VAR_KEYWORD: "**{0}",
        inspect.Parameter.VAR_POSITIONAL: "*{0}",
    }
    names = {name: name if name in free else f"the_{name}" for name in arguments}
    called = ", ".join(given.get(kinds[name], "{1}").format(name, names[name]) for name in arguments)
    text = f"def checked({', '.join(free)}):\n    return the_function({called})\n"
    return function_from_text(text, {"the_function": plain, **bound}), free


def _has_value(call: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return all(np.all(np.isfinite(leaf)) for leaf in _numbers(call(*copy.deepcopy(args))))
    except Exception:  # whatever error the function raises for random arguments
        return False


def _numbers(value: Any) -> Iterator[Any]:
    for leaf in flatten(value):
        if np.asarray(leaf).dtype.kind in "fciu":
            yield leaf
