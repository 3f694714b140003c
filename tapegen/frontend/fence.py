"""Which Python syntax is accepted.  What is not listed here is refused, so syntax of later Python versions is too."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tapegen.errors import NotDifferentiable, TapegenError, UnsupportedSyntax
from tapegen.frontend.source import Located

_ALLOWED = {
    *(
        "FunctionDef",
        "Return",
        "Pass",
        "Expr",
        "Assert",
        "Raise",
        "Import",
        "ImportFrom",
        "alias",
        "Global",
        "Nonlocal",
    ),
    *("Assign", "AugAssign", "AnnAssign", "For", "While", "If", "Break", "Continue"),
    *(
        "Lambda",
        "arguments",
        "arg",
        "Call",
        "keyword",
        "Starred",
        "Attribute",
        "Subscript",
        "Slice",
        "Name",
        "Constant",
    ),
    *("NamedExpr", "BoolOp", "BinOp", "UnaryOp", "Compare", "IfExp", "JoinedStr", "FormattedValue"),
    *("Tuple", "List", "Dict", "ListComp", "DictComp", "comprehension", "Load", "Store"),
    *("And", "Or", "Not", "Invert", "UAdd", "USub", "Add", "Sub", "Mult", "Div", "FloorDiv", "Mod", "Pow", "MatMult"),
    *("LShift", "RShift", "BitOr", "BitXor", "BitAnd"),
    *("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE", "Is", "IsNot", "In", "NotIn"),
}

_ASYNC = "'async' code runs in pieces that have no reverse order."
_ASYNC_ADVICE = "Await what is needed outside, and differentiate a plain function."
_GENERATOR = "'yield' makes the function a generator, which has no value to differentiate."
_GENERATOR_ADVICE = "Collect the values in a list or an array and return it."
_TRY = "'try' cannot be reversed: an exception leaves a statement half done."
_TRY_ADVICE = "Test for the case beforehand with 'if', or catch the exception outside of the differentiated function."
_WITH_ADVICE = "Put the 'with' around the call of the differentiated function."
_NEW_SYNTAX_ADVICE = "Write it with assignments, loops, branches and calls."

# What is refused, why, and what to write instead.
_REFUSED = {
    "AsyncFunctionDef": (_ASYNC, _ASYNC_ADVICE),
    "AsyncFor": (_ASYNC, _ASYNC_ADVICE),
    "AsyncWith": (_ASYNC, _ASYNC_ADVICE),
    "Await": (_ASYNC, _ASYNC_ADVICE),
    "Yield": (_GENERATOR, _GENERATOR_ADVICE),
    "YieldFrom": (_GENERATOR, _GENERATOR_ADVICE),
    "GeneratorExp": (
        "a generator expression runs piecemeal, whenever its consumer asks, which has no reverse order.",
        "Write a list comprehension: [... for ...].",
    ),
    "Try": (_TRY, _TRY_ADVICE),
    "TryStar": (_TRY, _TRY_ADVICE),
    "With": ("'with' runs code of the context manager that is not part of the function.", _WITH_ADVICE),
    "Match": ("'match' is not supported.", "Write 'if' and 'elif' with the same tests."),
    "ClassDef": (
        "a class defined inside the function would be a new one at every call.",
        "Define the class at module level.",
    ),
    "Delete": (
        "'del' removes a value that the backward sweep may need.",
        "Leave it out; to shorten a list use pop(), to shorten an array use a slice.",
    ),
    "Set": ("a set has no order in which its items could be differentiated.", "Use a tuple or a list."),
    "SetComp": ("a set has no order in which its items could be differentiated.", "Use a list comprehension."),
    "TypeAlias": ("a 'type' statement inside the function is not supported.", "Move it to module level."),
    "TemplateStr": ("template strings are not supported.", "Use an f-string."),
}


def check(located: Located) -> None:
    """Refuse what cannot be differentiated, at the first place in the text.

    Raises
    ------
    UnsupportedSyntax
        A construct without a derivative form.
    NotDifferentiable
        A write to a name outside the function.
    """
    refused = list(_refusals(located))
    if refused:
        raise min(refused, key=lambda error: (error.span.line, error.span.column) if error.span else (0, 0))


def _refusals(located: Located) -> Iterator[TapegenError]:
    root = located.node
    todo: list[ast.AST] = [root]
    while todo:
        node = todo.pop()
        kind = type(node).__name__
        if kind not in _ALLOWED:
            reason, advice = _REFUSED.get(kind, (f"the syntax '{kind}' is not supported.", _NEW_SYNTAX_ADVICE))
            yield UnsupportedSyntax(reason, advice, located.span(_placed(node, root)))
            continue
        complaint = _complaint(node, root)
        if complaint is not None:
            yield UnsupportedSyntax(*complaint[1:], located.span(complaint[0]))
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            yield from _outer_names(node, located)
        todo.extend(_children(node, root))


def _children(node: ast.AST, root: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node that run when it does: annotations of local names never do, decorators have run before."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params") or (node is root and name == "decorator_list"):
            continue
        if node is root and name == "args":  # defaults of the outermost function were evaluated when it was defined
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.AST):
                yield item


def _complaint(node: ast.AST, root: ast.AST) -> tuple[ast.AST, str, str] | None:
    """An accepted kind of node in a form that is not: the place, why, what to write instead."""
    match node:
        case ast.FunctionDef(decorator_list=[first, *_]) if node is not root:
            return (
                first,
                f"the decorator of the inner function '{node.name}' may return any other function.",
                "Define the decorated function at module level.",
            )
        case ast.comprehension(is_async=1):
            return node.target, _ASYNC, _ASYNC_ADVICE
        case ast.Subscript(slice=ast.Tuple(elts=items)):
            for item in items:
                if isinstance(item, ast.Starred):
                    return item, "'*' inside an index leaves the rank of the result open.", "Write the index out."
        case ast.Raise(exc=None):
            return node, "'raise' without an exception needs an 'except' around it.", "Name the exception."
        case ast.Raise(cause=ast.expr() as cause) if not isinstance(cause, ast.Constant):
            return cause, "'raise ... from' needs the exception that 'except' caught.", "Leave 'from' out."
    return None


def _outer_names(function: ast.FunctionDef | ast.Lambda, located: Located) -> Iterator[TapegenError]:
    """Writes to the names that `global` or `nonlocal` lends to one function; in an inner function these words alone."""
    declared: dict[str, ast.Global | ast.Nonlocal] = {}
    writes: list[tuple[str, ast.AST]] = []
    todo: list[ast.AST] = list(function.body) if isinstance(function.body, list) else []
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Global | ast.Nonlocal):
            declared.update(dict.fromkeys(node.names, node))
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            writes.append((node.id, node))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            writes.append((node.name, node))
            continue
        elif isinstance(node, ast.Import | ast.ImportFrom):
            writes.extend((alias.asname or alias.name.partition(".")[0], node) for alias in node.names)
        elif isinstance(node, ast.Lambda):
            continue
        todo.extend(ast.iter_child_nodes(node))
    written = [(name, node) for name, node in writes if name in declared]
    for name, node in written:
        where = "global variable" if isinstance(declared[name], ast.Global) else "variable of an enclosing function"
        yield NotDifferentiable(
            f"this writes '{name}', a {where}, which is not part of the result.",
            "Return the new value, and assign it outside.",
            located.span(node),
        )
    if declared and not written and function is not located.node:
        name, statement = next(iter(declared.items()))
        word = type(statement).__name__.lower()
        yield UnsupportedSyntax(
            f"'{word} {name}' in an inner function is not supported.",
            "Read the variable in the outer function, and pass it as an argument.",
            located.span(statement),
        )


def _placed(node: ast.AST, root: ast.AST) -> ast.AST:
    """The node itself, or, where a node has no position, the function."""
    return node if hasattr(node, "lineno") else root
