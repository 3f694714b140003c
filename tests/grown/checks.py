"""Oracles: each compares what tapegen makes of a program with what is true of it."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tapegen as tg
from tapegen.export.module import ExportRequest, module_text
from tests.chunk_orders import checked_chunks
from tests.grown.loop_texts import uncompiled
from tests.grown.program import Kept, load, unload
from tests.grown.reference import MOST, Reference, copied, real_leaves, rebuilt, slope, twin
from tests.grown.rounding import moved, rounding_decides
from tests.grown.values import children, is_number, is_real, leaves

STAGES = tuple("primal reverse forward complex jacobian tape second written loops chunks compiled cache".split())
PYTHON = STAGES[:8]
CHEAP = STAGES[:3]
SECONDS = 30
PLAIN_SECONDS = 5  # a program made smaller may never end
ROOT = Path(__file__).parent.parent.parent

RIGHT, REFUSED, WRONG, INTERNAL, TIMEOUT = "right", "refused", "WRONG", "INTERNAL", "TIMEOUT"
NAN, INVALID = "nan", "invalid"
FINE = (RIGHT, REFUSED, NAN)
"""`nan`: a NaN where there is a number, which is the rule where an infinite derivative meets another one or a 0 (the
root of `x - x`), or a number that rounding decides; to be looked at.  `invalid`: a program that plain Python does not
run, which growing never makes, but shrinking may."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What became of a program.

    Attributes
    ----------
    kind : str
        `right`, `refused`, `WRONG`, `INTERNAL` or `TIMEOUT`.
    stage : str
        Where that was seen.
    detail : str
        The reason, or what differs.
    """

    kind: str
    stage: str = ""
    detail: str = ""

    def same(self, other: Verdict) -> bool:
        """Whether another program fails in the same way, as far as can be told."""
        return (self.kind, self.stage, self.key()) == (other.kind, other.stage, other.key())

    def key(self) -> str:
        """What findings with one cause have in common."""
        head = self.detail.split(":")[0] if self.kind == WRONG else self.detail
        return "".join("#" if c.isdigit() else c for c in head.split("\n")[0])[:90]


class Wrong(Exception):
    """Something that differs."""


class Undefined(Exception):
    """A gradient that is NaN where differences agree on a number."""


class OutOfTime(BaseException):
    """A program that takes too long; no `Exception`, so that nothing takes it for an error of the program."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Stop what takes longer, in seconds of this process: how busy the machine is says nothing of a program."""

    def stop(*_: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)  # again, should the first one be swallowed
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def judge(
    text: str,
    stages: Sequence[str] = CHEAP,
    seconds: float = SECONDS,
    kept: Kept | None = None,
    most: int = MOST,
) -> Verdict:
    """What becomes of a program.

    Parameters
    ----------
    text : str
        A module with `f` and `arguments`.
    stages : sequence of str
        Some of `STAGES`.
    seconds : float
        What takes longer is a finding.
    kept : Kept, optional
        Functions of programs before, which are not loaded again.
    most : int
        So many numbers of the arguments are moved.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            with limited(PLAIN_SECONDS):
                reference = Reference(text, kept, most)
        except (Exception, OutOfTime) as error:
            return Verdict(INVALID, "plain", f"{type(error).__name__}: {error}")
        found, stage = Verdict(RIGHT), ""
        checks = Checks(reference)
        try:
            with limited(seconds):
                for stage in stages:
                    found = attempt(checks, stage)
                    if found.kind != RIGHT:
                        break
        except OutOfTime:
            found = Verdict(TIMEOUT, stage)
        finally:
            reference.close()
        return found


def attempt(checks: Checks, stage: str) -> Verdict:
    """One stage."""
    try:
        getattr(checks, stage)()
    except Wrong as wrong:
        return Verdict(WRONG, stage, str(wrong))
    except Undefined as undefined:
        return Verdict(NAN, stage, str(undefined))
    except tg.TapegenError as error:
        kind = INTERNAL if type(error).__name__ == "InternalError" else REFUSED
        return Verdict(kind, stage, f"{type(error).__name__}: {getattr(error, 'reason', error)}")
    except Exception as error:
        return Verdict(INTERNAL, stage, f"{type(error).__name__}: {str(error)[:300]}{place(error)}")
    return Verdict(RIGHT)


def place(error: BaseException) -> str:
    """Where in the package an error arose."""
    trace, last = error.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "/tapegen/" in file:
            last = f" [{file.rpartition('/tapegen/')[2]}:{trace.tb_frame.f_code.co_name}]"
        trace = trace.tb_next
    return last


class Checks:
    """The oracles for one program."""

    def __init__(self, reference: Reference) -> None:
        self.reference = reference
        self.args = reference.args
        self.tolerance = 2e-3 if reference.narrow else 2e-5
        rng = np.random.default_rng(5)
        self.tangents = [np.round(rng.uniform(-1.5, 1.5, np.shape(leaf)), 2) for leaf in real_leaves(self.args)]
        self.parallel = False
        self.function = self.made("python")
        self.gradient: list[np.ndarray] | None = None
        self.has_joins = joins(reference.loaded.text)

    def made(self, backend: str) -> Any:
        """The differentiable function."""
        loaded, how = self.reference.loaded, (self.reference.wrt, backend, self.parallel)
        if how not in loaded.made:
            loaded.made[how] = tg.differentiable(
                loaded.function, wrt=self.reference.wrt, backend=backend, cache=False, parallel=self.parallel
            )
        return loaded.made[how]

    # ---- the stages --------------------------------------------------------------------------------------------------

    def primal(self) -> None:
        """The function alone."""
        self._same(self.function, "value")

    def reverse(self) -> None:
        """Value, arguments afterwards, and gradient."""
        self.gradient = self._reverse(self.function)
        self._against_differences(self.gradient, "gradient")

    def forward(self) -> None:
        """The derivative along a direction."""
        self._forward(self.function)

    def complex(self) -> None:
        """Gradient against complex steps, where they agree with differences: without `np.abs` and its like, that is."""
        if self.gradient is None or self.reference.narrow:
            return
        for k, slopes in enumerate(self.reference.slopes):
            for position, known in enumerate(slopes.flat):
                exact = self.reference.complex_slope(k, position) if np.isfinite(known) else np.nan
                if abs(exact - known) <= self.reference.doubts[k].flat[position]:
                    mine = self.gradient[k].flat[position]
                    if not abs(mine - exact) <= 1e-9 * max(1.0, abs(exact)) * max(1.0, abs(self.size())):
                        raise Wrong(f"gradient against complex step: {mine} is not {exact}")

    def size(self) -> float:
        """How large the numbers are whose rounding is to be expected."""
        found = [np.max(np.abs(leaf)) for leaf in real_leaves(self.reference.outcome.value) if np.size(leaf)]
        return float(max(found, default=1.0))

    def jacobian(self) -> None:
        """The Jacobian in both modes, contracted, against differences."""
        for mode in ("forward", "reverse"):
            made = tg.jacobian(self.function, wrt=self.reference.wrt, mode=mode)
            results, given = self.reference.weights, real_leaves(self.args)
            parts: list[Any] = []
            for n, leaf in enumerate(leaves(made(*copied(self.args)))):
                constant = [np.zeros(results[min(n, len(results) - 1)].shape + np.shape(each)) for each in given]
                parts += constant if leaf is None else [leaf]
            if len(parts) != len(results) * len(given):
                raise Wrong(
                    f"Jacobian in {mode} mode: {len(parts)} parts of {len(results)} results, {len(given)} arguments"
                )
            found = [np.zeros(np.shape(leaf)) for leaf in given]
            for k, weight in enumerate(results):
                for n, leaf in enumerate(given):
                    part = np.asarray(parts[k * len(given) + n])
                    if part.shape != weight.shape + np.shape(leaf):
                        raise Wrong(
                            f"Jacobian in {mode} mode: shape {part.shape} of {weight.shape} by {np.shape(leaf)}"
                        )
                    found[n] = found[n] + np.tensordot(weight, part, weight.ndim)
            self._against_differences(found, f"Jacobian in {mode} mode")

    def second(self) -> None:
        """Hessian times a direction against differences of the gradient."""
        if not self.reference.is_number or self.reference.narrow:
            return
        tangents = self._tangents()

        def products(args: Any) -> list[np.ndarray]:
            made = tg.hvp(self.reference.loaded.function, args, tangents, backend="python", cache=False)
            return [np.asarray(leaf, dtype=float) for leaf in real_leaves(made)]

        found = products(copied(self.args))
        memo: dict[float, list[np.ndarray] | None] = {}

        def gradient(by: float) -> list[np.ndarray] | None:
            if by not in memo:
                given = iter(self.tangents)
                args = rebuilt(self.args, lambda leaf: moved(leaf, by * next(given)) if is_real(leaf) else twin(leaf))
                try:
                    memo[by] = [np.asarray(leaf, dtype=float) for leaf in real_leaves(self.function.grad(*args))]
                except Exception:
                    memo[by] = None
            return memo[by]

        def part(by: float, k: int, position: int) -> float:
            made = gradient(by)
            return float("nan") if made is None else float(made[k].flat[position])

        for k, leaf in enumerate(found):
            for position in range(leaf.size):
                known = slope(lambda by, k=k, n=position: part(by, k, n), part(0.0, k, position))
                mine = float(leaf.flat[position])
                if np.isfinite(known) and not abs(mine - known) <= 1e-4 * max(1.0, abs(known)):
                    said = f"Hessian times direction: {mine} is not {known}"
                    if np.isnan(mine):
                        raise Undefined(said)
                    bound = 1e-4 * max(1.0, abs(known))
                    if rounding_decides(lambda args, k=k: products(args)[k], self.args, bound, narrow=False):
                        raise Undefined(f"{said}, and another one where the arguments are rounded otherwise")
                    raise Wrong(said)

    def tape(self) -> None:
        """The function run on tensors, where it runs."""
        text = self.reference.loaded.text
        if not self.reference.is_number or "hasattr(" in text or "isinstance(" in text:
            return
        if not self._same_without_changes(text):
            return  # tensors do not change: `a += b` names another one, `d["a"] += b` puts another one there
        made: list[Any] = []

        def tensor(leaf: Any) -> Any:
            if not is_real(leaf):
                return leaf
            made.append(tg.constant(leaf))  # assignments to variables are not differentiated
            return made[-1]

        try:
            given = rebuilt(copied(self.args), tensor)
            with tg.GradientTape() as tape:
                tape.watch(made)
                value = self.reference.loaded.function(*given)
            if not isinstance(value, tg.Tensor):
                return
            before = self.reference.outcome.value
            if not np.allclose(value.numpy(), before, rtol=1e-4 if self.reference.narrow else 1e-10, atol=1e-10):
                raise Wrong(f"value on the tape: {value.numpy()} is not {before}")
            parts = tape.gradient(value, made)
        except Wrong:
            raise
        except Exception as error:  # tensors do not change in place, among other things
            if type(error).__name__ == "InternalError":
                raise
            return
        found = [
            np.zeros(np.shape(t)) if part is None else np.asarray(part) for t, part in zip(made, parts, strict=True)
        ]
        self._against_differences(found, "gradient by tape")

    def _same_without_changes(self, text: str) -> bool:
        """Whether the value is the same where augmented assignments make new arrays."""
        tree = ast.fix_missing_locations(Rebinding().visit(ast.parse(text)))
        rebinding = load(ast.unparse(tree))
        try:
            value = rebinding.function(*copied(self.args))
            return bool(np.allclose(value, self.reference.outcome.value, rtol=1e-10, atol=1e-10))
        except Exception:
            return False
        finally:
            unload(rebinding)

    def written(self) -> None:
        """The module that `tapegen write` makes."""
        if not self.reference.is_number or isinstance(self.reference.outcome.value, np.ndarray):
            return  # of arrays it takes a cotangent
        wanted = ExportRequest(self.function, copied(self.args), {}, ("grad",))
        text = module_text([wanted], readable=True)
        module = types.ModuleType("written")
        exec(compile(text, "<written>", "exec"), module.__dict__)
        names = [name for name, value in vars(module).items() if isinstance(value, types.FunctionType)]
        code = [getattr(module, name) for name in names if name.startswith("f_")]
        is_flat = all(map(is_real, self.args))  # no containers, whose parts would be parameters
        if is_flat and len(code) == 1 and code[0].__code__.co_argcount == len(self.args) + 1:
            value, *parts = code[0](*copied(self.args))
            self._close(value, self.reference.outcome.value, "value of the written module")
            self._against_differences([np.asarray(part) for part in parts], "gradient of the written module")

    def cache(self) -> None:
        """What a second process finds on disk is what the first one made."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "program.py")
            file.write_text(self.reference.loaded.text, encoding="utf-8")
            environment = {**os.environ, "TAPEGEN_CACHE_DIR": str(Path(folder, "cache")), "PYTHONPATH": str(ROOT)}
            command = [sys.executable, "-m", "tests.grown.again", str(file), ",".join(map(str, self.reference.wrt))]
            said = []
            for _ in range(2):
                done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
                said.append(done.stdout or done.stderr[-300:])
        if said[0] != said[1]:
            raise Wrong(f"second process: {said[1]} is not {said[0]}")
        if self.gradient is not None and said[0].startswith("["):
            found = [np.asarray(each) for each in json.loads(said[0])]
            self._against_differences(found, "gradient of another process")

    def loops(self) -> None:
        """The text for compiled code, as CPython runs it."""
        if "np.float32(" in self.reference.loaded.text:
            return  # times a float, a number in single precision stays one in CPython, and does not in numba
        with uncompiled():
            self.compiled()

    def chunks(self) -> None:
        """The same with loops in chunks, which run in several orders and must share nothing."""
        self.parallel = True
        try:
            with checked_chunks():
                self.compiled()
        finally:
            self.parallel = False

    def compiled(self) -> None:
        """Compiled code: value, arguments afterwards, gradient, direction."""
        function = self.made("auto")
        self._same(function, "compiled value")
        self._against_differences(self._reverse(function), "compiled gradient")
        self._forward(function)

    # ---- parts of them -----------------------------------------------------------------------------------------------

    def _same(self, function: Any, what: str) -> None:
        given = copied(self.args)
        self._outcome(function(*given), given, what)

    def _outcome(self, value: Any, given: Any, what: str) -> None:
        self._close(value, self.reference.outcome.value, what)
        self._close(given, self.reference.outcome.after, f"arguments after {what}")

    def _close(self, mine: Any, known: Any, what: str) -> None:
        """Whether two structures hold the same values, of the same kinds."""
        kinds = (kind_of(mine), kind_of(known))
        if kinds[0] != kinds[1] and not (self.has_joins and is_wider(mine, known)):
            raise Wrong(f"{what} of another kind: {kinds[0]} is not {kinds[1]}")
        parts, others = list(children(mine)), list(children(known))
        if [name for name, _ in parts] != [name for name, _ in others]:
            raise Wrong(f"{what} with other parts: {parts} is not {others}")
        for (_, part), (_, other) in zip(parts, others, strict=True):
            self._close(part, other, what)
        if isinstance(known, np.ndarray | np.number | float | int | complex):
            rtol = 1e-4 if self.reference.narrow else 1e-10
            if not np.allclose(mine, known, rtol=rtol, atol=rtol, equal_nan=True):
                raise Wrong(f"{what}: {mine} is not {known}")

    def _reverse(self, function: Any) -> list[np.ndarray]:
        given = copied(self.args)
        value, found = self._pulled_back(function, given)
        self._outcome(value, given, "value of reverse mode")
        known = tuple(self.args[k] for k in self.reference.wrt)
        shapes = [np.shape(leaf) for leaf in found], [np.shape(leaf) for leaf in real_leaves(known)]
        if shapes[0] != shapes[1]:
            raise Wrong(f"shapes of the gradient: {shapes[0]} is not {shapes[1]}")
        return [np.asarray(leaf, dtype=float) for leaf in found]

    def _pulled_back(self, function: Any, given: Any) -> tuple[Any, list[Any]]:
        """The value, and the gradient's leaves."""
        if self.reference.is_number:
            value, gradient = function.value_and_grad(*given)
        else:
            value, pullback = function.vjp(*given)
            weights = iter(self.reference.weights)
            seeds = rebuilt(value, lambda leaf: like(next(weights), leaf) if is_real(leaf) else leaf)
            gradient = pullback(seeds)
        return value, real_leaves(gradient)

    def _part_of_gradient(self, k: int, chosen: np.ndarray) -> Callable[[Any], np.ndarray]:
        return lambda given: np.asarray(self._pulled_back(self.function, given)[1][k])[chosen]

    def _tangents(self) -> list[Any]:
        given = iter(self.tangents)

        def tangent(leaf: Any) -> Any:
            return like(next(given), leaf) if is_real(leaf) else leaf

        return [rebuilt(arg, tangent) if real_leaves(arg) else None for arg in self.args]

    def _forward(self, function: Any) -> None:
        given = copied(self.args)
        value, tangent = function.jvp(given, self._tangents())
        self._outcome(value, given, "value of forward mode")
        found = real_leaves(tangent)
        if [np.shape(leaf) for leaf in found] != [weight.shape for weight in self.reference.weights]:
            raise Wrong(f"tangent of another form: {tangent!r}"[:200])
        mine = self.reference.contract(found)
        terms = [s * t for s, t in zip(self.reference.slopes, self.tangents, strict=True)]
        known = float(sum(np.sum(term) for term in terms))
        if not np.isfinite(known) and self.gradient is not None:
            # some numbers were not moved: what reverse mode says of them, which has been compared elsewhere
            known = float(sum(np.sum(g * t) for g, t in zip(self.gradient, self.tangents, strict=True)))
            if any(np.isnan(s).any() for s in self.reference.slopes) and self._kinked():
                return
        scale = max(1.0, *(float(np.max(np.abs(t), initial=0.0)) for t in terms if np.isfinite(t).all()), abs(known))
        if np.isfinite(known) and not abs(mine - known) <= self.tolerance * scale:
            raise Wrong(f"tangent: {mine} is not {known}")

    def _kinked(self) -> bool:
        """Whether there are numbers without a derivative, rather than too many numbers."""
        return sum(int(np.size(s)) for s in self.reference.slopes) <= self.reference.most

    def _against_differences(self, gradient: Sequence[np.ndarray], what: str) -> None:
        if len(gradient) != len(self.reference.slopes):
            raise Wrong(f"{what}: {len(gradient)} parts, not {len(self.reference.slopes)}")
        for k, (mine, known) in enumerate(zip(gradient, self.reference.slopes, strict=True)):
            if mine.shape != known.shape:
                raise Wrong(f"shape of {what}: {mine.shape} is not {known.shape}")
            bound = self.tolerance * np.maximum(1.0, np.abs(known).max(initial=0.0, where=np.isfinite(known)))
            bad = np.isfinite(known) & ~(np.abs(mine - known) <= bound)
            if bad.any():
                said = f"{what}: leaf {k}: {mine[bad][0]} is not {known[bad][0]}"
                if np.isnan(mine[bad]).all():
                    raise Undefined(said)
                if rounding_decides(self._part_of_gradient(k, bad), self.args, float(bound), self.reference.narrow):
                    raise Undefined(f"{said}, and another one where the arguments are rounded otherwise")
                raise Wrong(said)


class Rebinding(ast.NodeTransformer):
    """`a += b` as `a = a + b`, also of items and attributes."""

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        read = ast.parse(ast.unparse(node.target), mode="eval").body
        return ast.Assign([node.target], ast.BinOp(read, node.op, node.value))


def like(numbers: np.ndarray, leaf: Any) -> Any:
    """Numbers as a leaf of the kind of another one."""
    if isinstance(leaf, np.ndarray):
        return numbers.astype(leaf.dtype)
    return type(leaf)(numbers[()]) if is_number(leaf) else numbers


def joins(text: str) -> bool:
    """Whether a name may hold numbers of several kinds on several paths.

    `np.polyval` of no coefficients and `simpson` of an odd number of points give numbers of another kind, too.
    """
    return any(f"{name}(" in text for name in ("polyval", "simpson")) or any(
        isinstance(node, ast.If | ast.For | ast.While | ast.IfExp | ast.BoolOp) for node in ast.walk(ast.parse(text))
    )


def is_wider(mine: Any, known: Any) -> bool:
    """Whether a number is what docs/conventions.md says of a name that is another number on another path.

    That is of a wider kind, or of NumPy's kind where Python has an array without axes.
    """
    numbers = bool | int | float | complex | np.generic
    if not isinstance(mine, numbers) or not (isinstance(known, numbers) or kind_of(known).endswith(" ()")):
        return False
    return bool(np.can_cast(np.asarray(known).dtype, np.asarray(mine).dtype))


def kind_of(value: Any) -> str:
    """Of what kind a value is: numbers of Python and of NumPy are one kind where they are equal."""
    if isinstance(value, np.ndarray):
        return f"array {value.dtype} {value.shape}"
    if isinstance(value, bool | np.bool_):
        return "bool"
    if isinstance(value, float | np.float64):
        return "float"
    if isinstance(value, int | np.integer):
        return "int"
    if isinstance(value, np.generic):
        return f"scalar {value.dtype}"
    return type(value).__name__
