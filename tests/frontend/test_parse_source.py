"""Where the text of a function comes from, and that it is the text of the code that runs (cases 1 to 15)."""

from __future__ import annotations

import functools
import importlib
import inspect
import linecache
import math
import py_compile
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gast
import numba
import numpy as np
import pytest

from tapegen import differentiable
from tapegen.errors import NotDifferentiable, SourceUnavailable, TapegenError, UnsupportedSyntax
from tapegen.frontend.source.parse import is_elementwise, parse_function, unwrap
from tests.sources import define, load, python

NO_TEXT_ADVICE = "Put the function in a file or a notebook cell."


def returned(func: Any) -> str:
    """The source text of the value that a function returns."""
    parsed = parse_function(func)
    (statement,) = [node for node in gast.walk(parsed.tree) if isinstance(node, gast.Return)]
    return parsed.span(statement.value).text()


def plain(x: float) -> float:
    """A function like any other."""
    return x * 2.0


def test_a01_function_in_a_file() -> None:
    parsed = parse_function(plain)
    assert parsed.tree.name == "plain"
    assert parsed.file == __file__
    assert parsed.text == 'def plain(x: float) -> float:\n    """A function like any other."""\n    return x * 2.0\n'
    assert parsed.span(parsed.tree).line == plain.__code__.co_firstlineno
    assert returned(plain) == "x * 2.0"


def test_a02_notebook_cell() -> None:
    # a notebook keeps the cell in linecache and compiles its statements one by one
    text = "import numpy as np\n\ndef f(x):\n    return np.sin(x) * np.exp(x)\n"
    file = "<ipython-input-1-cell>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {}
    head, tail = text[: text.index("def")], text[text.index("def") :]
    exec(compile(head, file, "exec"), namespace)
    exec(compile("\n\n" + tail, file, "exec"), namespace)
    assert returned(namespace["f"]) == "np.sin(x) * np.exp(x)"


def test_a02_same_text_in_another_cell_has_the_same_hash() -> None:
    first = define("def f(x):\n    return x\n")
    second = define("\n\ndef f(x):\n    return x\n")
    assert parse_function(first).text_hash == parse_function(second).text_hash
    assert parse_function(first).file != parse_function(second).file


def test_a02_cell_with_await_at_its_top() -> None:
    file, text = "<cell with await>", "def f(x): return x + 1.0; \\\n\nawait g()\n"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {}
    exec(compile("def f(x): return x + 1.0", file, "exec"), namespace)
    assert returned(namespace["f"]) == "x + 1.0"


_REFUSED_AT_PROMPT = """
from tapegen.frontend.source.parse import parse_function
def f(x):
    return x
try:
    print("parsed", parse_function(f).text)
except OSError as error:
    print(type(error).__name__, error)
"""


def test_a03_no_text_on_standard_input() -> None:
    output = python("-", stdin=_REFUSED_AT_PROMPT)
    assert "SourceUnavailable <stdin>:3:1: there is no source text of 'f' (it was typed at the prompt" in output
    assert NO_TEXT_ADVICE in output


def test_a03_no_text_on_the_command_line() -> None:
    output = python("-c", _REFUSED_AT_PROMPT)
    if sys.version_info >= (3, 13):  # Python keeps the text
        assert "parsed def f(x):" in output
    else:
        assert "SourceUnavailable <string>:3:1: there is no source text of 'f' (it was made by exec" in output
        assert NO_TEXT_ADVICE in output


def test_a04_made_by_exec_or_eval() -> None:
    namespace: dict[str, Any] = {}
    exec("def f(x):\n    return x", namespace)
    with pytest.raises(SourceUnavailable, match=r"there is no source text of 'f'.*made by exec, eval") as caught:
        parse_function(namespace["f"])
    assert caught.value.advice == NO_TEXT_ADVICE
    with pytest.raises(SourceUnavailable, match="there is no source text of '<lambda>'"):
        parse_function(eval("lambda x: x"))


def test_a04_called_by_a_function_with_text() -> None:
    namespace: dict[str, Any] = {}
    exec("def helper(x):\n    return x", namespace)
    helper = namespace["helper"]  # of no module
    with pytest.raises(TapegenError, match="there is no source text of 'helper'"):
        differentiable(lambda x: helper(x) + 1.0, backend="python").grad(2.0)


def test_a05_only_bytecode(tmp_path: Path) -> None:
    source = tmp_path / "shipped.py"
    source.write_text("def f(x):\n    return x\n")
    py_compile.compile(str(source), cfile=str(tmp_path / "shipped.pyc"), doraise=True)
    source.unlink()
    sys.path.insert(0, str(tmp_path))
    try:
        module = importlib.import_module("shipped")
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("shipped", None)
    with pytest.raises(SourceUnavailable, match=r"the file .*shipped\.py cannot be read"):
        parse_function(module.f)


def test_a05_zipped_module_whose_loader_gives_the_source(tmp_path: Path) -> None:
    archive = tmp_path / "library.zip"
    with zipfile.ZipFile(archive, "w") as target:
        target.writestr("zipped_module.py", "def f(x):\n    return x * 3.0\n")
    sys.path.insert(0, str(archive))
    try:
        module = importlib.import_module("zipped_module")
    finally:
        sys.path.remove(str(archive))
        sys.modules.pop("zipped_module", None)
    assert returned(module.f) == "x * 3.0"


ORIGINAL = """\
import math

SCALE = 2.0

def f(x, n):
    total = 0.0
    for i in range(n):
        total = total + math.sin(x) * SCALE
    return total
"""


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("* SCALE", "* SCALED", "line 8 differs"),
        ("total = 0.0", "total = 1.0", "line 6 differs"),
        ("total = 0.0", "total = 0", "line 6 differs"),
        ("total = 0.0", "total = -0.0", "line 6 differs"),
        ("range(n)", "range(n + 1)", "line 7 differs"),
        ("math.sin", "math.cos", "line 8 differs"),
        ("return total", "return total, x", "line 9 differs"),
        ("return total", "return x", "line 9 differs"),
        ("(x, n)", "(n, x)", "line 5 differs"),
        ("def f(", "def g(", "line 5 does not define it"),
        ("def f(", "x = 1; y = (", "does not parse"),
    ],
)
def test_a06_file_edited_after_import(tmp_path: Path, old: str, new: str, what: str) -> None:
    path = tmp_path / "edited.py"
    module = load(path, ORIGINAL)
    path.write_text(ORIGINAL.replace(old, new))
    with pytest.raises(SourceUnavailable, match="is not the loaded code") as caught:
        parse_function(module.f)
    assert what in caught.value.reason
    assert "import the module again" in caught.value.advice
    assert caught.value.span is not None
    assert caught.value.span.source_line() in path.read_text().splitlines()


def test_a06_edited_inside_an_inner_function(tmp_path: Path) -> None:
    path = tmp_path / "edited.py"
    text = "def f(x):\n    def g(y):\n        return [y * k for k in range(3)]\n    return g(x)\n"
    module = load(path, text)
    path.write_text(text.replace("range(3)", "range(4)"))
    with pytest.raises(SourceUnavailable, match="line 3 differs"):
        parse_function(module.f)


def test_a06_edited_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "edited.py"
    module = load(path, ORIGINAL)
    path.write_text(ORIGINAL.replace("import math\n", "import math\n\n# a remark\n\ndef g(x):\n    return x\n\n"))
    parsed = parse_function(module.f)
    assert parsed.span(parsed.tree).line == 11
    assert parsed.span(parsed.tree).text() == "def f(x, n):"


def test_a06_moved_onto_the_line_of_a_namesake(tmp_path: Path) -> None:
    path = tmp_path / "edited.py"
    text = "def f(x):\n    return x * 2.0\n\n\nkeep = f\n\n\ndef f(x):\n    return x * 3.0\n"
    module = load(path, text)
    path.write_text("#\n" * 7 + text)
    assert returned(module.keep) == "x * 2.0"
    assert returned(module.f) == "x * 3.0"


def test_a06_what_was_parsed_stays_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "edited.py"
    module = load(path, ORIGINAL)
    parsed = parse_function(module.f)
    path.write_text("# gone\n" * 20)
    linecache.checkcache()
    assert parse_function(module.f).tree is parsed.tree
    assert parsed.span(parsed.tree.body[1].body[0]).text() == "total = total + math.sin(x) * SCALE"


def test_a06_module_without_the_function_any_more(tmp_path: Path) -> None:
    path = tmp_path / "edited.py"
    module = load(path, ORIGINAL)
    path.write_text("x = 1\n")
    with pytest.raises(SourceUnavailable, match=r"edited\.py:5:1: the text on disk of 'f' is not the loaded code"):
        parse_function(module.f)


# pytest rewrites the asserts of this module


def asserting(x: float, n: int) -> float:
    assert n > 0, f"{n} is not positive"
    total = 0.0
    for i in range(n):
        assert x == x
        if x > i:
            total = total + x
            assert total > 0.0 and total < 1e9
        else:
            assert (low := x - 1.0) < i  # noqa: RUF018
            total = total - low

    def inner(y: float) -> float:
        assert y is not None
        return y * total

    return inner(x)


def test_a07_asserts_rewritten_by_pytest() -> None:
    assert any(name.startswith("@py") for name in asserting.__code__.co_names), "pytest has not rewritten this module"
    parsed = parse_function(asserting)
    assert sum(isinstance(node, gast.Assert) for node in gast.walk(parsed.tree)) == 5


def test_a07_edited_although_rewritten(tmp_path: Path) -> None:
    import ast

    from _pytest.assertion.rewrite import rewrite_asserts

    path = tmp_path / "rewritten.py"
    text = "def f(x):\n    assert x > 0\n    y = x * 2.0\n    assert y > 0\n    return y\n"
    path.write_text(text)
    tree = ast.parse(text)
    rewrite_asserts(tree, text.encode())
    namespace: dict[str, Any] = {}
    exec(compile(tree, str(path), "exec"), namespace)
    path.write_text(text.replace("2.0", "3.0"))
    with pytest.raises(SourceUnavailable, match=r"the code of 'f' was rewritten by pytest when it was loaded"):
        parse_function(namespace["f"])
    path.write_text(text)
    linecache.checkcache()
    assert returned(namespace["f"]) == "y"


class Instrumenting(importlib.machinery.SourceFileLoader):
    """An import hook that changes every function, as run-time type checkers do."""

    def source_to_code(self, data: Any, path: Any, **kwargs: Any) -> Any:
        return compile(bytes(data).replace(b"return x", b"return abs(x)"), path, "exec")


def test_a07_other_rewriters_are_named(tmp_path: Path) -> None:
    path = tmp_path / "instrumented.py"
    path.write_text("def f(x):\n    return x\n")
    spec = importlib.util.spec_from_file_location("instrumented", path, loader=Instrumenting("instrumented", str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(SourceUnavailable, match=r"was rewritten by .*\.Instrumenting when it was loaded") as caught:
        parse_function(module.f)
    assert "Exclude its module" in caught.value.advice


TWO_ON_A_LINE = "fs = [lambda x: x * 2, lambda x: x * 3, lambda x: x * 2, lambda x: (lambda y: x + y)]\n"


def test_a08_lambdas_on_one_line_told_apart_by_their_columns(tmp_path: Path) -> None:
    fs = load(tmp_path / "lambdas.py", TWO_ON_A_LINE).fs
    texts = [parse_function(f).text for f in fs]
    assert texts == ["lambda x: x * 2\n", "lambda x: x * 3\n", "lambda x: x * 2\n", "lambda x: (lambda y: x + y)\n"]
    assert parse_function(fs[3](1.0)).text == "lambda y: x + y\n"
    columns = {parse_function(fs[0]).span(parse_function(fs[0]).tree.body[0].value).column for _ in range(2)}
    assert columns == {TWO_ON_A_LINE.index("x * 2")}


def test_a08_ambiguous_without_columns(tmp_path: Path) -> None:
    path = tmp_path / "lambdas.py"
    path.write_text(TWO_ON_A_LINE)
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from lambdas import fs
from tapegen.frontend.source.parse import parse_function
try:
    parse_function(fs[1])
except OSError as error:
    print(type(error).__name__, error)
"""
    output = python("-X", "no_debug_ranges", "-c", program)
    assert "SourceUnavailable" in output
    assert "lambdas start on this line, and the loaded code does not tell which one is meant" in output
    assert "Write one lambda to a line, or use def." in output


def test_a08_lambda_line_edited(tmp_path: Path) -> None:
    path = tmp_path / "lambdas.py"
    fs = load(path, TWO_ON_A_LINE).fs
    path.write_text(TWO_ON_A_LINE.replace("3", "4"))
    with pytest.raises(SourceUnavailable, match="line 1 differs"):
        parse_function(fs[1])


def test_a09_lambda_over_several_lines() -> None:
    table = {
        "first": lambda x: (
            x + 1.0  # the sum
        ),
        "second": lambda x: x - 1.0,
    }
    assert returned(table["first"]) == "x + 1.0"
    assert returned(table["second"]) == "x - 1.0"
    parsed = parse_function(
        lambda x, y=2.0: x
        * y,
    )  # fmt: skip
    assert parsed.tree.name == "lambda_"
    assert str(parsed.signature) == "(x, y=2.0)"
    assert parsed.span(parsed.tree.body[0]).text() == "x * y"


def timed(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        start = time.perf_counter()
        value = func(*args) * 10.0
        print(time.perf_counter() - start)
        return value

    return wrapper


@timed
def hidden(x: float) -> float:
    return x * x


def test_a10_wrapping_decorator_is_read_as_what_it_is() -> None:
    parsed = parse_function(hidden)
    assert parsed.tree.name == "wrapper"
    assert "perf_counter" in parsed.text
    assert unwrap(functools.partial(hidden, 1.0)) == (hidden, (1.0,), {})


def test_a10_wrappers_that_are_not_python() -> None:
    with pytest.raises(NotDifferentiable, match="'plain' keeps its results in a cache"):
        unwrap(functools.lru_cache(plain))


def transparent(func: Callable[..., Any]) -> Callable[..., Any]:
    return func


@transparent
@functools.partial(transparent)
def below(x: float) -> float:
    return x - 3.0


def test_a11_below_decorators_that_give_the_function_back() -> None:
    parsed = parse_function(below)
    assert parsed.tree.decorator_list == []
    assert parsed.text.startswith("def below")
    assert parsed.span(parsed.tree).text() == "def below(x: float) -> float:"


class Model:
    rate = 2.0

    def step(self, x: float, n: int = 1) -> float:
        return x * self.rate * n

    @classmethod
    def build(cls, x: float) -> float:
        return x * cls.rate

    @staticmethod
    def double(x: float) -> float:
        return x * 2.0

    def __call__(self, x: float) -> float:
        return x + self.rate


def test_a12_bound_arguments() -> None:
    model = Model()
    assert unwrap(plain) == (plain, (), {})
    assert unwrap(model.step) == (Model.step, (model,), {})
    assert unwrap(model) == (Model.__call__, (model,), {})
    assert unwrap(Model.build) == (Model.__dict__["build"].__func__, (Model,), {})
    assert unwrap(Model.double) == (Model.__dict__["double"].__func__, (), {})
    assert unwrap(Model.__dict__["double"]) == (Model.__dict__["double"].__func__, (), {})
    inner = functools.partial(model.step, 3.0, n=2)
    assert unwrap(functools.partial(inner, n=5)) == (Model.step, (model, 3.0), {"n": 5})
    # partial objects flatten themselves unless they carry attributes
    inner.note = "kept"
    outer = functools.partial(inner, n=7)
    function, args, kwargs = unwrap(outer)
    assert function(*args, **kwargs) == outer()


def test_a12_what_cannot_be_called_with_constants() -> None:
    with pytest.raises(NotDifferentiable, match="not bound to its class yet"):
        unwrap(Model.__dict__["build"])
    with pytest.raises(NotDifferentiable, match="'Model' is a class"):
        unwrap(Model)
    with pytest.raises(NotDifferentiable, match="an object of type 'int' cannot be called"):
        unwrap(3)
    with pytest.raises(NotDifferentiable, match=r"np\.vectorize hides its loop"):
        unwrap(np.vectorize(plain))


def test_a12_functions_compiled_by_numba() -> None:
    jitted = numba.njit(plain)
    assert unwrap(jitted) == (plain, (), {})
    assert not is_elementwise(jitted)
    elementwise = numba.vectorize(plain)
    assert unwrap(elementwise) == (plain, (), {})
    assert is_elementwise(elementwise)

    class WithJit:
        step = numba.njit(Model.step)

    owner = WithJit()
    assert unwrap(owner.step) == (Model.step, (owner,), {})

    generalised = numba.guvectorize("(n)->(n)")(lambda x, y: None)
    with pytest.raises(NotDifferentiable, match="GUFunc"):
        unwrap(generalised)


def test_a13_not_written_in_python() -> None:
    with pytest.raises(NotDifferentiable, match=r"'argmax' is not written in Python.*has a derivative rule") as caught:
        unwrap(np.argmax)
    assert "lambda x: argmax(x)" in caught.value.advice
    function, args, kwargs = unwrap(np.hypot)
    assert list(inspect.signature(function).parameters) == ["x", "y"]
    assert (function(3.0, 4.0), args, kwargs) == (5.0, (), {})
    with pytest.raises(NotDifferentiable, match="'exit' is not written in Python and has no derivative rule"):
        parse_function(sys.exit)
    with pytest.raises(NotDifferentiable, match=r"nearest to it: .*\bexp\b"):
        unwrap(type("Odd", (), {"__call__": math.exp, "__qualname__": "expo"})())


async def asynchronous(x: float) -> float:
    return x


def generating(x: float) -> Any:
    y = yield x
    return y


def test_a14_functions_that_do_not_return_at_once() -> None:
    with pytest.raises(UnsupportedSyntax, match="'async' code runs in pieces") as caught:
        parse_function(asynchronous)
    assert caught.value.span is not None
    assert caught.value.span.line == asynchronous.__code__.co_firstlineno
    with pytest.raises(UnsupportedSyntax, match="what is sent to a generator is not followed"):
        parse_function(generating)


@pytest.mark.parametrize(
    "raw",
    [
        b"x = 1\n\x0c\ndef f(x):\n    return x * 2.0\n",
        b"class A:\n\x0c    pass\ndef f(x):\n\treturn x * 2.0\n",
        b"def f(x):\n\tif x:\n\t\tx = 1\n\treturn x * 2.0\n",
        b"def f(x):\r\n    return x * 2.0\r\n",
        b"\xef\xbb\xbfdef f(x):\n    return x * 2.0\n",
        b"# coding: latin-1\ns = '\xe9'\ndef f(x):\n    '\xe9t\xe9'; return x * 2.0\n",
        "def f(\u00e9t\u00e9, x):\n    \u00e9t\u00e9 = 1; return x * 2.0\n".encode(),
        b"def f(x): return x * 2.0",
        b"if True:\n  if True:\n      def f(x):\n            return x * 2.0\n",
        b"def f(x):\n  s = '''\nnot indented\n'''\n  return x * 2.0\n",
        b"f = 1; \\\nf = lambda x: x * 2.0\n",
    ],
)
def test_a15_shapes_of_text(tmp_path: Path, raw: bytes) -> None:
    module = load(tmp_path / "shaped.py", raw)
    parsed = parse_function(module.f)
    statement = parsed.tree.body[-1]
    assert parsed.span(statement.value).text() == "x * 2.0"
    line, carets = parsed.span(statement.value).caret().split("\n")
    marked = carets.index("^")
    assert line[marked : marked + len("x * 2.0")] == "x * 2.0"
    assert carets.count("^") == len("x * 2.0")


def test_a15_columns_of_methods_are_those_of_the_file() -> None:
    parsed = parse_function(Model.step)
    span = parsed.span(parsed.tree.body[0])
    assert (span.column, span.end_column) == (8, 8 + len("return x * self.rate * n"))
    assert parsed.text.startswith("def step(self")
    assert "\n    return" in parsed.text


def test_future_features_of_the_module_are_those_of_the_check(tmp_path: Path) -> None:
    text = """\
    from __future__ import annotations

    def f(x):
        def g(y: missing = 1) -> missing:
            return y
        return g(x)
    """
    assert parse_function(load(tmp_path / "future.py", text).f).tree.name == "f"


def test_specialized_bytecode_is_still_the_same_code() -> None:
    def hot(x: float) -> float:
        return x * math.sin(x) + len("ab")

    for _ in range(1000):
        hot(1.0)
    assert returned(hot) == 'x * math.sin(x) + len("ab")'


def test_equal_functions_of_two_files_keep_their_files(tmp_path: Path) -> None:
    first = load(tmp_path / "first.py", "def f(x):\n    return x\n").f
    second = load(tmp_path / "second.py", "def f(x):\n    return x\n").f
    assert first.__code__ == second.__code__
    assert parse_function(first).file == str(tmp_path / "first.py")
    assert parse_function(second).file == str(tmp_path / "second.py")


def test_signature_is_that_of_the_code() -> None:
    import inspect

    def f(a: float, /, b: float = 2.0, *, c: float = 3.0) -> float:
        return a * b * c

    f.__signature__ = inspect.Signature()
    assert [(p.name, p.default) for p in parse_function(f).signature.parameters.values()] == [
        ("a", inspect.Parameter.empty),
        ("b", 2.0),
        ("c", 3.0),
    ]
