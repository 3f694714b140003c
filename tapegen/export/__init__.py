"""Export of derivatives that run without tapegen: modules, shared libraries, wheels.

* `module` - derivatives as the source of a Python module
* `output_buffers` - results written into buffers of the caller
* `library` - ahead-of-time shared libraries
* `python_loader` - the loader in the Python module of a library
* `python_wrapper` - the Python module of a library
* `wheel` - wheels and source distributions
* `native` - object code, C wrappers, linking
"""
