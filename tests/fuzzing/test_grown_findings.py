"""What grown programs and random calls have found: programs that were wrong or failed, judged by the same oracles."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pytest

import tapegen as tg
from tapegen.frontend.source.synthesize import function_from_text
from tapegen.pipeline.artifacts.generated_text import compiled_text
from tests.grown.api import joined
from tests.grown.api_calls import Caller
from tests.grown.api_targets import targets
from tests.grown.calls_apart import CRASH, Given, judged
from tests.grown.checks import FINE, PYTHON, REFUSED, RIGHT, judge
from tests.grown.loop_texts import uncompiled
from tests.grown.program import load
from tests.grown.values import leaves

FOUND = {
    "the cotangent of a vector on a diagonal is written in place": (
        "t = np.sort(v)\n    t **= 2\n    for a in np.diag(t):\n        pass\n    return np.sum(a)",
        "np.array([-1.9, 1.7])",
    ),
    "a function value of an array without axes that has changed in between": (
        "np.cos(v, out=v)\n    return np.sum(np.sin(v))",
        "np.array(1.91)",
    ),
    "a name for a list of numbers, moved on one path of a loop": (
        """y = [1.0, 2.0]
    for n in range(3):
        g = [t * -1.04 for t in v]
        if v[n] > 1.5:
            continue
        y = g
    return sum(np.sum(np.sin(e)) for e in g) + y[1]""",
        "np.array([1.69, 1.23, 1.93])",
    ),
    "a loop that is left, of several tangents at once": (
        """for k in range(3):
        for i in range(1):
            np.add.accumulate(v, out=v)
            if np.any(v > 1.09):
                break
        np.add.accumulate(v, out=v)
    return np.sum(v * v)""",
        "np.array([0.32, -0.78, 0.77])",
    ),
    "a formula that shares memory with what its call reads": (
        """w = np.array([-1.09, -1.21, 1.54])
    u = np.choose(1, [v, w])
    a = np.average(w, weights=np.abs(w) + 1)
    w[1] = a
    return a * 0.7 + np.sum(v * v)""",
        "np.array([1.65, 0.75, -0.39])",
    ),
    "a call that gives an empty tuple": (
        """t = np.gradient(round(v[0], 1))
    return np.sum(v * v) + len(t)""",
        "np.array([0.58, 0.8])",
    ),
    "a number made an array that is then changed": (
        "w = np.dot(v, v).ravel()\n    w += w\n    return np.power(w, 2)",
        "np.array([-1.83, 1.56, 0.7])",
    ),
    "an array without axes that is added to a row and to one of its elements": (
        "w = np.ones(3)\n    w[-1] += v\n    w += v\n    return np.sum(w * w), np.sum(v) ** 2",
        "np.array(1.05)",
    ),
    "a grid of the arrays themselves": (
        "a, b = np.meshgrid(v, v, copy=False)\n    return np.sum(a * b * b)",
        "np.array([1.69, 1.23])",
    ),
    "a block of one array is a copy": (
        "a = np.block(v)\n    a *= v[0]\n    return np.sum(v * a)",
        "np.array([1.69, 1.23])",
    ),
    "a number that is made an array": (
        "a = b = np.real_if_close(v[0])\n    a += v[1]\n    return a * b",
        "np.array([1.69, 1.23])",
    ),
    "an empty list as an index": ("v[[]] += 0.5\n    return np.sum(v * v)", "np.array([1.0, 2.0])"),
    "a Jacobian of a constant": ("v *= 2.0\n    return 0.5", "np.array([1.0, 2.0])"),
    "a size along several axes": ("return np.sum(v * np.size(v, axis=(0, 1)))", "np.array([[1.0, 2.0]])"),
    "no difference, of more values": ("return np.diff(v, 0, append=0.5)", "np.array([1.0, 2.0])"),
    "no difference is the array itself": (
        "w = np.diff(v, 0)\n    w[0] = 3.0\n    return np.sum(v * v)",
        "np.array([1.0, 2.0])",
    ),
    "NaN beside a given mean": ("return np.nanvar(v, mean=0.5)", "np.array([1.0, np.nan, 3.0])"),
    "a real array is what it is": (
        "w = np.real_if_close(v)\n    w[0] = 3.0\n    return np.sum(v * v)",
        "np.array([1.0, 2.0])",
    ),
    "a name deleted after the loop that binds it": (
        "k = 0\n    while k < 2 and k < 7:\n        k += 1\n    del k\n    return np.sum(v * v)",
        "np.array([1.0, 2.0])",
    ),
    "one number in an array without axes, differentiated twice": (
        "w = np.full((), 0.5)\n    np.sqrt(v, out=w)\n    return w",
        "np.array(1.38)",
    ),
    "a list of the caller, where a loop gives its name to rows": (
        "w = np.outer(v, v)\n    for v in w:\n        pass\n    return max(v) * 2.0",
        "[1.5, 0.5]",
    ),
    "a number, where an array without axes was": (
        "y = v[0]\n    for k in range(2):\n        y = np.array(0.5)\n    return y",
        "np.array([1.0, 2.0])",
    ),
    "an error message that is differentiated": (
        "w = [v[0], v[1]]\n    return np.sum(v * v) * w.index(v[1])",
        "np.array([1.0, 2.0])",
    ),
    "an array that takes turns with a number, and another name for it": (
        """p, q = v, v[0]
    for n in range(len(v)):
        p, q = q, p
    q[[1]] = p
    return np.sum(q) + (v ** 2).mean()""",
        "np.array([1.44, 1.15, 0.45])",
    ),
    "the truth of a number that might have been an array": (
        """p, q = v * 2.0, v[0]
    for n in range(len(v)):
        p, q = q, p
    if not p > -0.79:
        v[0] = p
    return np.sum(q) + np.sum(p) * v[0]""",
        "np.array([1.44, 1.15, 0.45])",
    ),
    "the truth of None that might have been an array": (
        """p = v
    if v[0] < 0:
        p = None
    w = v[1] if not p else 1.0
    return np.sum(v * v) * w""",
        "np.array([-1.44, 1.15, 0.45])",
    ),
    "a list that grows where there might have been an array": (
        """o = v * 3.0
    if v[0] > 9:
        x, *o = v, v * 2.0
    for n in range(2):
        o *= 2
    return np.sum(o[0]) + np.sum(o[-1])""",
        "np.array([1.44, 1.15, 0.45])",
    ),
    "a view that only NumPy calls one, written where it is read": (
        "z = np.einsum('ij->ji', v)\n    v.clip(0.9, 2.0, out=z)\n    return np.vdot(z, z)",
        "np.array([[-1.17, 1.21], [-0.47, 1.25]])",
    ),
    "parts of an array, written where the whole is read": (
        "a, b = np.split(v, 2)\n    np.clip(v[2:], 0.9, 2.0, out=b)\n    return np.vdot(b, b)",
        "np.array([1.44, 1.15, 0.45, 1.5])",
    ),
    "a view of a view, written into": (
        "v = v * 1.0\n    z = np.squeeze(v[None])\n    z[0] = 2.0\n    return np.sum(z * z) + np.sum(np.sin(v))",
        "np.array([1.44, 1.15, 0.45])",
    ),
    "an array made of a number, worked out again after it is written": (
        "i = np.min(v).ravel()\n    row = i.reshape(-1)\n    row *= -0.26\n    return np.linalg.norm(i + 2.0)",
        "np.array([1.97, 1.78])",
    ),
    "a block of one array is not that array": (
        "z = np.block(v)\n    z[0] = 2.0\n    v[1] = 3.0\n    return np.sum(z * z) + np.sum(np.sin(v))",
        "np.array([1.44, 1.15, 0.45])",
    ),
    "nothing is copied where NumPy is told not to": (
        "z = np.nan_to_num(v, 0)\n    v *= 1.5\n    return np.sum(z * z) + np.sum(v)",
        "np.array([1.44, 1.15, 0.45])",
    ),
    "windows of no entry leave an axis as it is": (
        """z = ndimage.uniform_filter(v, [0, 3]) + ndimage.maximum_filter(v, [2, 0]) - ndimage.minimum_filter(v, 0)
    return np.sum(z * z)""",
        "np.array([[1.44, 1.15, 0.45], [0.3, 0.2, 0.8]])",
    ),
    "a number as a real array": ("return np.real_if_close(v) * v", "0.3"),
    "keywords that do not change the result": (
        """w = np.sin(np.linspace(v[0], v[1], 3, device=None), subok=False)
    u = scipy.special.logsumexp(np.broadcast_to(v, (2, 3), subok=True))
    return np.percentile(v, 30, overwrite_input=False) + np.sum(w * np.arange(3, device="cpu", like=None)) + u""",
        "np.array([0.5, 0.25, 1.5])",
    ),
    "a curvature of powers whose exponents are zero": (
        "return np.sum(np.sin(v[:4] ** v[4:]))",
        "np.array([0.5, 2.0, 3.0, 2.0, 0.0, 0.0, 1.0, -1.0])",
    ),
    "least squares that leave small singular values out": (
        """a = v[:9].reshape(3, 3)
    x, _, _, s = np.linalg.lstsq(a, v[9:], rcond=0.5)
    y = np.linalg.lstsq(a, v[9:], rcond=1e-6)[0]
    return np.sum(np.sin(x)) + s[2] + np.sum(y)""",
        "np.array([1.6, 1.0, 5.4, -1.15, -3.15, 0.55, 3.7, -1.3, 1.45, 1.0, -0.4, 1.6])",
    ),
    "least squares with a bound that LAPACK replaces": (
        """a = v[:9].reshape(3, 3)
    x = np.linalg.lstsq(a, v[9:], rcond=1)[0] + np.linalg.lstsq(a, v[9:], rcond=2.0)[0]
    return np.sum(np.sin(x + np.linalg.lstsq(a, v[9:], rcond=0.0)[0]))""",
        "np.array([1.6, 1.0, 5.4, -1.15, -3.15, 0.55, 3.7, -1.3, 1.45, 1.0, -0.4, 1.6])",
    ),
    "the one axis of a vector by its number": (
        "return np.sum(np.sin(np.transpose(v, axes=0) * v.transpose(-1)))",
        "np.array([1.0, -0.4, 1.6])",
    ),
    "a curvature where a derivative is given by its limit": (
        "return np.sum(scipy.special.spence(v[:2]) ** 2) + np.sum(np.sin(scipy.special.rgamma(v[2:])) * v[0])",
        "np.array([1.0, 1.004, 0.0, -1.0, -2.0])",
    ),
    "a curvature about a given mean that is an element": (
        "return np.sum(np.sin(np.var(v, mean=0.5) + np.nanvar(v, mean=0.5)))",
        "np.array([0.5, 0.25, 1.5])",
    ),
    "a number is an array without axes where it is real": ("return np.real_if_close(v)", "0.3"),
    "remainders of one number by several": ("return np.divmod(v, np.array([1.2, 1.1]))", "np.array([2.9])"),
    "a logarithm of a sum with several weights": (
        "return scipy.special.logsumexp(v, b=np.array([[1.0], [2.0]]), axis=1)",
        "np.array([0.5, 0.25])",
    ),
    "ufuncs whose result is in another order": (
        """w = np.multiply(v, 2.0, order="F")
    z = np.exp(v.T, order="C")
    o = np.zeros((2, 3), order="F")
    np.add(v, z.T, out=o, order="C")
    return np.sum(w * z.T * o) + np.cos(v[0, 0], order="F")""",
        "np.array([[1.0, -0.4, 1.6], [0.3, 0.2, 0.8]])",
    ),
    "a reduction that begins with the identity of its function": (
        """a, b = np.hypot.reduce(v), np.hypot.reduce(v, axis=(0, 1), keepdims=True)
    return np.sum(np.sin(a)) + b[0, 0] + np.logaddexp.reduce(v)[0] + np.hypot.reduce(v[:, :0], axis=1)[0]""",
        "np.array([[1.0, -0.4, 1.6]])",
    ),
    "a number of Python in an outer operation": (
        "return np.logaddexp.outer(np.array([2.0, 1.0], dtype=np.float32), v)",
        "0.7",
    ),
    "quantiles of integers": ("return np.nanpercentile(np.array([[2, 7, 3]]), v, axis=1)", "31.0"),
    "edges in single precision": (
        "return np.histogram(np.array([0.5, 1.0], dtype=np.float32), 3, (v, 2.5))[1]",
        "-2.5",
    ),
    "the type of a ufunc's result is not that of its operands": (
        "return np.absolute(v * (1.0 + 2.0j), dtype=float) + np.isnan(v, dtype=bool) + np.greater(v, 0.5, dtype=bool)",
        "np.array([1.0, -0.4, 1.6])",
    ),
    "rows of one element that a loop joins": (
        """w = v.astype(np.float32)
    t = np.copy(w[0])
    for k in range(1, len(w)):
        t = np.fmax(t, w[k])
    return np.sum(t * t)""",
        "np.array([[[0.5, -1.6]], [[-1.3, 0.6]]])",
    ),
    "polynomials of another precision": (
        "return np.polyval(v, np.array([0.5, 1.5], dtype=np.float32)), np.polyval(v, 1j * v).imag",
        "np.array([1.0, -0.4, 1.6])",
    ),
    "sections of a filter in another precision": (
        """s = np.array([[0.5, 0.2, 0.1, 1.0, -0.4, 0.3], [1.0, 0.3, 0.2, 1.0, 0.1, 0.2]])
    return scipy.signal.sosfilt(s, v.astype(np.float32))""",
        "np.array([1.0, -0.4, 1.6])",
    ),
    "an array for a matrix of quantiles": (
        """o = np.zeros((2, 1))
    np.percentile(v, np.array([[31.0], [62.0]]), out=o)
    return np.sum(o * o)""",
        "np.array([1.0, -0.4, 1.6])",
    ),
    "a real factor of complex numbers": (
        "r = np.inner(v[0], v + 1j * v[::-1])\n    return np.sum(np.sin(r.real)) + np.sum(np.sin(r.imag))",
        "np.array([1.0, -0.4, 1.6])",
    ),
    "complex factors of a polar decomposition": (
        """u, p = scipy.linalg.polar(v + 1j * np.sin(3.0 * v))
    w, q = scipy.linalg.polar(v + 1j * v.T, "left")
    return np.sum(u.real * w.imag) + np.sum(np.sin(p.imag)) + np.sum(np.cos(q.imag + p.real))""",
        "np.array([[3.0, -0.4], [0.6, 1.2]])",
    ),
    "a spectrum of integers and floats": (
        "r = scipy.signal.csd(np.array([2, -1, 0, 1, 3, -2]), v, nperseg=4)[1]\n    return np.sum(np.sin(r.real))",
        "np.array([1.0, -0.4, 1.6, 0.3, 0.7, -1.1])",
    ),
    "options by position that do not change the result": (
        "return np.broadcast_to(v, (2, 3), True) * np.sort(v, -1, 'heapsort') + np.array(v, None)",
        "np.array([1.0, -0.4, 1.6])",
    ),
    "one axis of several, and one extent": (
        """a, b = scipy.fft.fftn(v, axes=0), scipy.fft.rfft2(v, axes=1)
    c, d = scipy.fft.ifftn(v, s=3), scipy.fft.irfftn(v + 0j, 4, axes=-1)
    return np.sum(np.abs(a) ** 2) + np.sum(np.sin(b.real)) + np.sum(c.imag ** 3) + np.sum(np.sin(d))""",
        "np.array([[1.0, -0.4, 0.7], [1.6, 0.3, -0.2]])",
    ),
    "elements deleted and inserted at a slice": (
        """a, b = np.delete(v, slice(0, 2)), np.delete(v.reshape(2, 2), slice(None, 1), axis=1)
    c, d = np.insert(v, slice(1, 3), v[:2]), np.insert(v.reshape(2, 2), np.s_[::-2], v[0], 1)
    return np.sum(a * a) + np.sum(b ** 3) + np.sum(np.sin(c)) + np.sum(d * d)""",
        "np.array([1.0, -0.4, 1.6, 0.3])",
    ),
    **{
        f"one draw in an array without axes: {call}": (
            f"return np.random.{maker}(3).{call}, size=())",
            "0.8",
        )
        for call in ("gamma(1.5, v", "normal(v, 2.0", "weibull(v", "triangular(-1.5, 0.2, v", "uniform(-1.0, v")
        for maker in ("default_rng", "RandomState")
    },
}

REFUSED_ONES = {
    **{
        f"complex numbers where only real ones have a formula: {call}": (
            f"return np.sum(np.abs({call}))",
            "np.array([0.1, 0.4, 0.3, 0.2])",
            "for real numbers only",
        )
        for call in (
            "scipy.interpolate.interp1d(np.arange(4.0), v * 1j)(np.array([0.3, 1.7]))",
            "scipy.interpolate.CubicSpline(np.arange(4.0), v * 1j)(np.array([0.3, 1.7]))",
            "scipy.interpolate.RegularGridInterpolator((np.arange(4.0),), v * 1j)(np.array([[0.3]]))",
            "scipy.interpolate.splev(np.array([0.3]), (np.repeat(np.arange(2.0), 4), v * 1j, 3))",
            "scipy.integrate.quad_vec(lambda t: np.exp(-1j * t * v), 0.0, 1.0)[0]",
            "scipy.integrate.solve_ivp(lambda t, y: 1j * y, (0.0, 1.0), v + 0j).y",
            "scipy.linalg.solve_discrete_lyapunov(v.reshape(2, 2) * 1j, np.eye(2))",
        )
    },
    "a matrix of no numbers that is a vector": (
        "return np.sum(scipy.linalg.fiedler(v[:0])) + np.sum(v * v)",
        "np.array([1.0, 2.0])",
        "is a vector, not a matrix",
    ),
    "attributes that a number has on some paths only": (
        """x = 2.0
    for t in v:
        if hasattr(x, "shape"):
            continue
        x, s = t, v
    return np.sum(s * x)""",
        "np.array([1.44, 1.15, 0.45])",
        "is float or float64, depending on the path",
    ),
    **{
        f"np.{name} of no derivative or integral is its argument": (
            f"z = np.{name}(v, 0)\n    v *= 1.5\n    return np.sum(z * z) + np.sum(v)",
            "np.array([1.44, 1.15, 0.45])",
            "may share memory",
        )
        for name in ("polyder", "polyint")
    },
    "lists of several lengths whose items are arrays and numbers": (
        """w = [v, v * 2.0]
    for n in range(int(v[0])):
        w = [v[1]]
    return sum(np.sum(e) for e in w)""",
        "np.array([1.0, 2.0])",
        "one of two kinds of value",
    ),
    "lists of several lengths whose items are lists": (
        """w = [[v[0]], [v[1]]]
    for n in range(int(v[0])):
        w = [[v[0]]]
    return sum(np.sum(e) for e in w)""",
        "np.array([1.0, 2.0])",
        "one of two kinds of value",
    ),
}


def module(body: str, argument: str) -> str:
    modules = ("fft", "integrate", "interpolate", "linalg", "signal", "special", "stats")
    head = "import numpy as np\n" + "".join(f"import scipy.{name}\n" for name in modules)
    head += "from scipy import ndimage\n\n\n"
    return head + f"def f(v):\n    {body}\n\n\ndef arguments():\n    return ({argument},)\n"


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_is_right(name: str) -> None:
    verdict = judge(module(*FOUND[name]), PYTHON)
    assert verdict.kind == RIGHT, verdict


COMPILED = {
    "a cotangent of one element, of an array without axes": (
        "return np.convolve(v, np.ones(5), 'same') * np.inner(v, 2.0), np.outer(v, np.ones(2)) * v",
        "np.array(0.7)",
    ),
    "one bool in an array without axes": (
        """none, all_of_them = np.array(False), np.array(v[0] > 0.5)
    a, b, c = v * 2.0, v * 3.0, v * 4.0
    a[none] += 1.0
    np.hypot.at(b, none, 0.7)
    np.add.at(c, all_of_them, 0.7)
    return np.sum(v[none]) + np.sum(v[all_of_them] ** 2), a, b, c""",
        "np.array([1.0, -0.4, 0.7])",
    ),
    "options of matrix functions that do not change the result": (
        """p, l, u = scipy.linalg.lu(v, check_finite=False, permute_l=False)
    return np.sum(np.sin(l) + np.cos(u)) + np.sum(np.sin(scipy.linalg.inv(v, check_finite=False, lower=True)))""",
        "np.array([[1.0, -0.4], [0.6, 1.2]])",
    ),
    "a formula in another precision than the function": (
        """w = v.astype(np.float32)
    a, b = scipy.linalg.expm_frechet(w, v.T)
    return np.sum(np.sin(a)) + np.sum(b) + np.sum(np.quantile(w, 0.3, axis=0, keepdims=True))""",
        "np.array([[1.0, -0.4], [0.6, 1.2]])",
    ),
    "distribution functions of single precision": (
        """w = v.astype(np.float32)
    return tuple([scipy.stats.norm.cdf(w), scipy.stats.norm.sf(w, 0.3), scipy.stats.gumbel_r.cdf(w, 0.2, 1.3)])""",
        "np.array([1.0, -0.4, 0.7])",
    ),
    "an array of another shape like one": (
        "return np.ones_like(v, shape=0, subok=True), v * np.zeros_like(v, shape=(2, 1), device='cpu')",
        "np.array([1.0, -0.4, 0.7])",
    ),
    "the one axis of a vector": (
        "return np.sin(np.transpose(v, axes=0) * np.transpose(v, None))",
        "np.array([1.0, 0.7])",
    ),
}


@pytest.mark.parametrize("name", COMPILED)
def test_what_was_found_in_compiled_text_is_right(name: str) -> None:
    verdict = judge(module(*COMPILED[name]), ("primal", "reverse", "forward", "loops"))
    assert verdict.kind == RIGHT, verdict


@pytest.mark.parametrize("name", REFUSED_ONES)
def test_what_failed_is_refused(name: str) -> None:
    *text, reason = REFUSED_ONES[name]
    verdict = judge(module(*text), PYTHON)
    assert verdict.kind == REFUSED, verdict
    assert reason in verdict.detail


def test_results_of_ufuncs_lie_in_the_order_that_is_asked_for() -> None:
    def function(v):
        return np.exp(v, order="F"), np.multiply(v.T, 2.0, order="C"), np.sin(v, order="K")

    v = np.arange(6.0).reshape(2, 3)
    for backend in ("python", "auto"):
        found = tg.differentiable(function, backend=backend, cache=False).vjp(v)[0]
        assert [each.flags.f_contiguous for each in found] == [each.flags.f_contiguous for each in function(v)]


def test_reductions_that_skip_elements_are_refused() -> None:
    """NumPy's vectorized `arctan2` (2.4, AVX-512) gives the function of the first and the last element."""
    v = np.array([1.2, 1.6, -0.4, -0.8])
    is_right = np.arctan2.reduce(v) == np.arctan2(np.arctan2(np.arctan2(*v[:2]), v[2]), v[3])
    verdict = judge(module("return np.arctan2.reduce(v)", "np.array([1.2, 1.6, -0.4, -0.8])"), PYTHON)
    assert verdict.kind == (RIGHT if is_right else REFUSED), verdict


def test_a_list_of_the_caller_changes_only_where_its_name_holds_it() -> None:
    def one_way(v, which):
        w = v
        if which > 0:
            w = v[1].reshape(-1)
        w[0] = np.ones(3)[0]
        return np.sum(v[1] ** 2)

    def behind_loop(v, n):
        w = v[1] * 2.0
        for v in range(n):  # noqa: B007
            pass
        v += v
        return np.sum(w)

    for function, last in ((one_way, 1.0), (behind_loop, 1), (behind_loop, 2)):
        mine, known = ([np.array([1.0, 2.0]), np.array([0.5, 0.25, 4.0])] for _ in range(2))
        value, _ = tg.value_and_grad(function, backend="python")(mine, last)
        assert value == function(known, last)
        assert all(np.array_equal(a, b) for a, b in zip(mine, known, strict=True))


def test_a_list_that_a_called_function_extends_is_refused() -> None:
    def second_of(x, y):
        x += (x[1],)
        return x[2]

    def function(v):
        for n in range(1, -1, -1):
            n += second_of(v, n)
        first, *_ = v
        return first

    with pytest.raises(tg.NotDifferentiable, match="a number of items that is not known here"):
        tg.grad(function, backend="python")([1.0, 2.0])


def test_what_would_be_wrong_is_refused() -> None:
    for function in (lambda v: np.ix_(v)[0].sum(), lambda v: np.fft.hfft(v, out=np.zeros(2)).sum()):
        with pytest.raises(tg.NotDifferentiable):
            tg.grad(function, backend="python")(np.array([1.0, 2.0]))


def test_stores_into_a_grid_of_the_arrays_themselves_are_refused() -> None:
    def function(v):
        a, _ = np.meshgrid(v, v, copy=False)
        a *= v[0]
        return np.sum(v * v)

    with pytest.raises(tg.AliasError):
        tg.grad(function, backend="python")(np.array([1.0, 2.0]))


def test_a_change_that_no_kind_of_value_allows_is_refused() -> None:
    def changes(v, d):
        e = d
        if v[0] > 99.0:
            e = 2.0
        e["b"] *= 2.0
        return np.sum(v * v)

    point = np.array([1.0, 2.0])
    with pytest.raises(tg.NotDifferentiable, match="changes a dict"):
        tg.hvp(changes, (point, {"b": 1.5}), (point, {"b": 1.0}), backend="python", cache=False)


def rows_divided(v, m, j):
    row = np.apply_along_axis(np.sum, 0, m)
    for _ in (0, 2):
        m = np.convolve(row, row, "same")[:-1]
        np.true_divide(row, j, out=row)
    return np.sum(v) ** 2 + j * 0.7 + np.sum(np.sin(m))


def vector_or_number(v, m):
    u = v
    for u in v:
        m -= u
    for k in range(2):
        k += m
    u -= k
    return np.sum(m) + np.sum(np.sin(u))


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (rows_divided, (np.array([0.74, 1.91, 1.46]), np.array([[1.58, -0.44, -1.56]]), np.array(1.42))),
        (vector_or_number, (np.array([1.25, -1.96, 1.47]), np.arange(9.0).reshape(3, 3))),
    ],
)
def test_what_failed_has_a_compiled_text(function, arguments) -> None:
    call = tg.differentiable(function, wrt=tuple(range(len(arguments))))._specialise(arguments, {})
    assert "def " in compiled_text(call.program, call.program.function("joint")).text


@pytest.mark.parametrize("statement", ["u += v[None]", "u *= v[None]", "u[1:] -= v[None, 1:]", "u[1:] /= v[None, 1:]"])
def test_in_place_operations_do_not_drop_axes(statement: str) -> None:
    attempt = f"    try:\n        {statement}\n    except ValueError:\n        u[0] = 7.0 * v[1]\n"
    f = function_from_text(f"def f(v):\n    u = v * 1.0\n{attempt}    return np.sum(u * v)\n", {"np": np})
    v = np.array([1.0, 2.0, 3.0])
    value, gradient = tg.value_and_grad(f, backend="python")(v)
    assert value == f(v) == 27.0
    assert gradient.tolist() == [14.0, 11.0, 6.0]


def test_what_ends_a_process_is_a_finding() -> None:
    text = """import os
import contextlib
import warnings

import numpy as np


def f(v):
    if not isinstance(v, np.ndarray):
        os.kill(os.getpid(), 9)
    return np.sum(v * v)


def arguments():
    return (ARGUMENT,)
"""

    class Several:
        def programs(self, count, first=0, trying=str):
            for number, argument in list(enumerate(("np.ones(2)", "1.0", "np.ones(3)")))[first:]:
                yield number, text.replace("ARGUMENT", argument)

    found = [(verdict.kind, "alone too" in verdict.detail) for _, verdict in judged(Several(), ("primal",), 3)]
    assert found == [(RIGHT, False), (CRASH, True), (RIGHT, False)]
    assert [verdict.kind for _, verdict in judged(Given([text.replace("ARGUMENT", "1.0")]), ("primal",), 1)] == [CRASH]


@pytest.mark.parametrize("part", range(4))
def test_random_calls_of_functions_that_have_rules(part: int) -> None:
    for target in targets()[part::60]:
        for _, text in Caller(target, 1).programs(1):
            verdict = judge(text, ("primal", "reverse", "forward", "second"))
            assert verdict.kind in FINE, f"{verdict}\n{text}"


def test_several_random_calls_are_one_program() -> None:
    (target,) = (each for each in targets("np.cumsum") if each.name == "np.cumsum")
    texts = [text for _, text in Caller(target, 1).programs(4)]
    assert len(texts) == 4
    programs = [load(text) for text in (joined(texts), *texts)]
    together, *alone = (each.function(*each.arguments()) for each in programs)
    assert all(map(np.array_equal, leaves(together), leaves(alone)))
    assert judge(joined(texts), ("primal", "reverse", "forward", "loops"), most=60).kind == RIGHT


@pytest.mark.parametrize(
    "function",
    "mean prod max min ptp median average any all argmax argmin count_nonzero std var sum nansum nanmean nanstd nanvar "
    "nanmax nanmin nanprod nanmedian sort argsort cumsum cumprod diff flip unique linalg.norm".split(),
)
def test_numbers_are_reduced_as_arrays_are(function: str) -> None:
    f = function_from_text(f"def f(v):\n    return np.sum(np.{function}(np.sum(v)) * v)\n", {"np": np})
    v = np.array([1.2, 0.7])
    with uncompiled(), contextlib.suppress(tg.NotDifferentiable), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value, gradient = tg.differentiable(f, cache=False).value_and_grad(v)
        assert value == pytest.approx(f(v))
        np.testing.assert_allclose(gradient, tg.grad(f, backend="python")(v))
