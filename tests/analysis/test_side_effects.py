"""Places, writes and alias conflicts of hand-built programs."""

import operator

import numpy as np

from tapegen.analysis.side_effects import Effects, effects_of
from tapegen.ir import intrinsics
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Const,
    Effect,
    For,
    Function,
    If,
    Load,
    Return,
    Slice,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import BOOL, FLOAT, INT, Array, ListOf

VECTOR = Array("float64", 1)
MATRIX = Array("float64", 2)

a, b, c, u, v, w, new = (Var(name, VECTOR) for name in ("a", "b", "c", "u", "v", "w", "new"))
m = Var("m", MATRIX)
cond = Var("cond", BOOL)
i, n = Var("i", INT), Var("n", INT)
s, t = Var("s", FLOAT), Var("t", FLOAT)
path = Var("path", ListOf(VECTOR))

ZERO, ONE, HALF = Const(0), Const(1), Const(0.5)
NOTHING = (HALF,)
TAIL = (Slice(ONE, None, None),)


def program(*body, params=(a, c, m, cond, n), results=NOTHING) -> Effects:
    return effects_of(Function("f", params, (*body, Return(results))))


def store(array, index=(ZERO,), value=HALF, accumulate=False) -> Store:
    return Store(array, index, value, accumulate)


def alloc(target, like=a) -> Assign:
    return Assign((target,), Call(np.zeros_like, (like,), (), VECTOR))


def read(target, array, index=(ZERO,)) -> Assign:
    return Assign((target,), Load(array, index, FLOAT))


def view(target, base, index=TAIL) -> Assign:
    return Assign((target,), Load(base, index, VECTOR))


def loop(*body: object) -> For:
    return For(i, ZERO, n, ONE, tuple(body))  # type: ignore[arg-type]


def pairs(effects: Effects) -> set[tuple[str, str]]:
    return {(conflict.stored.name, conflict.other.name) for conflict in effects.conflicts}


def test_views_share_the_roots_of_their_base():
    effects = program(
        view(v, m, (ZERO,)),
        view(w, v),
        Assign((b,), Call(intrinsics.transpose_view, (w,), (), VECTOR)),
        Assign((u,), Call(np.exp, (w,), (), VECTOR)),
        store(b),
    )
    assert effects.by_name["b"] == effects.by_name["v"] == frozenset({"m"})
    assert effects.by_name["u"] == frozenset({"u"})
    assert effects.mutated_params == {"m"}
    assert effects.may_alias(b, v)
    assert not effects.may_alias(b, u)
    assert not effects.is_written(u)


def test_a_reshape_may_be_a_view_or_a_copy():
    effects = program(Assign((v,), Call(np.ravel, (m,), (), VECTOR)), store(v))
    assert effects.by_name["v"] == frozenset({"m", "v"})
    assert effects.mutated_params == {"m"}


def test_an_integer_array_index_copies():
    index = Var("index", Array("int64", 1))
    effects = program(Assign((v,), Load(a, (index,), VECTOR)), store(v), params=(a, index))
    assert effects.by_name["v"] == frozenset({"v"})
    assert effects.mutated_params == frozenset()


def test_allocations_and_trips():
    first, again = alloc(u), alloc(new)
    inner = store(new)
    effects = program(first, loop(again, inner, Assign((u,), new)))
    assert effects.allocations == {"u": first, "new": again}
    assert effects.by_name["u"] == frozenset({"u", "new"})
    assert effects.writes == {inner: frozenset({"new"})}
    assert effects.writers == {"new": (inner,)}


def test_two_allocations_of_one_merge_are_two_roots():
    latch = Assign((u,), Call(np.sin, (u,), (), VECTOR))
    effects = program(alloc(u), loop(latch))
    assert effects.by_name["u"] == frozenset({"u", "u'1"})
    assert effects.allocations["u'1"] is latch


def test_a_merged_parameter_keeps_its_root():
    effects = program(loop(Assign((a,), Call(np.sin, (a,), (), VECTOR))), store(a))
    assert effects.by_name["a"] == frozenset({"a", "a'1"})
    assert effects.mutated_params == {"a"}


def test_conditional_alias_written_then_read_is_a_conflict():
    choose = If(cond, (Assign((b,), a),), (Assign((b,), c),))
    first = store(b)
    effects = program(choose, first, read(s, a), results=(s,))
    (conflict,) = effects.conflicts
    assert (conflict.statement, conflict.stored, conflict.other) == (first, b, a)
    assert effects.by_name["b"] == frozenset({"a", "c"})
    assert effects.mutated_params == {"a", "c"}


def test_conditional_expression_is_a_conflict_too():
    choose = Assign((b,), Call(intrinsics.ifelse, (cond, a, c), (), VECTOR))
    assert pairs(program(choose, store(a), read(s, b))) == {("a", "b")}
    assert pairs(program(choose, store(c), read(s, b))) == {("c", "b")}
    assert pairs(program(choose, store(b), read(s, b))) == set()


def test_view_of_a_conditional_alias_is_a_conflict():
    choose = If(cond, (Assign((b,), a),), (Assign((b,), c),))
    assert pairs(program(choose, view(v, b), store(v), read(s, c))) == {("v", "c")}
    assert pairs(program(choose, view(v, b), store(v), read(s, b))) == set()


def test_reading_before_the_store_is_clean():
    choose = If(cond, (Assign((b,), a),), (Assign((b,), c),))
    assert pairs(program(choose, read(s, a), store(b), read(t, b))) == set()


def test_reading_before_the_store_in_a_loop_is_not_clean():
    choose = If(cond, (Assign((b,), a),), (Assign((b,), c),))
    assert pairs(program(choose, loop(read(s, a), store(b)))) == {("b", "a")}


def test_overlapping_views_of_one_base_are_clean():
    assert pairs(program(view(v, a), view(w, a, (Slice(None, n, None),)), store(v), read(s, w), read(t, a))) == set()


def test_swapped_buffers_are_clean():
    body = (store(new, (i,)), Assign((u, new), Tuple((new, u))))
    for swapped in (loop(*body), While(cond, body)):
        assert pairs(program(alloc(u), alloc(new), swapped, read(s, u))) == set()


def test_copied_reference_instead_of_a_swap_is_a_conflict():
    """`u = new` without a new buffer: the second iteration writes what it reads."""
    effects = program(alloc(u), alloc(new), loop(read(s, u), store(new, (i,)), Assign((u,), new)))
    assert pairs(effects) == set()  # u is rebound before it is read again
    effects = program(alloc(u), alloc(new), loop(store(new, (i,)), read(s, u), Assign((u,), new)))
    assert pairs(effects) == {("new", "u")}


def test_fresh_buffer_per_trip_is_clean():
    effects = program(
        alloc(u), loop(alloc(new), read(s, u), store(new, (i,)), read(t, u), Assign((u,), new)), read(s, u)
    )
    assert pairs(effects) == set()


def test_rebound_after_an_alias_is_clean():
    effects = program(Assign((u,), a), loop(Assign((u,), Call(np.sin, (u,), (), VECTOR))), store(u), read(s, u))
    assert pairs(effects) == set()
    effects = program(Assign((u,), a), loop(Assign((u,), Call(np.sin, (u,), (), VECTOR))), store(u), read(s, a))
    assert pairs(effects) == {("u", "a")}


def test_accumulating_into_an_array_reads_it():
    choose = Assign((b,), Call(intrinsics.ifelse, (cond, a, c), (), VECTOR))
    assert pairs(program(choose, store(b, (), a), store(a, (), HALF))) == set()
    assert pairs(program(choose, store(b, (), a), store(a, (), HALF, accumulate=True))) == {("b", "a")}


def test_an_array_in_a_list_is_the_same_array():
    put = Effect(Call(intrinsics.append, (path, u)))
    empty = Assign((path,), Call(intrinsics.new_list, (), (), path.type))
    take = Assign((v,), Call(intrinsics.item, (path, ZERO), (), VECTOR))
    effects = program(empty, alloc(u), put, take, store(u), read(s, v))
    assert effects.by_name["v"] == frozenset({"u"})
    assert effects.writes[put] == frozenset({"path"})
    assert pairs(effects) == {("u", "v")}
    assert pairs(program(empty, alloc(u), put, put, read(s, u))) == set()
    assert pairs(program(empty, loop(alloc(u), store(u), put), take, read(s, v))) == set()


def test_calls_that_write():
    other = Effect(Call(np.copyto, (a, c)))
    out = Assign((v,), Call(np.add, (a, c), (("out", u),), VECTOR))
    show = Effect(Call(print, (a,)))
    effects = program(alloc(u), other, out, show)
    assert effects.writes == {other: frozenset({"a", "c"}), out: frozenset({"u"})}
    assert effects.by_name["v"] == frozenset({"u"})


def test_an_unknown_function_may_return_its_argument():
    def mine(x):
        return x

    effects = program(Assign((v,), Call(mine, (a,), (), VECTOR)), store(v), read(s, a))
    assert effects.by_name["v"] == frozenset({"a", "v"})
    assert pairs(effects) == {("v", "a")}


def test_the_diagonal_that_numpy_returns_is_a_view():
    effects = program(Assign((v,), Call(np.diag, (m,), (), VECTOR)), store(m, (ZERO, ZERO)), read(s, v))
    assert pairs(effects) == {("m", "v")}


def test_shape_alone_is_not_a_read():
    choose = Assign((b,), Call(intrinsics.ifelse, (cond, a, c), (), VECTOR))
    size = Assign((Var("k", INT),), Call(operator.add, (Call(intrinsics.dim, (a, ZERO), (), INT), ONE), (), INT))
    assert pairs(program(choose, store(b), size)) == set()


def test_every_block_is_seen():
    deep = store(m, (i, i))
    body: Block = (If(cond, (), (While(cond, (loop(deep),)),)),)
    assert program(*body).writers == {"m": (deep,)}
