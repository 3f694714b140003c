"""What `inspect` shows: the programs, and the report of what is active and recorded."""

from __future__ import annotations

from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tapegen import differentiable
from tapegen.analysis.shape_inference import Shapes
from tapegen.backend.printer.module import emit
from tapegen.backend.printer.source import PythonSource
from tapegen.errors import BadArgument, NotDifferentiable, Span
from tapegen.ir import intrinsics
from tapegen.ir.nodes import Assign, Call, Const, Function, Push, Return, Var
from tapegen.ir.types import FLOAT, INT, Array, ListOf
from tapegen.pipeline import inspection
from tapegen.pipeline.inspection import AvailableValue, Inspection, Report, report_of

VECTOR, MATRIX = Array("float64", 1), Array("float64", 2)
u0, k, n = Var("u0", VECTOR), Var("k", FLOAT), Var("n", INT)
u, r, v, energy, m = Var("u", VECTOR), Var("r", FLOAT), Var("v", FLOAT), Var("energy", FLOAT), Var("m", INT)


def dim(array: Var, axis: int = 0) -> Call:
    return Call(intrinsics.dim, (array, Const(axis)), (), INT)


def stages(tmp_path: Any) -> Any:
    """A stand-in for the stages of a small program, with one tape of each kind."""
    file = tmp_path / "heat.py"
    file.write_text("def march(u0, k, n):\n    u = u0 * 2.0\n    r = u[0] < k\n")
    copied = Assign((u,), Call(np.copy, (u0,), (), VECTOR), Span(str(file), 2, 4, 2, 16))
    counted = Assign((m,), Call(max, (Call(np.size, (u0,), (), INT), Const(3)), (), INT))
    read = Assign((r,), Call(np.sum, (u,)), Span(str(file), 3, 4, 3, 16))
    lowered = Function("march", (u0, k, n), (copied, counted, read, Assign((energy,), r), Return((energy, u))))
    extent = (0, ((("param", "u0", 0), 1),))
    tapes = [
        SimpleNamespace(var=r, store=Var("r_tape", MATRIX), shape=(n, dim(u)), exact=True),
        SimpleNamespace(var=v, store=Var("v_tape", MATRIX), shape=(Const(64), dim(u)), exact=False),
        SimpleNamespace(var=u, store=Var("u_tape", ListOf(VECTOR)), shape=(), exact=False),
    ]
    for tape in tapes:
        tape.scope = SimpleNamespace(chain=())
    decisions = [
        SimpleNamespace(var=energy, way="live", why="defined once"),
        SimpleNamespace(var=k, way="recompute", why="cheap"),
        *(SimpleNamespace(var=tape.var, way="record", why="overwritten in each iteration") for tape in tapes),
        SimpleNamespace(var=Var("unread", FLOAT), way="record", why="its reads were tidied away"),
    ]
    return SimpleNamespace(
        lowered=lowered,
        expanded=lowered,
        sweeps=SimpleNamespace(backward=(Assign((k,), Const(0.0)),)),
        recorded=SimpleNamespace(forward=(Push("r", r),), backward=()),
        joint=Function("march_value_and_grad", (u0, k, n), (Return((k,)),)),
        record=Function("march_record", (u0, k, n), (Return((energy,)),), doc=("a < b & c",)),
        pullback=Function("march_pullback", (u0, Var("energy_bar", FLOAT)), (Return((u0,)),)),
        kept=(r, u0),
        cuts=(),
        wrt=(u0, k),
        decisions=decisions,
        tapes=tapes,
        facts=SimpleNamespace(
            activity=SimpleNamespace(active=frozenset({r, u, k, u0, energy}), useful=frozenset({energy, r, u0})),
            scopes=SimpleNamespace(assigns={u: [copied], r: [read], m: [counted]}),
            shapes=Shapes({u0: (extent,), u: (extent,)}),
        ),
    )


def specialization(monkeypatch: pytest.MonkeyPatch, function: Function, refusal: str = "") -> Any:
    """A stand-in for the specialization, whose programs are printed as they are."""

    def compiled_text(_: Any, program: Function, **_options: Any) -> PythonSource:
        if refusal:
            raise NotDifferentiable(refusal)
        return emit(program, decorator="njit")

    monkeypatch.setattr(inspection, "readable_text", lambda _, program: emit(program))
    monkeypatch.setattr(inspection, "compiled_text", compiled_text)
    monkeypatch.setattr(inspection, "stage_text", lambda _, stages, stage: f"{stages.joint.name} after {stage}")
    monkeypatch.setattr(inspection, "verdicts", lambda _, program: [])
    return SimpleNamespace(primal=function, pushed=function, short_axes=())


def test_sizes_follow_from_the_arguments(tmp_path: Any) -> None:
    report = report_of(stages(tmp_path), [np.ones(10), 0.5, 7])
    sizes = {value.name: (value.way, value.size, value.bytes) for value in report.values}
    assert sizes == {
        "r": ("record", "8 * n * u.shape[0]", 560),
        "v": ("record", "8 * u.shape[0] per pass", None),
        "u": ("record", "a list of arrays", None),
        "k": ("recompute", "", 0),
        "energy": ("live", "", 0),
    }
    assert [(copy.name, copy.bytes) for copy in report.copies] == [("u0", 80)]
    assert report.recorded_bytes is None


def test_sizes_are_formulas_without_arguments(tmp_path: Any) -> None:
    program = stages(tmp_path)
    program.tapes[1:] = []
    assert [(value.size, value.bytes) for value in report_of(program).recorded] == [("8 * n * u.shape[0]", None)]
    assert report_of(program, [np.ones(4), 0.5, 2]).recorded_bytes == 64
    program.tapes[0].shape = (m, Call(max, (n, Const(0)), (), INT))
    assert report_of(program, [np.ones(4), 0.5, -2]).recorded_bytes == 0
    program.tapes.clear()
    assert report_of(program).recorded_bytes == 0


def test_the_report_names_what_is_active_in_the_order_of_the_program(tmp_path: Any) -> None:
    report = report_of(stages(tmp_path), [np.ones(10), 0.5, 7])
    assert (report.inputs, report.results) == (("u0", "k"), ("energy",))
    assert report.active == ("u0", "k", "u", "r", "energy")


def test_the_report_prints_as_a_table(tmp_path: Any) -> None:
    program = stages(tmp_path)
    program.tapes[1:] = []
    assert str(report_of(program, [np.ones(10), 0.5, 700])).splitlines() == [
        "march",
        "",
        "  derivative of    energy",
        "  with respect to  u0, k",
        "  active           u0, k, u, r, energy",
        "  recorded         56,000 bytes",
        "  live             energy",
        "",
        "  value  how                       bytes   why                                                line",
        "  r      recorded                  56,000  overwritten in each iteration                      3: r = u[0] < k",
        "  k      recomputed                        cheap",
        "  u0     copied by the split form  80      the caller may change it before the pullback runs",
    ]


def test_nothing_recorded_is_said_so() -> None:
    report = Report("f", ("x",), ("y",), ("x", "y"), (AvailableValue("x", "live", "never overwritten"),))
    assert "recorded         nothing" in str(report)
    assert report.rows() == []


def test_an_inspection_prints_the_pair_and_keeps_the_rest(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    program = stages(tmp_path)
    looked = Inspection(specialization(monkeypatch, program.lowered), program, [np.ones(10), 0.5, 7])
    shown = str(looked)
    assert shown.index(str(looked.report)) < shown.index("# ---- forward ---")
    assert shown.index(looked.forward) < shown.index("# ---- backward ---") < shown.index(looked.backward)
    assert looked.primal.startswith("import numpy as np\n\n\ndef march(u0, k, n):\n")
    assert "@njit\ndef march_value_and_grad" in looked.compiled
    assert looked.joint.startswith("def march_value_and_grad(u0, k, n):")
    assert list(looked.stages)[:2] == ["lower", "expand_formulas"]
    assert looked.stages["lower"].startswith("def march(u0: float64[:], k: float64, n: int64):")
    assert looked.stages["fuse_loops"] == "march_value_and_grad after fuse_loops"
    with pytest.raises(KeyError, match="'fuse' is no stage; there are lower, expand_formulas, "):
        looked.stages["fuse"]
    assert repr(looked).startswith("<inspection of march:")


def test_a_program_without_compiled_form_says_why(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    program = stages(tmp_path)
    looked = Inspection(specialization(monkeypatch, program.lowered, "np.fft.fft has no compiled form here."), program)
    assert looked.compiled == "# np.fft.fft has no compiled form here.\n"


@pytest.mark.parametrize(
    "part", ["a &lt; b &amp; c", "march_pullback", "<td", "r = u[0] &lt; k", "<details><summary>joint"]
)
def test_html_is_escaped_and_complete(tmp_path: Any, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = stages(tmp_path)
    shown = Inspection(specialization(monkeypatch, program.lowered), program)._repr_html_()
    assert part in shown
    assert "a < b" not in shown
    assert shown.count("<table") == shown.count("</table>")


class Nesting(HTMLParser):
    """Checks that every tag is closed by its own, inside what may hold it; collects what is shown."""

    HOLDERS = {"tr": "table", "td": "tr", "th": "tr", "summary": "details"}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.shown: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag not in self.HOLDERS or self.open[-1] == self.HOLDERS[tag]
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.shown.append(data)


def test_html_is_well_formed_and_shows_the_very_texts(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    program = stages(tmp_path)
    looked = Inspection(specialization(monkeypatch, program.lowered), program, [np.ones(10), 0.5, 7])
    page = Nesting()
    page.feed(looked._repr_html_())
    page.close()
    assert page.open == []
    for text in (looked.forward, looked.backward, looked.primal, looked.joint, looked.compiled):
        assert text.removesuffix("\n") in "".join(page.shown)


def sum_of_squares(x: Any) -> Any:
    return np.sum(x * x)


def test_sources_of_the_last_specialization_used() -> None:
    derived = differentiable(sum_of_squares, backend="python")
    with pytest.raises(BadArgument, match="has not been called yet"):
        _ = derived.backward_source
    looked = derived.inspect(np.array([3.0, 1.0, 2.0, 0.5]))
    assert derived.forward_source == looked.forward
    assert derived.backward_source == looked.backward
