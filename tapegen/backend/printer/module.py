"""Module printer: IR functions as the source of a Python module."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import StringIO
from typing import Any, assert_never

from tapegen.backend.printer.comments import docstring
from tapegen.backend.printer.expressions import BINARY, Expressions, is_binary
from tapegen.backend.printer.formatter.document import INDENT
from tapegen.backend.printer.formatter.expressions import expression_line
from tapegen.backend.printer.formatter.statements import Comment, StatementPrinter, Verbatim
from tapegen.backend.printer.helper_functions import INLINED, LOCALS_OF_HELPERS, Helpers
from tapegen.backend.printer.namespace import Namespace
from tapegen.backend.printer.nesting_limits import Shortener
from tapegen.backend.printer.source import PythonSource
from tapegen.errors import CompileLimit, Span
from tapegen.ir import builders, intrinsics, nodes, traversal
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Call, Const, Expr, Slice, Var
from tapegen.ir.types import Array, RandomGenerator, Scalar

MAX_LOOPS = 20  # CPython: "too many statically nested blocks"
MAX_BLOCKS = 95  # CPython: "too many levels of indentation"

_Origins = dict[ast.AST, Span | None]
_Target = ast.Name | ast.Subscript


def emit(
    function: nodes.Function,
    *,
    modules: Mapping[str, str] | None = None,
    header: str | None = None,
    decorator: str | None = None,
    extra: Sequence[nodes.Function] = (),
    routines: Mapping[nodes.Routine, nodes.Function] | None = None,
    marks: bool = False,
) -> PythonSource:
    """Print a function, and those it calls, as a Python module.

    The source is laid out as `ruff format` would at 88 columns and is a pure function of the arguments.

    Parameters
    ----------
    function : ir.Function
        The function to print; tapes are arrays already.
    modules : mapping of str to str, optional
        The aliases of modules in the user's program; `{"numpy": "np"}` by default.
    header : str, optional
        Comment lines at the top of the source.
    decorator : str, optional
        Decorator of every function, an expression with names of numba (`njit(error_model="numpy")`).
    extra : sequence of ir.Function
        Functions to define before this one.
    routines : mapping of Routine to ir.Function, optional
        The programs of the routines that are called, directly or by each other.
    marks : bool
        The source will be differentiated: operations with a derivative of their own are called by their names.

    Returns
    -------
    PythonSource

    Raises
    ------
    CompileLimit
        If blocks or conditions nest deeper than CPython allows.
    """
    return _Module(function, dict(modules or {}), decorator, extra, dict(routines or {}), marks).source(header)


def expression_text(expr: Expr) -> str:
    """An expression on one line, as it would be in generated source."""
    names = Namespace((), {})
    return expression_line(Expressions(names, Helpers(names, compiled=False), {})(expr))


class _Module:
    """One source during construction."""

    def __init__(
        self,
        function: nodes.Function,
        modules: dict[str, str],
        decorator: str | None,
        extra: Sequence[nodes.Function],
        routines: dict[nodes.Routine, nodes.Function],
        marks: bool,
    ) -> None:
        taken = {function.name, *(each.name for each in extra)}
        for each in (function, *extra, *routines.values()):
            taken.update(_local_names(each))
        renamed = NameSupply(taken)
        routines = {each: replace(text, name=renamed.fresh(text.name)) for each, text in routines.items()}
        self.functions = _callees_first([*extra, function], routines)
        self.entry = function
        self.decorator = decorator
        taken |= {function.name for function in self.functions}
        taken |= {modules.get("numpy", "np")} & LOCALS_OF_HELPERS  # helpers call functions of NumPy
        given = [item for each in self.functions for item in each.globals]
        self.names = Namespace(taken, modules, given)
        self.helpers = Helpers(self.names, compiled=decorator is not None)
        functions = {id(each): text.name for each, text in routines.items()}
        self.parallel = any(routine.by_chunks for routine in routines)
        self.expressions = Expressions(self.names, self.helpers, functions, marks=marks)

    def source(self, header: str | None) -> PythonSource:
        origins: _Origins = {}
        functions = [_FunctionTree(each, self, origins).tree() for each in self.functions]
        decorators = self._decorators(self.decorator)
        inlined = self._decorators(INLINED) if self.decorator else []
        reordered = self._decorators(self.decorator, reordered=True)
        blank = Comment("")
        body: list[ast.stmt] = [Comment(header)] if header else []
        imports = self.names.import_lines()
        if imports:
            body += [blank] * bool(body) + [Verbatim([], imports)]
        for name, text in self.helpers.texts.items():
            own = reordered if name in self.helpers.reordered else decorators
            body += [*[blank, blank] * bool(body), Verbatim(inlined if name in self.helpers.inlined else own, text)]
        for function in functions:
            function.decorator_list = decorators
            body += [*[blank, blank] * bool(body), function]
        file = StringIO()
        printer = StatementPrinter(body, file, origins)
        return PythonSource(
            text=file.getvalue()[1:],
            entry=self.entry.name,
            functions=(*self.helpers.texts, *(each.name for each in self.functions)),
            namespace=self.names.objects,
            line_map=tuple(printer.line_map),
            decorator=self.decorator,
            overlapping=any(each.shared for each in self.functions),
            parallel=self.parallel,
        )

    def _decorators(self, decorator: str | None, *, reordered: bool = False) -> list[ast.expr]:
        if decorator is None:
            return []
        node = ast.parse(decorator, mode="eval").body
        if reordered and isinstance(node, ast.Call) and all(given.arg != "fastmath" for given in node.keywords):
            allowed = ast.Set([ast.Constant("contract"), ast.Constant("reassoc")])
            node = ast.Call(node.func, node.args, [*node.keywords, ast.keyword("fastmath", allowed)])
        name = node.func if isinstance(node, ast.Call) else node
        if not isinstance(name, ast.Name):
            raise ValueError(f"not a decorator of numba: {decorator}")
        imported = self.names.imported("numba", name.id)
        return [ast.Call(imported, node.args, node.keywords) if isinstance(node, ast.Call) else imported]


class _FunctionTree:
    """The syntax tree of one function."""

    def __init__(self, function: nodes.Function, module: _Module, origins: _Origins) -> None:
        self.function = _with_named_counters(function, module.names)
        self.expressions = module.expressions
        self.names = module.names
        self.shorten = Shortener(lambda: module.names.fresh("part"), is_binary)
        self.origins = origins
        self.out: list[ast.stmt] = []  # the block that is being translated
        self.blocks = 0
        self.loops = 0

    def tree(self) -> ast.FunctionDef:
        function = self.function
        names, values = [param.name for param in function.params], dict(function.defaults)
        defaults = [self.expressions(values[name]) for name in names[len(names) - len(values) :]]
        params = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, defaults)
        doc = [Verbatim([], docstring(function.doc, INDENT))] if function.doc else []
        body = self._block(function.body, function.origin, doc)
        tree = ast.FunctionDef(function.name, params, body, [])
        self.origins[tree] = function.origin
        return tree

    # ---- blocks ----

    def _block(self, block: nodes.Block, span: Span | None, before: Sequence[ast.stmt] = ()) -> list[ast.stmt]:
        """A block: comments, statements, and `pass` where it is empty."""
        self.blocks += 1
        if self.blocks > MAX_BLOCKS:
            raise CompileLimit(
                f"Blocks nest more than {MAX_BLOCKS} deep here.",
                "Move the inner ones to a function of their own.",
                span,
            )
        outside, self.out = self.out, []
        for stmt in block:
            if isinstance(stmt, nodes.Comment):
                self._comment(stmt)
            else:
                self._statement(stmt)
        while self.out and _is_blank(self.out[-1]):
            self.out.pop()
        inside, self.out = [*before, *self.out], outside
        if all(isinstance(node, Comment) for node in inside):
            inside.append(ast.Pass())
        self.blocks -= 1
        return inside

    def _comment(self, stmt: nodes.Comment) -> None:
        if stmt.text or (self.out and not _is_blank(self.out[-1])):
            self._add(Comment(stmt.text), stmt.origin if stmt.text else None)

    def _add(self, node: ast.stmt, span: Span | None) -> None:
        self.out.append(node)
        self.origins[node] = span

    def _shortened(self, expr: Any, span: Span | None) -> Any:
        before, expr = self.shorten(expr, span)
        for assign in before:
            self._statement(assign)
        return expr

    def _expression(self, expr: Expr, span: Span | None) -> ast.expr:
        return self.expressions(self._shortened(expr, span))

    # ---- statements ----

    def _statement(self, stmt: nodes.Stmt) -> None:
        span = stmt.origin
        match stmt:
            case nodes.Assign(targets, value):
                self._assign(targets, self._shortened(value, span), span)
            case nodes.Store():
                self._store(stmt)
            case nodes.Effect(call):
                self._effect(self._shortened(call, span), span)
            case nodes.If():
                self._if(stmt)
            case nodes.For(target, start, stop, step, body):
                bounds = [self._expression(part, span) for part in _range_arguments(start, stop, step)]
                iterable = ast.Call(self.names.builtin("range"), bounds, [])
                self._loop(ast.For(ast.Name(target.name), iterable, [], []), body, span)
            case nodes.While(test, body):
                before, test = self.shorten(test, span)
                if before:
                    raise CompileLimit(
                        "The condition of this loop is too long to be written out.",
                        "Compute parts of it in the body of the loop.",
                        span,
                    )
                self._loop(ast.While(self.expressions(test), [], []), body, span)
            case nodes.Break():
                self._add(ast.Break(), span)
            case nodes.Continue():
                self._add(ast.Continue(), span)
            case nodes.Return(values):
                self._return(values, span)
            case nodes.Raise(exception, message):
                error = self.names.reference(exception)
                if message:
                    error = ast.Call(error, [self._expression(part, span) for part in message], [])
                self._add(ast.Raise(error), span)
            case nodes.Push() | nodes.Pop() | nodes.Comment():
                raise AssertionError(f"{type(stmt).__name__} is not a statement of a finished program")
            case _:
                assert_never(stmt)

    def _assign(self, targets: tuple[Var, ...], value: Expr, span: Span | None) -> None:
        if len(targets) > 1:
            left_side = ast.Tuple([ast.Name(target.name) for target in targets])
            self._add(ast.Assign([left_side], self.expressions(value)), span)
            return
        (target,) = targets
        left = ast.Name(target.name)
        own = isinstance(value, Call) and is_binary(value.func) and _names(value.args[0], target)
        if own and isinstance(value, Call) and isinstance(target.type, Scalar):
            self._augment(left, BINARY[value.func], value.args[1], span)
        else:
            self._add(ast.Assign([left], self.expressions(value)), span)

    def _augment(self, left: _Target, op: type[ast.operator], value: Expr, span: Span | None) -> None:
        """`left += value`, or `left -= x` where the value is `-x` (which is the same number)."""
        if op is ast.Add and (positive := builders.without_minus(value)) is not None:
            op, value = ast.Sub, positive
        self._add(ast.AugAssign(left, op(), self.expressions(value)), span)

    def _store(self, stmt: nodes.Store) -> None:
        span = stmt.origin
        scalar_place = isinstance(stmt.array.type, Array) and stmt.array.type.rank == 0
        value = self._shortened(stmt.value, span)
        index = tuple(self._shortened(item, span) for item in stmt.index)
        if stmt.accumulate and any(_may_repeat(item) for item in index):
            self._scatter(stmt.array, index, value, span)
            return
        if not index and stmt.accumulate and not scalar_place:
            left: _Target = ast.Name(stmt.array.name)
        elif not index and not stmt.accumulate:
            left = self.expressions.element(stmt.array, (Const(Ellipsis) if scalar_place else Slice(),))
        else:
            left = self.expressions.element(stmt.array, index)  # `a[()] += e`: numba cannot do it with `a[...]`
        if stmt.accumulate:
            self._augment(left, ast.Add, value, span)
        else:
            self._add(ast.Assign([left], self.expressions(value)), span)

    def _scatter(self, array: Var, index: tuple[nodes.Index, ...], value: Expr, span: Span | None) -> None:
        """`np.add.at(a, i, v)`: the same element may be indexed several times."""
        position = self.expressions.index(index)
        if isinstance(position, ast.Tuple) and any(isinstance(item, ast.Slice) for item in position.elts):
            position = ast.Subscript(self.names.numpy("s_"), position)
        func = ast.Attribute(self.names.numpy("add"), "at")
        call = ast.Call(func, [ast.Name(array.name), position, self.expressions(value)], [])
        self._add(ast.Expr(call), span)

    def _effect(self, call: Call, span: Span | None) -> None:
        if call.func is intrinsics.set_item:
            sequence, index, value = call.args
            left = ast.Subscript(self.expressions(sequence), self.expressions(index))
            match value:
                case Call(operator.add, (Call(intrinsics.item, (held, at)), term)) if (held, at) == (sequence, index):
                    self._augment(left, ast.Add, term, span)
                case _:
                    self._add(ast.Assign([left], self.expressions(value)), span)
        elif call.func is intrinsics.replay_draws and not self.expressions.marks:
            self._add(self._drawing_as(*call.args), span)
        else:
            self._add(ast.Expr(self.expressions(call)), span)

    def _drawing_as(self, rng: Expr, other: Expr) -> ast.stmt:
        """A generator gets the state of another generator."""
        left, right = self.expressions(rng), self.expressions(other)
        if rng.type == RandomGenerator("RandomState"):
            state = ast.Call(ast.Attribute(right, "get_state"), [], [ast.keyword("legacy", ast.Constant(False))])
            return ast.Expr(ast.Call(ast.Attribute(left, "set_state"), [state], []))
        ours, theirs = (ast.Attribute(ast.Attribute(each, "bit_generator"), "state") for each in (left, right))
        return ast.Assign([ours], theirs)

    def _if(self, stmt: nodes.If) -> None:
        branch = self._branch(stmt, self._shortened(stmt.test, stmt.origin))
        self.out.append(branch)
        while stmt.orelse:
            orelse, inner = stmt.orelse, stmt.orelse[0]
            if len(orelse) > 1 or not isinstance(inner, nodes.If):
                branch.orelse = self._block(orelse, stmt.origin)
                return
            before, test = self.shorten(inner.test, inner.origin)
            if before:  # statements that the condition needs come first
                branch.orelse = self._block((*before, replace(inner, test=test)), stmt.origin)
                return
            stmt, outer, branch = inner, branch, self._branch(inner, test)
            outer.orelse = [branch]

    def _branch(self, stmt: nodes.If, test: Expr) -> ast.If:
        branch = ast.If(self.expressions(test), self._block(stmt.body, stmt.origin), [])
        self.origins[branch] = self.origins[branch.test] = stmt.origin
        return branch

    def _loop(self, loop: ast.For | ast.While, body: nodes.Block, span: Span | None) -> None:
        self.loops += 1
        if self.loops > MAX_LOOPS:
            raise CompileLimit(
                f"Loops nest more than {MAX_LOOPS} deep here.", "Move the inner ones to a function of their own.", span
            )
        loop.body = self._block(body, span)
        self._add(loop, span)
        self.loops -= 1

    def _return(self, values: tuple[Expr, ...], span: Span | None) -> None:
        if not values:
            return
        results = [self._expression(value, span) for value in values]
        self._add(ast.Return(results[0] if len(results) == 1 else ast.Tuple(results)), span)


def _with_named_counters(function: nodes.Function, names: Namespace) -> nodes.Function:
    """Restore the user's `_` in every loop whose counter is not used otherwise."""
    counters = {
        stmt.target
        for stmt in traversal.statements(function.body)
        if isinstance(stmt, nodes.For) and _UNNAMED.fullmatch(stmt.target.name)
    }
    if not counters:
        return function
    read = frozenset().union(*map(traversal.reads, function.body))
    given = {var: Var(names.fresh("trip") if var in read else "_", var.type) for var in sorted(counters, key=_name_of)}
    return replace(function, body=traversal.rename_block(function.body, given))


_UNNAMED = re.compile(r"__\d+")  # what `NameSupply` makes of `_`


def _name_of(var: Var) -> str:
    return var.name


# ---- queries about the program --------------------------------------------------------------------------------------


def _callees_first(
    functions: list[nodes.Function], routines: dict[nodes.Routine, nodes.Function]
) -> list[nodes.Function]:
    """Functions and the routines they call, each after its callees where these do not call it."""
    order: dict[int, nodes.Function] = {}
    entered: set[int] = set()

    def visit(function: nodes.Function) -> None:
        if id(function) in entered:
            return
        entered.add(id(function))
        for routine in traversal.routines(function.body):
            visit(routines[routine])
        order[id(function)] = function

    for function in functions:
        visit(function)
    return list(order.values())


def _local_names(function: nodes.Function) -> set[str]:
    return {var.name for var in traversal.assigned_in(*function.body).union(function.params)}


def _is_blank(node: ast.stmt) -> bool:
    return isinstance(node, Comment) and not node.text


def _names(expr: Expr, var: Var) -> bool:
    return isinstance(expr, Var) and expr.name == var.name


def _may_repeat(item: nodes.Index) -> bool:
    """Whether an index may refer to an element several times."""
    return not isinstance(item, Slice) and isinstance(item.type, Array) and item.type.dtype != "bool"


def _range_arguments(start: Expr, stop: Expr, step: Expr) -> list[Expr]:
    if step != Const(1):
        return [start, stop, step]
    return [stop] if start == Const(0) else [start, stop]
