"""How operations run eagerly and inside of graphs, without anything compiled against TensorFlow.

In eager mode an operation is handed over and waited for on the calling thread, so errors and Ctrl-C are ordinary
exceptions.

A graph (tf.function, Keras, a session of TensorFlow 1) runs each operation as three nodes, none of which occupies a
thread of TensorFlow while it waits for other ranks:

    begin    tf.numpy_function  hands the operation over and returns a token
    park     parking            an asynchronous kernel, which is done when the operation with that token is done
    finish   tf.numpy_function  returns the results of that token

A thread of this package waits for the operation. Waiting inside of a callback would occupy a thread of TensorFlow's
pool: on a machine with few cores, two ranks that reach independent operations in different orders would wait for each
other for ever. Here, `begin` is stateful, so that a tf.function runs all of them in the order of the program, and none
waits for the end of another; `park` and `finish` have no state and run as soon as their own operation is done.
Operations whose order is fixed by their data have the same order on all ranks; the order of others may differ. The
gradients of a step are one operation, in whichever order they are computed.

If TensorFlow has no asynchronous kernels for Python, a tf.function takes the token from a tf.queue, whose dequeue is
one of TensorFlow's own asynchronous kernels. A session of TensorFlow 1 has no queue that Python could fill: there
`finish` waits on a thread of the session, and a warning describes the consequence.

XLA cannot compile calls of Python: tracing a function with jit_compile=True raises an error that explains this.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np
import tensorflow as tf

from . import errors, flights, parking, tensors
from .plans import Plan

Kernel = Callable[[Sequence[np.ndarray], tensors.MakeOutput], Plan]

_NO_XLA = ("{} cannot be compiled by XLA, which cannot call the library: do not use jit_compile=True for this function "
           "(for Keras: model.compile(..., jit_compile=False)), and compile only the parts between such operations")

_names_of_graph: "weakref.WeakKeyDictionary[Any, Dict[str, Any]]" = weakref.WeakKeyDictionary()


def run(kernel: Kernel, inputs: Sequence[Any], output_types: Sequence[tf.DType], shapes: Sequence[Any],
        name: str) -> List[Any]:
    """The values of `kernel` for the arrays of `inputs`.

    shapes: the known parts of the shapes of the values. Errors, in eager mode: those of the kernel and of
    operations.run(), converted by errors.as_tensorflow(). In a graph TensorFlow raises an error of its own with the
    same message, which errors.as_own() converts back.
    """
    if tf.executing_eagerly():
        try:
            plan = kernel([tensors.view(each) for each in inputs], tensors.output_in_eager_mode)
            return plan.run()
        except Exception as error:
            raise errors.as_tensorflow(error) from None
    refuse_xla(name)
    values = _run_in_graph(kernel, inputs, output_types)
    for value, shape in zip(values, shapes):
        value.set_shape(shape)
    return values


def refuse_xla(name: str) -> None:
    """Errors: NotImplementedError while XLA traces."""
    # TensorFlow has no public function for this. Otherwise the compiler's own message would name a node and no remedy.
    from tensorflow.python.ops import control_flow_util
    if control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()):
        raise NotImplementedError(_NO_XLA.format(name))


def unique_name(name: str) -> str:
    """`name`, or the next name of its kind in the graph under construction: equal on all ranks that build alike."""
    graph = tf.compat.v1.get_default_graph()
    counters = _names_of_graph.setdefault(graph, {})
    number = next(counters.setdefault(name, itertools.count()))
    return name if number == 0 else f"{name}_{number}"


def _run_in_graph(kernel: Kernel, inputs: Sequence[Any], output_types: Sequence[tf.DType]) -> List[Any]:
    site = flights.Site(None if parking.is_available() else _queue())

    def begin(*values: Any) -> np.int64:
        try:
            plan = kernel(tensors.views_in_graph(values), tensors.output_in_graph)
        except Exception as error:  # noqa: B902  (becomes the failure of the flight)
            return np.int64(site.fail(error))
        return np.int64(site.begin(plan))

    def finish(token: np.int64) -> List[Any]:
        return site.finish(int(token))

    with tf.device("CPU:0"):
        token = tf.numpy_function(begin, list(inputs), tf.int64)
        token.set_shape(())
        if parking.is_available():
            token = parking.park(token)
            # The operation is a dependency of the function's end, and of the next iteration of a loop.
            getattr(token.graph, "control_outputs", []).append(token.op)
        elif site.queue is not None:
            with tf.control_dependencies([token]):
                token = site.queue.dequeue()
        else:
            parking.warn_of_held_threads()
        values = tf.numpy_function(finish, [token], list(output_types), stateful=False)
    return list(values)


def _queue() -> Optional[Any]:
    """A queue that both this graph and Python can use; None in a graph of TensorFlow 1."""
    with tf.init_scope():
        if not tf.executing_eagerly():
            return None
        return tf.queue.FIFOQueue(flights.MOST_IN_FLIGHT, [tf.int64], shapes=[()])
