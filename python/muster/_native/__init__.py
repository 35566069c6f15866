"""The Python binding of the collective library: the only package that uses ctypes and the C interface."""
