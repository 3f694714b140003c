"""Arguments for which NumPy raises: compiled code has no value for them either."""

from __future__ import annotations

import numpy as np
import pytest

import tapegen as tg
from tests.grown.checks import judge
from tests.grown.loop_texts import uncompiled
from tests.grown.program import load, unload

CALLS = {
    "np.partition(v, k)": (-5, 4),
    "np.partition(v, (0, k))": (-5, 4),
    "v[np.argpartition(v, k)]": (-5, 4),
    "np.repeat(v, k)": (-1,),
    "np.repeat(v, np.array([0, 1, k, 2]))": (-1,),
    "np.insert(v, k, v[0])": (-5, 5),
    "np.insert(v, [0, k], v[0])": (5,),
    "np.tile(v, k)": (-1,),
    "np.tile(v, (2, k))": (-1,),
    "v * np.digitize(v, np.array([0.1, k, 3.0]))": (-1, 4),
    "np.histogram(v, 3, range=(0.0, k))[1]": (-1,),
    "np.broadcast_to(v, (k, 4))": (-1,),
    "np.resize(v, k)": (-1,),
    "np.cross(v[:k], v[:k])": (4,),
    "np.quantile(v, k / 4.0)": (-1, 5),
    "np.nanpercentile(v, np.array([0.3, k]))": (-1, 101),
    "np.quantile(v, np.zeros((k, 3)))": (0,),
    "np.linspace(v[0], v[1], k)": (-1,),
    "np.take(v, k)": (-5, 4),
    "np.delete(v, k)": (-5, 4),
    "np.insert(v, k, v[:2])": (-5, 5),
}
GOOD = {"np.cross(v[:k], v[:k])": 3}


@pytest.mark.parametrize("call", CALLS)
def test_what_numpy_does_not_compute_is_not_computed(call: str) -> None:
    v = np.array([0.3, 0.7, 1.1, 0.2])
    text = f"import numpy as np\n\ndef f(v, k):\n    return np.sum({call})\n\ndef arguments():\n    return ()\n"
    loaded = load(text)
    function = loaded.function
    with uncompiled():
        made = tg.differentiable(function, backend="numba", cache=False, wrt=0)
        good = GOOD.get(call, 2)
        value, _ = made.value_and_grad(v.copy(), good)
        assert value == pytest.approx(function(v.copy(), good))
        for k in CALLS[call]:
            with pytest.raises((ValueError, IndexError)) as expected:
                function(v.copy(), k)
            with pytest.raises(expected.type):
                made.value_and_grad(v.copy(), k)
    unload(loaded)


REDUCTIONS = "np.ptp np.max np.min np.mean np.std np.median np.prod np.linalg.norm np.average np.nansum".split()


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_numbers_that_have_no_name(name: str) -> None:
    """The argument is an expression in compiled text, not an array."""
    text = (
        f"import numpy as np\n\ndef f(v):\n    return {name}(float(v.sum() * v[0])) + v[1]\n\n"
        "def arguments():\n    return (np.array([0.3, 0.7, 1.1]),)\n"
    )
    verdict = judge(text, ("primal", "reverse", "loops"))
    assert verdict.kind == "right", verdict
