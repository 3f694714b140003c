"""What is derived, printed and built for one specialization, and its runs.

* `differentiated_arguments` - which arguments and results are differentiated
* `program` - the derived programs, and what is made of them once
* `generated_text` - the generated text, to read and for numba
* `executables` - machine code, or generated Python
* `error_locations` - the user's locations of errors of generated code
* `execution` - runs of programs
"""
