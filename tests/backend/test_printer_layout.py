"""Layout of generated code: what is printed parses back to the same syntax and is what `ruff format` would print."""

from __future__ import annotations

import ast
import random
import sys
from io import StringIO

import pytest

from tapegen.backend.printer.formatter.expressions import expression_line, literal, words
from tapegen.backend.printer.formatter.statements import StatementPrinter
from tapegen.errors import Span
from tests.sources import ruff

NAMES = ["u", "k", "dt", "energy", "temperature", "conductivity", "boundary_flux", "cell_average_velocity"]
BINARY = [ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mult, ast.Pow, ast.MatMult, ast.FloorDiv, ast.Mod, ast.BitAnd]
COMPARE = [ast.Lt, ast.LtE, ast.Eq, ast.NotEq, ast.Gt, ast.Is, ast.IsNot, ast.In]
EXPRESSIONS = ["binary"] * 5 + ["call"] * 3 + ["index"] * 3
EXPRESSIONS += ["unary", "compare", "bool", "if", "method", "tuple", "list"]
STATEMENTS = ["assign"] * 4 + ["augment", "several", "return", "results", "expression", "raise", "if", "while", "for"]


class Syntax:
    """Random expressions and statements of the kinds that generated code consists of."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def name(self) -> ast.expr:
        return ast.Name(self.random.choice(NAMES))

    def expr(self, depth: int) -> ast.expr:
        r = self.random
        if depth <= 0 or r.random() < 0.1:
            return r.choice([self.name, self.name, self.constant, self.shape])()
        kind = r.choice(EXPRESSIONS)
        if kind == "binary":
            return ast.BinOp(self.expr(depth - 1), r.choice(BINARY)(), self.expr(depth - 1))
        if kind == "call":
            args = [self.expr(depth - 1) for _ in range(r.randint(0, 4))]
            keywords = [ast.keyword("axis", self.expr(depth - 2))] if r.random() < 0.3 else []
            return ast.Call(ast.Attribute(ast.Name("np"), r.choice(["sum", "maximum", "exp"])), args, keywords)
        if kind == "index":
            items = [self.index(depth - 1) for _ in range(r.randint(1, 3))]
            return ast.Subscript(self.name(), items[0] if len(items) == 1 else ast.Tuple(items))
        if kind == "unary":
            operator = r.choice([ast.USub, ast.Not, ast.USub, ast.Invert])()
            return ast.UnaryOp(operator, self.expr(depth - 1))
        if kind == "compare":
            count = r.randint(1, 2)
            operands = [self.expr(depth - 1) for _ in range(count)]
            return ast.Compare(self.expr(depth - 1), [r.choice(COMPARE)() for _ in range(count)], operands)
        if kind == "bool":
            operator = r.choice([ast.And, ast.Or])()
            return ast.BoolOp(operator, [self.expr(depth - 1) for _ in range(r.randint(2, 3))])
        if kind == "if":
            return ast.IfExp(self.expr(depth - 1), self.expr(depth - 1), self.expr(depth - 1))
        if kind == "method":
            return ast.Call(ast.Attribute(self.name(), "reshape"), [self.expr(depth - 1)], [])
        items = [self.expr(depth - 1) for _ in range(r.randint(0, 3))]
        return ast.Tuple(items) if kind == "tuple" else ast.List(items)

    def constant(self) -> ast.expr:
        return ast.Constant(self.random.choice([0, 1, 2, 0.5, 1e16, 1e-5, 123456.789, None, True, "C"]))

    def shape(self) -> ast.expr:
        return ast.Subscript(ast.Attribute(self.name(), "shape"), ast.Constant(0))

    def index(self, depth: int) -> ast.expr:
        r = self.random
        if r.random() < 0.5:
            return self.expr(depth)
        lower, upper, step = (self.expr(depth) if r.random() < p else None for p in (0.5, 0.5, 0.2))
        return ast.Slice(lower, upper, step)

    def statement(self) -> ast.stmt:
        r = self.random
        value = self.expr(r.randint(1, 5))
        target = r.choice([self.name, self.element, self.element])()
        kind = r.choice(STATEMENTS)
        if kind == "assign":
            return ast.Assign([target], value)
        if kind == "augment":
            return ast.AugAssign(target, ast.Add(), value)
        if kind == "several":
            count = r.randint(2, 3)
            targets = ast.Tuple([self.name() for _ in range(count)])
            return ast.Assign([targets], r.choice([value, ast.Tuple([self.expr(2) for _ in range(count)])]))
        if kind == "return":
            return ast.Return(value)
        if kind == "results":
            return ast.Return(ast.Tuple([self.expr(r.randint(0, 3)) for _ in range(r.randint(2, 5))]))
        if kind in ("expression", "raise"):
            call = ast.Call(ast.Name("ValueError"), [self.expr(2) for _ in range(r.randint(1, 3))], [])
            return ast.Raise(call) if kind == "raise" else ast.Expr(call)
        body: list[ast.stmt] = [ast.Pass()]
        if kind == "for":
            call = ast.Call(ast.Name("range"), [self.expr(3) for _ in range(r.randint(1, 3))], [])
            return ast.For(self.name(), call, body, [])
        return ast.If(value, body, []) if kind == "if" else ast.While(value, body, [])

    def element(self) -> ast.expr:
        return ast.Subscript(self.name(), self.index(self.random.randint(0, 2)))


def printed(*nodes: ast.stmt) -> str:
    file = StringIO()
    StatementPrinter(list(nodes), file, {})
    return file.getvalue()[1:]


def nested(node: ast.stmt, depth: int) -> ast.stmt:
    for _ in range(depth):
        node = ast.If(ast.Name("u"), [node], [])
    return node


@pytest.mark.parametrize("seed", [1, 2])
def test_random_statements_are_laid_out_as_ruff_does(seed: int) -> None:
    syntax = Syntax(seed)
    body = [nested(syntax.statement(), position % 4) for position in range(600)]
    text = printed(ast.FunctionDef("f", parameters([]), body, []))
    assert ruff("format", "--isolated", "--line-length", "88", text=text) == text


@pytest.mark.parametrize("seed", [3])
def test_random_statements_parse_back(seed: int) -> None:
    syntax = Syntax(seed)
    for _ in range(500):
        node = syntax.statement()
        (back,) = ast.parse(printed(node)).body
        assert ast.unparse(back) == ast.unparse(ast.fix_missing_locations(node))


STRINGS = [
    "short",
    "it's",
    'say "hi"',
    "both ' and \"",
    "back\\slash and {braces}",
    "tab\tand newline\n",
    "the step size must be positive, and small enough for the explicit scheme to be stable on this grid",
    "é" * 100,
    "",
]


@pytest.mark.parametrize("text", STRINGS)
@pytest.mark.parametrize("field", [False, True])
def test_strings_keep_their_value_and_are_laid_out_as_ruff_does(text: str, field: bool) -> None:
    value: ast.expr = ast.Constant(text)
    if field:
        value = ast.JoinedStr([ast.Constant(text), ast.FormattedValue(ast.Name("u"), -1), ast.Constant(" " + text)])
    node = ast.Raise(ast.Call(ast.Name("RuntimeError"), [value], []))
    for depth in (0, 4):
        source = printed(nested(node, depth))
        assert ruff("format", "--isolated", "--line-length", "88", text=source) == source
    namespace = {"u": "{u}"}
    with pytest.raises(RuntimeError) as caught:
        exec(printed(node), namespace)
    assert caught.value.args == (text + "{u}" + " " + text if field else text,)


def test_the_quotes_are_those_that_need_fewer_backslashes() -> None:
    assert literal(words("it's")) == '"it\'s"'
    assert literal(words('say "hi"')) == "'say \"hi\"'"


def parameters(params: list[tuple[str, ast.expr | None]]) -> ast.arguments:
    defaults = [default for _, default in params if default is not None]
    return ast.arguments([], [ast.arg(name) for name, _ in params], None, [], [], None, defaults)


def test_long_headers_of_functions_break_as_ruff_breaks_them() -> None:
    cases: list[list[tuple[str, ast.expr | None]]] = [
        [],
        [("u", None)],
        [("a_parameter_with_a_name_that_is_longer_than_the_whole_line_can_hold_by_any_means", None)],
        [(f"parameter_{k}", None) for k in range(5)],
        [(f"parameter_{k}", ast.Constant(1.0)) for k in range(9)],
        [(f"parameter_{k}", ast.Constant(1.0) if k > 3 else None) for k in range(9)],
    ]
    for position, params in enumerate(cases):
        text = printed(ast.FunctionDef(f"march_{position}_value_and_grad", parameters(params), [ast.Pass()], []))
        assert ruff("format", "--isolated", "--line-length", "88", text=text) == text


SPELLINGS = [
    "u[0, 1]",
    "u[()]",
    "u[(0,)]",
    "u[1:, ...]",
    "u[k + 1 :: -1]",
    "-1",
    "-(k**2)",
    "(-k) ** 2",
    "u**-k",
    "(5).real",
    "(5.0).real",
    "(2j).imag",
    "(u + k).T",
    "not (u and k)",
    "u - (k - dt)",
    "u if k else dt if energy else 1e16",
    "[k for k in (u if dt else energy)]",
    'f"{u} {k:.3f} {{}}"',
    "np.sum(u, axis=0)(...)",
    "{1}",
    "2j",
]


@pytest.mark.parametrize("text", SPELLINGS)
def test_expressions_are_printed_as_a_person_would_write_them(text: str) -> None:
    node = ast.parse(text, mode="eval").body
    assert expression_line(node) == text
    assert printed(ast.Expr(node)) == text + "\n"
    assert ruff("format", "--isolated", text=text + "\n") == text + "\n"


UNKNOWN = [
    "match u:\n    case 1:\n        pass",
    "try:\n    pass\nexcept* ValueError:\n    pass",
    "with u:\n    pass",
    "class A:\n    pass",
    "async def f():\n    pass",
    "def f(u: int):\n    pass",
    "def f(*u):\n    pass",
    "def f(u, /):\n    pass",
    "def f() -> int:\n    pass",
    "u: int = 1",
    "import numpy",
    "lambda u: u",
    "{u: k}",
    "(u := k)",
    "f(*u)",
    "[u for u in k if u]",
    "{u for u in k}",
    "(u for u in k)",
    'f"{u!r}"',
    'f"{u:{k}}"',
    "1e999",
]


@pytest.mark.parametrize("text", UNKNOWN)
def test_syntax_that_generated_text_does_not_have_is_refused(text: str) -> None:
    with pytest.raises(AssertionError, match=r"generated text|no literal"):
        printed(*ast.parse(text).body)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="syntax of Python 3.12")
def test_type_parameters_are_refused() -> None:
    with pytest.raises(AssertionError, match="type parameters"):
        printed(*ast.parse("def f[T](u): pass").body)


def test_long_comprehensions_break_as_ruff_breaks_them() -> None:
    loop = ast.comprehension(
        ast.Name("item"), ast.Name("temperatures_of_the_cells_in_the_upper_layer_of_the_grid"), [], 0
    )
    value = ast.ListComp(ast.parse("np.zeros_like(item)", mode="eval").body, [loop])
    text = printed(ast.Assign([ast.Name("temperatures_bar")], value))
    assert len(text.splitlines()) == 4
    assert ruff("format", "--isolated", text=text) == text


def test_each_line_is_mapped_to_its_statement() -> None:
    body = ast.parse("if u:\n    k = 1\nelif dt:\n    pass\nelse:\n    raise ValueError\n").body
    places = {
        node: Span("f.py", node.lineno, 0, node.lineno, 0)
        for node in ast.walk(body[0])
        if isinstance(node, (ast.stmt, ast.expr))
    }
    printer = StatementPrinter(body, StringIO(), places)
    assert [place and place.line for place in printer.line_map] == [1, 2, 3, 4, None, 6]
