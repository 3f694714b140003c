"""The names in a text: imports, objects of the user, functions that are called."""

from __future__ import annotations

import math
import operator
from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
import scipy.special

from tapegen.backend.numba.build import build_python
from tapegen.backend.printer.module import emit
from tapegen.ir import intrinsics
from tapegen.ir.nodes import (
    Assign,
    Const,
    For,
    Function,
    If,
    Load,
    Raise,
    Return,
    Routine,
    Var,
)
from tapegen.ir.types import FLOAT
from tests.emitted import (
    VECTOR,
    a,
    call,
    function,
    i,
    m,
    x,
    y,
)
from tests.sources import ruff


def test_imports_are_sorted_and_only_what_is_used() -> None:
    values = [
        call(math.exp, x),
        call(np.sin, x),
        call(scipy.special.erf, x),
        call(scipy.linalg.solve, m, a),
    ]
    program = function(*(Assign((y,), value) for value in values), Return((y,)), params=(x, m, a))
    text = emit(program, decorator='njit(error_model="numpy")').text
    assert text.startswith(
        "import math\n\nimport numpy as np\nfrom numba import njit\nfrom scipy import linalg, special\n\n\n"
        '@njit(error_model="numpy")\ndef f('
    )
    assert ruff("check", "--isolated", "--select", "E,F,W,I", text=text) == "All checks passed!\n"


def test_modules_keep_the_names_the_user_gave_them() -> None:
    program = function(Assign((y,), call(np.sin, x)), Return((call(scipy.special.erf, y),)), params=(x,))
    text = emit(program, modules={"numpy": "numpy", "scipy.special": "sp"}).text
    assert text.startswith("import numpy\nfrom scipy import special as sp\n")
    assert "y = numpy.sin(x)" in text
    assert "return sp.erf(y)" in text


def test_local_names_win_over_modules_and_builtins() -> None:
    np_, range_, math_ = Var("np", FLOAT), Var("range", FLOAT), Var("math", FLOAT)
    program = function(
        For(i, Const(0), Const(3), Const(1), (Assign((range_,), call(operator.add, range_, call(np.sin, np_))),)),
        Assign((math_,), call(math.exp, range_)),
        Return((call(float, math_),)),
        params=(np_, range_),
        name="float",
    )
    source = emit(program)
    assert source.text == (
        "import math as math_1\n\nimport numpy as np_1\n\nfloat_1 = float\nrange_1 = range\n\n\n"
        "def float(np, range):\n    for i in range_1(3):\n        range += np_1.sin(np)\n"
        "    math = math_1.exp(range)\n    return float_1(math)\n"
    )
    assert build_python(source)(0.5, 1.0) == math.exp(1.0 + 3 * math.sin(0.5))
    assert ruff("format", "--isolated", "--line-length", "88", text=source.text) == source.text
    assert ruff("check", "--isolated", "--select", "E,F,W,I", text=source.text) == "All checks passed!\n"


class Unstable(ArithmeticError):
    pass


def limiter(value: float) -> float:
    return min(value, 1.0)


def test_objects_of_the_user_travel_in_the_namespace() -> None:
    def limiter_of_another_name(value: float) -> float:
        return 2.0 * value

    twin = limiter_of_another_name
    twin.__name__ = "limiter"
    body = (
        If(call(operator.lt, x, Const(0.0)), (Raise(Unstable, (Const("x"),)),)),
        Return((call(operator.add, call(limiter, x), call(twin, x)),)),
    )
    source = emit(function(*body, params=(x,)))
    assert dict(source.namespace) == {"Unstable": Unstable, "limiter": limiter, "limiter_1": twin}
    run = build_python(source)
    assert run(3.0) == 7.0
    with pytest.raises(Unstable):
        run(-1.0)


def test_an_object_named_like_a_builtin_leaves_the_builtin_alone() -> None:
    def sum(value: float) -> float:
        return value + 100.0

    body = (Return((call(operator.add, call(sum, x), call(np.sum, call(intrinsics.new_list, x))),)),)
    source = emit(function(*body, params=(x,), globals=(("sum", sum),)))
    assert "sum_(x) + np.sum([x])" in source.text
    assert build_python(source)(1.0) == 102.0


def test_what_the_program_brings_along_is_given_unless_it_can_be_imported() -> None:
    table = np.arange(3.0)
    more = (("table", table), ("flag", None), ("sine", np.sin))
    source = emit(
        function(Return((Load(Var("table", VECTOR), (Const(1),), FLOAT), call(np.sin, x))), params=(x,), globals=more)
    )
    assert dict(source.namespace) == {"table": table, "flag": None}
    assert build_python(source)(0.5) == (1.0, np.sin(0.5))


def test_functions_that_are_called_come_first() -> None:
    inner = function(Return((call(np.sin, x),)), params=(x,), name="inner")
    routine = Routine("inner", inner)
    outer = function(Return((call(routine, call(routine, x)),)), params=(x,), name="outer")
    source = emit(outer, routines={routine: inner})
    assert (source.entry, source.functions) == ("outer", ("inner", "outer"))
    assert build_python(source)(0.3) == np.sin(np.sin(0.3))


def test_routines_are_called_by_names_that_nothing_else_has() -> None:
    text = function(Return((call(np.sin, x),)), params=(x,), name="x")
    one, other = Routine("x", text), Routine("x", replace(text, body=(Return((call(np.cos, x),)),)))
    outer = function(Return((call(one, call(other, x)),)), params=(x,), name="outer")
    source = emit(outer, routines={one: text, other: other.function})
    assert len({*source.functions, "x"}) == 4
    assert build_python(source)(0.3) == np.sin(np.cos(0.3))


def test_the_text_depends_on_the_program_alone() -> None:
    def program() -> Function:
        return function(
            Assign((y,), call(limiter, call(np.sin, call(scipy.special.erf, x)))),
            Return((call(intrinsics.sum_to, a, a), call(math.exp, y))),
            params=(x, a),
        )

    assert emit(program()).text == emit(program()).text
    assert emit(program()).file_name == emit(program()).file_name
