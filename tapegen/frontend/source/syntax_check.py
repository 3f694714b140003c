"""Syntax allow-list: unlisted constructs are refused, so syntax of later Python versions is too."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tapegen.errors import TapegenError, UnsupportedSyntax
from tapegen.frontend.source.hints import TRY_ADVICE, of_try
from tapegen.frontend.source.locate import Located
from tapegen.frontend.source.syntax_tree import own_parts

_STATEMENTS = {
    *(ast.FunctionDef, ast.Return, ast.Pass, ast.Expr, ast.Assert, ast.Raise, ast.Import, ast.ImportFrom, ast.alias),
    *(ast.Global, ast.Nonlocal, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If),
    *(ast.Break, ast.Continue, ast.Delete),
}
_EXPRESSIONS = {
    *(ast.Lambda, ast.arguments, ast.arg, ast.Call, ast.keyword, ast.Starred, ast.Attribute, ast.Subscript, ast.Slice),
    *(ast.Name, ast.Constant, ast.NamedExpr, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.JoinedStr, ast.FormattedValue, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.comprehension),
}
_OPERATORS = {
    *(ast.And, ast.Or, ast.Not, ast.Invert, ast.UAdd, ast.USub, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv),
    *(ast.Mod, ast.Pow, ast.MatMult, ast.LShift, ast.RShift, ast.BitOr, ast.BitXor, ast.BitAnd),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.IsNot, ast.In, ast.NotIn),
}
# Accepted only in some variants.
_CHECKED = {ast.FunctionDef, ast.comprehension, ast.Subscript, ast.Raise, ast.Delete}
_ALLOWED = _STATEMENTS | _EXPRESSIONS | _OPERATORS
_PASSED = _ALLOWED - _CHECKED

_ASYNC = "'async' code runs in pieces that have no reverse order."
_ASYNC_ADVICE = "Await what is needed outside, and differentiate a plain function."
_GENERATOR = "'yield' makes the function a generator, which has no value to differentiate."
_GENERATOR_ADVICE = (
    "Collect the values in a list, items.append(value) instead of 'yield value', and return it: "
    "loops and sums over the list stay as they are."
)
_TRY = "'try' cannot be reversed: an exception leaves a statement half done."
_WITH_ADVICE = "Put the 'with' around the call of the differentiated function."
_NEW_SYNTAX_ADVICE = "Write it with assignments, loops, branches and calls."

# Refused nodes, the reason, and what to write instead.
_REFUSED = {
    "AsyncFunctionDef": (_ASYNC, _ASYNC_ADVICE),
    "AsyncFor": (_ASYNC, _ASYNC_ADVICE),
    "AsyncWith": (_ASYNC, _ASYNC_ADVICE),
    "Await": (_ASYNC, _ASYNC_ADVICE),
    "Yield": (_GENERATOR, _GENERATOR_ADVICE),
    "YieldFrom": (_GENERATOR, _GENERATOR_ADVICE),
    "Try": (_TRY, TRY_ADVICE),
    "TryStar": (_TRY, TRY_ADVICE),
    "With": ("'with' runs code of the context manager that is not part of the function.", _WITH_ADVICE),
    "ClassDef": (
        "a class defined inside the function would be a new one at every call.",
        "Define the class at module level.",
    ),
    "TypeAlias": ("a 'type' statement inside the function is not supported.", "Move it to module level."),
    "TemplateStr": ("template strings are not supported.", "Use an f-string."),
}


def check(located: Located, nodes: list[ast.AST]) -> None:
    """Refuse unsupported syntax, at its first occurrence.

    Raises
    ------
    UnsupportedSyntax
        A construct without a derivative form.
    """
    refused = list(_refusals(located, nodes))
    if refused:
        raise min(refused, key=lambda error: (error.span.line, error.span.column) if error.span else (0, 0))


def _refusals(located: Located, nodes: list[ast.AST]) -> Iterator[TapegenError]:
    accepted = True
    for node in [node for node in nodes if type(node) not in _PASSED]:
        if type(node) in _CHECKED:
            complaint = _complaint(node, located.node)
            if complaint is not None:
                yield UnsupportedSyntax(*complaint[1:], located.span(complaint[0]))
        elif hasattr(node, "lineno") or accepted:  # nodes without a position come after their statement
            accepted = False
            kind = type(node).__name__
            reason, advice = _REFUSED.get(kind, (f"the syntax '{kind}' is not supported.", _NEW_SYNTAX_ADVICE))
            if isinstance(node, (ast.Try, ast.TryStar)):
                advice = of_try(node)
            yield UnsupportedSyntax(reason, advice, located.span(node if hasattr(node, "lineno") else located.node))
    if any(isinstance(node, ast.Global) for node in nodes):
        for node in nodes:
            if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                yield from _global_names(node, located)


def _complaint(node: ast.AST, root: ast.AST) -> tuple[ast.AST, str, str] | None:
    """An unsupported variant of an accepted node: the position, the reason, what to write instead."""
    match node:
        case ast.FunctionDef(decorator_list=[first, *_]) if node is not root:
            return (
                first,
                f"the decorator of the inner function '{node.name}' may return any other function.",
                "Leave the decorator out (a cache changes no value), or define the decorated function at module level.",
            )
        case ast.comprehension(is_async=1):
            return node.target, _ASYNC, _ASYNC_ADVICE
        case ast.Subscript(slice=ast.Tuple(elts=items)):
            for item in items:
                if isinstance(item, ast.Starred):
                    return item, "'*' inside an index leaves the rank of the result open.", "Write the index out."
        case ast.Delete(targets=targets):
            for target in targets:
                for part in _deleted(target):
                    if isinstance(part, ast.Attribute) or isinstance(getattr(part, "slice", None), ast.Slice):
                        return (
                            target,
                            "'del' removes a part of a value that the backward sweep may need.",
                            "To shorten a list use pop(), to shorten an array use a slice.",
                        )
        case ast.Raise(exc=None):
            return node, "'raise' without an exception needs an 'except' around it.", "Name the exception."
        case ast.Raise(cause=ast.expr() as cause) if not isinstance(cause, ast.Constant):
            return cause, "'raise ... from' needs the exception that 'except' caught.", "Leave 'from' out."
    return None


def _deleted(target: ast.AST) -> Iterator[ast.AST]:
    """The kind of object that one target of `del` removes."""
    if isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from _deleted(item)
    else:
        yield target


def _global_names(function: ast.FunctionDef | ast.Lambda, located: Located) -> Iterator[TapegenError]:
    """Names that an inner function declares `global`, and that are also variables of the enclosing function."""
    if function is located.node:
        return
    inside = set(ast.walk(function))
    declared = {name: node for node in inside if isinstance(node, ast.Global) for name in node.names}
    if not declared:
        return
    own = own_parts(located.node)
    same = {name for node in own if isinstance(node, ast.Global) for name in node.names}
    inside.update(node for node in own if isinstance(node, ast.Name) and node.id in same)  # the same variable
    for node in ast.walk(located.node):
        name = ""
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node not in inside:
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        if name in declared:
            yield UnsupportedSyntax(
                f"'global {name}' in an inner function means another variable than '{name}' around it.",
                "Give one of them another name.",
                located.span(declared.pop(name)),
            )
