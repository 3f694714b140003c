"""Calls of everything that has a handler, with every parameter of its signature, by position and by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Parameters(NamedTuple):
    """How a function or method is called.

    Attributes
    ----------
    call : str
        The function; or the receiver and the method.
    first : tuple of str
        Arguments that have no name and must be given.
    named : dict
        Those that have a name and a place, in order; of a name that begins with `_` the place alone.
    only : dict
        Those that have a name alone.
    needs : int
        How many of `named` must be given.
    shown : str
        What the program makes of the result.
    """

    call: str
    first: tuple[str, ...]
    named: dict[str, str]
    only: dict[str, str]
    needs: int
    shown: str

    def calls(self) -> Iterator[str]:
        """Each parameter once by position and once by name."""
        named = list(self.named.items())
        least = [*self.first, *(text for _, text in named[: self.needs])]
        for k in range(self.needs, len(named) + 1):
            yield self.written([*self.first, *(text for _, text in named[:k])])
        for name, text in (*named[self.needs :], *self.only.items()):
            if not name.startswith("_"):
                yield self.written([*least, f"{name}={text}"])
        if self.needs and not named[0][0].startswith("_"):
            yield self.written([*self.first, *(f"{name}={text}" for name, text in named[: self.needs])])

    def written(self, arguments: list[str]) -> str:
        return self.shown.format(f"{self.call}({', '.join(arguments)})")


def of(
    call: str,
    *first: str,
    needs: int = 0,
    only: dict[str, str] | None = None,
    shown: str = "{}",
    **named: str,
) -> Parameters:
    return Parameters(call, first, named, only or {}, needs, shown)


LIST, ARRAY = "[v[0], v[1], s]", "np.array([[s, v[0]], [v[1], 2.0]])"
MISSING = "np.array([s, np.nan, np.inf, -np.inf])"
ITEMS, EACH = "list({})", "[x for x in {}]"

FUNCTIONS = [
    # ---- builtins
    of("abs", "-s"),
    of("round", needs=1, number="1.0625 * s", ndigits="1"),
    of("divmod", "s", "0.75"),
    of("pow", needs=2, base="s", exp="3", mod="None"),
    of("pow", needs=2, base="7", exp="3", mod="5", shown="{} * s"),
    of("operator.pow", "s", "2"),
    *(of(f"operator.{name}", "s", "v[0]") for name in ("add", "sub", "mul", "truediv", "floordiv", "mod")),
    of("operator.matmul", "v", "v"),
    of("int", "'12'", base="8", shown="{} * s"),
    of("int", "s", base="8", shown="{} * s"),
    of("float", _x="s"),
    of("bool", _x="s", shown="{} * s"),
    of("max", "v", only={"key": "abs", "default": "s"}),
    of("min", "v", only={"key": "abs", "default": "s"}),
    of("max", "[]", only={"default": "s"}),
    of("max", "s", "v[0]", "v[1]", only={"key": "abs", "default": "s"}),
    of("sum", "v", start="s"),
    of("sum", LIST, start="s"),
    of("sum", "[x * x for x in v]", start="s"),
    of("sum", "(x * x for x in v)", start="s"),
    of("all", "[s > 0.0, v[0] > 5.0]", shown="{} * s"),
    of("any", "[s > 0.0, v[0] > 5.0]", shown="{} * s"),
    of("isinstance", "s", "float", shown="{} * s"),
    of("type", "s", _bases="()", _dict="{}", shown="({} is float) * s"),
    of("callable", "len", shown="{} * s"),
    of("getattr", "v", "'ndim'", _default="4", shown="{} * s"),
    of("getattr", "v", "'nothing'", _default="s"),
    of("hasattr", "v", "'ndim'", shown="{} * s"),
    of("setattr", "point", "'x'", "s", shown="({}, point.x)[1]"),
    of("str", object="2", encoding="'utf8'", errors="'strict'", shown="len({}) * s"),
    of("repr", "2", shown="len({}) * s"),
    of("format", "2", _format_spec="'5d'", shown="len({}) * s"),
    of("slice", "1", _stop="3", _step="2", shown="v[{}]"),
    of("functools.partial", "pow", "s", "2", shown="{}()"),
    of("functools.partial", "pow", "s", only={"exp": "2"}, shown="{}()"),
    of("range", "1", _stop="6", _step="2", shown="[s * k for k in {}]"),
    of("enumerate", needs=1, iterable="v", start="3", shown="[k * x for k, x in {}]"),
    of("zip", "v", "v[1:]", only={"strict": "True"}, shown="[a * b for a, b in {}]"),
    of("zip", "v", "v", only={"strict": "True"}, shown="[a * b for a, b in {}]"),
    of("reversed", "v", shown=EACH),
    of("iter", "v", shown=EACH),
    of("next", "iter(v)", _default="s"),
    of("map", "abs", "v", shown=EACH),
    of("len", "v", shown="{} * s"),
    of("list", _iterable="v"),
    of("tuple", _iterable="(v[0], s)"),
    of("set", _iterable="(1, 2, 2)", shown="len({}) * s"),
    of("frozenset", _iterable="(1, 2, 2)", shown="len({}) * s"),
    of("dict", _mapping="{'a': s}", only={"b": "v[0]"}),
    of("dict.fromkeys", "('a', 'b')", _value="s"),
    of("sorted", "v", only={"key": "abs", "reverse": "True"}),
    of("sorted", "{3, 1, 2}", only={"key": "abs", "reverse": "True"}, shown="[s * k for k in {}]"),
    of("vars", _object="point", shown="{}['x']"),
    # ---- the standard library
    of("functools.reduce", "operator.mul", "v", _initial="s"),
    of("bisect.bisect_left", needs=2, a="v", x="s", lo="1", hi="2", only={"key": "abs"}, shown="{} * s"),
    of("bisect.bisect_right", needs=2, a="v", x="s", lo="1", hi="2", only={"key": "abs"}, shown="{} * s"),
    of("heapq.nsmallest", needs=2, n="2", iterable=LIST, key="abs"),
    of("heapq.nlargest", needs=2, n="2", iterable=LIST, key="abs"),
    of("heapq.heappush", "made", "s", shown="({}, made)[1]"),
    of("heapq.heappop", "made"),
    of("heapq.heapify", "made", shown="({}, made)[1]"),
    of("inspect.getfullargspec", needs=1, func="Point.__init__", shown="len({}.args) * s"),
    of("np.atleast_1d", "s", shown="np.sum({})"),
    of("np.atleast_2d", "v", "s", shown="np.sum({}[1]) * v[0]"),
    of("np.atleast_3d", "v", shown="np.sum({})"),
    of("copy.copy", needs=1, x=LIST),
    of("copy.deepcopy", needs=1, x=LIST, memo="None"),
    of("dataclasses.replace", "point", only={"x": "s"}, shown="{}.x"),
    of("dataclasses.fields", needs=1, class_or_instance="point", shown="len({}) * s"),
    of("dataclasses.asdict", needs=1, obj="point", only={"dict_factory": "dict"}),
    of("dataclasses.astuple", needs=1, obj="point", only={"tuple_factory": "list"}),
    of("statistics.fmean", needs=1, data="v", weights="[1.0, 2.0, s]"),
    of("statistics.mean", needs=1, data="v"),
    *(of(f"statistics.{name}", needs=1, data="v", xbar="s") for name in ("variance", "stdev")),
    *(of(f"statistics.{name}", needs=1, data="v", mu="s") for name in ("pvariance", "pstdev")),
    of("statistics.median", needs=1, data="v"),
    of(
        "np.vectorize",
        needs=1,
        pyfunc="abs",
        otypes="[np.float64]",
        doc="''",
        excluded="{0}",
        cache="True",
        signature="'()->()'",
        shown="{}(v)",
    ),
    of("math.prod", "v", only={"start": "s"}),
    of("math.prod", LIST, only={"start": "s"}),
    of("math.hypot", "s", "v[0]", "v[1]"),
    of("itertools.product", "v", "[1, 2]", only={"repeat": "2"}, shown="[s * len(p) + p[0] for p in {}]"),
    of("itertools.combinations", needs=2, iterable="v", r="2", shown="[a * b for a, b in {}]"),
    of("itertools.combinations_with_replacement", needs=2, iterable="v", r="2", shown="[a * b for a, b in {}]"),
    of("itertools.permutations", needs=1, iterable="v", r="2", shown="[p[0] * p[1] for p in {}]"),
    of("itertools.pairwise", "v", shown="[a * b for a, b in {}]"),
    of("itertools.chain", "v", LIST, shown=EACH),
    of("itertools.chain.from_iterable", "[v, v]", shown=EACH),
    of("itertools.accumulate", needs=1, iterable="v", func="operator.mul", only={"initial": "s"}, shown=ITEMS),
    of("itertools.starmap", "operator.mul", "[(s, v[0]), (s, s)]", shown=EACH),
    of("itertools.islice", "v", "2", shown=EACH),
    of("itertools.islice", "v", "1", "3", _step="2", shown=EACH),
    of("itertools.zip_longest", "v", "(s,)", only={"fillvalue": "s"}, shown="[a for a, b in {}]"),
    of("itertools.repeat", needs=1, object="s", times="3", shown="[a * b for a, b in zip(v, {})]"),
    of("itertools.cycle", "v", shown="[a * b for a, b in zip(v, {})]"),
    of("itertools.count", start="2", step="3", shown="[a * b for a, b in zip(v, {})]"),
    # ---- NumPy: what looks at types and shapes
    of("np.poly", needs=1, seq_of_zeros="v"),
    of(
        "np.polyfit", "1.0 * np.arange(len(v))", "v", needs=1, deg="1", rcond="1e-9", full="False", w="None", cov="True"
    ),
    of("np.percentile", needs=2, a="v", q="s * 20.0", axis="0", only={"keepdims": "True", "method": "'linear'"}),
    of("np.nanpercentile", needs=2, a="v", q="[20.0, 70.0]", axis="0", only={"keepdims": "True", "method": "'lower'"}),
    of("np.ndim", needs=1, a="v", shown="{} * s"),
    of("np.shape", needs=1, a="v", shown="{}[0] * s"),
    of("np.size", needs=1, a=ARRAY, axis="0", shown="{} * s"),
    of("np.indices", needs=1, dimensions="(2, 3)", dtype="float", sparse="True", shown="{}[0] * s"),
    *(of(f"np.{name}", needs=1, **{word: "v"}, shown="{} * s") for name, word in (("isscalar", "element"),)),
    of("np.iscomplexobj", needs=1, x="v", shown="{} * s"),
    of("np.isrealobj", needs=1, x="v", shown="{} * s"),
    of("np.finfo", "np.float32", shown="{}.eps * s"),
    of("np.iinfo", "np.int32", shown="{}.max * s"),
    of("np.dtype", needs=1, dtype="'f4'", align="True", copy="True", shown="{}.itemsize * s"),
    of("np.issubdtype", needs=2, arg1="np.float32", arg2="np.floating", shown="{} * s"),
    of("np.result_type", "v", "np.float32", shown="np.zeros(2, {}) * s"),
    of("np.promote_types", "np.float32", "np.int32", shown="np.zeros(2, {}) * s"),
    of("np.can_cast", needs=2, from_="np.float64", to="np.float32", casting="'same_kind'", shown="{} * s"),
    of("np.broadcast_shapes", "(3, 1)", "(2,)"),
    of("np.broadcast_shapes", "()", "()"),
    of("np.emath.sqrt", x="v * v"),
    of("np.emath.log", x="v * v"),
    of("np.emath.log2", x="v * v"),
    of("np.emath.log10", x="v * v"),
    of("np.emath.logn", n="2", x="v * v"),
    of("np.emath.power", x="v * v", p="1.5"),
    of("np.emath.arccos", x="v / 100.0"),
    of("np.emath.arcsin", x="v / 100.0"),
    of("np.emath.arctanh", x="v / 100.0"),
    of("np.ix_", "[0, 1]", "[1, 0]", shown=f"{ARRAY}[{{}}]"),
    of("np.ndindex", "2", "3", shown="[s * i + j for i, j in {}]"),
    of("np.ndenumerate", needs=1, arr=ARRAY, shown="[i[0] + x for i, x in {}]"),
    of("np.diag_indices", needs=1, n="2", ndim="2", shown=f"{ARRAY}[{{}}]"),
    # ---- NumPy: arrays out of what is there
    of("np.asarray", needs=1, a=LIST, dtype="np.float32", order="'F'", only={"copy": "True", "device": "None"}),
    of("np.asarray", needs=1, a=ARRAY, dtype="np.float32", order="'F'", only={"copy": "True", "like": "None"}),
    of("np.asanyarray", needs=1, a=ARRAY, dtype="np.float32", order="'F'", only={"copy": "True"}),
    of("np.ascontiguousarray", needs=1, a=f"{ARRAY}.T", dtype="np.float32"),
    of("np.asfortranarray", needs=1, a=ARRAY, dtype="np.float32"),
    of("np.array", "v", _dtype="np.float32", only={"copy": "True", "order": "'F'", "subok": "True", "ndmin": "2"}),
    of("np.array", LIST, _dtype="np.float32", only={"copy": "None", "order": "'F'", "subok": "True", "ndmin": "2"}),
    of("np.copy", needs=1, a=f"{ARRAY}.T", order="'F'", only={"subok": "True"}),
    of("np.astype", "v", "np.float32", only={"copy": "False", "device": "None"}),
    of("np.real", needs=1, val="v"),
    of("np.imag", needs=1, val="v"),
    of("np.angle", needs=1, z="v - 1.0", deg="True"),
    of("np.conjugate", "v", only={"dtype": "np.float32", "casting": "'same_kind'", "order": "'C'", "where": "v > 1.0"}),
    of("np.real_if_close", needs=1, a="v", tol="10"),
    of("np.squeeze", needs=1, a="v[None]", axis="0"),
    of("np.unstack", "v", only={"axis": "0"}, shown="{}[0]"),
    of("np.where", "v > 1.0", "v", "s"),
    of("np.reshape", needs=2, a=ARRAY, shape="(4,)", order="'F'", only={"copy": "True"}),
    of("np.pad", needs=2, array="v", pad_width="1", mode="'mean'", only={"stat_length": "2"}),
    of("np.pad", needs=2, array="v", pad_width="1", mode="'reflect'", only={"reflect_type": "'odd'"}),
    of("np.pad", needs=2, array="v", pad_width="1", only={"constant_values": "s"}),
    of(
        "np.lib.stride_tricks.sliding_window_view",
        needs=2,
        x="v",
        window_shape="2",
        axis="0",
        only={"subok": "False", "writeable": "False"},
    ),
    of("np.diff", needs=1, a="v", n="2", axis="0", prepend="s", append="4.0"),
    of("np.delete", needs=2, arr="v", obj="slice(0, 2)", axis="0"),
    of("np.insert", needs=3, arr="v", obj="1", values="s", axis="0"),
    of("np.transpose", needs=1, a="v[None]", axes="(1, 0)"),
    of(
        "np.nan_to_num",
        needs=1,
        x=MISSING,
        copy="True",
        nan="3.0",
        posinf="4.0",
        neginf="5.0",
        shown="np.clip({}, -9.0, 9.0)",
    ),
    *(
        of(f"np.{name}", needs=2, a="v", q="0.3", axis="0", only={"method": "'lower'", "keepdims": "True"})
        for name in ("quantile", "nanquantile")
    ),
    *(
        of(
            f"np.{name}",
            needs=1,
            a="v",
            axis="0",
            dtype="np.float32",
            out="np.zeros(())",
            ddof="1",
            keepdims="True",
            only={"where": "v > 0.5", "mean": "np.mean(v, keepdims=True)", "correction": "1"},
        )
        for name in ("var", "std", "nanvar", "nanstd")
    ),
    *(
        of(
            f"np.{name}",
            needs=1,
            a="v",
            dtype="np.float32",
            order="'F'",
            subok="False",
            shape="(2, 3)",
            only={"device": "None"},
            shown="{} * s",
        )
        for name in ("zeros_like", "ones_like")
    ),
    of(
        "np.empty_like",
        needs=1,
        a="v",
        dtype="np.float32",
        order="'F'",
        subok="False",
        shape="(4,)",
        shown="{}.size * s",
    ),
    of("np.full_like", needs=2, a="v", fill_value="s", dtype="np.float32", order="'F'", subok="False", shape="(4,)"),
    of("np.matmul", ARRAY, ARRAY, only={"axes": "[(0, 1), (1, 0), (0, 1)]", "dtype": "np.float32", "order": "'F'"}),
    of("np.linalg.eig", needs=1, a="np.diag(v)", shown="np.real({}[0])"),
    of("np.linalg.eigvals", needs=1, a="np.diag(v)", shown="np.real({})"),
    of("np.roots", needs=1, p="np.array([1.0, -3.0, 1.5])", shown="np.real({}) * s"),
    of("np.linspace", needs=2, start="s", stop="9.0", num="4", endpoint="False", retstep="True", dtype="np.float32"),
    of("np.linspace", "v", "9.0", "4", only={"axis": "1", "device": "None"}),
    of("np.meshgrid", "v", "v[:2]", only={"copy": "True", "sparse": "True", "indexing": "'ij'"}),
    of("np.einsum", "'ii->i'", ARRAY, only={"optimize": "True", "dtype": "np.float32", "order": "'F'"}),
    *(
        of(f"np.{name}", needs=1, **{word: "[v, v]"}, only={"dtype": "np.float32", "casting": "'same_kind'"})
        for name, word in (("vstack", "tup"), ("hstack", "tup"), ("column_stack", "tup"))
    ),
    of("np.stack", needs=1, arrays="[v, v]", axis="1", out="np.zeros((3, 2))", only={"dtype": "np.float32"}),
    of("np.concatenate", "[v, v]", _axis="0", only={"dtype": "np.float32", "out": "np.zeros(6)"}),
    of("np.errstate", only={"divide": "'ignore'"}, shown="({}, s)[1]"),
    # ---- derivatives changed on the way
    of("tg.stop_gradient", needs=1, x="v", shown="({}[0] > 0.0, s)"),
    of("tg.scale_gradient", needs=2, x="v", factor="1.0", shown="{} * v"),
    of("tg.clip_gradient", needs=3, x="v", low="-9.0", high="9.0"),
]

METHODS = [
    *(of(f"v.{name}", axis="0", dtype="np.float32", out="np.zeros(())", keepdims="True") for name in ("sum", "prod")),
    of("v.sum", only={"initial": "s", "where": "v > 1.0"}),
    of("v.mean", axis="0", dtype="np.float32", out="np.zeros(())", keepdims="True", only={"where": "v > 0.5"}),
    *(
        of(f"v.{name}", axis="0", dtype="np.float32", out="np.zeros(())", ddof="1", keepdims="True")
        for name in ("std", "var")
    ),
    *(of(f"v.{name}", axis="0", out="np.zeros(())", keepdims="True", initial="s") for name in ("min", "max")),
    *(
        of(f"v.{name}", axis="0", out="None", only={"keepdims": "True"}, shown="{} * s")
        for name in ("argmin", "argmax")
    ),
    of("v.argsort", axis="0", kind="'stable'", order="None", only={"stable": "True"}, shown="{} * s"),
    of("v.argpartition", needs=1, kth="1", axis="0", kind="'introselect'", order="None", shown="{} * s"),
    *(of(f"v.{name}", axis="0", dtype="np.float32", out="np.zeros(3)") for name in ("cumsum", "cumprod")),
    *(of(f"(v > 1.0).{name}", axis="0", out="None", keepdims="True", shown="{} * s") for name in ("any", "all")),
    of(f"{ARRAY}.trace", offset="1", axis1="1", axis2="0", dtype="np.float32", out="np.zeros(())"),
    of("v[None].squeeze", axis="0"),
    of("v.clip", min="0.5", max="s", out="np.zeros(3)"),
    of("v.round", decimals="1", out="np.zeros(3)"),
    of(f"{ARRAY}.diagonal", offset="1", axis1="1", axis2="0"),
    of("v.dot", needs=1, b="v", out="np.zeros(())"),
    of("v.repeat", needs=1, repeats="2", axis="0"),
    of("v.take", needs=1, indices="[0, 2]", axis="0", out="np.zeros(2)", mode="'wrap'"),
    of("(v > 1.0).nonzero", shown="{}[0] * s"),
    of("v.searchsorted", needs=1, v="1.0", side="'right'", sorter="[0, 1, 2]", shown="{} * s"),
    of(f"{ARRAY}.copy", order="'F'"),
    of(f"{ARRAY}.ravel", order="'F'"),
    of(f"{ARRAY}.swapaxes", "0", "1"),
    of("np.array([0, 1, 0]).choose", needs=1, choices="[v, 2.0 * v]", out="np.zeros(3)", mode="'wrap'"),
    of("room.put", "[0]", "s", _mode="'wrap'", shown="({}, room)[1]"),
    of(f"{ARRAY}.T.copy", order="'F'"),
    of(f"{ARRAY}.reshape", "4", only={"order": "'F'", "copy": "True"}),
    of(f"{ARRAY}.reshape", "2", "2", only={"order": "'F'"}),
    of(f"{ARRAY}.transpose", "1", "0"),
    of("v.astype", needs=1, dtype="np.float32", order="'C'", casting="'unsafe'", subok="False", copy="False"),
    of(f"{ARRAY}.flatten", order="'F'"),
    of("room.fill", needs=1, value="s", shown="({}, room)[1]"),
    of("room.sort", axis="0", kind="'stable'", order="None", shown="({}, room * v)[1]"),
    of("room.partition", needs=1, kth="1", axis="0", kind="'introselect'", shown="({}, room * v)[1]"),
    of("v.compress", needs=1, condition="[True, False, True]", axis="0", out="np.zeros(2)"),
    of("v.view", dtype="np.float64", type="np.ndarray"),
    of("v.tolist"),
    of("v.item", "1"),
    of("v.conj"),
    of("v.conjugate"),
    of("v[0].astype", needs=1, dtype="np.float32", order="'C'", casting="'unsafe'", subok="False", copy="False"),
    of("v[0].item"),
    of("v[0].conj"),
    of("s.conjugate"),
    of("v[0].copy", order="'C'"),
    of("s.is_integer", shown="{} * s"),
    # ---- containers
    of("made.append", "s", shown="({}, made)[1]"),
    of("made.extend", "v", shown="({}, made)[1]"),
    of("made.pop", _index="0"),
    of("made.sort", only={"key": "abs", "reverse": "True"}, shown="({}, made)[1]"),
    of("made.insert", "1", "s", shown="({}, made)[1]"),
    of("made.reverse", shown="({}, made)[1]"),
    of("made.clear", shown="({}, made, s)[2]"),
    of("made.copy"),
    of("made.remove", "3.0", shown="({}, made)[1]"),
    of("made.index", "3.0", _start="0", _stop="9", shown="{} * s"),
    of("made.count", "3.0", shown="{} * s"),
    of("(3.0, 1.0).index", "1.0", _start="0", _stop="9", shown="{} * s"),
    of("(3.0, 1.0).count", "1.0", shown="{} * s"),
    of("pair._replace", only={"a": "s"}, shown="{}.a"),
    of("pair._asdict"),
    of("table.keys", shown="len([k for k in {}]) * s"),
    of("table.values", shown=EACH),
    of("table.items", shown="[x for _, x in {}]"),
    of("table.get", "'x'", _default="s"),
    of("table.copy"),
    of("table.update", _other="{'b': s}", only={"c": "v[1]"}, shown="({}, table)[1]"),
    of("table.setdefault", "'x'", _default="s"),
    of("table.pop", "'x'", _default="s"),
]
