"""The oracles: what must hold for a program and its gradient, and how exactly.

====  ==================================================================================  ===============
O1    the value, the exception and the arguments afterwards are those of plain Python     bit for bit
O2    <w, J v> = <J^T w, v> over the residues modulo 2^61 - 1                              exact
O3    the same over floats, against dual numbers; and J v itself, by forward mode         64 u S
O4    each component of the gradient (small inputs)                                       64 u S
O8    a cotangent twice as large gives a gradient twice as large; zero gives zero         bit for bit
O9    a second call gives the same and changes nothing of the first                       bit for bit
O12   a planted fault gives the exception of plain Python                                 exact
====  ==================================================================================  ===============
"""

from __future__ import annotations

import ast
import copy
import itertools
import random
import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.random_programs.adapter import AliasError, BuildError, Derivatives, InternalError, TapegenError
from tests.random_programs.duals import FieldDual
from tests.random_programs.forward import (
    Derivative,
    differentiate,
    inner,
    leaves,
    random_float,
    random_like,
    random_residue,
)
from tests.random_programs.plain import Plain, differences, finite, run_plain
from tests.random_programs.program import Program
from tests.random_programs.residues import OutsideField, Residue

TOLERANCE = 64.0
COMPILED_RTOL = 1e-9  # compiled transcendental functions and sums differ in the last digits
COMPILED_RTOL_FLOAT32 = 1e-4
COMPILED_MARGIN = 1e-6  # a comparison closer than this may come out otherwise when compiled
COMPENSATES = sum([1.0, 1e100, -1e100]) == 1.0  # since Python 3.12
_SUM = re.compile(r"(?<![.\w])sum\(")


@dataclass(frozen=True)
class Failure:
    """One oracle that disagreed."""

    oracle: str
    kind: str  # what distinguishes this failure from others of the same oracle
    detail: str

    @property
    def bucket(self) -> tuple[str, str]:
        return self.oracle, self.kind


@dataclass
class Verdict:
    """What was found about one program."""

    failures: list[Failure] = field(default_factory=list)
    passed: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    ratio: float = 0.0  # the largest error in units of u * S
    plain: str = ""  # the exception of plain Python, or what kind of result it gives

    def fail(self, oracle: str, kind: str, detail: str = "") -> None:
        self.failures.append(Failure(oracle, kind, detail))

    def compare(self, oracle: str, kind: str, differences: list[str]) -> None:
        if differences:
            self.fail(oracle, kind, "; ".join(differences[:3]))
        else:
            self.passed[oracle] += 1


# ---- one program ----


class Check:
    """Applies the oracles to one program."""

    def __init__(self, program: Program, backend: str = "python", *, thorough: bool = True) -> None:
        self.program = program
        self.backend = backend
        self.thorough = thorough
        self.rng = random.Random(program.seed)
        nodes = ast.walk(ast.parse(program.source))
        self.branches = any(isinstance(node, ast.If | ast.IfExp | ast.For | ast.While) for node in nodes)
        self.verdict = Verdict()
        self.given: tuple[Any, ...] = ()  # the arguments of the last call

    def run(self) -> Verdict:
        plain = run_plain(self.program)
        self.verdict.plain = type(plain.error).__name__ if plain.error else _kind(plain.result)
        if not plain.repeatable:
            self.verdict.skipped["writes into its globals"] += 1
            return self.verdict
        try:
            derivatives = Derivatives(self.program, self.backend)
        except TapegenError as refusal:
            self.verdict.fail("refused", *_refusal(refusal))
            return self.verdict
        forms: list[tuple[str, Callable[[], Any]]] = []
        if isinstance(plain.result, float | np.floating):
            forms.append(("joint", lambda: self.joint(derivatives)))
        if not forms or self.thorough:
            forms.append(("split", lambda: self.split(derivatives, plain)))
        if self.backend != "python" and self.thorough:
            forms.append(("primal", lambda: self.primal(derivatives)))
        direction = [random_like(arg, self.rng, random_float) for arg in self.wrt_arguments()]
        truth = self.truth(direction, plain)
        for form, run in forms:
            self.one_form(form, run, plain, truth, direction)
            if self.verdict.failures:
                return self.verdict
        if truth is not None:
            if self.thorough:
                self.forward(derivatives, plain, truth, direction)
            self.over_field(derivatives)
        return self.verdict

    def wrt_arguments(self) -> list[Any]:
        args = self.program.arguments()
        return [args[k] for k in self.program.wrt]

    def truth(self, direction: list[Any], plain: Plain) -> Derivative | None:
        """The dual numbers' answer; None where plain Python raises."""
        if plain.error is not None:
            return None
        return differentiate(self.program, direction)

    # ---- the three forms: each returns value, arguments afterwards, weights, gradients, and a second run ----

    def joint(self, derivatives: Derivatives) -> Any:
        args = self.given = self.program.arguments()
        value, gradients = derivatives.value_and_grad(args)
        return value, args, [1.0], gradients

    def split(self, derivatives: Derivatives, plain: Plain) -> Any:
        args = self.given = self.program.arguments()
        value, pullback = derivatives.vjp(args)
        rng = random.Random(self.program.seed + 1)
        weights = [_as_leaf(random_like(leaf, rng, random_float), leaf) for leaf in leaves(value)]
        gradients = pullback(rebuilt(value, iter(weights)))
        kept = copy.deepcopy((value, args, gradients))
        self.linear(value, pullback, weights, gradients, args)
        return (*kept[:2], weights, kept[2])

    def primal(self, derivatives: Derivatives) -> Any:
        args = self.given = self.program.arguments()
        return derivatives.call(args), args, None, None

    def forward(self, derivatives: Derivatives, plain: Plain, truth: Derivative, direction: list[Any]) -> None:
        """O3 of forward mode."""
        args = self.program.arguments()
        tangents = [_as_leaf(v, arg) for v, arg in zip(direction, self.wrt_arguments(), strict=True)]
        try:
            value, tangent = derivatives.jvp(args, tangents)
        except TapegenError as refusal:
            self.refused(refusal)
            return
        except Exception as error:
            self.raised("forward", error, plain)
            return
        if self.is_near_a_branch(truth):
            return
        rtol = self.rtol()
        self.verdict.compare(
            "O1", "forward value", list(differences(plain.result, value, "result", rtol=rtol, widen=self.branches))
        )
        self.verdict.compare("O1", "forward arguments", list(differences(plain.args, args, "arguments", rtol=rtol)))
        if not self.is_alike(truth, value):
            return
        for output, dot in zip(truth.outputs, leaves(tangent), strict=True):
            for t, s, found in zip(np.ravel(output.t), np.ravel(output.s), np.ravel(dot), strict=True):
                self.judge("O3", "forward", float(t), float(found), float(s), truth)

    def linear(
        self, value: Any, pullback: Callable[[Any], Any], weights: list[Any], gradients: Any, args: tuple[Any, ...]
    ) -> None:
        """O8 and O9 of a pullback: scale, zero, a second call, and one after everything outside has changed."""
        before, bars = copy.deepcopy(gradients), copy.deepcopy(value)
        double = pullback(rebuilt(value, iter([2.0 * w for w in weights])))
        again = pullback(rebuilt(value, iter(weights)))
        self.verdict.compare("O9", "pullback twice", list(differences(before, again)))
        self.verdict.compare("O9", "first result kept", list(differences(before, gradients)))
        scribbled([*args, *gradients])
        last = pullback(rebuilt(bars, iter(weights)))
        self.verdict.compare("O9", "memory of its own", list(differences(before, last)))
        if not finite(before) or self.backend != "python":
            return
        twice = [2.0 * np.asarray(g) for g in before]
        if all(np.all((np.abs(g) > 1e-290) & (np.abs(g) < 1e300) | (np.asarray(g) == 0)) for g in before):
            same = all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(twice, double, strict=True))
            if all(np.asarray(g).dtype == np.float64 for g in before):
                self.verdict.compare("O8", "scale", [] if same else [f"{double!r} is not twice {before!r}"])

    def one_form(
        self,
        form: str,
        run: Callable[[], Any],
        plain: Plain,
        truth: Derivative | None,
        direction: list[Any],
    ) -> None:
        verdict = self.verdict
        try:
            value, args, weights, gradients = run()
        except TapegenError as refusal:
            if plain.error is not None and isinstance(refusal, type(plain.error)):
                verdict.passed["O12"] += 1
            else:
                self.refused(refusal)
            return
        except Exception as error:
            self.raised(form, error, plain)
            return
        if plain.error is not None:
            verdict.fail("O12", f"{form} no exception", f"{plain.error!r} expected, returned {value!r}")
            return
        if truth is not None and self.is_near_a_branch(truth):
            return
        rtol = self.rtol()
        verdict.compare(
            "O1", f"{form} value", list(differences(plain.result, value, "result", rtol=rtol, widen=self.branches))
        )
        verdict.compare("O1", f"{form} arguments", list(differences(plain.args, args, "arguments", rtol=rtol)))
        if weights is None:
            return
        self.gradient_types(form, gradients)
        if truth is not None and not verdict.failures and self.is_alike(truth, value):
            self.dot_product(form, truth, weights, gradients, direction)
            self.components(form, weights, gradients)
        if not verdict.failures:
            self.second_call(form, run, value, args, gradients)

    def is_alike(self, truth: Derivative, value: Any) -> bool:
        """Whether the floats of a result are those of plain Python; an int of one path may come back as a float."""
        alike = len(truth.outputs) == len(leaves(value))
        if not alike:
            self.verdict.skipped["an int came back as a float"] += 1
        return alike

    def rtol(self) -> float:
        """How precisely values must agree with plain Python."""
        if self.backend == "python":
            # how Python's sum adds up depends on the class of each item, which may depend on the path
            return COMPILED_RTOL if COMPENSATES and _SUM.search(self.program.source) else 0.0
        return COMPILED_RTOL if self.unit() < 1e-10 else COMPILED_RTOL_FLOAT32

    def is_near_a_branch(self, truth: Derivative) -> bool:
        """Whether compiled code may take another branch, as it rounds otherwise."""
        near = self.backend != "python" and truth.monitor.near < COMPILED_MARGIN
        if near:
            self.verdict.skipped["compiled, near a branch"] += 1
        return near

    def refused(self, refusal: TapegenError) -> None:
        if isinstance(refusal, InternalError):
            cause = refusal.__cause__ or refusal
            self.verdict.fail("crash", f"{refusal.stage} {type(cause).__name__} {_place(cause)}", _last_lines(cause))
        elif isinstance(refusal, AliasError):
            self.verdict.skipped["refused, two names for one memory"] += 1
        elif _is_about_precision(refusal, self.program):
            self.verdict.skipped["refused, precision depends on the path"] += 1
        elif "np.squeeze" in refusal.reason and "has one entry here" in refusal.reason:
            self.verdict.skipped["refused, how many axes np.squeeze leaves depends on the data"] += 1
        elif isinstance(refusal, BuildError) and "has no compiled form" in refusal.reason:
            self.verdict.skipped[f"uncompiled: {refusal.reason}"] += 1
        else:
            self.verdict.fail("refused", *_refusal(refusal))

    def raised(self, form: str, error: Exception, plain: Plain) -> None:
        if plain.error is None:
            where = _place(error)
            self.verdict.fail("crash", f"{form} {type(error).__name__} {where}", _last_lines(error))
        elif type(error) is not type(plain.error) or str(error) != str(plain.error):
            self.verdict.fail("O12", f"{form} exception", f"{error!r} instead of {plain.error!r}")
        else:
            self.verdict.compare("O12", f"{form} arguments", list(differences(plain.args, self.given, "arguments")))

    def gradient_types(self, form: str, gradients: Any) -> None:
        sources = self.wrt_arguments()
        wrong = []
        for source, gradient in zip(sources, gradients, strict=True):
            if type(source) is not type(gradient) or np.shape(source) != np.shape(gradient):
                wrong.append(
                    f"{type(gradient).__name__}{np.shape(gradient)} for {type(source).__name__}{np.shape(source)}"
                )
            elif isinstance(source, np.ndarray | np.generic) and source.dtype != gradient.dtype:
                wrong.append(f"{gradient.dtype} for {source.dtype}")
            if (
                isinstance(gradient, np.ndarray)
                and isinstance(source, np.ndarray)
                and np.shares_memory(gradient, source)
            ):
                wrong.append("shares memory with its source")
        arrays = [gradient for gradient in gradients if isinstance(gradient, np.ndarray)]
        if any(np.shares_memory(a, b) for a, b in itertools.combinations(arrays, 2)):
            wrong.append("two gradients share memory")
        self.verdict.compare("O1", f"{form} gradient type", wrong)

    def unit(self) -> float:
        """The rounding unit of the least precise argument."""
        kinds = [np.asarray(arg).dtype for arg in self.program.arguments()]
        return float(np.finfo(np.float32).eps) / 2 if np.dtype(np.float32) in kinds else 2.0**-53

    def dot_product(
        self, form: str, truth: Derivative, weights: list[Any], gradients: Any, direction: list[Any]
    ) -> None:
        """O3."""
        left, scale = _contracted(truth, weights)
        with np.errstate(all="ignore"):
            right = float(sum((inner(g, v) for g, v in zip(gradients, direction, strict=True)), 0.0))
        self.judge("O3", form, left, right, scale, truth)

    def judge(self, oracle: str, form: str, left: float, right: float, scale: float, truth: Derivative) -> None:
        if not (np.isfinite(left) and np.isfinite(right) and np.isfinite(scale)):
            overflow = not finite(truth.result_values()) or not np.isfinite(scale)
            # an infinite partial that the program masks is masked by the duals and must be by a zero cotangent; one
            # that meets a tangent of zero tells nothing about the cotangent
            lost = truth.monitor.nonfinite and (truth.monitor.dropped or not np.isfinite(left))
            if lost or overflow or (not np.isfinite(left) and not np.isfinite(right)):
                self.verdict.skipped[f"{oracle} not finite"] += 1
            else:
                self.verdict.fail(oracle, f"{form} not finite", f"{right!r} instead of {left!r}")
            return
        tolerance = TOLERANCE if self.backend == "python" else 1e6
        ratio = abs(left - right) / (self.unit() * scale) if scale else (0.0 if left == right else np.inf)
        self.verdict.ratio = max(self.verdict.ratio, ratio)
        wrong = f"{right!r} instead of {left!r} ({ratio:.3g} units of rounding)"
        self.verdict.compare(oracle, form, [wrong] if ratio > tolerance else [])

    def components(self, form: str, weights: list[Any], gradients: Any) -> None:
        """O4, where there are few components."""
        sources = self.wrt_arguments()
        if not self.thorough or sum(np.size(x) for x in sources) > 4 or self.program.seed % 4:
            return
        for k, source in enumerate(sources):
            for index in np.ndindex(np.shape(source)):
                basis: list[Any] = [np.zeros(np.shape(x))[()] for x in sources]
                if np.shape(source):
                    basis[k][index] = 1.0
                else:
                    basis[k] = 1.0
                truth = differentiate(self.program, basis)
                left, scale = _contracted(truth, weights)
                self.judge("O4", form, left, float(np.asarray(gradients[k])[index]), scale, truth)

    def second_call(self, form: str, run: Callable[[], Any], value: Any, args: Any, gradients: Any) -> None:
        """O9."""
        first = copy.deepcopy((value, args, gradients))
        again = run()
        self.verdict.compare("O9", f"{form} twice", list(differences(first[0], again[0]))[:2])
        self.verdict.compare("O9", f"{form} twice", list(differences(first[2], again[3]))[:2])
        kept = list(differences(first, (value, args, gradients)))
        self.verdict.compare("O9", f"{form} first result kept", kept)

    # ---- O2 ----

    def over_field(self, derivatives: Derivatives) -> None:
        if any("float32" in text for text in self.program.args):
            return
        direction = [random_like(arg, self.rng, random_residue) for arg in self.wrt_arguments()]
        try:
            truth = differentiate(self.program, direction, FieldDual)
        except (OutsideField, ZeroDivisionError) as reason:
            self.verdict.skipped[f"O2 {reason}"] += 1
            return
        except Exception:
            if not self.program.fault and "raise" not in self.program.source and "assert" not in self.program.source:
                raise
            self.verdict.skipped["O2 raises on another branch"] += 1
            return
        weights = [random_like(output.v, self.rng, random_residue) for output in truth.outputs]
        try:
            found = derivatives.over_field(weights)
        except OutsideField as reason:
            self.verdict.skipped[f"O2 text: {reason}"] += 1
            return
        except AliasError:
            self.verdict.skipped["refused, two names for one memory"] += 1
            return
        except Exception as error:
            self.verdict.fail("O2", f"{type(error).__name__} {_place(error)}", _last_lines(error))
            return
        left = sum((inner(o.t, w) for o, w in zip(truth.outputs, weights, strict=True)), Residue(0))
        for form, (outputs, gradients) in zip(("joint", "split"), found, strict=True):
            values = leaves(outputs)
            wrong = [
                f"result {k} differs"
                for k, (a, b) in enumerate(zip(truth.outputs, values, strict=False))
                if not np.array_equal(np.asarray(a.v, dtype=object), np.asarray(b, dtype=object))
            ]
            self.verdict.compare("O2", f"{form} value", wrong)
            right = sum((inner(g, v) for g, v in zip(gradients, direction, strict=True)), Residue(0))
            self.verdict.compare("O2", form, [] if left == right else ["<w, J v> is not <J^T w, v>"])


def check(program: Program, backend: str = "python", *, thorough: bool | None = None) -> Verdict:
    """Apply every oracle to a program; stops at the first that fails.

    A thorough check also runs the split form of programs that return one number, and their compiled primal.  By default
    every third program gets one.
    """
    thorough = program.seed % 3 == 0 if thorough is None else thorough
    try:
        return Check(program, backend, thorough=thorough).run()
    finally:
        program.forget()


# ---- helpers ----


def rebuilt(value: Any, cotangents: Iterator[Any]) -> Any:
    """Cotangents in the structure of a result."""
    if isinstance(value, tuple | list):
        return type(value)(rebuilt(item, cotangents) for item in value)
    if isinstance(value, dict):
        return {key: rebuilt(item, cotangents) for key, item in value.items()}
    return next(cotangents) if leaves(value) else value


def scribbled(items: Iterable[Any]) -> None:
    """Overwrite arrays that are the caller's to overwrite."""
    for item in items:
        if isinstance(item, np.ndarray) and item.flags.writeable:
            item[...] = 7


def _as_leaf(weight: Any, leaf: Any) -> Any:
    return weight.astype(leaf.dtype) if isinstance(leaf, np.ndarray) else type(leaf)(weight)


def _contracted(truth: Derivative, weights: list[Any]) -> tuple[float, float]:
    """The weighted sum of the tangents, and of their magnitudes."""
    with np.errstate(all="ignore"):
        left = sum((inner(output.t, w) for output, w in zip(truth.outputs, weights, strict=True)), 0.0)
        scale = sum((inner(output.s, np.abs(w)) for output, w in zip(truth.outputs, weights, strict=True)), 0.0)
    return float(left), float(scale)


def _kind(result: Any) -> str:
    return "number" if isinstance(result, int | float | np.generic) else type(result).__name__


def _refusal(error: TapegenError) -> tuple[str, str]:
    return f"{type(error).__name__}: {error.reason}", str(error)


def _is_about_precision(error: TapegenError, program: Program) -> bool:
    """Whether a program of single precision is refused because some of its paths compute in double precision."""
    single = any("float32" in text for text in program.args)
    return single and "on one path" in error.reason and "float32" in error.reason


def _place(error: BaseException) -> str:
    """The innermost line of tapegen that an exception passed through, or of generated text."""
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if "tapegen/" in frame.filename and "tests/" not in frame.filename:
            place = f"{frame.filename.rsplit('tapegen/', 1)[-1]}:{frame.lineno}"
        elif frame.filename.startswith("<tapegen"):
            place = "generated text"
    return place


def _last_lines(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)[-4:])
