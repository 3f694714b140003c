"""What is derived, printed and built for one specialization, and its runs.

* `selection` - which arguments and results are differentiated
* `program` - the derived programs, and what is made of them once
* `texts` - generated text
* `executables` - machine code, or generated Python
* `error_locations` - the user's locations of errors of generated code
* `execution` - runs of programs
"""
