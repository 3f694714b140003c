"""Higher-order derivatives: Jacobians, Hessians and their products, as compositions of the two modes."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, Unpack, overload
from weakref import WeakKeyDictionary

import numpy as np

from tapegen.api import (
    Differentiable,
    DifferentiableWithAux,
    along,
    check_sequences,
    differentiable,
    directions,
    grad,
    refuse_recorded,
    undecorated,
    with_options,
)
from tapegen.errors import BadArgument, NotDifferentiable, TapegenError
from tapegen.frontend.calls.random_replay import refuse_unseeded
from tapegen.frontend.values.pytree import Slot, StaticValue, Struct, flatten, leaves_of, map_leaves, rebuild
from tapegen.ir.protocols import Mode, mark_of, marks
from tapegen.pipeline.artifacts.program import Program
from tapegen.pipeline.fault_boundary import Boundary
from tapegen.pipeline.nested import PIPELINE, goes_forward, mode_of_complex
from tapegen.pipeline.options import Options, Wrt, as_wrt
from tapegen.runtime.bound_call import BoundCall
from tapegen.runtime.random_state import restore_states, states_of
from tapegen.runtime.tracebacks import hides_frames
from tapegen.settings import DIRECTIONS, AllKeywords, Keywords, refuse_keywords

__all__ = ["hessian", "hvp", "jacobian", "linearize"]

P = ParamSpec("P")
R = TypeVar("R")
Objective = TypeVar("Objective")
Aux = TypeVar("Aux")


class Jacobian:
    """The function object that `jacobian` returns: a differentiable function and a mode."""

    __tapegen_opaque__ = True

    def __init__(self, owner: Differentiable, mode: Mode | None, holomorphic: bool) -> None:
        self.owner, self.mode, self.holomorphic = owner, mode, holomorphic
        self._runners: WeakKeyDictionary[Program, dict[Mode, Differentiable]] = WeakKeyDictionary()
        self._modes: dict[object, Mode] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Jacobian, (self.owner, self.mode, self.holomorphic)

    @property
    def python(self) -> Callable[..., Any]:
        """The function itself."""
        return self.owner.python

    @property
    def options(self) -> Options:
        """The options of the function."""
        return self.owner.options

    @marks("jacobian", PIPELINE)
    @hides_frames
    def jacobian(self, *args: Any, **kwargs: Any) -> Any:
        """The derivative of every element of the result with respect to every element of the arguments of `wrt`."""
        call = self.owner._specialise(args, kwargs)
        with Boundary("deriving", lambda: call.program.subject(self._text())):
            return self._jacobian(call, args, kwargs)

    def _text(self) -> str:
        """Its call, for the report of a fault."""
        return f"tg.jacobian(f, {self.options.wrt!r}, {self.mode!r}, {self.holomorphic})(*args, **kwargs)"

    def _jacobian(self, call: BoundCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        program = call.program
        if program.communicates:
            raise NotDifferentiable(
                "this function communicates with other ranks, and a Jacobian is that of one rank.",
                "Multiply with vectors: tg.vjp and tg.jvp give derivatives of what all ranks compute.",
                program.lowered.function.origin,
            )
        active = program.selection.active_results(scalar=False)
        wrt = program.wrt_vars()
        if program.never_returns:
            call.raise_as_python()
        aux = self._aux(program)
        kept = tuple(leaf.index for leaf in leaves_of(aux) if isinstance(leaf, Slot))
        stored = tuple(k for mutation in program.lowered.mutations for _, k in mutation.slots())
        asked = mode_of_complex(program.lowered.function, wrt, active, self.mode, holomorphic=self.holomorphic)
        mode = asked or (self._cheaper(call, args, kwargs) if goes_forward(program.lowered.function) else "reverse")
        runners = self._runners.setdefault(program, {})
        if mode not in runners:
            lowered = program.lowered
            make = functools.partial(PIPELINE.jacobian, holomorphic=self.holomorphic)
            text = make(lowered.function, wrt, active, lowered.modules, mode, kept=(*kept, *stored))
            options = self.options
            runners[mode] = differentiable(
                text,
                backend=options.backend,
                boundscheck=options.boundscheck,
                fastmath=options.fastmath,
                parallel=options.parallel,
            )
        leaves = call.leaves()
        call.check_stores("joint", leaves)
        restore = call.restorer(leaves)
        try:
            blocks = runners[mode](*leaves)
        except Exception as error:
            restore()
            if program.lowered.mutations or not isinstance(error, TapegenError):
                call.as_python_raises()
            if program.raises(error):
                raise call.errors.cannot_go_on(error) from error
            raise
        found = iter(blocks if isinstance(blocks, tuple) else (blocks,))
        others = {k: next(found) for k in kept}
        if stored:
            results = dict(zip(stored, [next(found) for _ in stored], strict=True))
            call.store([results.get(k) for k in range(len(active))], leaves)
        elif program.lowered.mutations:
            call.store([None] * len(active), leaves)
        rows = {k: [next(found) for _ in wrt] for k, is_active in enumerate(active) if is_active}
        made = _by_result(program.selection.objective, rows, lambda row: self._by_argument(program, row))
        return (made, map_leaves(aux, lambda slot: others[slot.index])) if self.options.has_aux else made

    def _aux(self, program: Program) -> Any:
        """The auxiliary result of the function."""
        output = program.lowered.output
        return (
            output.children[1]
            if self.options.has_aux and program.selection.objective is not output
            else StaticValue(None)
        )

    def _by_argument(self, program: Program, row: list[Any]) -> Any:
        parts = [map_leaves(template, lambda slot: row[slot.index]) for template in program.gradient_templates]
        return parts[0] if isinstance(self.options.wrt, int | str) else tuple(parts)

    def _cheaper(self, call: BoundCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mode:
        """The cheaper mode: a direction costs about two primals forward (per input), three backward (per result)."""
        inner: Any = getattr(self.python, "__self__", None)
        mark = mark_of(self.python)
        if mark is not None and mark.kind in ("grad", "jacobian") and inner.options.wrt == self.options.wrt:
            return "forward"  # the result has at least as many elements as the arguments
        leaves = call.leaves()
        key = (id(call.program), tuple(map(np.shape, leaves)))
        if key not in self._modes:
            wrt = set(call.program.wrt_vars())
            params = call.program.lowered.function.params
            inputs = sum(int(np.size(leaf)) for var, leaf in zip(params, leaves, strict=True) if var in wrt)
            states = states_of(leaves)
            put_back_stored = call.entry()
            try:
                value = self.owner(*copy.deepcopy(args), **copy.deepcopy(kwargs))
            except Exception as error:
                restore_states(states)
                put_back_stored()
                if not isinstance(error, TapegenError):
                    call.as_python_raises()  # on the arguments themselves, which Python leaves half done
                raise
            restore_states(states)
            put_back_stored()
            objective = value[0] if self.options.has_aux else value
            outputs = sum(int(np.size(leaf)) for leaf in flatten(objective) if np.asarray(leaf).dtype.kind in "fc")
            self._modes[key] = "forward" if 2 * inputs <= 3 * outputs else "reverse"
        return self._modes[key]


def _by_result(template: Any, rows: dict[int, list[Any]], make: Callable[[Any], Any]) -> Any:
    if isinstance(template, Slot):
        return make(rows[template.index]) if template.index in rows else None
    if isinstance(template, Struct):
        return rebuild(template, [_by_result(child, rows, make) for child in template.children])
    return None


@marks("jacobian", PIPELINE)
@hides_frames
def jacobian(
    func: Callable[P, Any],
    wrt: Wrt = 0,
    mode: Mode | None = None,
    holomorphic: bool = False,
    **options: Unpack[AllKeywords],
) -> Callable[P, Any]:
    """A function that returns the Jacobian of `func`.

    Parameters
    ----------
    func : callable
        A function of numbers, arrays and structures of them; so is its result.
    wrt : int, str or sequence of them
        Arguments to differentiate with respect to.
    mode : {"forward", "reverse"}, optional
        By default the cheaper one for the given sizes; where real and complex numbers mix, the one that is valid.
    holomorphic : bool
        States that a function of complex numbers with complex results is holomorphic: its Jacobian is the complex
        derivative.  Without it such a Jacobian is refused.
    **options
        Options of `differentiable`.

    Returns
    -------
    callable
        Accepts the arguments of `func`.  For each scalar or array in the result it returns the structure of `wrt` with
        an array for each scalar or array in it: the axes of the result, then those of the argument.  With `has_aux`
        these are the derivatives of the first of two results, and the second one follows unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> tg.jacobian(lambda x: x**2, backend="python")(np.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    refuse_keywords("jacobian", options)
    if mode not in (None, "forward", "reverse"):
        raise BadArgument(f"mode={mode!r} is unknown.", 'Use "forward", "reverse" or None.')
    chosen: Any = wrt if isinstance(wrt, int | str) else as_wrt(wrt)
    return _jacobian_of(func, chosen, mode, holomorphic, tuple(sorted(options.items()))).jacobian


@functools.lru_cache(maxsize=256)
def _jacobian_of(
    func: Callable[..., Any], wrt: Wrt, mode: Mode | None, holomorphic: bool, options: tuple[tuple[str, Any], ...]
) -> Jacobian:
    return Jacobian(with_options(func, wrt, dict(options)), mode, holomorphic)


@hides_frames
def hessian(func: Callable[P, Any], wrt: Wrt = 0, **options: Unpack[AllKeywords]) -> Callable[P, Any]:
    """A function that returns the Hessian of `func`: forward mode over reverse mode.

    If a rule has no pushforward, it is reverse mode over reverse mode.

    Parameters
    ----------
    func : callable
        A function of numbers, arrays and structures of them; so is its result.
    wrt : int, str or sequence of them
        Arguments to differentiate with respect to.
    **options
        Options of `differentiable`.

    Returns
    -------
    callable
        Accepts the arguments of `func`.  For several arguments, or structures, the Hessian has the structure of `wrt`
        twice; if `func` returns arrays or structures, it has theirs around that, and the axes of each result come
        first.  With `has_aux` the auxiliary result of the function follows.

    Examples
    --------
    >>> import numpy as np
    >>> tg.hessian(lambda x: x[0] ** 2 * x[1], backend="python")(np.array([2.0, 3.0])).tolist()
    [[6.0, 4.0], [4.0, 0.0]]
    """
    refuse_keywords("hessian", options)
    plain, given = undecorated(func, options)
    return jacobian(jacobian(plain, wrt, "reverse", **given), wrt, **given)


@hides_frames
def hvp(
    func: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], **options: Unpack[AllKeywords]
) -> Any:
    """The product of the Hessian of `func` at `primals` and `tangents`, without computing the Hessian.

    Parameters
    ----------
    func : callable
        A function that returns one scalar.
    primals, tangents : sequence
        Arguments, and a direction for each (None: the argument is a constant).
    **options
        Options of `differentiable`.

    Returns
    -------
    object
        The derivative of the gradient along the direction; a tuple where there are several directions.  With `has_aux`
        the auxiliary result of the function follows.

    Examples
    --------
    >>> tg.hvp(lambda x: x**3, (2.0,), (1.0,), backend="python")
    12.0
    """
    refuse_keywords("hvp", options, DIRECTIONS)
    check_sequences(primals, tangents)
    wrt = tuple([k for k, tangent in enumerate(tangents) if tangent is not None])
    plain, given = undecorated(func, options)
    gradient = grad(plain, wrt[0] if len(wrt) == 1 else wrt, **given)
    _, product, *aux = along(gradient, primals, tangents, **given)
    return (product, *aux) if aux else product


@overload
def linearize(
    func: DifferentiableWithAux[..., Objective, Aux], *primals: Any, **options: Unpack[Keywords]
) -> tuple[Objective, Callable[..., Any], Aux]: ...
@overload
def linearize(
    func: Callable[..., tuple[Objective, Aux]], *primals: Any, has_aux: Literal[True], **options: Unpack[Keywords]
) -> tuple[Objective, Callable[..., Any], Aux]: ...
@overload
def linearize(
    func: Callable[..., R], *primals: Any, has_aux: Literal[False] = False, **options: Unpack[Keywords]
) -> tuple[R, Callable[..., Any]]: ...
@marks("linearize", PIPELINE)
@hides_frames
def linearize(func: Callable[..., Any], *primals: Any, **options: Any) -> Any:
    """Value of `func` at `primals`, and the linear function that maps tangents of them to the tangent of the value.

    Parameters
    ----------
    func : callable
        A function of numbers, arrays and structures of them.
    *primals
        Its arguments.
    **options
        Options of `differentiable`.

    Returns
    -------
    value : object
        The value of the function.
    linear : callable
        Accepts a tangent for each argument (None: constant).  It is the derivative at the present values, also if the
        arguments or what else the function reads change later.
    aux : object
        Only with `has_aux`: the auxiliary result of the function.

    Examples
    --------
    >>> value, linear = tg.linearize(lambda x: x**2, 3.0, backend="python")
    >>> value, linear(1.0), linear(0.5)
    (9.0, 6.0, 3.0)
    """
    refuse_keywords("linearize", options, DIRECTIONS)
    refuse_recorded("linearize", primals, {})
    function = with_options(func, 0, options)
    now = function._specialise(primals, {})
    now.check_stores("tangent", now.leaves())  # copies no longer tell which of them are the same
    call = function._specialise(copy.deepcopy(primals), {})
    refuse_unseeded(call.program.lowered.function)
    held = call.kept(())

    @hides_frames
    def linear(*tangents: Any) -> Any:
        """The tangent of the value; None means no change of an argument."""
        given = directions(len(primals), tangents)
        return held.kept(tuple(given)).answer("tangent", tuple(given.values()))[1]

    value, *aux = call.parts(function(*primals))
    return value, linear, *aux
