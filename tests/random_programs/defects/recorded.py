"""Defects of tapes that record tensors, and of variables."""

from __future__ import annotations

from typing import Any

from tapegen.tape import clipping, gradient_tape
from tapegen.tape.engine import operations
from tapegen.tape.engine.operations import Operation
from tapegen.tape.gradient_tape import GradientTape
from tapegen.tape.tensors import accumulation, masked_zeros, records
from tapegen.tape.tensors.masked_zeros import Selected
from tapegen.tape.tensors.records import WideRecord
from tapegen.tape.tensors.variable import Part, Variable
from tests.random_programs.defects.switch import Defect, edit, likely

_TESTS = " ".join(f"tests/tape/test_{name}.py" for name in "values gradient operands context complex orders".split())


def _edit(name: str, owner: Any, function: str, *changes: tuple[str, str], unfound: str = "") -> Defect:
    return edit(name, owner, function, *changes, in_text=False, unfound=unfound)


DEFECTS = likely(
    _TESTS,
    _edit(
        "on a tape a zero times an infinite partial is NaN",
        accumulation,
        "strongly",
        ("if not _has_nan(term):", "if True:"),
    ),
    _edit(
        "on a tape a zero divided by zero is NaN",
        accumulation,
        "divided",
        ("if not strong or not _has_nan(term):", "if True:"),
    ),
    _edit(
        "computed zeros win on a tape",
        accumulation,
        "_where_used",
        ("if used.all():", "if not used.any():"),
        ("np.where(used, term, zero)", "np.where(term == term, term, zero)"),
    ),
    _edit(
        "the imaginary part stays in the gradient of a real tensor",
        accumulation,
        "unbroadcast",
        ('if term.dtype.kind == "c" and like.dtype.kind != "c":', "if False:"),
    ),
    _edit(
        "a contribution keeps its own dtype", accumulation, "unbroadcast", ("term = term.astype(like.dtype)", "pass")
    ),
    _edit(
        "a plain array that is overwritten later is kept as it is", records, "_pruned", ("value = value.copy()", "pass")
    ),
    _edit(
        "a plain array in a sequence is kept as it is",
        records,
        "_kept",
        ("return value if number else value.copy()", "return value"),
    ),
    _edit(
        "options that change later are kept as they are",
        records,
        "_options",
        ("_kept(value, 0, True) for name", "value for name"),
    ),
    _edit(
        "of several results all cotangents are needed",
        WideRecord,
        "_full_bars",
        ("if not self._is_several:", "if True:"),
    ),
    _edit(
        "a linear function keeps its constants on tangents",
        records.Record,
        "along",
        (" if name not in rule.constant", ""),
    ),
    _edit(
        "what is read twice gets the last contribution",
        gradient_tape,
        "sweep",
        ("term if held is None else held + term", "term"),
    ),
    _edit(
        "a target that stands twice counts once",
        GradientTape,
        "_swept",
        ("seed if held is None else held + seed", "seed"),
    ),
    _edit(
        "a reset tape goes on watching",
        GradientTape,
        "reset",
        ("self._records, self.tracked, self._watched = [], set(), {}", "self._records = []"),
    ),
    _edit(
        "an integer is watched",
        GradientTape,
        "_follow",
        ('if item._value.dtype.kind in "fc":', "if True:"),
        unfound="no operation contributes to the cotangent of an integer",
    ),
    _edit(
        "a pause within a pause ends both",
        GradientTape,
        "stop_recording",
        ("if not self._recording:  # nested", "if False:"),
    ),
    _edit("after a pause nothing is recorded", GradientTape, "stop_recording", ("self._start(place)", "pass")),
    _edit(
        "rows of Jacobians lie along the first axis",
        GradientTape,
        "batch_jacobian",
        ("np.stack(rows, axis=1)", "np.stack(rows, axis=0)"),
    ),
    _edit(
        "rows that depend on other rows are not refused",
        GradientTape,
        "_check_rows",
        ("for chosen in (marked, ~marked):", "for chosen in ():"),
    ),
    _edit(
        "a tape that is not persistent can be used twice", GradientTape, "_release", ("self._records = None", "pass")
    ),
    _edit(
        "variables that are not trainable are watched",
        GradientTape,
        "read",
        ("self._watches_variables and variable._trainable and", "self._watches_variables and"),
    ),
    _edit("complex cotangents are not conjugated", GradientTape, "_told", ("return np.conj(bar) if", "return bar if")),
    _edit(
        "a variable keeps the array that it was given",
        Variable,
        "assign",
        ("new if isinstance(value, Traced) else np.array(new)", "new"),
    ),
    _edit(
        "a variable takes any type",
        Variable,
        "_changed",
        ('if not np.can_cast(new.dtype, self.dtype, "same_kind"):', "if False:"),
    ),
    _edit("a variable takes any shape", Variable, "_changed", ("if new.shape != self.shape:", "if False:")),
    _edit(
        "assigning elements changes what was read",
        Variable,
        "_set",
        ("array = self._value.copy()", "array = self._value"),
    ),
    _edit(
        "elements are added to what was read",
        Part,
        "assign_add",
        ("self._now() + _plain(delta)", "self._value + _plain(delta)"),
    ),
    _edit(
        "the norm of zeros has a derivative that is NaN",
        clipping,
        "clip_by_norm",
        ("np.where(positive, squares, np.ones_like(squares))", "squares"),
        unfound="the zero that the outer choice leaves wins over the infinite derivative of the root",
    ),
    _edit(
        "a norm that is not finite scales to zero",
        clipping,
        "clip_by_global_norm",
        ("scale = scale + (norm - norm)", "pass"),
    ),
    _edit(
        "a choice is taken not to select on a tape", Selected, "_through_partials", ("if func in CHOOSING or (", "if (")
    ),
    _edit(
        "pulling back several numbers is taken to give no zeros",
        Selected,
        "_follow",
        ("alone = len(self._seeds) == 1", "alone = True"),
    ),
    _edit(
        "a value that one use selects is taken not to be used",
        masked_zeros,
        "_join",
        ("before | used", "before & used"),
    ),
    _edit(
        "a rule that is registered later is not seen",
        operations,
        "operation_of",
        ("if found is None or found.rule is not rule_of(func):", "if found is None:"),
    ),
    _edit(
        "the body of a linear rule is given what it does not see",
        Operation,
        "_slice",
        ('if self.kind == "linear":', 'if self.kind == "partials":'),
    ),
)
