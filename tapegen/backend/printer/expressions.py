"""Expression printer: IR expressions as Python syntax."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from types import MethodDescriptorType
from typing import Any, assert_never

import numpy as np

from tapegen.backend.printer.helper_functions import Helpers
from tapegen.backend.printer.namespace import Namespace
from tapegen.backend.printer.nesting_limits import with_format
from tapegen.ir import builders, intrinsics, nodes, vector_math
from tapegen.ir.types import Array, Type
from tapegen.rules.gradient_modifiers import SURGERY

BINARY: dict[Any, type[ast.operator]] = {
    operator.add: ast.Add,
    operator.sub: ast.Sub,
    operator.mul: ast.Mult,
    operator.truediv: ast.Div,
    operator.floordiv: ast.FloorDiv,
    operator.mod: ast.Mod,
    operator.pow: ast.Pow,
    operator.matmul: ast.MatMult,
    operator.lshift: ast.LShift,
    operator.rshift: ast.RShift,
    operator.and_: ast.BitAnd,
    operator.or_: ast.BitOr,
    operator.xor: ast.BitXor,
}
_TURNED: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
COMPARISONS: dict[Any, type[ast.cmpop]] = {
    operator.lt: ast.Lt,
    operator.le: ast.LtE,
    operator.gt: ast.Gt,
    operator.ge: ast.GtE,
    operator.eq: ast.Eq,
    operator.ne: ast.NotEq,
    operator.is_: ast.Is,
    operator.is_not: ast.IsNot,
    operator.contains: ast.In,
}
_UNARY: dict[Any, type[ast.unaryop]] = {
    operator.neg: ast.USub,
    operator.pos: ast.UAdd,
    operator.not_: ast.Not,
    operator.invert: ast.Invert,
}
_NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.In: ast.NotIn, ast.Is: ast.IsNot}


def is_binary(func: object) -> bool:
    """Whether a call of this function is written as a binary operator."""
    try:
        return func in BINARY
    except TypeError:  # an unhashable callable
        return False


class Expressions:
    """Translates expressions for one source.

    Parameters
    ----------
    names : Namespace
        Supplies the names of functions and modules.
    helpers : Helpers
        Functions that the source defines for itself.
    functions : dict
        Names of the routines that the source calls, by their id.
    marks : bool
        Whether `sum_to`, `strong_mul`, `guarded` and `of_parts` are called by their names.
    """

    def __init__(self, names: Namespace, helpers: Helpers, functions: dict[int, str], *, marks: bool = False) -> None:
        self.marks = marks
        self.names = names
        self.helpers = helpers
        self.functions = functions

    def __call__(self, expr: nodes.Expr) -> ast.expr:
        if isinstance(expr, nodes.Var):
            return ast.Name(expr.name)
        if isinstance(expr, nodes.Call):
            return self._call(expr)
        if isinstance(expr, nodes.Const):
            return self.constant(expr.value)
        if isinstance(expr, nodes.Load):
            index = (*expr.index, nodes.Const(Ellipsis)) if _is_number_seen(expr) else expr.index
            return self.element(expr.array, index)
        if isinstance(expr, nodes.Tuple):
            return ast.Tuple([self(item) for item in expr.items])
        assert_never(expr)

    # ---- indexing ----

    def element(self, array: nodes.Var, index: tuple[nodes.Index, ...]) -> ast.Subscript:
        """`array[index]`, without the full slices that may be left out at the end."""
        return ast.Subscript(ast.Name(array.name), self.index(index))

    def index(self, index: tuple[nodes.Index, ...]) -> ast.expr:
        """The text between the brackets; `...` for a whole array, and `()` for its only element."""
        items = list(index)
        while len(items) > 1 and items[-1] == nodes.Slice():
            items.pop()
        parts = [self._index_item(item) for item in items]
        return parts[0] if len(parts) == 1 else ast.Tuple(parts)

    def _index_item(self, item: nodes.Index) -> ast.expr:
        if not isinstance(item, nodes.Slice):
            return self(item)
        lo, hi, step = (None if part is None else self(part) for part in (item.lo, item.hi, item.step))
        return ast.Slice(lo, hi, None if item.step == nodes.Const(1) else step)

    # ---- constants ----

    def constant(self, value: object) -> ast.expr:
        """A literal, or the name of a function, class or dtype."""
        if type(value) is int:
            return _signed(value < 0, ast.Constant(abs(value)))
        if type(value) is float and value > 0.0 and value != math.inf:
            return self.names.pi() if value == math.pi else ast.Constant(value)
        match value:
            case None | bool() | str() | bytes():
                return ast.Constant(value)
            case np.generic():
                return self._numpy_scalar(value)
            case int():
                return _signed(value < 0, ast.Constant(abs(value)))
            case float():
                negative = math.copysign(1.0, value) < 0 and not math.isnan(value)
                if math.isfinite(value):
                    return _signed(negative, self.constant(-value) if value < 0 else ast.Constant(abs(value)))
                return _signed(negative, self.names.numpy("nan" if math.isnan(value) else "inf"))
            case complex(real=real, imag=imag):
                if math.copysign(1.0, real) > 0 and real == 0 and math.copysign(1.0, imag) > 0 and math.isfinite(imag):
                    return ast.Constant(value)
                return ast.Call(self.names.builtin("complex"), [self.constant(real), self.constant(imag)], [])
            case tuple():
                return ast.Tuple([self.constant(item) for item in value])
            case list():
                return ast.List([self.constant(item) for item in value])
            case slice():
                return ast.Call(
                    self.names.builtin("slice"),
                    [self.constant(part) for part in (value.start, value.stop, value.step)],
                    [],
                )
            case np.dtype():
                return self.names.reference(value.type)
            case intrinsics.StandardStream(name):
                return ast.Attribute(self.names.module("sys"), name)
        if value is Ellipsis:
            return ast.Constant(value)
        return self.names.reference(value)

    def _numpy_scalar(self, value: np.generic) -> ast.expr:
        """`np.float32(0.1)`: the shortest digits that give this value back."""
        plain = value.item()
        if isinstance(value, np.floating) and np.isfinite(value):
            short = float(str(value))
            plain = short if type(value)(short) == value else plain
        return ast.Call(self.names.reference(type(value)), [self.constant(plain)], [])

    # ---- calls ----

    def _call(self, call: nodes.Call) -> ast.expr:
        func: Any = call.func
        try:
            special = _SYNTAX.get(func)
        except TypeError:  # an unhashable callable
            special = None
        node = None if special is None else special(self, call)
        if node is not None:
            return node
        if isinstance(func, nodes.Routine):
            name = ast.Name(self.functions[id(func)])
            return self._run_chunks(name, call) if func.by_chunks else self._function(name, call)
        if isinstance(func, MethodDescriptorType) or intrinsics.is_draw(func):
            receiver, *args = call.args
            return self._function(
                ast.Attribute(self(receiver), func.__name__), nodes.Call(func, tuple(args), call.kwargs)
            )
        return self._function(self.names.reference(func), call)

    def _run_chunks(self, function: ast.Name, call: nodes.Call) -> ast.expr:
        runs = self.names.reference(intrinsics.run_chunks)
        return ast.Call(runs, [function, *(self(arg) for arg in call.args)], [])

    def _function(self, func: ast.expr, call: nodes.Call) -> ast.expr:
        keywords = [ast.keyword(name, self(value)) for name, value in call.kwargs]
        return ast.Call(func, [self(arg) for arg in call.args], keywords)

    def _binary(self, call: nodes.Call) -> ast.expr:
        """A chain of operators: a sum of hundreds of terms is as deep as it is long."""
        chain = []
        left: nodes.Expr = call
        while isinstance(left, nodes.Call) and is_binary(left.func):
            chain.append((BINARY[left.func], left.args[1]))
            left = left.args[0]
        node = self(left)
        for op, right in reversed(chain):
            positive = builders.without_minus(right) if op in _TURNED else None
            if positive is not None:  # a - x where the term is -x: the same number
                op, right = _TURNED[op], positive
            node = ast.BinOp(node, op(), self(right))
        return node

    def _compare(self, call: nodes.Call) -> ast.expr:
        left, right = call.args if call.func is not operator.contains else call.args[::-1]
        return ast.Compare(self(left), [COMPARISONS[call.func]()], [self(right)])

    def _unary(self, call: nodes.Call) -> ast.expr:
        operand = self(call.args[0])
        if call.func is operator.not_ and isinstance(operand, ast.Compare):
            negated = _NEGATED.get(type(operand.ops[0]))
            if negated is not None:
                return ast.Compare(operand.left, [negated()], operand.comparators)
        return ast.UnaryOp(_UNARY[call.func](), operand)

    def _bool(self, call: nodes.Call) -> ast.expr:
        values: list[ast.expr] = []
        work: list[nodes.Expr] = [call]
        while work:
            part = work.pop()
            if isinstance(part, nodes.Call) and part.func is call.func:
                work.extend(reversed(part.args))
            else:
                values.append(self(part))
        return ast.BoolOp(ast.And() if call.func is intrinsics.and_ else ast.Or(), values)

    def _ifelse(self, call: nodes.Call) -> ast.expr:
        test, body, orelse = call.args
        return ast.IfExp(self(test), self(body), self(orelse))

    def _dim(self, call: nodes.Call) -> ast.expr:
        array, axis = call.args
        return ast.Subscript(ast.Attribute(self(array), "shape"), self(axis))

    def _item(self, call: nodes.Call) -> ast.expr:
        sequence, index = call.args
        return ast.Subscript(self(sequence), self(index))

    def _attribute(self, call: nodes.Call) -> ast.expr | None:
        """`x.shape`, `x.size`, `x.T` for arrays; for anything else NumPy's function is called."""
        if len(call.args) != 1 or call.kwargs or not _is_named_array(call.args[0]):
            return self._plain_attribute(call) if call.func in _ALWAYS_ATTRIBUTES else None
        return self._plain_attribute(call)

    def _plain_attribute(self, call: nodes.Call) -> ast.expr:
        return ast.Attribute(self(call.args[0]), _ATTRIBUTES[call.func])

    def _flag(self, call: nodes.Call) -> ast.expr:
        flag = "c_contiguous" if call.func is intrinsics.is_c_contiguous else "f_contiguous"
        return ast.Attribute(ast.Attribute(self(call.args[0]), "flags"), flag)

    def _method(self, call: nodes.Call) -> ast.expr | None:
        """`x.copy()`, `x.reshape(n, m)` for array variables; for anything else NumPy's function is called.

        But a copy is in C order, which `np.copy` would not give where its argument is in another one.
        """
        array, *args = call.args
        if call.kwargs or not (_is_named_array(array) or (call.func is np.copy and _may_be_turned(array))):
            return None
        if call.func is np.reshape and len(args) == 1 and isinstance(args[0], nodes.Tuple) and args[0].items:
            args = list(args[0].items)
        return ast.Call(ast.Attribute(self(array), call.func.__name__), [self(arg) for arg in args], [])

    def _append(self, call: nodes.Call) -> ast.expr:
        sequence, *args = call.args
        return ast.Call(ast.Attribute(self(sequence), call.func.__name__), [self(arg) for arg in args], [])

    def _new_list(self, call: nodes.Call) -> ast.expr:
        return ast.List([self(item) for item in call.args])

    def _zero_items(self, call: nodes.Call) -> ast.expr:
        zeros = self(nodes.Call(np.zeros_like, (nodes.Var("item", call.type.item),), (), call.type.item))  # type: ignore[union-attr]
        loop = ast.comprehension(ast.Name("item", ast.Store()), self(call.args[0]), [], 0)
        return ast.ListComp(zeros, [loop])

    def _zeros_beside(self, call: nodes.Call) -> ast.expr:
        return ast.Call(self.helpers.zeros_beside(), [self(call.args[0])], [])

    def _of_parts(self, call: nodes.Call) -> ast.expr:
        function = self.names.reference(intrinsics.of_parts) if self.marks else self.helpers.of_parts()
        return ast.Call(function, [self(arg) for arg in call.args], [])

    def _same_start(self, call: nodes.Call) -> ast.expr:
        a, b = (ast.Attribute(ast.Attribute(self(arg), "ctypes"), "data") for arg in call.args)
        return ast.Compare(a, [ast.Eq()], [b])

    def _copy_generator(self, call: nodes.Call) -> ast.expr | None:
        if self.marks:
            return None
        return ast.Call(ast.Attribute(self.names.module("copy"), "deepcopy"), [self(call.args[0])], [])

    def _fstring(self, call: nodes.Call) -> ast.expr:
        values: list[ast.expr] = []
        for part in call.args:
            if isinstance(part, nodes.Const) and isinstance(part.value, str):
                values.append(ast.Constant(part.value))
            else:
                value, spec = with_format(part)
                shown = ast.JoinedStr([ast.Constant(spec)]) if spec else None
                values.append(ast.FormattedValue(self(value), -1, shown))
        return ast.JoinedStr(values)

    def _primal_as(self, call: nodes.Call) -> ast.expr:
        return self(call.args[0])

    def _sum_to(self, call: nodes.Call) -> ast.expr:
        x, like = call.args
        rank_x, rank_like = _rank(x.type), _rank(like.type)
        if rank_x == 0:
            return self(x)
        if rank_like == 0:
            return ast.Call(self.names.numpy("sum"), [self(x)], [])
        if self.marks:
            return ast.Call(self.names.reference(intrinsics.sum_to), [self(x), self(like)], [])
        return ast.Call(self.helpers.sum_to(rank_x, rank_like), [self(x), self(like)], [])

    def _grown(self, call: nodes.Call) -> ast.expr:
        (tape,) = (self(arg) for arg in call.args)
        if self.helpers.compiled:
            return ast.Call(self.helpers.grown(_rank(call.type)), [tape], [])
        spare = ast.Call(self.names.numpy("empty_like"), [tape], [])
        return ast.Call(self.names.numpy("concatenate"), [ast.Tuple([tape, spare])], [])

    def _dots(self, call: nodes.Call) -> ast.expr:
        places = {vector: k for k, vector in enumerate(dict.fromkeys(call.args))}
        single = getattr(call.args[0].type, "dtype", "") == "float32"
        helper = self.helpers.dots(tuple(places[vector] for vector in call.args), single)
        return ast.Call(helper, [self(vector) for vector in places], [])

    def _checkpoint_distance(self, call: nodes.Call) -> ast.expr:
        return ast.Call(self.helpers.checkpoint_distance(), [self(arg) for arg in call.args], [])

    def _elementary(self, call: nodes.Call) -> ast.expr:
        return ast.Call(self.helpers.elementary(call.func), [self(arg) for arg in call.args], [])

    def _same_value(self, call: nodes.Call) -> ast.expr | None:
        """Without tapegen's markers: a value that only has another derivative."""
        if self.marks:
            return None
        value = call.args[0]
        return self(nodes.Call(np.copy, (value,), (), value.type)) if _rank(value.type) else self(value)

    def _strong_mul(self, call: nodes.Call) -> ast.expr:
        cotangent, partial = call.args
        if self.marks:
            return ast.Call(self.names.reference(intrinsics.strong_mul), [self(cotangent), self(partial)], [])
        func, factor = builders.as_factor(partial)
        is_array = bool(_rank(cotangent.type) or _rank(partial.type))
        if func is np.divide and is_array:
            func = operator.truediv  # an array never raises
        product = self(nodes.Call(func, (cotangent, factor), (), call.type))
        zero = ast.Constant(0.0)
        if is_array:
            test = ast.Compare(self(cotangent), [ast.Eq()], [zero])
            return ast.Call(self.names.numpy("where"), [test, zero, product], [])
        return ast.IfExp(ast.Compare(self(cotangent), [ast.NotEq()], [zero]), product, zero)

    def _guarded(self, call: nodes.Call) -> ast.expr:
        product, used = (self(arg) for arg in call.args)
        if self.marks:
            return ast.Call(self.names.reference(intrinsics.guarded), [product, used], [])
        zero = ast.Constant(0.0)
        if any(_rank(arg.type) for arg in call.args):
            return ast.Call(self.names.numpy("where"), [used, product, zero], [])
        return ast.IfExp(used, product, zero)


def _signed(negative: bool, node: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.USub(), node) if negative else node


def _is_number_seen(load: nodes.Load) -> bool:
    """Whether a view has no axes: without `...` Python makes a scalar of it, which does not see later stores."""
    without_axes = isinstance(load.type, Array) and load.type.rank == 0
    return without_axes and not any(
        isinstance(item, nodes.Slice) or isinstance(item.type, Array) for item in load.index
    )


def _rank(type_: Type) -> int:
    return type_.rank if isinstance(type_, Array) else 0


def _may_be_turned(expr: nodes.Expr) -> bool:
    return isinstance(expr.type, Array) and expr.type.rank > 1 and expr.type.layout != "C"


def _is_named_array(expr: nodes.Expr) -> bool:
    return isinstance(expr, (nodes.Var, nodes.Load)) and isinstance(expr.type, Array)


_ATTRIBUTES: dict[Any, str] = {
    intrinsics.dtype_of: "dtype",
    intrinsics.shape: "shape",
    np.shape: "shape",
    np.size: "size",
    np.ndim: "ndim",
    intrinsics.transpose_view: "T",
    np.transpose: "T",
    intrinsics.real_part: "real",
    intrinsics.imaginary_part: "imag",
}
_ALWAYS_ATTRIBUTES = frozenset(
    {intrinsics.shape, intrinsics.transpose_view, intrinsics.real_part, intrinsics.imaginary_part}
)
_SYNTAX: dict[Any, Callable[[Expressions, nodes.Call], ast.expr | None]] = {
    **dict.fromkeys(BINARY, Expressions._binary),
    **dict.fromkeys(COMPARISONS, Expressions._compare),
    **dict.fromkeys(_UNARY, Expressions._unary),
    **dict.fromkeys((intrinsics.and_, intrinsics.or_), Expressions._bool),
    **dict.fromkeys(_ATTRIBUTES, Expressions._attribute),
    **dict.fromkeys((np.copy, np.reshape, np.ravel, np.astype), Expressions._method),
    **dict.fromkeys((intrinsics.append, intrinsics.pop), Expressions._append),
    **dict.fromkeys((intrinsics.item, operator.getitem), Expressions._item),
    **dict.fromkeys((intrinsics.is_c_contiguous, intrinsics.is_f_contiguous), Expressions._flag),
    intrinsics.ifelse: Expressions._ifelse,
    intrinsics.dim: Expressions._dim,
    intrinsics.new_list: Expressions._new_list,
    intrinsics.zero_items: Expressions._zero_items,
    intrinsics.zeros_beside: Expressions._zeros_beside,
    intrinsics.same_start: Expressions._same_start,
    intrinsics.of_parts: Expressions._of_parts,
    intrinsics.copy_generator: Expressions._copy_generator,
    intrinsics.fstring: Expressions._fstring,
    intrinsics.primal_as: Expressions._primal_as,
    intrinsics.sum_to: Expressions._sum_to,
    intrinsics.grown: Expressions._grown,
    intrinsics.checkpoint_distance: Expressions._checkpoint_distance,
    intrinsics.dots: Expressions._dots,
    intrinsics.strong_mul: Expressions._strong_mul,
    intrinsics.guarded: Expressions._guarded,
    **dict.fromkeys(vector_math.CALLED, Expressions._elementary),
    **dict.fromkeys(SURGERY, Expressions._same_value),
}
