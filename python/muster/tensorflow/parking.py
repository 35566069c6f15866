"""An operation of TensorFlow that waits for other ranks and occupies no thread meanwhile.

A session of TensorFlow 1 and a tf.function run their nodes on a pool of threads, which may have a single thread. A node
that waits for another rank on such a thread can keep the pool from the node for which the other rank waits. An
asynchronous kernel of TensorFlow holds no thread: it returns at once, and reports later that it is done.

TensorFlow registers such kernels at run time through its C interface (tensorflow/c/ops.h, tensorflow/c/kernels.h), so
that nothing is compiled: the operation MusterPark takes the token of a flight and returns it when the flight has
landed. If the flight failed, the operation fails with the code that programs expect (errors.code_of).

The C interface passes `done`, the function that reports the end, as the address of a std::function<void()> on the
caller's stack, and has no function that keeps it. park() therefore copies it as the C++ library does: libstdc++ stores
a std::function as 16 bytes of captured values, a function that copies and destroys them, and a function that calls.
Both functions must lie in a loaded library. If they do not, for example with another C++ library, the kernel waits on
its thread, and a warning states the consequence. docs/decisions/0024-tensorflow-waits.md compares the alternatives.
"""

from __future__ import annotations

import ctypes
import functools
import os
import queue
import sys
import warnings
from ctypes import POINTER, addressof, byref, c_bool, c_char_p, c_int, c_int64, c_void_p
from typing import Any, Callable, Dict, List, Optional, Tuple

import tensorflow as tf

from . import errors

_NAME = "MusterPark"

#: The files in which releases of TensorFlow keep the C interface, relative to tf.sysconfig.get_lib().
_FILES = ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2", "python/_pywrap_tensorflow_internal.so")

#: By name: the result and the arguments of each function. Handles are addresses.
_FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "TF_NewStatus": (c_void_p, []),
    "TF_DeleteStatus": (None, [c_void_p]),
    "TF_SetStatus": (None, [c_void_p, c_int, c_char_p]),
    "TF_GetCode": (c_int, [c_void_p]),
    "TF_Message": (c_char_p, [c_void_p]),
    "TF_NewOpDefinitionBuilder": (c_void_p, [c_char_p]),
    "TF_OpDefinitionBuilderAddInput": (None, [c_void_p, c_char_p]),
    "TF_OpDefinitionBuilderAddOutput": (None, [c_void_p, c_char_p]),
    "TF_RegisterOpDefinition": (None, [c_void_p, c_void_p]),
    "TF_NewAsyncKernelBuilder": (c_void_p, [c_char_p, c_char_p, c_void_p, c_void_p, c_void_p]),
    "TF_RegisterKernelBuilder": (None, [c_char_p, c_void_p, c_void_p]),
    "TF_GetInput": (None, [c_void_p, c_int, POINTER(c_void_p), c_void_p]),
    "TF_SetOutput": (None, [c_void_p, c_int, c_void_p, c_void_p]),
    "TF_TensorData": (c_void_p, [c_void_p]),
    "TF_DeleteTensor": (None, [c_void_p]),
    "TF_OpKernelContext_Failure": (None, [c_void_p, c_void_p]),
    "TF_RunAsyncOpKernelDoneCallback": (None, [c_void_p])}

_COMPUTE = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_void_p)

#: The manager of libstdc++'s std::function: it copies (2) or destroys (3) the captured values.
_MANAGER: Any = ctypes.CFUNCTYPE(c_bool, c_void_p, c_void_p, c_int)
_COPY, _DESTROY = 2, 3

_HOLDS_A_THREAD = ("TensorFlow {} {}: in a session of TensorFlow 1, each operation of muster.tensorflow that waits for "
                   "other ranks holds an inter-op thread. Give the session more inter-op threads than the graph has "
                   "independent operations (ConfigProto.inter_op_parallelism_threads), or install another TensorFlow")

#: Called when a flight has landed, with its error or None.
Report = Callable[[Optional[BaseException]], None]
#: Arranges that the report is called once the flight with this token has landed.
OnArrival = Callable[[int, Report], None]

_on_arrival: Optional[OnArrival] = None


def is_available() -> bool:
    """Whether park() works with this TensorFlow. The first call registers the operation."""
    return _library() is not None


@functools.lru_cache(maxsize=None)
def warn_of_held_threads(reason: str = "has no asynchronous kernels for Python") -> None:
    """Prints the warning, once per process."""
    warnings.warn(_HOLDS_A_THREAD.format(tf.__version__, reason), RuntimeWarning, stacklevel=2)


def use(on_arrival: OnArrival) -> None:
    """Sets how flights are found by their tokens; call it once, before the first park()."""
    global _on_arrival
    _on_arrival = on_arrival


def park(token: tf.Tensor) -> tf.Tensor:
    """In a graph: returns `token` once its flight has landed."""
    landed = tf.compat.v1.get_default_graph().create_op(_NAME, [token], [tf.int64]).outputs[0]
    landed.set_shape(())
    return landed


class _Parked:
    """One run of the kernel. It ends with one report to TensorFlow, on any thread."""

    def __init__(self, library: Any, context: int, done: int) -> None:
        """Reads the kernel's input."""
        self._library = library
        self._context = context
        self._done = done
        self._copy: Any = None
        self._tensor = c_void_p()
        status = library.TF_NewStatus()
        library.TF_GetInput(context, 0, byref(self._tensor), status)
        library.TF_DeleteStatus(status)
        self.token = c_int64.from_address(library.TF_TensorData(self._tensor)).value

    def outlive_kernel(self) -> bool:
        """Copies `done`, so that the report can be made after the kernel has returned. False if `done` is not a
        std::function of libstdc++."""
        words = (c_void_p * 4).from_address(self._done)
        if not (_is_in_library(words[2]) and _is_in_library(words[3])):
            return False
        copy = (c_void_p * 4)()
        _MANAGER(words[2])(addressof(copy), self._done, _COPY)
        copy[2], copy[3] = words[2], words[3]
        self._copy, self._done = copy, addressof(copy)
        return True

    def report(self, error: Optional[BaseException]) -> None:
        library, status = self._library, self._library.TF_NewStatus()
        if error is None:
            library.TF_SetOutput(self._context, 0, self._tensor, status)
        else:
            library.TF_SetStatus(status, errors.code_of(error), errors.text_of(error).encode())
            library.TF_OpKernelContext_Failure(self._context, status)
        library.TF_DeleteTensor(self._tensor)
        library.TF_DeleteStatus(status)
        # During this call TensorFlow may free the kernel's context.
        library.TF_RunAsyncOpKernelDoneCallback(self._done)
        if self._copy is not None:
            _MANAGER(self._copy[2])(self._done, self._done, _DESTROY)


def _compute(_: Optional[int], context: int, done: int) -> None:
    """The kernel."""
    parked = _Parked(_library(), context, done)
    assert _on_arrival is not None
    if parked.outlive_kernel():
        _on_arrival(parked.token, parked.report)
        return
    warn_of_held_threads("was built with another C++ library than libstdc++")
    landed: "queue.SimpleQueue[Optional[BaseException]]" = queue.SimpleQueue()
    _on_arrival(parked.token, landed.put)
    parked.report(landed.get())


#: Kept: TensorFlow may call it until the process ends.
_kernel = _COMPUTE(_compute)


class _Symbol(ctypes.Structure):
    """Dl_info of dlfcn.h."""

    _fields_ = [("file", c_char_p), ("base", c_void_p), ("name", c_char_p), ("address", c_void_p)]


def _is_in_library(address: Optional[int]) -> bool:
    return bool(address) and _dladdr(address, byref(_Symbol())) != 0


_dladdr: Any = getattr(ctypes.CDLL(None), "dladdr", None)
if _dladdr is not None:
    _dladdr.argtypes = [c_void_p, c_void_p]


@functools.lru_cache(maxsize=None)
def _library() -> Any:
    """TensorFlow's library, with MusterPark registered in it; None if it has no asynchronous kernels."""
    if not sys.platform.startswith("linux") or _dladdr is None:
        return None
    for file in _FILES:
        path = os.path.join(tf.sysconfig.get_lib(), file)
        if os.path.exists(path):
            library = ctypes.CDLL(path)
            if _declare(library):
                _register(library)
                return library
    return None


def _declare(library: Any) -> bool:
    """Sets the prototypes of the functions. False if the library lacks one."""
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name, None)
        if function is None:
            return False
        function.restype, function.argtypes = result, arguments
    return True


def _register(library: Any) -> None:
    """Errors: RuntimeError with TensorFlow's message."""
    status = library.TF_NewStatus()
    # Not stateful: a tf.function would run stateful operations one after the other.
    definition = library.TF_NewOpDefinitionBuilder(_NAME.encode())
    library.TF_OpDefinitionBuilderAddInput(definition, b"token: int64")
    library.TF_OpDefinitionBuilderAddOutput(definition, b"landed: int64")
    library.TF_RegisterOpDefinition(definition, status)
    if not library.TF_GetCode(status):
        kernel = library.TF_NewAsyncKernelBuilder(_NAME.encode(), b"CPU", None, _kernel, None)
        library.TF_RegisterKernelBuilder(_NAME.encode(), kernel, status)
    code, words = library.TF_GetCode(status), library.TF_Message(status).decode(errors="replace")
    library.TF_DeleteStatus(status)
    if code:
        raise RuntimeError(f"TensorFlow {tf.__version__} refuses the operation {_NAME}: {words}")
