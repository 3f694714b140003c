"""Special-cased functions and methods of Python and NumPy, lowered directly.

* `attributes` - attributes of objects, classes, modules, arrays
* `builtins` - builtins
* `sequences` - ranges, lists, tuples, dicts and their copies
* `sets` - sets of known values
* `itertools` - `itertools`, `np.ndindex`, `np.ndenumerate`
* `stdlib` - `functools.reduce`, `copy`, `dataclasses`, `statistics`
* `container_methods` - methods of lists, tuples and dicts
* `array_methods` - methods of arrays and scalars
* `numpy_introspection` - functions that look at types or shapes
* `numpy_variants` - keyword variants that are decomposed
* `index_grids` - `np.mgrid`, `np.ogrid`
* `list_to_array` - arrays made of growing lists
* `output_arrays` - `out=`
* `ufunc_at` - `ufunc.at`
* `random` - random draws
* `solver_callbacks` - functions passed to solvers
"""
