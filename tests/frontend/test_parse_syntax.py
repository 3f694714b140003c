"""Which syntax is accepted, and what a parsed function knows about its nodes and names."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import math
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import gast
import numpy as np
import pytest

from tapegen.errors import CompileLimit, TapegenError, UnsupportedSyntax
from tapegen.frontend.source import syntax_check
from tapegen.frontend.source.parse import MISSING, Parsed, bound_names, mangle, parse_function
from tapegen.frontend.source.syntax_tree import nodes_of
from tests.sources import define, load


def check_locals(func: types.FunctionType) -> None:
    """The local names are those of Python's compiler, which from 3.12 on counts those of comprehensions too."""
    parsed = parse_function(func)
    names = {*func.__code__.co_varnames, *func.__code__.co_cellvars}
    inner = [node.target for node in gast.walk(parsed.tree) if isinstance(node, gast.comprehension)]
    targets = {name.id for target in inner for name in gast.walk(target) if isinstance(name, gast.Name)}
    caught = (
        {
            node.name
            for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(func))))
            if isinstance(node, ast.ExceptHandler)
        }
        if "except " in "".join(linecache.getlines(parsed.file))
        else set()
    )
    assert {
        name for name in parsed.locals if name.rstrip("0123456789") not in ("returned", "entered", "items", "item")
    } <= names
    assert names - parsed.locals - caught <= (targets if sys.version_info >= (3, 12) else set())


# ---- the fence (case 39) -------------------------------------------------------------------------------------------

TRY = "'try' cannot be reversed"
REFUSED = [
    (
        "try:\n    y = x\nexcept* ValueError:\n    y = 0",
        "try",
        TRY,
        "catch the exception outside",
    ),
    ("y = yield x", "yield x", "sent to a generator is not followed", "as a statement"),
    ("y = yield from x", "yield from x", "sent to a generator is not followed", "as a statement"),
    ("while x:\n    yield x", "yield x", "yields in a 'while' loop", "Collect the values"),
    ("async def g():\n    return x", "async def", "'async' code runs in pieces", "Await what is needed outside"),
    ("y = sum(k + 1 async for k in x)", "k in x", "'async' code runs in pieces", "Await what is needed outside"),
    ("class A:\n    pass", "class A", "a class defined inside the function", "at module level"),
    ("del x[1:]", "x[1:]", "'del' removes a part of a value", "pop()"),
    ("del y, (z, x.y)", "(z, x.y)", "'del' removes a part of a value", "pop()"),
    ("@np.vectorize\ndef g(y):\n    return y", "np.vec", "decorator of the inner function 'g'", "at module level"),
    ("y = x[*z]", "*z", "'*' inside an index", "Write the index out"),
    ("y = x[1, *z]", "*z", "'*' inside an index", "Write the index out"),
    ("raise", "raise", "'raise' without an exception", "Name the exception"),
    ("raise ValueError from x.y", "x.y", "'raise ... from'", "Leave 'from' out"),
    ("def g():\n    global z\n    return z", "global z", "'global z' in an inner function", "another name"),
    ("async def g(y):\n    await y", "async def", "'async' code runs in pieces", "Await what is needed outside"),
]


@pytest.mark.parametrize(("body", "at", "reason", "advice"), REFUSED)
def test_c39_refused_at_its_place(body: str, at: str, reason: str, advice: str) -> None:
    lines = ["def f(x, z):", "    before = 1", *("    " + line for line in body.split("\n"))]
    func = define("\n".join(lines) + "\n")
    line = next(number for number, text in enumerate(lines) if at in text)
    with pytest.raises(UnsupportedSyntax) as caught:
        parse_function(func)
    error = caught.value
    assert reason in error.reason
    assert advice in error.advice
    assert error.span is not None
    assert (error.span.line, error.span.column) == (line + 1, lines[line].index(at))
    shown = str(error).split("\n")
    assert shown[0] == f"{func.__code__.co_filename}:{line + 1}:{lines[line].index(at) + 1}: {error.reason}"
    assert shown[1] == "    " + lines[line].strip()
    assert shown[2].index("^") == 4 + lines[line].strip().index(at)
    assert shown[3] == error.advice
    assert isinstance(error, SyntaxError)


def test_b23_reading_what_global_names() -> None:
    parsed = parse_function(define("total = 2.0\ndef f(x):\n    global total\n    return x * total\n"))
    assert isinstance(parsed.tree.body[0], gast.Global)
    assert parsed.locals == {"x"}
    assert parsed.resolve("total") == 2.0


ACCEPTED = """\
def f(a, /, b, *rest, c=lambda q, r=1: q, **more):
    '''Everything that is accepted.'''
    import math
    from os import path as p
    x: float = 1.0
    y: undefined
    a += b
    a[0], (b, *c) = b, c
    a[1:2, ..., ::-1, None] = x @ y ** 2 // 3 % 4 / 5 << 1 >> 2 | 3 ^ 4 & ~5
    a.real = -x + +y if not a else b and c or x
    for i, (j, k) in enumerate(zip(a, b)):
        if i in (1, 2) and j is not None and j is i or k not in [3] and 1 < i <= 2 != j:
            continue
        elif i == 3:
            break
        else:
            pass
    else:
        x = (n := 3) + n
    while x > 0 and x >= 1:
        x -= 1
    assert x < 5, f"{x!r:>{i}} is {x=}"
    if x:
        raise ValueError(f"no {x}") from None
    print(*rest, **more)
    def g(u, v=x, *, w):
        return u if v else w
    h = lambda *s, **t: (s, t)
    d = {"a": 1, **more, "b": {k: v for k, v in more.items() if v}, "c": {1, 2} | {k for k in more}}
    m = [[u * v for u in a if u] for v in b] + [sum(u for u in a)]
    del x, y
    return d, m, g, h, 1j, b"", "", ..., True, None
"""


def test_c39_accepted_syntax() -> None:
    func = define(ACCEPTED)
    parsed = parse_function(func)
    check_locals(func)
    kinds = {type(node).__name__ for node in gast.walk(parsed.tree)}
    not_in_gast = {"arg", "Global", "Nonlocal"}
    assert kinds >= {node.__name__ for node in syntax_check._ALLOWED} - not_in_gast


def test_c39_what_python_may_grow_is_refused() -> None:
    class Unheard(ast.stmt):
        """A statement of a later Python."""

    function = ast.parse("def f(x):\n    return x\n").body[0]
    function.body[0] = Unheard(lineno=2, col_offset=4, end_lineno=2, end_col_offset=7)
    located = syntax_check.Located(function, "grown.py", ("def f(x):\n", "    unheard\n"), None)
    with pytest.raises(UnsupportedSyntax, match=r"grown\.py:2:5: the syntax 'Unheard' is not supported"):
        syntax_check.check(located, nodes_of(function))


def test_c39_every_syntax_node_is_decided() -> None:
    # what is neither accepted nor refused with a reason of its own is a part of something that is
    parts = {"ExceptHandler", "withitem", "Match", "match_case", "Load", "Store", "Del", "AugLoad", "AugStore", "Param"}
    elsewhere = {"TypeIgnore", "TypeVar", "TypeVarTuple", "ParamSpec"}
    deprecated = {"Num", "Str", "Bytes", "NameConstant", "Ellipsis", "Index", "ExtSlice", "Suite"}
    decided = (
        {node.__name__ for node in syntax_check._ALLOWED}
        | syntax_check._REFUSED.keys()
        | parts
        | elsewhere
        | deprecated
    )
    for node in vars(ast).values():
        if isinstance(node, type) and issubclass(node, ast.AST) and not node.__subclasses__():
            assert node.__name__ in decided or issubclass(node, ast.mod | ast.pattern)


def test_defaults_and_decorators_of_the_function_itself_have_run_before() -> None:
    text = (
        "def keep(f): return f\n@(lambda f: f)\n@keep\ndef f(x, s={1, 2}, *, t=tuple(k for k in 'ab')):\n    return x\n"
    )
    parsed = parse_function(define(text))
    assert parsed.tree.args.defaults == []
    assert parsed.tree.args.kw_defaults == [None]
    assert parsed.signature.parameters["s"].default == {1, 2}
    assert parsed.signature.parameters["t"].default == ("a", "b")


# ---- depth (case 95) -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("terms", [500, 1200])
def test_g95_long_sums(terms: int) -> None:
    parsed = parse_function(define("def f(x):\n    return " + " + ".join(["x"] * terms) + "\n"))
    depth, node = 1, parsed.tree.body[0].value
    while isinstance(node, gast.BinOp):
        depth, node = depth + 1, node.left
    assert depth == terms


def test_g95_too_deep_for_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    # how deep is too deep depends on the version of Python and on how deep the caller stands
    def overflow(text: str) -> ast.Module:
        raise RecursionError("maximum recursion depth exceeded during ast construction")

    func = define("def f(x):\n    return x + x + x\n")
    monkeypatch.setattr("ast.parse", overflow)
    with pytest.raises(CompileLimit, match="nests expressions too deeply for Python's own parser") as caught:
        parse_function(func)
    assert "Split the longest expression" in caught.value.advice
    assert caught.value.span is not None
    assert caught.value.span.source_line() == "def f(x):"


# ---- translation ---------------------------------------------------------------------------------------------------


def plain_functions() -> list[types.FunctionType]:
    modules = [inspect, np.linalg._linalg, np.lib._function_base_impl, types, ast, gast.ast3]
    return [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, types.FunctionType)
        and not hasattr(value, "__wrapped__")
        and value.__module__ == module.__name__
    ]


def test_translation_is_that_of_gast_and_names_are_those_of_python() -> None:
    checked = 0
    for func in plain_functions():
        try:
            parsed = parse_function(func)
        except TapegenError:
            continue
        checked += 1
        check_locals(func)
        theirs = gast.ast_to_gast(parsed._located.node)
        theirs.decorator_list, theirs.returns, theirs.args.defaults = [], None, []
        theirs.args.kw_defaults = [None] * len(theirs.args.kwonlyargs)
        for node in gast.walk(theirs):
            if isinstance(node, gast.Name | gast.AnnAssign):
                node.annotation = None
            elif isinstance(node, gast.FunctionDef):
                node.returns = None
        assert gast.dump(parsed.tree, include_attributes=True) == gast.dump(theirs, include_attributes=True)
    assert checked > 100


def test_bound_names_of_inner_functions() -> None:
    parsed = parse_function(define(ACCEPTED))
    inner = {node.name: node for node in gast.walk(parsed.tree) if isinstance(node, gast.FunctionDef)}
    assert bound_names(inner["g"]) == {"u", "v", "w"}
    (short,) = [node for node in gast.walk(parsed.tree) if isinstance(node, gast.Lambda)]
    assert bound_names(short) == {"s", "t"}


def test_walrus_in_a_comprehension_binds_in_the_function() -> None:
    func = define("def f(x):\n    y = [last := k for k in x]\n    return lambda q=(low := 1): q\n")
    check_locals(func)
    assert parse_function(func).locals == {"x", "y", "last", "low"}


# ---- places --------------------------------------------------------------------------------------------------------

HEADERS = """\
def f(x, *, k: "a:b" = {1: 2}, **more) -> "c:d":
    for i in range((
        3), ):  # a remark: with a colon
        x = x + i; x = x * 2
    while (x <
           3 # one: more
           ) :
        x = x + {1: 2}[1]
    if x: return x
    elif (lambda: x)():
        x = (x
             + 1)
    else:
        def g(): return [x for y in x]
    return x[1:2]
"""


def test_spans_of_compound_statements_are_their_headers() -> None:
    parsed = parse_function(define(HEADERS))
    texts = {parsed.span(node).text() for node in gast.walk(parsed.tree) if isinstance(node, gast.stmt)}
    assert texts == {
        'def f(x, *, k: "a:b" = {1: 2}, **more) -> "c:d":',
        "for i in range(( 3), ):",
        "x = x + i",
        "x = x * 2",
        "while (x < 3 # one: more ) :",
        "x = x + {1: 2}[1]",
        "if x:",
        "return x",
        "elif (lambda: x)():",
        "x = (x + 1)",
        "def g():",
        "return [x for y in x]",
        "return x[1:2]",
    }


# ---- names ---------------------------------------------------------------------------------------------------------

RATE = 2.0


def test_b17_names_mean_objects() -> None:
    from numpy import sin as s

    sum = 3.0

    def f(x: float) -> Any:
        return s(x) * np.cos(x) * sum * RATE * len(x) * nowhere  # noqa: F821

    parsed = parse_function(f)
    assert parsed.resolve("s") is np.sin
    assert parsed.resolve("np") is np
    assert parsed.resolve("sum") == 3.0
    assert parsed.resolve("RATE") == 2.0
    assert parsed.resolve("len") is len
    assert parsed.resolve("nowhere") is MISSING
    assert parsed.freevars == {"s", "sum"}
    assert parsed.cell("RATE") is None
    with pytest.raises(NameError, match="name 'nowhere' is not defined"):
        parsed.getter("nowhere")()


def test_b17_builtins_can_be_shadowed_and_found_again() -> None:
    func = define("def f(x):\n    return abs(x)\n")
    parsed = parse_function(func)
    assert parsed.resolve("abs") is builtins.abs
    func.__globals__["abs"] = math.fabs
    assert parsed.resolve("abs") is math.fabs


def test_b24_getters_read_what_holds_now(monkeypatch: pytest.MonkeyPatch) -> None:
    rate = 1.0

    def f(x: float) -> float:
        return x * rate * RATE

    parsed = parse_function(f)
    read_cell, read_global = parsed.getter("rate"), parsed.getter("RATE")
    assert (read_cell(), read_global()) == (1.0, 2.0)
    rate = 5.0
    monkeypatch.setitem(f.__globals__, "RATE", 7.0)
    assert (read_cell(), read_global()) == (5.0, 7.0)
    assert parsed.cell("rate") is f.__closure__[0]


def test_b24_closures_of_one_def_share_the_tree_and_keep_their_cells() -> None:
    def make(scale: float) -> Any:
        return lambda x: x * scale

    first, second = parse_function(make(2.0)), parse_function(make(3.0))
    assert first.tree is second.tree
    assert (first.resolve("scale"), second.resolve("scale")) == (2.0, 3.0)


def test_cell_that_is_still_empty() -> None:
    def outer() -> Parsed:
        def f(x: float) -> float:
            return x * later

        parsed = parse_function(f)
        assert parsed.resolve("later") is MISSING
        with pytest.raises(NameError, match="cannot access free variable 'later'"):
            parsed.getter("later")()
        later = 4.0
        return parsed

    assert outer().resolve("later") == 4.0


def test_b19_identifiers_are_folded() -> None:
    # the micro sign and the ligature fi fold to Greek mu and "fi"
    parsed = parse_function(define("def f(\u00b5, \ufb01):\n    \u03b1 = \u00b5 * fi\n    return \u03bc + \u03b1\n"))
    assert parsed.locals == {"\u03bc", "fi", "\u03b1"}
    assert {node.id for node in gast.walk(parsed.tree) if isinstance(node, gast.Name)} == parsed.locals


PRIVATE = """\
__rate = "the global"
_Model__rate = "the mangled global"

class _Base:
    __hidden = 1.0

class Model(_Base):
    def __init__(self):
        self.__scale = 3.0
    def run(self, __x, y=1, *, __k=2):
        __t = self.__scale * __x + __rate.__len__()
        import __main__
        def __g(__a):
            return __a + __t
        return __g(y)
    def make(self):
        def inner(x):
            return x * __rate
        return inner
    call = lambda self, __x: __x + self.__scale
"""


def test_b20_private_names(tmp_path: Path) -> None:
    module = load(tmp_path / "private.py", PRIVATE)
    parsed = parse_function(module.Model.run)
    check_locals(module.Model.run)
    assert list(parsed.signature.parameters) == ["self", "_Model__x", "y", "_Model__k"]
    names = {node.id for node in gast.walk(parsed.tree) if isinstance(node, gast.Name)}
    names |= {node.attr for node in gast.walk(parsed.tree) if isinstance(node, gast.Attribute)}
    assert names == {"self", "y", "__len__", *(f"_Model__{n}" for n in ("x", "k", "t", "scale", "rate", "g", "a"))}
    assert parsed.resolve("_Model__rate") == "the mangled global"
    inner = parse_function(module.Model().make())
    assert inner.resolve(inner.tree.body[0].value.right.id) == "the mangled global"
    short = parse_function(module.Model.call)
    assert short.tree.body[0].value.right.attr == "_Model__scale"


def test_b20_mangle() -> None:
    assert mangle("__x", "Model") == "_Model__x"
    assert mangle("__x", "__Model") == "_Model__x"
    assert mangle("__x", "___") == "__x"
    assert mangle("__x__", "Model") == "__x__"
    assert mangle("_x", "Model") == "_x"
    assert mangle("__x", None) == "__x"


def test_b22_soft_keywords_are_names() -> None:
    parsed = parse_function(define("def f(match, case, type):\n    _ = match * case\n    return _ + type\n"))
    assert parsed.locals == {"match", "case", "type", "_"}


def test_imports_inside_the_function() -> None:
    text = """\
    def f(x):
        import os.path
        import numpy.linalg as la
        from math import sin, cos as c
        from numpy import linalg
        return x
    """
    parsed = parse_function(define(text))
    bound: dict[str, Any] = {}
    for statement in parsed.tree.body[:-1]:
        bound |= parsed.imported(statement)
    import os

    assert bound == {"os": os, "la": np.linalg, "sin": math.sin, "c": math.cos, "linalg": np.linalg}


def test_relative_import_inside_the_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "somewhere"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "near.py").write_text("RATE = 4.0\n")
    (package / "model.py").write_text(
        "def f(x):\n    from .near import RATE\n    from . import near\n    return x * RATE\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import importlib

    model = importlib.import_module("somewhere.model")
    parsed = parse_function(model.f)
    assert parsed.imported(parsed.tree.body[0]) == {"RATE": 4.0}
    assert parsed.imported(parsed.tree.body[1])["near"].RATE == 4.0
