"""Lowering entry points: from a Python function and the types of its arguments to a program.

Lowering is an abstract interpreter over the syntax tree.  It runs the function once with abstract values: what is known
(options, structures, callees, ranks) is resolved on the way, everything else becomes a statement of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

import tapegen.rules  # noqa: F401  (registers them)
from tapegen.errors import CompileLimit, NotDifferentiable, of_program
from tapegen.frontend.calls.communication import Communication, close
from tapegen.frontend.calls.inline import bind, collect_items, function_frame, inline_function
from tapegen.frontend.calls.recursion_signatures import Recursion, Routines
from tapegen.frontend.calls.resolve import call_value
from tapegen.frontend.expressions import comparisons, comprehensions, strings  # noqa: F401  (register what they lower)
from tapegen.frontend.expressions.expressions import enter, put_name
from tapegen.frontend.library import (  # noqa: F401  (register what they lower)
    builtins,
    container_methods,
    index_grids,
    itertools,
    list_to_array,
    numpy_introspection,
    numpy_variants,
    random,
    sequences,
    sets,
    solver_callbacks,
    stdlib,
)
from tapegen.frontend.lowered import Lowered, Param, Static
from tapegen.frontend.lowering import context_managers, exceptions, loops  # noqa: F401  (register what they lower)
from tapegen.frontend.lowering.control_flow import run_body
from tapegen.frontend.lowering.finalize import Finished, finish, resolved
from tapegen.frontend.lowering.warnings import check_emitted
from tapegen.frontend.mutation.caller_objects import CallerState, adopt_argument
from tapegen.frontend.mutation.commit import Mutation
from tapegen.frontend.mutation.results import mutations_of
from tapegen.frontend.mutation.written_captures import begin
from tapegen.frontend.source.callables import refusal
from tapegen.frontend.source.parse import Parsed
from tapegen.frontend.templates import builtin_functions
from tapegen.frontend.values.assumptions import Guard
from tapegen.frontend.values.captures import library_guards
from tapegen.frontend.values.context import Context, NeedsConstant, Restart, Unreachable
from tapegen.frontend.values.materialize import export, flat_result
from tapegen.frontend.values.pytree import UNKNOWN, Abstract, Leaf, StaticValue, Struct, leaves_of
from tapegen.frontend.values.state import Ref
from tapegen.ir.names import NameSupply, identifier
from tapegen.ir.nodes import Block, Const, Expr, Function, Raise, Return, Tuple, Var
from tapegen.ir.passes import deep
from tapegen.ir.types import Array

# ---- whole functions -----------------------------------------------------------------------------------------------


def lower_function(
    func: FunctionType,
    args: tuple[Abstract, ...],
    kwargs: Mapping[str, Abstract] | None = None,
    *,
    name: str | None = None,
    changing: frozenset[Any] = frozenset(),
    lists: Mapping[tuple[Any, ...], bool] = MappingProxyType({}),
) -> Lowered:
    """Lower a plain Python function for the given arguments.

    Parameters
    ----------
    func : function
        A plain function (see `tapegen.frontend.source.parse.unwrap` for other callables).
    args, kwargs
        Abstract arguments as they are passed.
    name : str, optional
        Name of the program; the function's own name by default.
    changing : frozenset
        Captured floats (see `Lowered.floats`) that are arguments of the program.
    lists : mapping
        Lists among the arguments, by location, that the program appends to, and whether it reads their items as well.

    Raises
    ------
    OtherForm
        `lists` does not describe the program.
    TapegenError
        The function cannot be lowered; the error points at the construct.
    """
    fixed: dict[Expr, Any] = {}
    shaped: set[Any] = set()
    recursion = Recursion()
    recursion.written.read.update(place for place, is_read in lists.items() if is_read)
    tails = frozenset(place for place, is_read in lists.items() if not is_read)
    leaves = [leaf for arg in (*args, *(kwargs or {}).values()) for leaf in leaves_of(arg) if isinstance(leaf, Leaf)]
    while True:
        run = _Run(func, args, dict(kwargs or {}), fixed, recursion, changing)
        run.cx.assumptions.shaped, run.cx.caller.tails = shaped, tails
        try:
            with deep():
                return run.lower(name)
        except Restart:
            continue
        except NeedsConstant as need:
            wanted = run.origins(need.expr)
            samples = {leaf.expr: leaf.sample for leaf in leaves if leaf.expr in wanted and leaf.sample is not UNKNOWN}
            captured = run.captured(need.expr)
            if samples.keys() <= fixed.keys() and captured <= shaped:
                raise need.refusal from None
            fixed.update(samples)
            shaped |= captured
        except CompileLimit:
            raise
        except RecursionError:
            raise CompileLimit(
                f"'{func.__name__}' nests expressions or calls too deeply.", "Split long expressions; use a loop."
            ) from None


def new_context(recursion: Recursion | None = None, *, rules: bool = False) -> Context:
    """A new context, with all handlers set."""
    cx = Context(rules=rules)
    cx.call, cx.check_emitted, cx.collect = call_value, check_emitted, collect_items
    cx.recursion, cx.routines, cx.caller = recursion or Recursion(), Routines(), CallerState()
    return cx


class _Run:
    """One attempt to lower a function; `fixed` are integers and shapes of arguments that are known."""

    def __init__(
        self,
        func: FunctionType,
        args: tuple[Abstract, ...],
        kwargs: dict[str, Abstract],
        fixed: dict[Expr, Any],
        recursion: Recursion,
        changing: frozenset[Any],
    ) -> None:
        self.func, self.args, self.kwargs, self.fixed = func, args, kwargs, fixed
        self.cx = new_context(recursion)
        self.cx.communication = Communication()
        self.cx.assumptions.changing, self.cx.written_out = changing, recursion.written_out
        self.params: list[Param] = []
        self.statics: list[Static] = []
        self.made: dict[Var, Var] = {}  # parameter while lowering -> Var of the abstract argument

    def origins(self, expr: Expr) -> set[Expr]:
        """The arguments that an integer expression depends on."""
        return {self.made[var] for var in self.cx.symbols.int_sources(expr) if var in self.made}

    def captured(self, expr: Expr) -> set[Any]:
        """The captured arrays that an integer expression depends on, by path."""
        sources = self.cx.symbols.int_sources(expr)
        return {
            path
            for path, (var, _) in self.cx.assumptions.captured.items()
            if var in sources and isinstance(var.type, Array)
        }

    def lower(self, name: str | None) -> Lowered:
        cx = self.cx
        frame = cx.frame = function_frame(cx, self.func)
        parsed = frame.parsed
        mutations: tuple[Mutation, ...] = ()
        begin(cx)
        values = self._bound(parsed)
        try:
            enter(cx, frame)
            for argument, value in values.items():
                if isinstance(value, Ref):  # `**options`: a new dict for each call
                    content = self._parameter(argument, cx.state.cells[value.cell].content, ())
                    pairs = zip(content.keys, content.children, strict=True)
                    own = replace(
                        content,
                        children=tuple(adopt_argument(cx, child, argument, (key,), key) for key, child in pairs),
                    )
                    put_name(cx, argument, cx.new_cell(own))
                else:
                    put_name(cx, argument, adopt_argument(cx, self._parameter(argument, value, ()), argument))
            cx.calls.append((self.func, ()))
            result = close(cx, export(cx, run_body(cx, frame.node.body)), [param.var for param in self.params])
            output, exprs = flat_result(cx, result)
            mutations = mutations_of(cx, exprs)
        except Unreachable:
            output, exprs = StaticValue(None), []
        hidden = [
            Param(var, var.name.partition("#")[0], (), getter) for var, getter in cx.assumptions.captured.values()
        ]
        params = [*self.params, *hidden]
        user_names = self._user_names()
        supply = NameSupply(user_names=user_names)
        function_name = supply.fresh(name or _name_of(self.func, parsed))
        done = finish(cx, cx.builder, exprs, [param.var for param in params], supply)
        final = tuple(replace(param, var=done.names[param.var]) for param in params)
        body = (*done.body, Return(tuple(self._result(done, expr) for expr in exprs)))
        stored = ", ".join(name for mutation in mutations for name in mutation.names)
        doc = (f"Its last results are what the call stores: {stored}.",) if stored else ()
        parameters = tuple(param.var for param in final)
        program = Function(function_name, parameters, body, doc=doc, origin=parsed.span(parsed.tree))
        by_leaf = {self.made[param.var]: new.var for param, new in zip(self.params, final, strict=False)}
        return Lowered(
            program,
            output,
            final,
            _guards(cx),
            tuple(self.statics),
            tuple((param.argument, param.path) for param in params if param.var in cx.symbols.not_negative),
            tuple(cx.assumptions.sources),
            user_names,
            self._modules(),
            parsed.text_hash[:12],
            cx.assumptions.floats,
            mutations,
            tuple(cx.assumptions.reads.values()),
            self._places(done),
            by_leaf,
        )

    def _bound(self, parsed: Parsed) -> dict[str, Any]:
        try:
            return bind(self.cx, parsed.signature, self.func, self.args, self.kwargs)
        except Unreachable:
            (stmt,) = self.cx.builder.items[-1:]
            raise of_program(TypeError(stmt.message[0].value)) from None

    def _parameter(self, argument: str, value: Any, path: tuple[Any, ...]) -> Any:
        """Make the parameters for the leaves of an argument."""
        if isinstance(value, Struct):
            children = tuple(
                self._parameter(argument, child, (*path, key))
                for key, child in zip(value.keys, value.children, strict=True)
            )
            return replace(value, children=children)
        if not isinstance(value, Leaf) or not isinstance(value.expr, Var) or value.expr in self.hidden():
            return value
        is_array = isinstance(value.type, Array)
        if value.expr in self.fixed:
            self.statics.append((argument, path, self.fixed[value.expr]))
            if not is_array:
                return StaticValue(self.fixed[value.expr])
        base = identifier("_".join(map(str, (argument, *path))))
        var = self.cx.new_var(base, value.type)
        self.params.append(Param(var, argument, path))
        self.made[var] = value.expr
        if isinstance(value.sample, int):
            self.cx.symbols.samples[var] = value.sample
        if is_array and value.sample is not UNKNOWN:
            self.cx.symbols.sample_shapes[var] = value.sample
        if is_array and value.expr in self.fixed:
            self.cx.symbols.shapes[var] = self.fixed[value.expr]
        return Leaf(var)

    def hidden(self) -> set[Var]:
        """The hidden parameters, which are not arguments."""
        return {var for var, _ in self.cx.assumptions.captured.values()}

    def _result(self, done: Finished, expr: Expr) -> Expr:
        return done.rename(resolved(self.cx, expr))

    def _places(self, done: Finished) -> dict[Var, tuple[Any, ...]]:
        places: dict[Var, tuple[Any, ...]] = {
            done.names[param.var]: ("argument", param.argument, *param.path) for param in self.params
        }
        for path, (var, _) in self.cx.assumptions.captured.items():
            places[done.names[var]] = self.cx.caller.places.get(path, ("variable", path))
        return places

    def _user_names(self) -> frozenset[str]:
        names: set[str] = {param.argument for param in self.params}
        for func in self.cx.assumptions.sources:
            if not builtin_functions.is_own(func.__code__.co_filename):
                names.update(func.__code__.co_varnames)
        for node_frame in (frame for frame, _ in self.cx.state.vars if frame is not None):
            if not builtin_functions.is_own(node_frame.parsed.file):
                names.update(node_frame.locals)
        return frozenset(names)

    def _modules(self) -> dict[str, str]:
        modules = dict(self.cx.assumptions.modules)
        for func in self.cx.assumptions.sources:
            for name in func.__code__.co_names:
                value = func.__globals__.get(name)
                if isinstance(value, ModuleType):
                    modules.setdefault(value.__name__, name)
        return modules


# ---- bodies of rules -----------------------------------------------------------------------------------------------


def inline_call(
    func: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    names: NameSupply | None = None,
    *,
    rules: bool = True,
) -> tuple[Block, Abstract]:
    """Inline a call of a plain Python function whose arguments are IR expressions.

    Parameters
    ----------
    func : function
        The body of a rule, or any function it may call.
    args, kwargs
        Expressions or abstract values.  A Const is known, so branches on it fold; a Tuple is a tuple.
    names : NameSupply
        Gives the names of new values.
    rules : bool
        Whether it is the body of a rule, whose constants are folded; else Python's errors are preserved.

    Returns
    -------
    block, value
        The statements, and the abstract value of the result.
    """
    return inline_guarded(func, args, kwargs, NameSupply() if names is None else names, rules=rules)[:2]


def inline_guarded(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any] | None, names: NameSupply, *, rules: bool
) -> tuple[Block, Abstract, tuple[Guard, ...]]:
    """The same, with the guards under which the result can be reused."""
    if not isinstance(func, FunctionType):
        raise refusal(func)
    cx = new_context(rules=rules)
    cx.fixed_origin = True
    cx.frame = function_frame(cx, func)
    given = [_value(arg) for arg in args]
    keywords = {name: _value(value) for name, value in (kwargs or {}).items()}
    with deep():
        try:
            value = export(cx, inline_function(cx, func, given, keywords))
        except NeedsConstant as need:
            raise need.refusal from None
        except Unreachable:
            raise _always_raises(cx, func) from None
    if cx.assumptions.captured:
        (var, _), *_ = cx.assumptions.captured.values()
        raise NotDifferentiable(
            f"'{func.__name__}' reads '{var.name.partition('#')[0]}', which is no argument of it.", "Make it one."
        )
    done = finish(cx, cx.builder, list(_exprs(cx, value)), [], names)
    return done.body, renamed(value, lambda expr: done.rename(resolved(cx, expr))), _guards(cx)


def _guards(cx: Context) -> tuple[Guard, ...]:
    """Guards for everything that lowering read and that may change."""
    sources = (
        Guard(partial(getattr, func, "__code__"), func.__code__, func.__name__) for func in cx.assumptions.sources
    )
    return (*cx.assumptions.guards.values(), *library_guards(cx), *sources)


def _always_raises(cx: Context, func: FunctionType) -> NotDifferentiable:
    """Why an inlined call cannot return."""
    last, detail = cx.builder.items[-1], ""
    if isinstance(last, Raise):
        parts = (part.value if isinstance(part, Const) else "..." for part in last.message)
        detail = f": {last.exception.__name__}: {', '.join(map(str, parts))}"
    if func.__module__.startswith("tapegen.rules."):
        if isinstance(last, Raise) and detail.startswith(
            f": TypeError: {func.__name__}() "
        ):  # of the rule's parameters
            advice = "Leave the argument out, or write what it does with other functions."
            return NotDifferentiable(f"the rule of '{func.__name__}' has fewer parameters{detail}.", advice)
        return NotDifferentiable(f"'{func.__name__}' has no derivative here{detail}.", "Write it in another form.")
    return NotDifferentiable(f"'{func.__name__}' fails for these arguments{detail}.", "Check their types and ranks.")


def _value(arg: Any) -> Any:
    """An IR expression as an abstract value."""
    match arg:
        case Const(value):
            return StaticValue(value)
        case Tuple(items):
            return Struct("tuple", tuple(range(len(items))), tuple(map(_value, items)), tuple)
        case Leaf() | StaticValue() | Struct():
            return arg
    return Leaf(arg)


def _exprs(cx: Context, value: Any) -> Iterator[Expr]:
    if isinstance(value, Leaf):
        yield value.expr
    elif isinstance(value, Struct):
        for child in value.children:
            yield from _exprs(cx, child)


def renamed(value: Any, rename: Callable[[Expr], Expr]) -> Any:
    """An abstract value with its expressions changed."""
    if isinstance(value, Leaf):
        return Leaf(rename(value.expr))
    if isinstance(value, Struct):
        whole = None if value.whole is None else rename(value.whole)
        children = tuple([renamed(child, rename) for child in value.children])
        return Struct(value.kind, value.keys, children, value.cls, whole)
    return value


__all__ = ["Lowered", "Param", "inline_call", "inline_guarded", "lower_function", "new_context", "renamed"]


def _name_of(func: FunctionType, parsed: Parsed) -> str:
    """The name in the source, or that of the wrapped function; `__name__` may be "<lambda>" or anything else."""
    documented = hasattr(func, "__wrapped__") and func.__name__.isidentifier()
    return func.__name__ if documented else parsed.tree.name
