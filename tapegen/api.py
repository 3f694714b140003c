"""Public API: `differentiable` and the functions that work on any Python function."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FrameType, FunctionType
from typing import Any

from tapegen.backend.numba.overloads import make_known
from tapegen.backend.numba.progress import series
from tapegen.errors import BadArgument
from tapegen.frontend.source.callables import unwrap
from tapegen.frontend.source.pickling import Texts, keep_texts, texts_of
from tapegen.frontend.source.synthesize import function_from_text
from tapegen.frontend.values.pytree import StaticValue
from tapegen.ir.names import NameSupply
from tapegen.ir.protocols import marks, recorder_of
from tapegen.pipeline.debug_nans import watching
from tapegen.pipeline.inspection import Inspection
from tapegen.pipeline.nested import PIPELINE
from tapegen.pipeline.options import Backend, Options, Wrt, as_wrt
from tapegen.pipeline.program import Form, Program
from tapegen.runtime.bound_call import BoundCall, inspected
from tapegen.runtime.inline_cache import InlineCache
from tapegen.runtime.njit import native
from tapegen.runtime.specialization import SpecializationCache
from tapegen.runtime.tracebacks import hide_frames, hides_frames


class Differentiable:
    """A Python function together with its derivatives; made by `differentiable`.

    Calling it runs the compiled primal, which returns and raises what plain Python does.
    """

    __tapegen_opaque__ = True

    def __init__(
        self,
        func: Callable[..., Any],
        options: Options,
        specialiser: SpecializationCache | None = None,
        method_of: Differentiable | None = None,
    ) -> None:
        self.python = func
        self.options = options
        self._specializer = SpecializationCache(func) if specialiser is None else specialiser
        # each access of a method creates an object; persistent state is in that of the method
        self._inline_cache: InlineCache = InlineCache(
            self._specializer, None if method_of is None else method_of._inline_cache
        )
        self._variants: dict[Options, Differentiable] = {}
        self._changed = functools.lru_cache(maxsize=8)(lambda wrt: replace(options, wrt=wrt))
        functools.update_wrapper(self, func, updated=())
        del self.__dict__["__wrapped__"]  # `inspect` must not mistake the object for the function

    def __repr__(self) -> str:
        return f"<differentiable {getattr(self.python, '__qualname__', self.python)}>"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Methods: binding an instance gives the same function with its first argument fixed."""
        if instance is None or not hasattr(type(self.python), "__get__"):
            return self
        method = self.python.__get__(instance, owner)
        return Differentiable(method, self.options, self._specializer.bound(method), self)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickles hold a name, or the function and its options; never anything compiled."""
        name = self.python.__qualname__ if isinstance(self.python, FunctionType) else ""
        home = _global(self.__dict__.get("__module__"), name)
        by_value = self.__dict__.get("__module__") == "__main__" and _pickled_by_value()
        if home is self and not by_value:
            return name
        named = isinstance(home, Differentiable) and home.python is self.python and not by_value
        texts = texts_of(self.python) if by_value else ()
        return _again, (home if named else self.python, self.options, texts)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.python)

    # ---- calls -------------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value, as in plain Python; for tensors, a tensor (on a tape the call is one operation)."""
        try:
            found = self._inline_cache.again("primal", args, (), kwargs)
            if found is not None:
                return found[0]
            recorder = recorder_of(args, kwargs)
            if recorder is not None:
                return recorder(self, args, kwargs)
            if self.options.backend == "python" and not watching():
                return self.python(*args, **kwargs)
            return self._answer("primal", args, kwargs)[0]
        except BaseException as error:
            hide_frames(error)
            raise

    @marks("value_and_grad", PIPELINE)
    def value_and_grad(self, *args: Any, **kwargs: Any) -> Any:
        """Value and gradient.

        Returns
        -------
        value, gradient
            The gradient has the structure of `wrt`: one gradient for an int or a name, a tuple for a tuple.  With
            `has_aux` the value is `(objective, aux)`.

        Raises
        ------
        BadArgument
            If the value is not a scalar, or an argument of `wrt` is not floating.
        """
        try:
            found = self._inline_cache.again("joint", args, (), kwargs)
            if found is not None:
                return found
            recorder = recorder_of(args, kwargs)
            if recorder is not None:
                return recorder(self._as_function(self.value_and_grad), args, kwargs)
            return self._answer("joint", args, kwargs)
        except BaseException as error:
            hide_frames(error)
            raise

    @marks("grad", PIPELINE)
    def grad(self, *args: Any, **kwargs: Any) -> Any:
        """The gradient alone; with `has_aux`, `(gradient, aux)`."""
        try:
            found = self._inline_cache.again("joint", args, (), kwargs)
            if found is None:
                recorder = recorder_of(args, kwargs)
                if recorder is not None:
                    return recorder(self._as_function(self.grad), args, kwargs)
                found = self._answer("joint", args, kwargs)
            value, gradient = found
            return (gradient, value[1]) if self.options.has_aux else gradient
        except BaseException as error:
            hide_frames(error)
            raise

    @marks("vjp", PIPELINE)
    @hides_frames
    def vjp(self, *args: Any, **kwargs: Any) -> Any:
        """Value and pullback.

        Returns
        -------
        value : object
            The value of the function; any structure of arrays and numbers.
        pullback : callable
            `pullback(value_bar)` accepts cotangents in the structure of the value and returns those of `wrt`; it may be
            called any number of times.
        aux : object
            Only with `has_aux`: the auxiliary result of the function.  The value is the objective, of any structure.
        """
        refuse_recorded("vjp", args, kwargs)
        return self._specialise(args, kwargs).vjp()

    @marks("jvp", PIPELINE)
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **kwargs: Any) -> Any:
        """Value, and its derivative along a direction.

        Parameters
        ----------
        primals : sequence
            The positional arguments.
        tangents : sequence
            A direction for each of them, in its structure; None for an argument without a direction.
        **kwargs
            Keyword arguments of the function; they have no direction.

        Returns
        -------
        value, tangent
            The tangent has the structure and the dtypes of the value; None where there are no floats.  With `has_aux`
            these are those of the objective, and the auxiliary result of the function follows.
        """
        try:
            found = self._inline_cache.again("jvp", primals, tangents, kwargs)
            return self._along("jvp", primals, tangents, kwargs) if found is None else found
        except BaseException as error:
            hide_frames(error)
            raise

    @hides_frames
    def precompile(self, *args: Any, modes: Sequence[str] = ("value_and_grad",), **kwargs: Any) -> None:
        """Compile for arguments of these types, and return when the machine code is in place.

        The function does not run.  Without it the first calls run the generated Python while a helper process
        compiles.

        Parameters
        ----------
        *args, **kwargs
            Arguments of the function; only their types matter, and the values that the program takes as constants.
        modes : sequence of {"value", "value_and_grad", "grad", "vjp", "jvp", "hvp"}
            What is going to be called.

        Raises
        ------
        BadArgument
            For other modes, or where a derivative of this mode does not exist.
        """
        if isinstance(modes, str):
            raise BadArgument(f"modes={modes!r} is one text.", f"Give a sequence: modes=({modes!r},).")
        for mode in modes:
            if mode not in _FORMS:
                raise BadArgument(f"mode {mode!r} is unknown.", f"The modes are {', '.join(_FORMS)}.")
        with series(sum(2 if mode == "vjp" else 1 for mode in modes)):  # and the pullback
            for mode in modes:
                self._precompile(mode, args, kwargs)

    def _precompile(self, mode: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        form = _FORMS[mode]
        if form not in ("jvp", "tangent"):
            self._specialise(args, kwargs).precompile(form)
            return
        names = self._specializer.free_names()
        chosen = (self.options.wrt,) if isinstance(self.options.wrt, int | str) else tuple(self.options.wrt)
        wrt = tuple([names.index(item) if item in names else item for item in chosen])
        function = self
        if mode == "hvp":
            func, options = undecorated(self, {})
            function = with_options(grad(func, wrt[0] if len(wrt) == 1 else wrt, **options), 0, options)
        function._specialise(args, kwargs, wrt=function._specializer.of_the_call(wrt)).precompile(form)

    @hides_frames
    def inspect(self, *args: Any, **kwargs: Any) -> Inspection:
        """The generated programs for arguments of these types; the function does not run."""
        call = self._specialise(args, kwargs)
        return inspected(call.program, call.leaves())

    def _as_function(self, method: Callable[..., Any]) -> Differentiable:
        """A derivative of this function as a function that has derivatives itself."""
        return _of_function(method, 0, backend=self.options.backend)

    def writes_into(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The arrays among the arguments that a call would write into."""
        return self._specialise(args, kwargs).written()

    def _specialise(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], wrt: tuple[int | str, ...] | None = None
    ) -> BoundCall:
        options = self._changed(wrt) if wrt is not None and wrt != self.options.wrt else self.options
        call = self._specializer.specialise(args, kwargs, options)
        self._inline_cache.use(call.program)
        return call

    def _along(
        self, form: Form, primals: Sequence[Any], tangents: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Value (None, if the form is "tangent") and tangent."""
        refuse_recorded("jvp", (*primals, *tangents), kwargs)
        given = directions(len(primals), tangents)
        call = self._specialise(tuple(primals), kwargs, wrt=self._specializer.of_the_call(given))
        found = call.answer(form, tuple(given.values()))
        self._inline_cache.remember(form, call, tangents)
        return found

    def _answer(self, form: Form, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        call = self._specialise(args, kwargs)
        found = call.answer(form)
        self._inline_cache.remember(form, call)
        return found

    @functools.cached_property
    def njit(self) -> Any:
        """The function for use inside the user's own compiled code: a numba dispatcher.

        `f.njit(*args)` is the value, `f.njit.value_and_grad(*args)` and `f.njit.grad(*args)` are as without `njit`; all
        three can be called in functions that numba compiles, and passed to them.  They are specialized when the caller
        is compiled, so a global scalar that the function reads keeps the value it has then.

        Raises
        ------
        BadArgument
            If the function has parameters that compiled code cannot pass (`*args`, a bound `self`).  Errors in the
            types of a call are reported by numba when it compiles the caller.
        """
        return native(self._specializer, self.options)

    # ---- views -------------------------------------------------------------------------------------------------------

    @property
    def forward_source(self) -> str:
        """Text of the forward sweep of the last specialization used."""
        return inspected(self._last_used()).forward

    @property
    def backward_source(self) -> str:
        """Text of the backward sweep of the last specialization used."""
        return inspected(self._last_used()).backward

    def _last_used(self) -> Program:
        last = self._inline_cache.last
        if last is None:
            raise BadArgument(
                f"{self!r} has not been called yet, so the types of its arguments are not known.",
                "Call it or one of its derivatives first, or use .inspect(*args).",
            )
        return last

    def with_options(self, **changes: Any) -> Differentiable:
        """The same function with other options: each time the same object."""
        options = replace(self.options, **changes)
        found = self._variants.get(options)
        if found is None:
            found = self._variants[options] = Differentiable(self.python, options, self._specializer)
        return found


make_known(Differentiable, ("njit",))

_FORMS: dict[str, Form] = {
    "value": "primal",
    "value_and_grad": "joint",
    "grad": "joint",
    "vjp": "record",
    "jvp": "jvp",
    "hvp": "tangent",
}
"""The programs that calls need."""


class _ClassMethod(classmethod):
    """A differentiable class method: bound to a class it still has derivatives, in every version of Python."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.__func__.__get__(type(instance) if owner is None else owner)


def _global(module: str | None, name: str) -> Any:
    """The object that a module holds under a name."""
    found: Any = sys.modules.get(module or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _pickled_by_value() -> bool:
    """Whether the active pickler stores the functions of a script or notebook with their code (cloudpickle)."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if "cloudpickle" in str(frame.f_globals.get("__name__")).split("."):
            return True
        frame = frame.f_back
    return False


def _again(func: Callable[..., Any], options: Options, texts: Texts) -> Differentiable:
    """The object that a pickle represents."""
    keep_texts(func, texts)
    try:
        return _shared(func, options)
    except TypeError:  # a method of an object that has no hash
        return _shared.__wrapped__(func, options)


@functools.lru_cache(maxsize=256)
def _shared(func: Callable[..., Any], options: Options) -> Differentiable:
    """The same object for the same function, so that a worker compiles once."""
    if isinstance(func, Differentiable):
        return Differentiable(func.python, options, func._specializer)
    return Differentiable(func, options)


@hides_frames
def differentiable(
    func: Callable[..., Any] | None = None,
    *,
    wrt: Wrt = 0,
    has_aux: bool = False,
    backend: Backend = "auto",
    boundscheck: bool = True,
    fastmath: bool = False,
    cache: bool = True,
    signatures: Sequence[str] = (),
) -> Any:
    """Give a Python function derivatives.

    Parameters
    ----------
    func : callable
        A function of numbers, NumPy arrays and structures of them.
    wrt : int, str or sequence of them
        Arguments to differentiate with respect to, by position or name (`"self.k"` names an attribute, `"args.0"` the
        first of `*args`).  Where a position exceeds the parameters, all positions count the arguments of the call:
        for `f(x, *args)`, `wrt=(0, 1, 2)` are `x` and the first two of `args`, `wrt=1` is all of `args`.
    has_aux : bool
        The function returns `(objective, anything)` and only the objective is differentiated.
    backend : {"auto", "numba", "python"}
        "numba" compiles; "python" runs the readable source in CPython; "auto" compiles where every call can be
        compiled and the code is not so long that compiling takes minutes, and warns once where it does not.  Its first
        calls run the readable source while a helper process compiles (docs/performance.md).
    boundscheck : bool
        Check indices at run time where they are not proved.
    fastmath : bool
        Allow the compiler to reorder sums and to assume that no NaN occurs.
    cache : bool
        Store compiled code on disk, in a directory of the user, for other processes; see docs/cache.md.
    signatures : sequence of str
        Argument types (`"f8[:], f8, n=3"`) for which the command line writes derivatives to files.

    Returns
    -------
    Differentiable
        Call it like the function; `.grad`, `.value_and_grad`, `.vjp` and `.inspect` accept the same arguments, `.jvp`
        accepts them as one sequence and their tangents as another.
    """
    options = Options(wrt, has_aux, backend, boundscheck, fastmath, cache, signatures)

    def decorate(function: Any) -> Any:
        if isinstance(function, Differentiable):
            warnings.warn(f"{function!r} is differentiable already", UserWarning, stacklevel=3)
            return function
        if isinstance(function, staticmethod):
            return staticmethod(decorate(function.__func__))
        if isinstance(function, classmethod):
            return _ClassMethod(decorate(function.__func__))
        if isinstance(function, property):
            return property(decorate(function.fget), function.fset, function.fdel, function.__doc__)
        unwrap(function)  # refuse what has no Python source here, at the user's decorator
        return Differentiable(function, options)

    return decorate if func is None else decorate(func)


@marks("grad", PIPELINE)
@hides_frames
def grad(func: Callable[..., Any], wrt: Wrt = 0, **options: Any) -> Callable[..., Any]:
    """A function that returns the gradient of `func`; see `differentiable` for the options."""
    return with_options(func, wrt, options).grad


@marks("value_and_grad", PIPELINE)
@hides_frames
def value_and_grad(func: Callable[..., Any], wrt: Wrt = 0, **options: Any) -> Callable[..., Any]:
    """A function that returns `(value, gradient)` of `func`."""
    return with_options(func, wrt, options).value_and_grad


@marks("vjp", PIPELINE)
@hides_frames
def vjp(func: Callable[..., Any], *args: Any, wrt: Wrt = 0, wrt_out: str | Sequence[str] = (), **options: Any) -> Any:
    """Value of `func` at `args`, and its pullback.

    Parameters
    ----------
    func : callable
        A function of numbers, arrays and structures of them.
    *args
        Its arguments.
    wrt : int, str or sequence of them
        Arguments to differentiate with respect to: their values on entry.
    wrt_out : str or sequence of str
        For a function that returns nothing: the arrays among its arguments that it writes its results into.  They are
        the value then, and the pullback accepts the cotangents of their final contents.
    **options
        Options of `differentiable`.

    Returns
    -------
    value, pullback
        See `Differentiable.vjp`.
    """
    if wrt_out:
        if not _returns_nothing(with_options(func, wrt, options), args):
            raise BadArgument("wrt_out is for functions that return nothing.", "Return these arrays as well.")
        func = _outcome(func, len(args), wrt_out if isinstance(wrt_out, str) else tuple(wrt_out))
    return with_options(func, wrt, options).vjp(*args)


@marks("jvp", PIPELINE)
@hides_frames
def jvp(func: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], **options: Any) -> Any:
    """Value of `func` at `primals`, and its derivative along `tangents`; see `Differentiable.jvp`."""
    return with_options(func, 0, options).jvp(primals, tangents)


@marks("jvp", PIPELINE)
def along(func: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], **options: Any) -> Any:
    """`jvp` without the value: None is in its place, or, inside functions, what `jvp` returns."""
    function = with_options(func, 0, options)
    found = function._inline_cache.again("tangent", primals, tangents, {})
    return function._along("tangent", primals, tangents, {}) if found is None else found


def _returns_nothing(function: Differentiable, args: tuple[Any, ...]) -> bool:
    output = function._specialise(args, {}).program.lowered.output
    return isinstance(output, StaticValue) and output.value is None


@functools.lru_cache(maxsize=256)
def _outcome(func: Callable[..., Any], count: int, names: str | tuple[str, ...]) -> FunctionType:
    """A function of the first `count` parameters that calls this one, and returns some of them afterwards."""
    kinds = {name: parameter.kind for name, parameter in inspect.signature(func).parameters.items()}
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    given = [name for name, kind in kinds.items() if kind in plain][:count]
    for name in (names,) if isinstance(names, str) else names:
        if name not in given:
            advice = f"Name some of {', '.join(given)}."
            raise BadArgument(f"wrt_out names {name!r}, which is no argument of this call.", advice)
    collected = [f"*{name}" for name, kind in kinds.items() if kind is inspect.Parameter.VAR_POSITIONAL]
    arguments = ", ".join((*given, *collected))
    returned = names if isinstance(names, str) else f"({', '.join(names)},)"
    title = getattr(func, "__name__", "")
    supply = NameSupply(kinds)
    called = supply.fresh("function")
    head = f"def {title if title.isidentifier() else supply.fresh('outcome')}({arguments}):"
    text = f"{head}\n    {called}({arguments})\n    return {returned}\n"
    return function_from_text(text, {called: func})


def undecorated(func: Callable[..., Any], options: dict[str, Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The plain function of a differentiable one, and its options except `wrt` and `signatures`.

    Each access of a method creates another differentiable object for the same object.
    """
    if not isinstance(func, Differentiable):
        return func, options
    kept = ("has_aux", "backend", "boundscheck", "fastmath", "cache")
    return func.python, {**{name: getattr(func.options, name) for name in kept}, **options}


def directions(count: int, tangents: Sequence[Any]) -> dict[int, Any]:
    """The tangents that are passed for some of `count` arguments, by position.

    Raises
    ------
    BadArgument
        There are more or fewer than arguments, or none is given.
    """
    if len(tangents) != count:
        raise BadArgument(f"{count} arguments have {len(tangents)} tangents.", "Give None for a constant argument.")
    given = {k: tangent for k, tangent in enumerate(tangents) if tangent is not None}
    if not given:
        raise BadArgument("all tangents are None.", "Give a direction for one argument at least.")
    return given


def refuse_recorded(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if recorder_of(args, kwargs) is not None:
        raise BadArgument(
            f"{name} takes arrays and numbers, no tensors.",
            "Call the function itself on tensors under a GradientTape or a ForwardAccumulator, or pass t.numpy().",
        )


def with_options(func: Callable[..., Any], wrt: Wrt, options: dict[str, Any]) -> Differentiable:
    """Any function as a differentiable one with these options; one that is differentiable keeps its others."""
    if isinstance(func, Differentiable):
        return func.with_options(wrt=wrt, **options)
    return _of_function(func, wrt if isinstance(wrt, int | str) else as_wrt(wrt), **options)


@functools.lru_cache(maxsize=256)
def _of_function(func: Callable[..., Any], wrt: Wrt, **options: Any) -> Differentiable:
    """The same object for the same function, so that `tg.grad(f)(x)` in a loop compiles once."""
    result = differentiable(func, wrt=wrt, **options)
    assert isinstance(result, Differentiable)
    return result
