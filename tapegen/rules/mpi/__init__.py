"""Communication between ranks: what programs call in place of the methods of mpi4py, and its adjoints.

* `messages` - messages of two ranks: of the program, and of its backward sweep
* `collectives` - operations of all ranks of a communicator
* `order` - what begins and ends a program that communicates
* `adjoints` - derivative rules

Each function takes a number, the *order*, and returns it as one of its results.  All operations of a program are
linked through it, so that the backward sweep has the adjoint of each of them, in reverse order, also where a rank
receives nothing that depends on its arguments: another rank waits for the message.  Communicators are integers
(`py2f`), which are constants of the program.
"""
