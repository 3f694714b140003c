"""Defects of how programs are read.

Keywords of special-cased calls, `out=`, values of two kinds, `try`, `with`, objects of the caller.
"""

from __future__ import annotations

from tapegen.frontend.calls import handlers, library_calls
from tapegen.frontend.library import numpy_variants, output_arrays
from tapegen.frontend.lowering import branches, exceptions
from tapegen.frontend.mutation import caller_objects, results, written_captures
from tapegen.frontend.mutation.results import _Collector as Collector
from tapegen.frontend.source import desugar_try, desugar_with
from tapegen.frontend.source.desugar_with import _Exits as Exits
from tapegen.frontend.values import narrowing
from tapegen.rules import helpers
from tapegen.runtime import stored_state
from tests.random_programs.defects.switch import edit, handler, likely

_FORMS = "tests/language/test_numpy_variants.py tests/frontend/test_parameters.py"

KEYWORDS = likely(
    _FORMS,
    handler(
        "the order of a reshape by position is forgotten",
        numpy_variants._reshape,
        ('{"order": args[2], **kwargs}', "kwargs"),
    ),
    handler(
        "a reshape that copies is a view",
        numpy_variants._reshape,
        ("x = call_library(cx, np.copy, args[:1], {}) if copy else args[0]", "x = args[0]"),
    ),
    handler(
        "of prepend and append by position the first is forgotten",
        numpy_variants._diff,
        ("for value in args[3:]]", "for value in args[4:]]"),
    ),
    handler(
        "an odd reflection is taken for an even one",
        numpy_variants._pad,
        ('if turned == "even":', "if turned is not None:"),
        ('if turned == "odd":', "if False:"),
    ),
    handler(
        "nan_to_num without a copy stores nothing",
        numpy_variants._nan_to_num,
        ("and not copy and isinstance", "and copy and isinstance"),
    ),
    handler(
        "the axis of linspace is forgotten",
        numpy_variants._linspace,
        ('if known_value(named.get("axis", StaticValue(0))) == 0:', "if True:"),
    ),
    handler(
        "sparse grids are full ones",
        numpy_variants._meshgrid,
        ('is True and "copy" not in named:', 'is True and "copy" in named:'),
        ('if known_value(named.get("sparse")) is False:', 'if "sparse" in named:'),
    ),
    handler(
        "the result of einsum without an arrow is in the order of the operands",
        numpy_variants._einsum,
        (
            '"".join(sorted(letter for letter in set(inputs) - {","} if inputs.count(letter) == 1))',
            '"".join(letter for letter in inputs if letter != "," and inputs.count(letter) == 1)',
        ),
    ),
    handler(
        "a diagonal by einsum is a copy",
        numpy_variants._einsum,
        ("if len(terms) > 1 or len(result) < len(terms[k]):", "if True:"),
    ),
    edit(
        "sizes of axes with one letter are not compared",
        numpy_variants,
        "_diagonal",
        ("cx.raise_if(Call(operator.ne, tuple(sizes), (), BOOL), ValueError, text)", "del sizes, text"),
    ),
    edit(
        "a default between two given arguments is left out",
        handlers,
        "_by_parameter",
        ("waiting.append(StaticValue(parameter.default))", "pass"),
    ),
    edit(
        "further arguments by position are forgotten",
        handlers,
        "_by_parameter",
        ("args += bound.arguments.get(name, ())", "pass"),
    ),
    edit(
        "a keyword without a position is forgotten",
        handlers,
        "_by_parameter",
        ("kwargs[name] = bound.arguments[name]", "pass"),
    ),
    edit(
        "an initial value is forgotten",
        library_calls,
        "call_library",
        ('initial = None if own else kwargs.pop("initial", None)', 'initial = kwargs.pop("initial", None) and None'),
    ),
    edit(
        "the one bound of clip is taken for the other",
        library_calls,
        "_bounds_of_clip",
        ('StaticValue(None)) for name in ("a_min", "a_max"))]', 'StaticValue(None)) for name in ("a_max", "a_min"))]'),
    ),
    edit(
        "the dtype that a ufunc computes in is forgotten",
        library_calls,
        "call_library",
        ('if "dtype" in kwargs or "casting" in kwargs:', 'if kwargs.pop("dtype", None) and "casting" in kwargs:'),
    ),
    edit(
        "overwriting is not refused",
        library_calls,
        "_refuse_overwriting",
        ("known_value(value) is not False:", "known_value(value) is None:"),
    ),
    edit(
        "a ufunc reduces all axes",
        library_calls,
        "_folded",
        ('named.setdefault("axis", StaticValue(0))', 'named.setdefault("axis", StaticValue(None))'),
    ),
    edit(
        "an outer ufunc adds one axis",
        library_calls,
        "_ufunc_method",
        ("for _ in range(rank):", "for _ in range(1):"),
    ),
    edit(
        "an option that no rule speaks of is let through",
        helpers,
        "one_of",
        ("if not known:", "if False:"),
    ),
)

OUTPUTS = likely(
    "tests/language/test_out_arrays.py tests/language/test_function_stores.py",
    edit(
        "a function writes while it reads the same array",
        output_arrays,
        "write_result",
        ("if func in _WRITE_EARLY:", "if False:"),
    ),
    edit(
        "the shape of an array for a result is not looked at",
        output_arrays,
        "write_result",
        ("_check_shape(cx, func, out, result)", "pass"),
    ),
    edit(
        "the dtype of an array for a result is not looked at",
        output_arrays,
        "check_type",
        ("if not np.can_cast(type_.dtype, out.dtype, casting):", "if False:"),
    ),
    edit(
        "a function that computes in the array for its result takes any dtype",
        output_arrays,
        "check_type",
        ("if not isinstance(func, np.ufunc) and func not in _CONVERT:", "if False:"),
    ),
    edit(
        "one array for two results",
        output_arrays,
        "write_result",
        ("refuse_overlap(cx, func, place, places.children[:k])", "pass"),
    ),
    edit(
        "arrays with gaps are taken for the result of a product",
        output_arrays,
        "_check_shape",
        ("if func in _CONTIGUOUS and", "if False and"),
    ),
    edit(
        "sizes that only the run knows are not compared",
        output_arrays,
        "_check_shape",
        ("cx.raise_if(test, ValueError, text)", "del test"),
    ),
    edit(
        "a function stores what it reads element by element",
        output_arrays,
        "refuse_reading_while_writing",
        ("if names is not None:", "if False:"),
    ),
)

KINDS = likely(
    "tests/language/test_ignored_values.py tests/transform/test_min_cut.py tests/language/test_unions_in_place.py",
    edit(
        "a branch takes the other kind",
        narrowing,
        "narrow",
        ("state.vars[key] = value.first if first else value.second", "state.vars[key] = value.second"),
    ),
    edit(
        "a container of the caller is dropped with its kind",
        narrowing,
        "narrow",
        (" or gone.cell in cx.caller.owned", ""),
    ),
    edit(
        "a container that another name holds is dropped with its kind",
        narrowing,
        "narrow",
        ("if not any(ref.cell == gone.cell for ref in _refs(state)):", "if True:"),
    ),
    edit(
        "any test is taken to tell the kind",
        branches,
        "_union_of_kinds",
        (" or whole.test != test", ""),
    ),
    edit(
        "branches that change a value are taken to have learned its kind",
        narrowing,
        "is_only_known",
        ("value is whole or value is whole.first or value is whole.second for", "True for"),
    ),
    edit(
        "an array of a branch is taken to be older than it",
        narrowing,
        "was_there",
        ("and cx.age(array) <= since", "and True"),
    ),
    edit(
        "a number is taken for an array without axes that has other names",
        narrowing,
        "loses_writes",
        ("and _has_other_name(cx, name, value, state)", "and False"),
    ),
    edit(
        "two names of a number without axes are taken for one",
        narrowing,
        "is_shared_number",
        ("for other in _values(state)) > 1", "for other in _values(state)) > 9"),
    ),
)

TRY = likely(
    "tests/language/test_try_and_with.py",
    edit("what a body may raise is not looked at", exceptions, "_check", ("if raises:", "if False:")),
    edit(
        "an index is taken not to raise",
        exceptions,
        "_of_expression",
        ("return (IndexError, ValueError)", "return ()"),
    ),
    edit(
        "a division is taken not to raise",
        exceptions,
        "_of_expression",
        ("else (ArithmeticError,)", "else ()"),
    ),
    edit(
        "shapes are taken to fit",
        exceptions,
        "_of_expression",
        ("(ValueError,) if sum(map(_has_axes, expr.args)) > 1 else ()", "()"),
    ),
    handler(
        "a handler of a base class catches nothing",
        exceptions.lower_attempt,
        ("issubclass(raised.exception, kinds)", "raised.exception in kinds"),
    ),
    handler(
        "what ran before the exception is forgotten",
        exceptions.lower_attempt,
        ("cx.builder.items.extend(trial.items[:-1])", "pass"),
    ),
    handler(
        "a handler begins with the values before the try",
        exceptions.lower_attempt,
        ("cx.state, chosen = reached, found", "chosen = found"),
    ),
    edit(
        "finally does not run before a return",
        desugar_try,
        "without_try",
        ("kept, end, *node.finalbody, back]", "kept, end, back]"),
    ),
    edit(
        "what stands under else is forgotten",
        desugar_try,
        "without_try",
        ("return [begin, *node.body, end, *node.orelse]", "return [begin, *node.body, end]"),
    ),
    edit(
        "a handler that returns is taken to raise",
        desugar_try,
        "_only_raises",
        ("isinstance(handler.body[-1], ast.Raise) and not any(map(_escapes, handler.body))", "True"),
    ),
    edit(
        "a break leaves a with behind",
        Exits,
        "_of",
        ("case ast.Break() | ast.Continue() if not in_loop:", "case ast.Break() | ast.Continue() if False:"),
    ),
    edit(
        "a break of a loop inside leaves the with",
        Exits,
        "_of",
        ("stmt.body = self.all_of(stmt.body, in_loop=True)", "stmt.body = self.all_of(stmt.body, in_loop=in_loop)"),
    ),
    edit(
        "a with that falls through is not left",
        desugar_with,
        "without_with",
        ("if not always_escapes(found):", "if False:"),
    ),
    edit(
        "what is returned is computed after the with",
        Exits,
        "_of",
        (
            "return [_assign(stmt, name, value), self.leave(stmt), _at(stmt, ast.Return(_load(value, name)))]",
            "return [self.leave(stmt), stmt]",
        ),
    ),
)

CALLER = likely(
    "tests/language/test_caller_state.py tests/runtime/test_guards.py",
    edit(
        "an integer of the caller is a constant",
        caller_objects,
        "note_key",
        ("if isinstance(before, StaticValue) and", "if False and"),
    ),
    edit(
        "a number that is written is taken to be as before",
        Collector,
        "_same",
        ("return bool(resolved(self.cx, value.expr) == resolved(self.cx, before.expr))", "return True"),
    ),
    edit(
        "an item that is removed stays",
        Collector,
        "_items",
        ("removed = tuple(key for key in initial if key not in content.keys)", "removed = ()"),
    ),
    edit(
        "of a list of the caller the items are not read",
        caller_objects,
        "look_into",
        ("if not is_tail(cx, value):", "if True:"),
    ),
    edit(
        "what is set on some paths alone is not refused",
        results,
        "mutations_of",
        ("if content is not owned.initial:", "if content is owned.initial:"),
    ),
    edit(
        "a written object with two names is not refused",
        stored_state,
        "_check_aliases",
        ("> is_argument", "> 9"),
        in_text=False,
    ),
    edit(
        "a derivative that goes on in a later call is not refused",
        stored_state,
        "check",
        ("_check_carried(program)", "pass"),
        in_text=False,
    ),
    edit(
        "a variable that comes to be later is taken not to be there",
        written_captures,
        "_variable_cell",
        ('watch(cx, ("unbound", variable.path), partial(_is_unbound, variable.getter))', "pass"),
        in_text=False,
    ),
)
