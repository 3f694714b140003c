"""The C program that calls the functions of a library with right and with changed arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from string import Template

from tests.attack.library_calls import Called

ANY, RUNS = -1, -2
"""In the place of a status: any; none but 0, whatever the results are."""

Change = tuple[str, str, int]
"""What is changed, the statements that change it, and the status that must come."""

_RUNTIME = r"""
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GIVEN, WRITTEN, RESULT, LIKE, FILL = 0xA5 };

struct memory {
    char *at;
    int kind;
    size_t size;
    const unsigned char *content;
    unsigned char *right;
};

static void expect(const char *what, int status, int wanted) {
    if (wanted >= 0 ? status != wanted : wanted == -2 && status != 0)
        printf("%s: %d (%s) in the place of %d\n", what, status, STRERROR(status), wanted < 0 ? 0 : wanted);
    else if (strcmp(STRERROR(status), "unknown status") == 0)
        printf("%s: unknown status %d\n", what, status);
}

/* Exactly as many bytes as there are, so that valgrind sees each access beyond them. */
static void *make(struct memory *memory, int kind, size_t size, const unsigned char *content, unsigned char *right) {
    *memory = (struct memory){malloc(size), kind, size, content, right};
    return memory->at;
}

static void refill(struct memory *memory, int count) {
    for (int k = 0; k < count; k++)
        if (memory[k].kind <= WRITTEN)
            memcpy(memory[k].at, memory[k].content, memory[k].size);
        else
            memset(memory[k].at, FILL, memory[k].size);
}

static void drop(struct memory *memory, int count) {
    for (int k = 0; k < count; k++)
        free(memory[k].at);
}

static int untouched(const struct memory *memory) {
    for (size_t k = 0; k < memory->size; k++)
        if ((unsigned char)memory->at[k] != FILL)
            return 0;
    return 1;
}

/* What must hold for memory after any call; `passed` says whether a result went there. */
static void look(const struct memory *memory, const char *what, int k, int status, int wanted, int passed) {
    int is_result = memory->kind >= RESULT;
    if (is_result && (!passed || status == 3 || (status != 0 && memory->kind == RESULT)) && !untouched(memory))
        printf("%s: %d, and result %d is written\n", what, status, k);
    if (is_result && passed && status == 0 && wanted == 0 && memcmp(memory->at, memory->right, memory->size) != 0)
        printf("%s: result %d is another\n", what, k);
}

static void together(void *(*run)(void *)) {
    pthread_t threads[4];
    for (int k = 0; k < 4; k++)
        pthread_create(&threads[k], NULL, run, NULL);
    for (int k = 0; k < 4; k++)
        pthread_join(threads[k], NULL);
}

#define shifted(A, k) (A->shifted = malloc(A->memory[k].size + 1), \
    memcpy((char *)A->shifted + 1, A->memory[k].at, A->memory[k].size), (void *)((char *)A->shifted + 1))
"""

_FUNCTION = Template(r"""
struct args_$own {
    struct memory memory[$count + 1];
    void *shifted;
    $fields
};

$contents

static int call_$own(struct args_$own *A) { return $own($given); }

static void refill_$own(struct args_$own *A) {
    refill(A->memory, $count);
    $sizes
}

static void fresh_$own(struct args_$own *A) {
    memset(A, 0, sizeof *A);
    $made
    refill_$own(A);
}

static void drop_$own(struct args_$own *A) {
    drop(A->memory, $count);
    free(A->shifted);
    $dropped
}

static void first_$own(void) {
    struct args_$own args;
    fresh_$own(&args);
    expect("$own", call_$own(&args), 0);
    for (int k = 0; k < $count; k++)
        if (args.memory[k].kind >= RESULT)
            memcpy(args.memory[k].right, args.memory[k].at, args.memory[k].size);
    drop_$own(&args);
}

static void judge_$own(struct args_$own *A, const char *what, int status, int wanted) {
    expect(what, status, wanted);
    $looks
}

/* Call it with right arguments again; after a pullback that has failed halfway its tape says so. */
static void again_$own(struct args_$own *A, const char *what, int before) {
    refill_$own(A);
    int status = call_$own(A);
    if (status == 7 && before != 0)
        return;
    expect(what, status, 0);
    for (int k = 0; k < $count; k++)
        look(&A->memory[k], what, k, status, 0, 1);
}

static void *thread_$own(void *unused) {
    for (int k = 0; k < 5; k++) {
        struct args_$own args;
        fresh_$own(&args);
        again_$own(&args, "$own in a thread", 0);
        drop_$own(&args);
    }
    return unused;
}

static void attack_$own(void) {
    first_$own();
$attacks}
""")

_ATTACK = Template(r"""    {
        struct args_$own args, right, *A = &args;
        fresh_$own(A);
        right = args;
        $change
        int status = call_$own(A);
        judge_$own(A, "$own: $what", status, $wanted);
        $freed
        right.shifted = A->shifted;
        again_$own(&right, "$own: after $what", status);
        drop_$own(&right);
    }
""")

_MAIN = Template(r"""
int main(void) {
    $attacks
    $threads
    return 0;
}
""")

_KINDS = {"given": "GIVEN", "number": "GIVEN", "written": "WRITTEN", "result": "RESULT", "like": "LIKE"}


def program(library: str, calls: Sequence[Called], changes: Mapping[str, Sequence[Change]]) -> str:
    """The text of the program; it prints what is not as it must be."""
    head = f'#include "{library}.h"\n#define STRERROR {library}_strerror\n'
    functions = [_function(call, changes[call.name]) for call in calls]
    attacks = [f"attack_{call.name}();" for call in calls]
    threads = [f"together(thread_{call.name});" for call in calls]
    return "".join([head, _RUNTIME, *functions, _MAIN.substitute(attacks=_lines(attacks), threads=_lines(threads))])


def _function(call: Called, changes: Sequence[Change]) -> str:
    own, base = call.name, call.name.rpartition("_")[0]
    shaped = [each for each in call.memories if each.has_shape]
    fields = [f"{c_type} {name};" for c_type, name in call.params]
    fields += [f"int64_t sizes_{each.name}[{len(each.shape)}];" for each in shaped]
    contents, made, looks = [], [], []
    for k, each in enumerate(call.memories):
        contents.append(f"static const unsigned char content_{own}_{k}[] = {{{', '.join(map(str, each.content))}}};")
        right = "NULL"
        if not each.is_given:
            right = f"right_{own}_{k}"
            contents.append(f"static unsigned char {right}[{len(each.content)}];")
        content = f"content_{own}_{k}"
        parts = f"&A->memory[{k}], {_KINDS[each.kind]}, sizeof {content}, {content}, {right}"
        made.append(f"A->{each.name} = make({parts});")
        passed = f"(void *)A->{each.name} == (void *)A->memory[{k}].at"
        looks.append(f"look(&A->memory[{k}], what, {k}, status, wanted, {passed});")
    made += [f"A->{name} = {text};" for name, text in call.numbers.items()]
    sizes = [f"A->{each.name}_shape = A->sizes_{each.name};" for each in shaped]
    sizes += [f"A->sizes_{each.name}[{axis}] = {n};" for each in shaped for axis, n in enumerate(each.shape)]
    dropped, freed = [], []
    if call.tape == "made":
        fields.append(f"{base}_tape *made;")
        made.append("A->tape = &A->made;")
        dropped.append(f"{base}_tape_free(A->made);")
        freed = [*dropped, "right.tape = &right.made;"]
    elif call.tape == "given":
        fields.append(f"struct args_{base}_record before;")
        made.append(f'fresh_{base}_record(&A->before); expect("{own}", call_{base}_record(&A->before), 0);')
        made.append("A->tape = A->before.made;")
        dropped.append(f"drop_{base}_record(&A->before);")
    attacks = [
        _ATTACK.substitute(own=own, what=what, change=change, wanted=wanted, freed=_lines(freed))
        for what, change, wanted in changes
    ]
    return _FUNCTION.substitute(
        own=own,
        count=len(call.memories),
        fields=_lines(fields),
        contents="\n".join(contents),
        given=", ".join(f"A->{name}" for _, name in call.params),
        sizes=_lines(sizes),
        made=_lines(made),
        dropped=_lines(dropped),
        looks=_lines(looks),
        attacks="".join(attacks),
    )


def _lines(statements: Iterable[str]) -> str:
    return "\n    ".join(statements)


__all__ = ["ANY", "RUNS", "Change", "program"]
