"""What programs are grown from: texts with holes.

NumPy 2.4 ends the process where operands of `ufunc.at` broadcast and where `out` of `cumsum` or
`accumulate` has another shape: neither is made here.

A hole is a letter in braces, filled from the values at hand:

A  floating array           V  of one axis        M  of two axes       R  of any rank, possibly of integers
S  real number              C  constant           I  integer           K  axis
B  condition                X  condition on an array, element by element (a mask)
L  list                     D  dict               P  dataclass instance
O  any value                Q  any number or array                     E  an expression of numbers or arrays
Z  complex value            F  function of one number                  G  of two
n  name to assign           T  place of an array  U  place of a number  s  subscript
J  integers that index      H  a list, W a dict, Y a dataclass instance to be changed
dt  dtype                   r  reduction          m  function of `math`         i  counter
same  what the last T is
"""

UNARY = (
    "np.sin np.cos np.tanh np.exp np.square np.arctan np.negative np.abs np.expm1 np.positive np.sinh np.cbrt "
    "np.reciprocal np.fabs np.deg2rad np.log1p np.sqrt np.log np.arcsinh np.sign np.floor np.conj np.real "
    "np.rint np.log2 np.exp2 np.sinc np.conjugate np.cosh np.tan"
).split()
MATH = "math.sin math.exp math.tanh math.sqrt math.atan math.fabs math.log math.cos math.erf".split()
BINARY = (
    "np.add np.subtract np.multiply np.maximum np.minimum np.divide np.hypot np.arctan2 np.logaddexp np.power "
    "np.fmax np.fmin np.copysign np.true_divide np.float_power np.mod np.fmod np.remainder np.floor_divide np.heaviside"
).split()
DTYPES = ["float", "np.float64", "np.float32", "complex", "int", "np.int32", "'f4'", "'f8'", "np.complex128"]
SUBSCRIPTS = (
    ["0", "-1", "1:", ":-1", "::-1", "::2", "1", "...", "None", ":", ":, 0", "0, :", ":, ::-1", "::-1, 1:", "..., 0"]
    + ["0, 0", "1, -1", ":, None", "..., None", "[0, -1]", "[0, 0, 1]", "-2::-1", "1:2", "5:", "::-2", ":1", "0:0"]
    + ["()", "-1, ...", "[1], :", "np.array([0, 1, 0])", "slice(1, None)", "..., ::-1", "None, ..., None"]
    + ["[0, 1], [1, 0]", ":, [0, -1]", "np.newaxis, 0", "-1:", "1::2", "[]"]
)
REDUCTIONS = ["sum", "mean", "max", "min", "prod", "std", "var"]

EXPRESSIONS = [
    # arithmetic
    *["{Q} + {Q}", "{Q} * {Q}", "{Q} - {Q}", "{Q} / {Q}", "{Q} * {C}", "{C} - {Q}", "{Q} ** 2", "{Q} ** {C}", "-{Q}"]
    * 2,
    *["{Q} // {C}", "{Q} % {C}", "{C} / {Q}", "{Q} * {I}", "{I} - {Q}", "abs({Q})", "+{Q}", "{M} @ {V}", "{V} @ {V}"],
    *["{M} @ {M}", "{M}.T @ {M}", "divmod({S}, {C})[1]", "{Q} * {X}", "{S} if {B} else {S}", "{A} if {B} else {A}"],
    *["{O} if {B} else {O}", "({E}) * ({E})", "({E}) + ({E})", "({E}) - {Q}", "{Q} * 2", "{Q} + {I}", "pow({S}, 2)"],
    # functions element by element
    *["{F}({Q})", "{F}({Q})", "{F}({E})", "{G}({Q}, {Q})", "{G}({Q}, {C})", "{G}({C}, {Q})", "np.clip({Q}, {C}, {C})"],
    *["np.where({X}, {Q}, {Q})", "np.where({X}, {F}({Q}), {C})", "{F}({A}, where={X}, out={A}.copy())"],
    *["np.clip({A}, None, {C})", "{A}.clip({C})", "{A}.clip(max={C})", "{A}.clip(min={S}, max=2.0)"],
    *["np.nan_to_num({Q})", "np.power({Q}, 2)", "np.select([{X}, {X}], [{Q}, {Q}], {C})", "{m}({S})", "{m}({S})"],
    *[
        "np.choose({I}, [{Q}, {Q}])",
        "np.piecewise({V}, [{X}], [lambda z: z * z, 0.5])",
        "np.interp({Q}, [-1.0, 0.5, 2.0], {V})",
    ],
    # reductions
    *["np.{r}({A})", "{A}.{r}()", "np.{r}({A}, axis={K})", "{A}.{r}({K})", "{A}.{r}(axis={K}, keepdims=True)"] * 2,
    *[
        "np.{r}({A}, keepdims=True)",
        "np.sum({A}, where={X})",
        "np.sum({A}, dtype=np.float64)",
        "np.sum({A}, initial={C})",
    ],
    *[
        "np.max({A}, initial={C})",
        "np.mean({A}, axis=({K}, {K}))",
        "np.cumsum({A}, axis={K})",
        "{V}.cumsum()",
        "np.cumprod({V})",
    ],
    *[
        "np.median({A})",
        "np.linalg.norm({A})",
        "np.linalg.norm({V}, 1)",
        "np.linalg.norm({M}, axis={K})",
        "np.average({V}, weights=np.abs({V}) + 1)",
    ],
    *[
        "np.ptp({A})",
        "np.add.reduce({A}, axis={K})",
        "np.multiply.reduce({V})",
        "np.add.accumulate({A})",
        "np.diff({A})",
    ],
    *[
        "np.diff({V}, prepend={C})",
        "np.percentile({A}, 30)",
        "np.quantile({V}, 0.4)",
        "np.trapezoid({V})",
        "np.add.reduceat({V}, [0, 1])",
    ],
    *["np.count_nonzero({X})", "np.argmax({V})", "np.nansum({A})", "np.max(np.abs({A}))", "np.logaddexp.reduce({V})"],
    *["sum({V})", "max({V})", "min({V})", "sum({V}, {C})", "max({S}, {S})", "min({S}, {C}, {S})", "max({V}, key=abs)"],
    # products
    *["np.dot({Q}, {Q})", "np.outer({V}, {V})", "np.inner({V}, {V})", "np.vdot({A}, {A})", "np.cross({V}, {V})"],
    *[
        "np.einsum('i,i->', {V}, {V})",
        "np.einsum('ij,j', {M}, {V})",
        "np.einsum('ij->ji', {M})",
        "np.tensordot({A}, {A}, axes=1)",
    ],
    *[
        "np.kron({V}, {V})",
        "np.matmul({M}, {V})",
        "np.convolve({V}, {V}, 'same')",
        "np.multiply.outer({V}, {V})",
        "np.trace({M})",
    ],
    *[
        "np.linalg.det({M} + 3 * np.eye(3))",
        "np.linalg.solve({M} + 4 * np.eye(3), {V})",
        "np.linalg.inv({M} + 4 * np.eye(3))",
    ],
    # views and shapes
    *["{A}[{s}]", "{A}[{s}]", "{A}[{s}]", "{A}.T", "{A}.reshape(-1)", "{A}.ravel()", "{A}.flatten()", "np.squeeze({A})"]
    * 2,
    *[
        "np.reshape({A}, (-1, 1))",
        "{A}.reshape(1, -1)",
        "np.transpose({A})",
        "np.swapaxes({A}, 0, -1)",
        "np.expand_dims({A}, {K})",
    ],
    *[
        "np.flip({A})",
        "{A}.copy()",
        "np.copy({A})",
        "np.diagonal({M})",
        "np.diag({V})",
        "np.diag({M})",
        "np.broadcast_to({Q}, (2, 3))",
    ],
    *[
        "np.atleast_1d({Q})",
        "np.atleast_2d({Q})",
        "np.asarray({Q})",
        "np.array({Q})",
        "np.array({Q}, copy=True)",
        "np.asanyarray({Q})",
    ],
    *[
        "np.ascontiguousarray({Q})",
        "np.asfortranarray({A})",
        "np.moveaxis({A}, 0, -1)",
        "{M}.diagonal()",
        "{A}.view()",
        "np.rot90({M})",
    ],
    *[
        "{M}[{J}]",
        "{V}[{J}]",
        "{V}[{X}]",
        "{A}[{X}]",
        "np.take({A}, {J})",
        "np.take({A}, {I}, axis={K})",
        "{A}.take({J}, axis={K})",
    ],
    *[
        "np.compress([True, False, True], {V})",
        "{A}.real",
        "{A}.flat[{I}]",
        "{V}[{I}]",
        "{V}[-{I}]",
        "{M}[{I}, {I}]",
        "{M}[{I}]",
    ],
    *[
        "{A}.item({I})",
        "{V}[0].item()",
        "{S}.item()",
        "np.sort({A})",
        "np.sort({A}, axis=0)",
        "np.roll({A}, 1)",
        "np.roll({A}, 1, axis={K})",
    ],
    *[
        "np.tril({M})",
        "np.triu({M}, 1)",
        "np.pad({V}, 1)",
        "np.repeat({A}, 2)",
        "np.tile({V}, 2)",
        "np.ediff1d({V})",
        "np.flatnonzero({X})",
    ],
    *[
        "np.concatenate([{V}, {V}])",
        "np.concatenate(({A}, {A}), axis={K})",
        "np.stack([{A}, {A}])",
        "np.stack(({A}, {A}), axis=-1)",
    ],
    *[
        "np.hstack([{V}, {V}])",
        "np.vstack([{V}, {V}])",
        "np.append({V}, {S})",
        "np.insert({V}, 1, {S})",
        "np.delete({V}, 0)",
    ],
    *[
        "np.column_stack(({V}, {V}))",
        "np.block([[{S}, {S}]])",
        "np.array([{S}, {S}])",
        "np.array([{S}, {C}, {S}])",
        "np.array([{V}, {V}])",
    ],
    *[
        "np.split({V}, [1])[0]",
        "np.meshgrid({V}, {V})[0]",
        "np.searchsorted(np.sort({V}), {C})",
        "np.gradient({V})",
        "{V}.repeat(2)",
    ],
    *[
        "np.fliplr({M})",
        "np.take_along_axis({V}, np.argsort({V}), 0)",
        "{V}[np.argsort({V})]",
        "np.partition({V}, 1)[0]",
    ],
    *[
        "np.lib.stride_tricks.sliding_window_view({V}, 2)",
        "np.unstack({M})[0]",
        "np.fft.fft({V})",
        "np.apply_along_axis(np.sum, 0, {M})",
    ],
    # making arrays
    *[
        "np.zeros(3)",
        "np.zeros_like({A})",
        "np.ones((2, 3))",
        "np.full(3, {S})",
        "np.full_like({A}, {S})",
        "np.empty(0)",
        "np.array({S})",
    ],
    *[
        "np.zeros(2, dtype=np.float32)",
        "np.linspace({S}, {C}, 3)",
        "np.arange(3)",
        "np.arange(3.0)",
        "np.eye(3) * {S}",
        "np.zeros((0, 3))",
    ],
    *[
        "np.zeros({A}.shape)",
        "np.ones(len({V}))",
        "np.zeros(3, dtype=int)",
        "np.array([{I}, 2, 1])",
        "np.array(0.0)",
        "np.ones((1, 1)) * {S}",
    ],
    # dtypes
    *[
        "{A}.astype({dt})",
        "np.float32({S})",
        "{Q} * np.float32(0.5)",
        "float({S})",
        "np.float64({S})",
        "int({S})",
        "complex({S}, {S})",
    ],
    *[
        "{A} + 1j * {A}",
        "{S} * 1j",
        "np.exp(1j * {Q})",
        "{Z}.real",
        "{Z}.imag",
        "np.abs({Z})",
        "{Z} * {Z}",
        "np.conj({Z})",
        "{Z}.conjugate()",
    ],
    *[
        "{Z} + {Q}",
        "abs({Z})",
        "np.angle({Z} + 3)",
        "{Z} * 2j",
        "round({S}, 1)",
        "bool({S} > 0)",
        "{X} * {Q}",
        "~{X}",
        "{X} & {X}",
        "{X} + {Q}",
    ],
    *["np.asarray({Q}, dtype={dt})", "np.array({Q}, dtype={dt})", "np.array({Q}, ndmin=2)", "np.result_type({A})"],
    # containers
    *[
        "[{Q}, {Q}]",
        "({Q}, {Q})",
        "[{S}, {S}, {S}]",
        "({A},)",
        "[]",
        "[{O}, {O}]",
        "({O}, {O}, {O})",
        "{{'a': {Q}, 'b': {Q}}}",
        "{{}}",
    ],
    *[
        "{L}[0]",
        "{L}[-1]",
        "{L}[{I}]",
        "{L}[1:]",
        "{L}[::-1]",
        "{L} + {L}",
        "{L} * 2",
        "list({L})",
        "tuple({L})",
        "sorted({V})",
        "len({L})",
    ],
    *[
        "sum({L})",
        "np.array({L})",
        "np.sum({L})",
        "np.stack({L})",
        "max({L})",
        "{L}.copy()",
        "[*{L}, {S}]",
        "list({V})",
        "{V}.tolist()",
    ],
    *[
        "{D}['a']",
        "{D}.get('a', {S})",
        "{D}.get('q', {Q})",
        "list({D}.values())",
        "sum({D}.values())",
        "dict({D})",
        "{{**{D}, 'c': {Q}}}",
    ],
    *[
        "{L}.pop()",
        "{L}.pop(0)",
        "{D}.pop('a')",
        "list(reversed({L}))",
        "[{Q} for _ in range(2)]",
        "[[{S}] * 2 for _ in range(2)]",
        "{L}.index({L}[0])",
    ],
    *[
        "[t * {C} for t in {V}]",
        "[{F}(t) for t in {L}]",
        "[t for t in {V} if t > {C}]",
        "sum(t * t for t in {V})",
        "[{V}[i] * i for i in range(len({V}))]",
    ],
    *[
        "np.array([t * t for t in {V}])",
        "{{k: t * {C} for k, t in {D}.items()}}",
        "sum([t for t in {L}], start={S})",
        "[row.sum() for row in {M}]",
    ],
    *[
        "[a * b for a, b in zip({V}, {V})]",
        "sum(i * t for i, t in enumerate({V}))",
        "max(t for t in {V})",
        "math.prod({V})",
        "math.fsum({V})",
        "math.hypot({S}, {S})",
    ],
    *[
        "sum(map(lambda t: t * t, {V}))",
        "(lambda t: t * {S})({Q})",
        "(lambda t, u={Q}: t + u)({Q})",
        "tuple(t for t in {V})",
        "next(iter({V}))",
    ],
    *[
        "{P}.a",
        "{P}.b",
        "Pair({Q}, {Q})",
        "Pair({O}, b={Q})",
        "dataclasses.replace({P}, a={Q})",
        "isinstance({O}, float)",
        "None",
        "{Q}",
    ],
]

STATEMENTS = [
    *["{n} = {E}"] * 30,
    *["{n} = {O}"] * 6,  # an alias
    *["{n} = {A}[{s}]", "{n} = {A}.T", "{n} = {A}.reshape(-1)", "{n} = {A}.ravel()"] * 2,
    "{n}, {n} = {O}, {O}",
    "{n}, {n} = {V}[:2]",
    "{n}, *{n} = {L}",
    "{n} = {n2} = {E}",
    # augmented assignments
    *["{U} += {S}", "{U} *= {C}", "{U} -= {Q}", "{U} /= {C}", "{U} **= 2", "{U} *= {Q}", "{U} += {E}"],
    *["{T} += {Q}", "{T} *= {C}", "{T} -= {Q}", "{T} /= {C}", "{T} *= {Q}", "{T} **= 2"] * 2,
    *["{T} //= {C}", "{T} %= {C}", "{U} //= {C}", "{T} @= {M}"],
    *["{o} += {Q}", "{o} *= {C}", "{o} *= 2", "{o} -= {Q}"] * 2,
    *["{H} += [{S}]", "{H} *= 2", "{H} += {L}", "{H} += ({Q},)"],
    # stores
    *[
        "{T}[{s}] = {Q}",
        "{T}[{s}] += {Q}",
        "{T}[{s}] *= {C}",
        "{T}[{X}] = {Q}",
        "{T}[{X}] *= {C}",
        "{T}[{J}] = {Q}",
        "{T}[{J}] += {C}",
    ]
    * 3,
    *[
        "{T}[...] = {Q}",
        "{T}[:] = {Q}",
        "{T}[0] = {S}",
        "{T}[-1] += {S}",
        "{T}[{I}] = {S}",
        "{T}[{s}] = {T}[{s}]",
        "{T}.flat[{I}] = {S}",
    ]
    * 2,
    *[
        "{T}[0], {T}[1] = {T}[1], {T}[0]",
        "{T}[::-1] = {Q}",
        "{T}[{s}] /= {C}",
        "{T}[{s}] -= {E}",
        "{T}[{I}, {I}] = {S}",
        "{T}.T[0] = {Q}",
    ],
    # functions and methods that store
    *[
        "np.put({T}, {J}, {Q})",
        "np.copyto({T}, {Q})",
        "np.copyto({T}, {Q}, where={X})",
        "np.add.at({T}, [0, -1], [{S}, {C}])",
        "np.multiply.at({T}, {J}, {C})",
    ],
    *[
        "{T}.sort()",
        "{T}.fill({S})",
        "np.fill_diagonal({T}, {S})",
        "np.place({T}, {X}, [{S}])",
        "np.putmask({T}, {X}, {Q})",
        "{T}.put({J}, {S})",
    ],
    *[
        "{T}.partition(1)",
        "np.subtract.at({T}, {I}, {C})",
        "np.put_along_axis({T}, np.array([0]), {S}, 0)",
        "{T}.itemset({I}, {S})",
    ],
    # out=
    *[
        "{F}({A}, out={T})",
        "{G}({Q}, {Q}, out={T})",
        "{n} = {F}({A}, out={T})",
        "{n} = {G}({A}, {Q}, out={T})",
        "np.clip({A}, -1.0, 1.0, out={T})",
    ]
    * 2,
    *[
        "np.sum({A}, axis={K}, out={T})",
        "np.cumsum({T}, axis=0, out={same})",
        "np.dot({M}, {V}, out={T})",
        "np.matmul({M}, {M}, out={T})",
        "{T}.clip({C}, 2.0, out={T})",
    ],
    *[
        "np.multiply({A}, {Q}, out={T}, where={X})",
        "np.add({A}, {Q}, {T})",
        "np.mean({A}, axis={K}, out={T})",
        "np.take({A}, {J}, out={T})",
    ],
    *["np.add.accumulate({T}, out={same})", "np.maximum({A}, {Q}, out={T}[{s}])"],
    # containers
    *[
        "{H}.append({S})",
        "{H}.append({Q})",
        "{H}.append({O})",
        "{H}.extend({L})",
        "{H}[0] = {Q}",
        "{H}[-1] += {Q}",
        "{H}.insert(0, {Q})",
        "{H}.reverse()",
    ]
    * 2,
    *[
        "{H}[1:] = [{S}]",
        "del {H}[0]",
        "{H}.clear()",
        "{H}[0] *= {C}",
        "{H}.sort()",
        "{H}[0][{s}] = {Q}",
        "{H}[0][0] += {S}",
        "{H}.pop()",
    ],
    *[
        "{W}['a'] = {Q}",
        "{W}['c'] = {O}",
        "{W}['a'] += {Q}",
        "{W}['b'] *= {C}",
        "{W}.update(a={Q})",
        "{W}.setdefault('d', {Q})",
        "{W}['a'][{s}] = {Q}",
    ],
    *["{Y}.a = {Q}", "{Y}.b = {O}", "{Y}.a += {Q}", "{Y}.b *= {C}", "{Y}.a[{s}] = {Q}", "{Y}.a, {Y}.b = {Y}.b, {Y}.a"],
    *["del {o}", "assert {B}", "{n}: float = {S}", "if ({n} := {E}) is not None: pass"],
]

CONDITIONS = [
    *[
        "{S} > {C}",
        "{S} < {S}",
        "{V}[0] > {C}",
        "{V}[0] > 99",
        "{I} == 1",
        "np.sum({A}) > {C}",
        "{I} % 2 == 0",
        "np.any({A} > {C})",
    ],
    *[
        "len({L}) > 1",
        "not {S} > {C}",
        "{S} > 0 and {S} < {C}",
        "{A}.size > 2",
        "{A}.ndim == 1",
        "isinstance({O}, float)",
        "{S} > -9 or {S} > {S}",
    ],
    *[
        "np.all({X})",
        "{X}.any()",
        "{O} is None",
        "{O} is not None",
        "{A}.shape[0] == 3",
        "'a' in {D}",
        "-5 < {S} < 5",
        "abs({S}) < 50",
        "{S}",
    ],
    *[
        "isinstance({O}, np.ndarray)",
        "{V}[-1] < {V}[0]",
        "max({V}) > {C}",
        "True",
        "{L}",
        "hasattr({O}, 'shape')",
        "np.isfinite({S})",
    ],
]
MASKS = [
    *[
        "{A} > {C}",
        "{A} < {A}",
        "{A} > {S}",
        "({A} > {C}) & ({A} < 2)",
        "[True, False, True]",
        "~({A} > {C})",
        "{A} >= 0",
        "np.abs({A}) < {C}",
    ],
    *[
        "np.array([False, True, True])",
        "np.isfinite({A})",
        "{A} > 99",
        "{A} != {A}",
        "True",
        "np.isnan({A})",
        "np.logical_or({A} > 1, {A} < 0)",
    ],
]
LOOPS = [
    *[
        "for {i} in range({I}):",
        "for {i} in range(2):",
        "for {i} in range(3):",
        "for {n} in {V}:",
        "for {n} in {M}:",
        "for {n} in {L}:",
    ],
    *[
        "for {i}, {n} in enumerate({V}):",
        "for {i} in range(len({V})):",
        "for {n}, {n} in zip({V}, {V}):",
        "for {n} in {D}.values():",
    ],
    *[
        "for {i} in range({I}, -1, -1):",
        "for {n} in ({O}, {O}):",
        "for {i}, {n} in enumerate({L}):",
        "for {n}, {n} in {D}.items():",
        "for {i} in (0, 2):",
    ],
    *[
        "for {n} in {V}[::-1]:",
        "for {n} in [{Q}, {Q}]:",
        "for {i} in reversed(range(2)):",
        "for {n} in {M}.T:",
        "for {n} in zip({V}, {V}):",
        "for {i} in np.arange(2):",
    ],
]
ENDS = {  # how a result that depends on a value is added to the number that is returned
    "number": ["{q}", "np.sin({q})", "{q} * {q}", "{q} * 0.7", "np.tanh({q})"],
    "array": [
        "np.sum({q} * {q})",
        "np.sum(np.sin({q}))",
        "({q} ** 2).mean()",
        "np.sum({q})",
        "np.sum({q}) ** 2",
        "np.vdot({q}, {q})",
    ],
    "vector": [
        "{q}[0]",
        "{q} @ {q}",
        "np.linalg.norm({q} + 2.0)",
        "sum({q})",
        "{q}[::-1].cumsum()[-1]",
        "np.dot({q}, np.arange({q}.size) + 1)",
    ],
    "complex": [
        "np.sum(np.abs({q}) ** 2)",
        "np.sum({q}.real)",
        "np.sum(({q} * {q}).imag)",
        "np.sum(np.real({q} * np.conj({q})))",
    ],
    "many": [
        "sum(np.sum(np.sin(e)) for e in {q})",
        "sum([np.sum(e * e) for e in {q}])",
        "np.sum({q}[0])",
        "np.sum({q}[-1] * 2.0)",
    ],
    "dict": ["sum(np.sum(e * e) for e in {q}.values())", "sum([np.sum(np.sin({q}[k])) for k in {q}])"],
}
