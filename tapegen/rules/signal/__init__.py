"""Rules of Fourier transforms, filters and windows.

* `fft` - `numpy.fft`
* `scipy_fft` - Fourier transforms of `scipy.fft`
* `scipy_dct` - cosine and sine transforms of `scipy.fft`
* `scipy_dct_templates` - the same for compiled code, decomposed into Fourier transforms
* `stencils` - boundary padding and shifted views
* `scipy_ndimage` - filters of images
* `scipy_signal` - convolutions and recursive filters
* `scipy_spectral` - short-time transforms and periodograms
* `windows` - window functions
"""
