"""Syntax trees: from `ast` to `gast`, private names, and which names a function binds."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

import gast


def mangle(name: str, class_name: str | None) -> str:
    """`name` as Python stores it in the body of a class: `__x` becomes `_Class__x`."""
    if class_name is None or not name.startswith("__") or name.endswith("__") or "." in name:
        return name
    owner = class_name.lstrip("_")
    return f"_{owner}{name}" if owner else name


# Fields that hold identifiers.  `keyword.arg` is not among them: Python does not mangle keywords of calls.
_IDENTIFIERS = {"Name": "id", "arg": "arg", "Attribute": "attr", "FunctionDef": "name", "alias": "asname"}
_CONTEXTS_AND_OPERATORS = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)


# What never runs inside a function.  Decorators of inner functions the fence refuses.
_UNUSED = frozenset({"annotation", "returns", "decorator_list", "type_params", "type_comment"})


def _nodes(value: object) -> list[ast.AST]:
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, ast.AST)]


def to_gast(root: ast.AST, class_name: str | None = None) -> gast.AST:
    """The gast form of a tree that has passed the fence: private names mangled, annotations and decorators left out.

    gast's own translation recurses, which a sum of some hundred terms does not survive, and drops unknown nodes.
    """
    order: list[ast.AST] = []
    todo = [root]
    while todo:
        node = todo.pop()
        order.append(node)
        for name in node._fields:
            if name not in _UNUSED:
                todo.extend(_nodes(getattr(node, name, None)))
    done: dict[int, gast.AST] = {}
    for node in reversed(order):  # children first
        if id(node) not in done:  # contexts and operators are shared
            done[id(node)] = _convert(node, done, class_name)
    return done[id(root)]


def _convert(node: ast.AST, done: dict[int, gast.AST], class_name: str | None) -> gast.AST:
    kind = type(node).__name__
    if isinstance(node, _CONTEXTS_AND_OPERATORS):
        return getattr(gast, kind)()
    if isinstance(node, ast.Global | ast.Nonlocal):  # the fence has seen that the function only reads these names
        return ast.copy_location(gast.Pass(), node)
    fields: dict[str, Any] = {}
    for name, value in ast.iter_fields(node):
        if name in _UNUSED:
            value = [] if isinstance(value, list) else None
        elif isinstance(value, ast.AST):
            value = done[id(value)]
        elif isinstance(value, list):
            value = [done[id(item)] if isinstance(item, ast.AST) else item for item in value]
        fields[name] = value
    if kind == "alias" and fields["asname"] is None and mangle(fields["name"], class_name) != fields["name"]:
        fields["asname"] = fields["name"]
    if kind in _IDENTIFIERS and fields[_IDENTIFIERS[kind]] is not None:
        fields[_IDENTIFIERS[kind]] = mangle(fields[_IDENTIFIERS[kind]], class_name)
    if kind == "arg":
        new = gast.Name(fields["arg"], gast.Param(), None, None)
    elif kind == "Name":
        new = gast.Name(fields["id"], fields["ctx"], None, None)
    else:
        if kind == "FunctionDef":
            fields.setdefault("type_params", [])
        new = getattr(gast, kind)(**fields)
    for name in node._attributes:
        setattr(new, name, getattr(node, name, None))
    return new


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


def bound_names(node: gast.FunctionDef | gast.Lambda) -> frozenset[str]:
    """The names that are local to a function: its parameters and everything its own body binds.

    Targets of comprehensions belong to the comprehension, those of a walrus inside one to the function.
    """
    bound = {argument.id for argument in arguments_of(node)}
    body: Iterable[gast.AST] = node.body if isinstance(node.body, list) else [node.body]
    todo: list[tuple[gast.AST, bool]] = [(item, False) for item in body]
    while todo:
        item, in_comprehension = todo.pop()
        if isinstance(item, gast.FunctionDef | gast.Lambda):
            if isinstance(item, gast.FunctionDef):
                bound.add(item.name)
            outside = [*item.args.defaults, *(default for default in item.args.kw_defaults if default is not None)]
            todo.extend((child, in_comprehension) for child in outside)
            continue
        if isinstance(item, gast.NamedExpr):
            bound.add(item.target.id)
            todo.append((item.value, in_comprehension))
            continue
        if isinstance(item, gast.Name):
            if not in_comprehension and isinstance(item.ctx, gast.Store | gast.Del):
                bound.add(item.id)
            continue
        if isinstance(item, gast.Import | gast.ImportFrom):
            bound.update(alias.asname or alias.name.partition(".")[0] for alias in item.names)
        inside = in_comprehension or isinstance(item, _COMPREHENSIONS)
        todo.extend((child, inside) for child in gast.iter_child_nodes(item))
    return frozenset(bound)
