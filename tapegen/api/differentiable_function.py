"""Differentiable functions: a Python function together with its derivatives."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import FrameType, FunctionType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from tapegen.backend.compile_progress import series
from tapegen.backend.numba.memory_limit import budget_of
from tapegen.backend.numba.overloads import expose_attributes
from tapegen.errors import BadArgument
from tapegen.frontend.source.callables import unwrap
from tapegen.frontend.source.pickling import Texts, keep_texts, texts_of, travels_by_value
from tapegen.ir.protocols import marks, recorder_of
from tapegen.pipeline.artifacts.program import Form, Program
from tapegen.pipeline.debug_nans import watching
from tapegen.pipeline.nested import PIPELINE
from tapegen.pipeline.options import Options, Wrt, as_wrt
from tapegen.runtime.bound_call import BoundCall, inspected
from tapegen.runtime.foreign_arrays import holds_foreign
from tapegen.runtime.inline_cache import InlineCache
from tapegen.runtime.njit import Native
from tapegen.runtime.specialization import SpecializationCache
from tapegen.runtime.tracebacks import hide_frames, hides_frames
from tapegen.settings import AllKeywords, Keywords, refuse_keywords

if TYPE_CHECKING:
    from tapegen.pipeline.inspection import Inspection

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
T = TypeVar("T")
Objective = TypeVar("Objective")
Aux = TypeVar("Aux")
Pullback = Callable[[Any], Any]


class Differentiable(Generic[P, R]):
    """A Python function together with its derivatives; made by `differentiable`.

    Calling it runs the compiled primal, which returns and raises what plain Python does.

    Attributes
    ----------
    python : callable
        The function as the user wrote it.
    njit : numba dispatcher
        The function and its derivatives for the user's own compiled code.
    """

    __tapegen_opaque__ = True

    def __init__(
        self,
        func: Callable[P, R],
        options: Options,
        specialiser: SpecializationCache | None = None,
    ) -> None:
        self.python = func
        self.options = options
        self._specializer = SpecializationCache(func) if specialiser is None else specialiser
        self._inline_cache: InlineCache = InlineCache(self._specializer)
        self._native = Native(self._specializer, options)
        self._variants: dict[Options, Differentiable[P, Any]] = {}
        self._changed = functools.lru_cache(maxsize=8)(lambda wrt: replace(options, wrt=wrt))
        functools.update_wrapper(self, func, updated=())
        del self.__dict__["__wrapped__"]  # `inspect` must not mistake the object for the function

    def __repr__(self) -> str:
        return f"<differentiable {getattr(self.python, '__qualname__', self.python)}>"

    # The first parameter tells methods of classes and static methods from others.  mypy does not look at it: to mypy,
    # what is read from a class has any arguments, and what is read from an object has lost one.
    @overload
    def __get__(
        self: Differentiable[Concatenate[type[Any], Q], R], instance: None, owner: type
    ) -> Differentiable[..., R]: ...
    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self: Differentiable[Concatenate[type[T], Q], R], instance: T, owner: type | None = None
    ) -> Differentiable[Q, R]: ...
    @overload
    def __get__(
        self: Differentiable[Concatenate[T, Q], R], instance: T, owner: type | None = None
    ) -> Differentiable[Q, R]: ...
    @overload
    def __get__(self, instance: Any, owner: type | None = None) -> Self: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Methods: binding an instance gives the same function with its first argument fixed."""
        if instance is None or not hasattr(type(self.python), "__get__"):
            return self
        # each access of a method creates an object, in a microsecond; persistent state is in that of the method
        bound = object.__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound.python = method = cast(Any, self.python).__get__(instance, owner)
        bound._specializer = self._specializer.bound(method)
        bound._inline_cache = InlineCache(bound._specializer, self._inline_cache)
        bound._native = Native(bound._specializer, self.options)
        bound._variants = {}
        return bound

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickles hold a name, or the function and its options; never anything compiled."""
        name = self.python.__qualname__ if isinstance(self.python, FunctionType) else ""
        home = _global(self.__dict__.get("__module__"), name)
        by_value = _in_cloudpickle() and travels_by_value(getattr(self.python, "__func__", self.python))
        if home is self and not by_value:
            return name
        named = isinstance(home, Differentiable) and home.python is self.python and not by_value
        texts = texts_of(self.python) if by_value else ()
        return _unpickled, (home if named else self.python, self.options, texts)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.python)

    # ---- calls -------------------------------------------------------------------------------------------------------

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The value, as in plain Python; for tensors, a tensor (on a tape the call is one operation)."""
        try:
            found = self._inline_cache.lookup("primal", args, (), kwargs)
            if found is not None:
                return found[0]
            recorder = recorder_of(args, kwargs)
            if recorder is not None:
                return recorder(self, args, kwargs)
            if self.options.backend == "python" and not watching() and not holds_foreign((args, kwargs)):
                return self.python(*args, **kwargs)
            return self._answer("primal", args, kwargs)[0]
        except BaseException as error:
            hide_frames(error)
            raise

    @marks("value_and_grad", PIPELINE)
    def value_and_grad(self, *args: P.args, **kwargs: P.kwargs) -> tuple[R, Any]:
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
            found = self._inline_cache.lookup("joint", args, (), kwargs)
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
    def grad(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """The gradient.

        Returns
        -------
        object
            In the structure of `wrt`; with `has_aux`, `(gradient, aux)`.
        """
        try:
            found = self._inline_cache.lookup("joint", args, (), kwargs)
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
    def vjp(self, *args: P.args, **kwargs: P.kwargs) -> tuple[R, Pullback]:
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
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **kwargs: Any) -> tuple[R, Any]:
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
            check_sequences(primals, tangents)
            found = self._inline_cache.lookup("jvp", primals, tangents, kwargs)
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
            gradient = with_options(func, wrt[0] if len(wrt) == 1 else wrt, options).grad
            function = with_options(gradient, 0, options)
        function._specialise(args, kwargs, wrt=function._specializer.of_the_call(wrt)).precompile(form)

    @hides_frames
    def inspect(self, *args: P.args, **kwargs: P.kwargs) -> Inspection:
        """The generated programs for arguments of these types; the function does not run.

        Returns
        -------
        Inspection
            The texts `.primal`, `.forward`, `.backward`, `.joint` (both sweeps), `.compiled` (for numba)
            and `.tangent` (forward mode); `.stages`, the program after each pass; `.report`, what is recorded and why.
        """
        call = self._specialise(args, kwargs)
        return inspected(call.program, call.leaves())

    def _as_function(self, method: Callable[Q, T]) -> Differentiable[Q, T]:
        """A derivative of this function as a function that has derivatives itself."""
        return with_options(method, 0, {"backend": self.options.backend})

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

    @property
    def njit(self) -> Any:
        """The function for use inside the user's own compiled code: a numba dispatcher.

        `f.njit(*args)` is the value, `f.njit.value_and_grad(*args)` and `f.njit.grad(*args)` are as without `njit`; all
        three can be called in functions that numba compiles, and passed to them.  They are specialized when the caller
        is compiled, so a captured number keeps the value it has then, as in functions of numba; a warning says so,
        unless its name is in upper case.  After a change, `f.njit` is compiled again where it is read again.

        Raises
        ------
        BadArgument
            If the function has parameters that compiled code cannot pass (`*args`, a bound `self`).  Errors in the
            types of a call are reported by numba when it compiles the caller.
        """
        return self._native.dispatcher()

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

    @overload
    def with_options(self, *, has_aux: bool, wrt: Wrt = ..., **changes: Unpack[Keywords]) -> Differentiable[P, Any]: ...
    @overload
    def with_options(self, *, wrt: Wrt = ..., **changes: Unpack[Keywords]) -> Self: ...
    @hides_frames
    def with_options(self, **changes: Any) -> Any:
        """The same function with other options.

        Parameters
        ----------
        **changes
            Options of `differentiable`.

        Returns
        -------
        Differentiable
            The same object for the same options.
        """
        refuse_keywords("with_options", {key: value for key, value in changes.items() if key != "wrt"})
        options = replace(self.options, **changes)
        found = self._variants.get(options)
        if found is None:
            found = self._variants[options] = made(self.python, options, self._specializer)
        return found


class DifferentiableWithAux(Differentiable[P, tuple[Objective, Aux]], Generic[P, Objective, Aux]):
    """A function that returns an objective, which is differentiated, and something else: made with `has_aux=True`."""

    if TYPE_CHECKING:  # what the methods return is another type then; the methods are the same

        @overload
        def __get__(
            self: DifferentiableWithAux[Concatenate[type[Any], Q], Objective, Aux], instance: None, owner: type
        ) -> DifferentiableWithAux[..., Objective, Aux]: ...
        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...
        @overload
        def __get__(
            self: DifferentiableWithAux[Concatenate[type[T], Q], Objective, Aux], instance: T, owner: type | None = None
        ) -> DifferentiableWithAux[Q, Objective, Aux]: ...
        @overload
        def __get__(
            self: DifferentiableWithAux[Concatenate[T, Q], Objective, Aux], instance: T, owner: type | None = None
        ) -> DifferentiableWithAux[Q, Objective, Aux]: ...
        @overload
        def __get__(self, instance: Any, owner: type | None = None) -> Self: ...
        def __get__(self, instance: Any, owner: type | None = None) -> Any: ...
        def grad(self, *args: P.args, **kwargs: P.kwargs) -> tuple[Any, Aux]: ...
        def vjp(self, *args: P.args, **kwargs: P.kwargs) -> tuple[Objective, Pullback, Aux]: ...  # type: ignore[override]
        def jvp(  # type: ignore[override]
            self, primals: Sequence[Any], tangents: Sequence[Any], **kwargs: Any
        ) -> tuple[Objective, Any, Aux]: ...


expose_attributes(Differentiable, ("njit",))

_FORMS: dict[str, Form] = {
    "value": "primal",
    "value_and_grad": "joint",
    "grad": "joint",
    "vjp": "record",
    "jvp": "jvp",
    "hvp": "tangent",
}
"""The programs that calls need."""


def made(
    func: Callable[P, Any], options: Options, specializer: SpecializationCache | None = None
) -> Differentiable[P, Any]:
    """The object for a function with these options."""
    return (DifferentiableWithAux if options.has_aux else Differentiable)(func, options, specializer)


def _global(module: str | None, name: str) -> Any:
    """The object that a module holds under a name."""
    found: Any = sys.modules.get(module or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _in_cloudpickle() -> bool:
    """Whether the active pickler stores functions with their code where their receiver cannot import them."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if "cloudpickle" in str(frame.f_globals.get("__name__")).split("."):
            return True
        frame = frame.f_back
    return False


def _unpickled(func: Callable[..., Any], options: Options, texts: Texts) -> Differentiable[..., Any]:
    """The object that a pickle represents."""
    keep_texts(func, texts)
    try:
        return _shared(func, options)
    except TypeError:  # a method of an object that has no hash
        return _shared.__wrapped__(func, options)


@functools.lru_cache(maxsize=256)
def _shared(func: Callable[..., Any], options: Options) -> Differentiable[..., Any]:
    """The same object for the same function, so that a worker compiles once."""
    if isinstance(func, Differentiable):
        return made(func.python, options, func._specializer)
    return made(func, options)


def undecorated(func: Callable[P, Any], options: AllKeywords) -> tuple[Callable[P, Any], AllKeywords]:
    """The plain function of a differentiable one, and its options except `wrt` and `signatures`.

    Each access of a method creates another differentiable object for the same object.
    """
    if not isinstance(func, Differentiable):
        return func, options
    kept = ("has_aux", "backend", "boundscheck", "fastmath", "cache", "parallel", "memory")
    own = cast(AllKeywords, {name: getattr(func.options, name) for name in kept})
    return func.python, {**own, **options}


def check_sequences(primals: Sequence[Any], tangents: Sequence[Any]) -> None:
    """Refuse arguments and tangents that are no tuple or list: each row of an array would be an argument."""
    if not (isinstance(primals, tuple | list) and isinstance(tangents, tuple | list)):
        name, found = ("tangents", tangents) if isinstance(primals, tuple | list) else ("primals", primals)
        raise BadArgument(
            f"'{name}' is of type {type(found).__name__}.",
            "Pass a tuple or list with one item for each argument of the function: (x,).",
        )


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


def with_options(func: Callable[P, Any], wrt: Wrt, options: Mapping[str, Any]) -> Differentiable[P, Any]:
    """Any function as a differentiable one with these options; one that is differentiable keeps its others."""
    budget_of(options.get("memory"))  # refuse lists, which no cache takes
    if isinstance(func, Differentiable):
        return func.with_options(wrt=wrt, **options)
    found = _of_function(func, wrt if isinstance(wrt, int | str) else as_wrt(wrt), **options)
    return cast("Differentiable[P, Any]", found)


@functools.lru_cache(maxsize=256)
def _of_function(func: Callable[..., Any], wrt: Wrt, **options: Any) -> Differentiable[..., Any]:
    """The same object for the same function, so that `tg.grad(f)(x)` in a loop compiles once."""
    unwrap(func)  # refuse what has no Python source here, at the user's call
    return made(func, Options(wrt, **options))
