"""The collective library as Python sees it: the only place that knows of ctypes and of its C interface."""
