"""Scalarization: each array statement becomes one loop nest of operations on scalars, without temporary arrays.

Legal where the value shares no memory with the target, or each element is read before it is written; else the value is
computed into a new array first.  Shapes are compared, slices clipped and indices checked before the loops, so that
errors are those of NumPy.

Before::

    def f(x: "f8[:]", y: "f8[:]"):
        z = np.sin(x) + 2.0 * y
        return z

After::

    def f(x, y):
        if y.shape[0] != x.shape[0]:
            raise ValueError("operands could not be broadcast together")
        z = np.empty(x.shape[0])
        for i in range(x.shape[0]):
            z[i] = np.sin(x[i]) + 2.0 * y[i]
        return z
"""

from __future__ import annotations

import operator
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np

from tapegen.analysis.memory_access import may_return_argument, written
from tapegen.errors import Span
from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import Affine, is_int, is_real, linear
from tapegen.ir.dead_code import remove_dead
from tapegen.ir.nodes import (
    Assign,
    Block,
    Break,
    Call,
    Comment,
    Const,
    Continue,
    Effect,
    Expr,
    For,
    Function,
    If,
    Load,
    Raise,
    Return,
    Routine,
    Slice,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import BOOL, INT, Array, Scalar
from tapegen.loops.analysis.block_queries import escapes, leaves
from tapegen.loops.analysis.dependence import alias_sets
from tapegen.loops.analysis.symbolic_bounds import Extents, SymbolicBounds, dim
from tapegen.loops.analysis.view_layouts import Reshapes
from tapegen.loops.legalize.builder import ElementRule, Loop
from tapegen.loops.legalize.math_domains import is_small, sign_of
from tapegen.loops.legalize.precision import dtype_of
from tapegen.loops.legalize.registry import FILL, LAZY, REWRITE, SEVERAL
from tapegen.loops.legalize.scalar_ops import OPERATIONS, TOO_LARGE, storable
from tapegen.loops.library.messages import TEXTS, NotTold, told
from tapegen.loops.scalarize import concatenation
from tapegen.loops.scalarize.broadcasting import fit
from tapegen.loops.scalarize.control_flow import (
    Recorded,
    StructuredBuilder,
    Trials,
    alternatives,
    constant_message,
    loop_body,
    printed,
)
from tapegen.loops.scalarize.expressions import lazy, loaded, opaque, operand, scalar
from tapegen.loops.scalarize.expressions import number as element
from tapegen.loops.scalarize.loop_nests import allocate, fill, stored
from tapegen.loops.scalarize.reductions import REDUCTIONS, number_into
from tapegen.loops.scalarize.views import RESHAPES, atomic_index, is_place, native_view, reshaped


def scalarize(
    function: Function, *, boundscheck: bool = True, messages: bool = False, speculative: bool = False
) -> Function:
    """The same program without array statements: loops, operations on scalars, and calls that numba supports.

    Raises
    ------
    NoCompiledForm
        If a call is neither lowered nor supported by numba.
    """
    return Scalarizer(function, boundscheck, messages=messages, speculative=speculative).run()


class Scalarizer(StructuredBuilder):
    """Rewrites one function."""

    def __init__(
        self,
        function: Function,
        boundscheck: bool = True,
        trials: Trials = "remembered",
        messages: bool = False,
        speculative: bool = False,
    ) -> None:
        super().__init__(function, boundscheck, speculative, trials)
        self.function = function
        self.messages = messages
        self._reshapes = Reshapes(function)
        self._recorded = Recorded(function)
        never_one = []
        for param in function.params:
            if isinstance(param.type, Array):
                if not function.inner and param not in function.computed:
                    never_one += [dim(param, k) for k in range(param.type.rank) if not param.type.is_unit(k)]
                self.facts.mentioned.add(param)
        self.facts.never_one = frozenset(never_one)

    def run(self) -> Function:
        """The function in terms of loops."""
        self._make_alike()
        self.block_of(self.function.body)
        if self.violated:  # results of a trial do not hold where an assumption was violated
            assert self.trials != "none"
            trials: Trials = "fresh" if self.trials == "remembered" else "none"
            return Scalarizer(self.function, self.boundscheck, trials, self.messages, self.speculative).run()
        body = tuple(self.out)
        if self.optional.difference(*map(traversal.reads, body)):
            body = remove_dead(
                body, (), lambda stmt: isinstance(stmt, Assign) and self.optional.issuperset(stmt.targets)
            )
        for var, refusal in self.unsupported_views.items():
            if any(var in traversal.reads(stmt) for stmt in body):
                raise refusal
        return traversal.with_body(self.function, body)

    def _make_alike(self) -> None:
        """Compare the shapes of tangents with those of their arguments; afterwards the sizes are known to be equal."""
        for param, tangent in self.function.tangents:
            if not isinstance(param.type, Array):
                continue
            for own, other in zip(self.sizes(param), self.sizes(tangent), strict=True):
                if not other.is_unit:
                    wrong = Call(operator.ne, (other.size, own.size), (), BOOL)
                    self.check(wrong, ValueError, "a tangent does not have the shape of its argument")
            self.facts.set_shape(tangent, self.facts.extents(param))

    # ---- statements --------------------------------------------------------------------------------------------------

    def block_of(self, block: Block) -> None:
        for stmt in block:
            self.statement = stmt
            self.one(stmt)

    def one(self, stmt: Stmt) -> None:
        match stmt:
            case Assign(targets, value):
                self.assign(targets, value)
                self._compare_shapes(targets)
            case Store():
                self.store(stmt)
            case Effect(call):
                self.emit(Effect(opaque(self, self._message(call, stmt.origin)), stmt.origin))
            case If():
                self.branch(stmt)
            case For():
                self.counted(stmt)
            case While():
                self.repeated(stmt)
            case Return(values):
                self.emit(Return(tuple(operand(self, value) for value in values), stmt.origin))
            case Raise(exception, message):
                self.emit(Raise(exception, constant_message(self, message), stmt.origin))
            case Break() | Continue() | Comment():
                self.emit(stmt)
            case _:
                raise AssertionError(f"{type(stmt).__name__} is no statement of a finished function")

    def assign(self, targets: tuple[Var, ...], value: Expr) -> None:
        if len(targets) > 1 or isinstance(value, Tuple):
            self._assign_several(targets, value)
            return
        (target,) = targets
        if isinstance(target.type, Array):
            self.assign_array(target, value)
            return
        if _is_reduction(value):
            self._assign_reduction(target, value)
            return
        if isinstance(value, Call) and value.func in TEXTS:
            self._assign_text(target, value)
            return
        number = scalar(self, value) if not _is_array(value) else element(self, value)
        step = linear(value) - Affine.atom(target) if is_int(target) and is_int(value) else None
        if step is not None and step.is_constant:
            self.facts.shift(target, step.constant)
            self.forget_views({target})
        else:
            real = is_real(target)
            sign = sign_of(number, self.facts.signs) if real else ""
            small = real and is_small(number, self.facts.small)
            self.forget([target])
            self.facts.set_number(target, sign, small)
        self.emit(Assign((target,), number, self.origin))
        if step is not None and not step.is_constant:
            self.facts.define(target, value)
            self._recorded.load(self, target, value)

    def _message(self, call: Call, origin: Span | None) -> Call:
        """A call for its effect: what only prints or warns is handed to Python, if there is one."""
        if not intrinsics.tells(call.func) or not self.messages:
            return printed(self, call)
        try:
            return told(call, origin, self.texts.get)
        except NotTold:
            raise self.unsupported(call.func) from None

    def _assign_text(self, target: Var, value: Call) -> None:
        """A string that is only printed is assembled when it is printed."""
        text = self._bound_text(value)
        self.forget([target])
        self.texts[target] = text
        self.unsupported_views[target] = self.unsupported("an f-string")

    def _bound_text(self, value: Call) -> Call:
        """The string with the present values of its parts."""
        parts = [
            self._bound_text(part) if isinstance(part, Call) and part.func in TEXTS else self._now(scalar(self, part))
            for part in value.args
        ]
        return Call(value.func, tuple(parts), (), value.type)

    def _now(self, value: Expr) -> Expr:
        """The value in a variable that no later assignment changes."""
        if not isinstance(value, Var):
            return self.bind(value)
        var = self.fresh(value.name, value.type)
        self.emit(Assign((var,), value, self.origin))
        self.optional.add(var)
        return var

    def _compare_shapes(self, targets: tuple[Var, ...]) -> None:
        """Note arrays whose extents differ from those that a loop relies on."""
        for target in targets:
            if isinstance(target.type, Array):
                self.bound.add(target)
            if target in self.expected:
                pairs = zip(self.array(target).extents, self.expected[target], strict=True)
                if not all(self.facts.equal(a.form, b.form) for a, b in pairs):
                    self.violated.add(target)

    def _assign_several(self, targets: tuple[Var, ...], value: Expr) -> None:
        if isinstance(value, Tuple):
            items = tuple(operand(self, item) for item in value.items)
            shapes = [self.array(item).extents if _is_array(item) else None for item in items]
            self.forget(targets)
            self.emit(Assign(targets, Tuple(items), self.origin))
            for target, shape in zip(targets, shapes, strict=False):
                if shape is not None and len(targets) == len(items):
                    self.facts.set_shape(target, shape)
                    self.facts.forget([v for v in targets if v != target and _mentions_any(shape, v)])
            return
        assert isinstance(value, Call)
        if value.func in SEVERAL:
            for target, part in zip(targets, SEVERAL[value.func](self, value), strict=True):
                self.assign((target,), part)
            return
        whole = opaque(self, value)
        self.forget(targets)
        self.emit(Assign(targets, whole, self.origin))

    def _assign_reduction(self, target: Var, value: Call) -> None:
        into = None if self._reads(value, target) or not isinstance(target.type, Scalar) else target
        number = number_into(self, value, into)
        if number != target:
            self.forget([target])
            self.emit(Assign((target,), number, self.origin))

    def assign_array(self, target: Var, value: Expr) -> None:
        """`target = value` of an array."""
        if isinstance(value, Call) and value.func is intrinsics.primal_as:
            value = value.args[0]
        if isinstance(value, Call) and value.func is intrinsics.grown:
            self._grow(target, value)
            return
        if self._reads(value, target):  # the old array is read until the new one is complete
            var = self.fresh(target.name, target.type)
            self.assign_array(var, value)
            self.forget([target])
            self.emit(Assign((target,), var, self.origin))
            self.facts.set_shape(target, self.facts.extents(var))
            return
        if isinstance(value, Var):
            extents = self.array(value).extents
            self.forget([target])
            self.emit(Assign((target,), value, self.origin))
            self.facts.set_shape(target, extents)
        elif isinstance(value, Call) and value.func in RESHAPES:
            native, shape = reshaped(self, value)
            self.forget([target])
            self.emit(Assign((target,), native, self.origin))
            if shape is not None:
                self.facts.set_shape(target, shape)
        elif is_place(value) and not (isinstance(value, Call) and value.func is np.ascontiguousarray):
            self._assign_view(target, value)
        else:
            if _may_be_view(value) and self.shows_sharing():
                assert isinstance(value, Call)
                raise self.unsupported(value.func, "of an array that may be a view or a copy")
            self._assign_new(target, value)

    def _grow(self, target: Var, value: Call) -> None:
        """Grow a tape by items of the same shape."""
        (tape,) = value.args
        assert isinstance(tape, Var)
        extents = self.array(tape).extents[1:]
        self.call_new(target, value)
        self.facts.set_shape(target, (self.sizes(target)[0], *extents))

    def _assign_view(self, target: Var, value: Expr) -> None:
        if isinstance(value, Load):
            value = atomic_index(self, value)
        view = lazy(self, value)
        native = native_view(self, value)
        self.forget([target])
        if native is None:
            assert isinstance(value, Call)
            self.unsupported_views[target] = self.unsupported(value.func, "as a whole array")
        else:
            self.emit(Assign((target,), native, self.origin))
        self.set_view(target, view)
        if isinstance(value.type, Array):
            self.layouts[target] = value.type.layout  # the variable may have been meant for an array of its own

    def _assign_new(self, target: Var, value: Expr) -> None:
        if isinstance(value, Load) and self._masked_load(target, value):
            return
        if isinstance(value, Call):
            func: Any = value.func
            if func in REWRITE:
                self.assign_array(target, REWRITE[func](self, value))
                return
            if func in FILL:
                FILL[func](self, value, target)
                return
            if isinstance(func, Routine) or func is intrinsics.ifelse or (func not in LAZY and func not in OPERATIONS):
                self.call_new(target, scalar(self, value) if func is intrinsics.ifelse else opaque(self, value))
                return
        self.fill_new(target, lazy(self, value))

    def _masked_load(self, target: Var, load: Load) -> bool:
        """`array[mask]` with a mask of the array's shape."""
        (item, *more) = load.index
        if more or isinstance(item, Slice) or not isinstance(item.type, Array) or item.type.dtype != "bool":
            return False
        array, mask = self.array(load.array), lazy(self, item)
        if mask.rank != array.rank:
            return False
        self.check_mask(array, mask)
        concatenation.masked(self, array, mask, target)
        return True

    def store(self, stmt: Store) -> None:
        array, index = stmt.array, stmt.index
        self._recorded.store(self, stmt)
        if isinstance(stmt.value.type, Scalar) and len(index) == _rank(array) and all(map(_is_number, index)):
            place = scalar(self, Load(array, index, Scalar(_dtype(array), False)))
            assert isinstance(place, Load)
            number = storable(self, scalar(self, stmt.value), stmt.value.type, _dtype(array), chosen=False)
            weak = isinstance(number.type, Scalar) and number.type.python
            number = stored(number, _dtype(array), weak or stmt.accumulate)
            self.emit(Store(place.array, place.index, number, stmt.accumulate, stmt.origin))
            return
        value = lazy(self, stmt.value)
        if isinstance(stmt.value.type, Scalar):
            chosen = any(isinstance(getattr(item, "type", None), Array) for item in index)
            storable(self, value.at(()), stmt.value.type, _dtype(array), chosen=chosen)
        if len(index) == 1 and not isinstance(index[0], Slice) and _is_mask(index[0]):
            base, mask = self.array(array), lazy(self, index[0])
            if mask.rank == base.rank:
                self.check_mask(base, mask)
                concatenation.store_masked(self, base, mask, self._apart(stmt, value), stmt.accumulate)
                return
        target = loaded(self, self.array(array), index, array in self.tapes)
        fill(self, target, fit(self, value, target.extents), stmt.accumulate)

    def _apart(self, stmt: Store, value: ElementRule) -> ElementRule:
        """A value that shares no memory with the array it is stored into."""
        read = traversal.free_vars(stmt.value)
        if value.rank == 0 or not any(self.sharing.may_share(stmt, stmt.array, var) for var in read):
            return value
        var = self.fresh("t", Array(value.dtype, value.rank, "C"))
        self.fill_new(var, value)
        return self.array(var)

    # ---- control flow ------------------------------------------------------------------------------------------------

    def branch(self, stmt: If) -> None:
        test = scalar(self, stmt.test)
        ends: list[SymbolicBounds] = []
        sides = []
        for which, block in enumerate((stmt.body, stmt.orelse)):
            with self.conditional() as out:
                self.facts.assume_test(stmt.test, which == 0)
                self.block_of(block)
                if not escapes(block):
                    ends.append(self.facts)
            sides.append(tuple(out))
        self.emit(If(test, sides[0], sides[1], stmt.origin))
        self.forget(traversal.assigned_in(stmt))
        if len(ends) == 1:
            views = self.views
            self.facts = ends[0]
            self.views = views
        elif len(ends) == 2:
            self.facts = ends[0].common(ends[1])

    def counted(self, stmt: For) -> None:
        start, stop, step = (scalar(self, part) for part in (stmt.start, stmt.stop, stmt.step))
        assigned = set(traversal.assigned_in(stmt))
        if isinstance(step, Const):
            stride = int(step.value)  # type: ignore[call-overload]
            if stride == 0:
                self.check(Const(True), ValueError, "range() arg 3 must not be zero")
        else:
            step = self.bind(step, "step")
            stride = 0
            if not self.facts.nonnegative(self.facts.form(step) - 1):
                wrong = Call(operator.eq, (step, Const(0)), (), BOOL)
                self.check(wrong, ValueError, "range() arg 3 must not be zero")
        loop = Loop(stmt.target, self.facts.form(start), self.facts.form(stop), stride, assigned, leaves(stmt.body))
        with loop_body(self, stmt, loop) as body:
            self.loop_statements(stmt)
        ends = (self._wide(start), self._wide(stop), self._wide(step))
        self.emit(*loop.before, For(stmt.target, *ends, tuple(body), stmt.origin))
        self._after_loop(loop)

    def _wide(self, end: Expr) -> Expr:
        """An end of a range as in Python: numba would count in 32 bits, or take a large value as negative."""
        dtype = dtype_of(end)
        if dtype in ("", "int64", "bool"):
            return end
        if dtype == "uint64":
            end = self.bind(end)
            self.check(Call(operator.gt, (end, Const(2**63 - 1)), (), BOOL), OverflowError, TOO_LARGE)
        return Call(np.int64, (end,), (), INT)

    def loop_statements(self, stmt: For | While) -> Expr | None:
        """The body of a loop (and the test of a while loop, which is returned)."""
        if isinstance(stmt, For):
            step = int(stmt.step.value) if isinstance(stmt.step, Const) else 0  # type: ignore[call-overload]
            self._assume_counter(stmt.target, stmt.start, stmt.stop, step)
            self.block_of(stmt.body)
            return None
        with self.block() as before:
            test: Expr = scalar(self, stmt.test)
        if before:  # what the test needs is computed in every iteration
            leave = If(Call(operator.not_, (test,), (), BOOL), (Break(stmt.origin),), (), stmt.origin)
            self.emit(*before, leave)
            test = Const(True)
        self.facts.assume_test(stmt.test)
        self.block_of(stmt.body)
        return test

    def _assume_counter(self, counter: Var, start: Expr, stop: Expr, step: int) -> None:
        i = Affine.atom(counter)
        self.facts.mentioned.add(counter)
        if step > 0:
            for low in alternatives(start, max):
                self.facts.assume(i - self.facts.form(low))
            for high in alternatives(stop, min):
                self.facts.assume(self.facts.form(high) - 1 - i)
        elif step < 0:
            for high in alternatives(start, min):
                self.facts.assume(self.facts.form(high) - i)
            for low in alternatives(stop, max):
                self.facts.assume(i - self.facts.form(low) - 1)

    def repeated(self, stmt: While) -> None:
        loop = Loop(None, Affine(), Affine(), 0, set(traversal.assigned_in(stmt)), True)
        with loop_body(self, stmt, loop) as body:
            test = self.loop_statements(stmt)
        assert test is not None
        self.emit(*loop.before, While(test, tuple(body), stmt.origin))
        self._after_loop(loop)

    def _after_loop(self, loop: Loop) -> None:
        for form in loop.lasting:
            self.facts.assume(form)
        self.forget(loop.assigned)

    # ---- interface for other modules ---------------------------------------------------------------------------------

    def materialize(self, expr: Expr, base: str = "t") -> Var:
        if isinstance(expr, Var):
            return self.copied(expr) if expr in self.unsupported_views else expr
        assert isinstance(expr.type, Array)
        var = self.fresh(base, expr.type)
        self.assign_array(var, expr)
        return var

    def view_of(self, expr: Expr) -> Expr:
        """An lvalue or view as an operand that numba supports."""
        return atomic_index(self, expr) if isinstance(expr, Load) else expr

    def copied(self, array: Var) -> Var:
        """A contiguous copy."""
        assert isinstance(array.type, Array)
        var = self.fresh("t", replace(array.type, layout="C"))
        self.fill_new(var, self.array(array))
        return var

    def fill_new(self, target: Var, value: ElementRule) -> None:
        """`target` = a new array with these elements."""
        allocate(self, target, value.extents)
        fill(self, self.array(target), value, fresh=True)

    def call_new(self, target: Var, value: Expr) -> None:
        """`target` = the array that a call returns."""
        self.forget([target])
        self.emit(Assign((target,), value, self.origin))

    def nonzero(self, mask: Expr) -> list[Var]:
        return concatenation.nonzero(self, lazy(self, mask))

    def check_mask(self, array: ElementRule, mask: ElementRule) -> None:
        """Check that a mask has the sizes of the axes it selects from."""
        for a, b in zip(array.extents, mask.extents, strict=False):
            if not self.facts.equal(a.form, b.form):
                wrong = Call(operator.ne, (self.clamped(a), self.clamped(b)), (), BOOL)
                self.check(wrong, IndexError, "boolean index did not match indexed array")

    @cached_property
    def _written(self) -> set[Var]:
        """The alias sets of arrays that are stored into."""
        memory = alias_sets(self.function)
        return {memory.group(var) for stmt in traversal.statements(self.function.body) for var in written(stmt)}

    def is_written(self, array: Var) -> bool:
        return alias_sets(self.function).group(array) in self._written

    def shows_sharing(self) -> bool:
        return self._reshapes.shows(self.statement)

    def in_rows(self, array: Expr) -> Expr | None:
        return self._reshapes.in_rows(array)

    def _reads(self, value: Expr, target: Var) -> bool:
        """Whether evaluating a value reads the present memory of a variable."""
        for var in traversal.free_vars(value):
            if var == target or (var in self.views and target in self.views[var][1]):
                return True
        return False


def _may_be_view(value: Expr) -> bool:
    """Whether NumPy may return a view where a new array is emitted."""
    if not isinstance(value, Call) or isinstance(value.func, Routine):
        return False
    return value.func in intrinsics.VIEW_CALLS or may_return_argument(value)


def _is_array(expr: Expr) -> TypeGuard[Var]:
    """Whether an operand is an array, and then a variable."""
    return isinstance(expr.type, Array)


def _is_reduction(value: Expr) -> TypeGuard[Call]:
    """Whether a scalar is computed from all elements of an array."""
    if not isinstance(value, Call) or isinstance(value.func, Routine) or value.func not in REDUCTIONS:
        return False
    return isinstance(value.type, Scalar) and isinstance(value.args[0].type, Array)


def _rank(array: Var) -> int:
    return array.type.rank if isinstance(array.type, Array) else 0


def _dtype(array: Var) -> str:
    assert isinstance(array.type, Array)
    return array.type.dtype


def _is_number(item: Any) -> bool:
    return not isinstance(item, Slice) and isinstance(item.type, Scalar)


def _is_mask(item: Any) -> bool:
    return isinstance(item.type, Array) and item.type.dtype == "bool"


def _mentions_any(shape: Extents, var: Var) -> bool:
    return any(var in traversal.free_vars(extent.size) for extent in shape)
