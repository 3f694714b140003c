"""Syntax tree utilities: conversion from `ast` to `gast`, private names, bound names, traversal."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from typing import Any

import gast


def mangle(name: str, class_name: str | None) -> str:
    """`name` as Python stores it in the body of a class: `__x` becomes `_Class__x`."""
    if class_name is None or not name.startswith("__") or name.endswith("__") or "." in name:
        return name
    owner = class_name.lstrip("_")
    return f"_{owner}{name}" if owner else name


# Fields that hold identifiers.  `keyword.arg` is not among them: Python does not mangle keywords of calls.
_IDENTIFIERS = {ast.Name: "id", ast.arg: "arg", ast.Attribute: "attr", ast.FunctionDef: "name", ast.alias: "asname"}
# Fields that never run inside a function.  Decorators of inner functions are refused by `syntax_check`.
_UNUSED = frozenset({"annotation", "returns", "decorator_list", "type_params", "type_comment"})
_NEVER_RUN = _UNUSED | {"ctx"}


_CONTEXTS: dict[type, gast.AST] = {ast.Load: gast.Load(), ast.Store: gast.Store(), ast.Del: gast.Del()}
_PARAMETER = gast.Param()


# Fields without nodes, or with nodes that carry only their class.
_WORDS = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "kind"})


@functools.cache
def _fields(kind: Any, left_out: frozenset[str]) -> tuple[str, ...]:
    """The fields of a node class, without some."""
    return tuple(name for name in kind._fields if name not in left_out)


def children(node: ast.AST) -> tuple[Any, ...]:
    """The direct children of a node, in source order; contexts (Load, Store) and operators are left out."""
    kind: Any = type(node)
    known = vars(node)
    if _BELOW not in known:
        found: list[Any] = []
        for value in map(known.get, _fields(kind, _WORDS)):
            if isinstance(value, list):
                found += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
        known[_BELOW] = tuple(found)
    return known[_BELOW]


_BELOW = "_below"  # trees are immutable once parsed


def blocks_of(root: ast.AST) -> Iterator[Any]:
    """A definition and all statements below it.  Expressions contain none."""
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                todo += [item for item in value if isinstance(item, _BLOCKS)]


_BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)


def nodes_of(root: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.AST]:
    """The nodes of a function that run when it is called, parents first; contexts (Load, Store) are left out.

    The defaults of the function itself are left out, for they ran when it was defined.
    """
    found: list[ast.AST] = []
    todo: list[ast.AST] = [root]
    while todo:
        node = todo.pop()
        found.append(node)
        if node is root.args:
            todo.extend(_parameters(root.args))
            continue
        kind: Any = type(node)
        if kind is ast.Name or kind is ast.Constant:
            continue
        for value in map(vars(node).get, _fields(kind, _NEVER_RUN)):
            if isinstance(value, list):
                todo += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                todo.append(value)
    return found


SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def own_parts(root: ast.AST) -> list[ast.AST]:
    """All nodes below one, without those of inner functions."""
    found: list[ast.AST] = []
    todo = [root]
    while todo:
        for part in ast.iter_child_nodes(todo.pop()):
            found.append(part)
            if not isinstance(part, SCOPES):
                todo.append(part)
    return found


def _parameters(args: ast.arguments) -> list[ast.arg]:
    starred = [arg for arg in (args.vararg, args.kwarg) if arg is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *starred]


def to_gast(nodes: list[ast.AST], class_name: str | None) -> gast.AST:
    """The gast tree of a function whose nodes have passed `syntax_check`, with private names mangled.

    gast's own translation recurses, which overflows for a sum of some hundred terms, and drops unknown nodes.
    """
    root = nodes[0]
    done: dict[int, gast.AST] = {}
    for node in reversed(nodes):  # children first
        if id(node) not in done:  # Python shares the nodes of operators
            done[id(node)] = _convert(node, done, class_name)
    function = done[id(root)]
    function.args.defaults = []
    function.args.kw_defaults = [None] * len(function.args.kwonlyargs)
    return function


def _convert(node: ast.AST, done: dict[int, gast.AST], class_name: str | None) -> gast.AST:
    kind = type(node)
    values = dict(vars(node))  # fields and positions
    if kind is ast.Constant:
        return _made(gast.Constant, values)
    if kind is ast.Name:
        identifier = mangle(values["id"], class_name)
        return _made(gast.Name, values | _UNTYPED | {"id": identifier, "ctx": _CONTEXTS[type(values["ctx"])]})
    for name in kind._fields:
        value = values.get(name)
        if name in _UNUSED:
            values[name] = [] if isinstance(value, list) else None
        elif isinstance(value, list):
            values[name] = [done.get(id(item)) if isinstance(item, ast.AST) else item for item in value]
        elif isinstance(value, ast.AST):
            values[name] = _CONTEXTS[type(value)] if name == "ctx" else done[id(value)]
    if class_name is not None:
        _mangle_in(node, values, class_name)
    if kind in _LISTING:
        _list_at_once(node, values)
    if kind is ast.arg:
        identifier = values.pop("arg")
        return _made(gast.Name, values | _UNTYPED | {"id": identifier, "ctx": _PARAMETER})
    if kind is ast.FunctionDef:
        values["type_params"] = []
    return _made(getattr(gast, kind.__name__), values)


_UNTYPED = {"annotation": None, "type_comment": None}


def _made(kind: Any, values: dict[str, Any]) -> gast.AST:
    new = kind.__new__(kind)
    vars(new).update(values)
    return new


_LISTING = frozenset({ast.Assign, ast.Starred, ast.Call})


def _list_at_once(node: ast.AST, values: dict[str, Any]) -> None:
    """A generator expression that is consumed immediately becomes a list."""
    match node:
        case ast.Assign(targets=targets) if all(isinstance(target, (ast.Tuple, ast.List)) for target in targets):
            values["value"] = _as_list(values["value"])
        case ast.Starred():
            values["value"] = _as_list(values["value"])
        case ast.Call(args=args) if len(args) > 1:  # as a single argument, `sum` and the like need no list
            values["args"] = list(map(_as_list, values["args"]))


def _as_list(node: gast.AST) -> gast.AST:
    if not isinstance(node, gast.GeneratorExp):
        return node
    return gast.copy_location(gast.ListComp(node.elt, node.generators), node)


def _mangle_in(node: ast.AST, values: dict[str, Any], class_name: str) -> None:
    if isinstance(node, ast.alias) and node.asname is None and mangle(node.name, class_name) != node.name:
        values["asname"] = node.name
    if isinstance(node, ast.Nonlocal | ast.Global):
        values["names"] = [mangle(name, class_name) for name in node.names]
    field = _IDENTIFIERS.get(type(node))
    if field is not None and values[field] is not None:
        values[field] = mangle(values[field], class_name)


def arguments_of(node: gast.FunctionDef | gast.Lambda) -> Iterator[gast.Name]:
    """Every parameter, in the order in which `co_varnames` lists them."""
    args = node.args
    yield from args.posonlyargs
    yield from args.args
    yield from args.kwonlyargs
    if args.vararg is not None:
        yield args.vararg
    if args.kwarg is not None:
        yield args.kwarg


_COMPREHENSIONS = (gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)
_BINDING = (gast.Store, gast.Del)


def bound_names(node: gast.FunctionDef | gast.Lambda) -> frozenset[str]:
    """The names that are local to a function: its parameters and everything its own body binds.

    Targets of comprehensions belong to the comprehension, those of a walrus inside one to the function.
    """
    bound = {argument.id for argument in arguments_of(node)}
    lent: set[str] = set()
    todo: list[Any] = list(node.body) if isinstance(node.body, list) else [node.body]
    while todo:
        item = todo.pop()
        kind = type(item)
        if kind is gast.Name:
            if type(item.ctx) in _BINDING:
                bound.add(item.id)
        elif kind is gast.FunctionDef or kind is gast.Lambda:
            if kind is gast.FunctionDef:
                bound.add(item.name)
            todo += _defaults(item)
        elif kind in _COMPREHENSIONS:
            bound.update(_assigned_within(item))
        else:
            if kind is gast.Nonlocal or kind is gast.Global:
                lent.update(item.names)
            elif kind is gast.Import or kind is gast.ImportFrom:
                bound.update(alias.asname or alias.name.partition(".")[0] for alias in item.names)
            todo += children(item)
    return frozenset(bound - lent)


def _assigned_within(comprehension: gast.AST) -> Iterator[str]:
    """The names that a walrus inside a comprehension binds."""
    todo: list[Any] = [comprehension]
    while todo:
        item = todo.pop()
        if isinstance(item, gast.NamedExpr):
            yield item.target.id
        todo += _defaults(item) if isinstance(item, gast.Lambda) else children(item)


def _defaults(function: gast.FunctionDef | gast.Lambda) -> list[gast.AST]:
    args = function.args
    return [default for default in (*args.defaults, *args.kw_defaults) if default is not None]


def lent_names(node: gast.FunctionDef | gast.Lambda) -> frozenset[str]:
    """The names that inner functions declare `nonlocal`: variables of this function that they assign."""
    inner = [item for item in blocks_of(node) if isinstance(item, gast.Nonlocal)]
    return frozenset(name for item in inner for name in item.names)
