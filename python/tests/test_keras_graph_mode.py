"""model.fit() of Keras 2 in a program for TensorFlow 1, which switches eager execution off.

Each test starts its own ranks, because a program cannot switch eager execution on again.
"""

import sys
import textwrap
import unittest

from run_on_ranks import Ranks

COMMON = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy
import tensorflow as tf
tf.compat.v1.disable_eager_execution()
import muster.tensorflow.keras as hvd
hvd.init()
"""


def outputs_of(program, size=2, **environment):
    with Ranks([sys.executable, "-W", "ignore", "-c", COMMON + textwrap.dedent(program)], size,
               environment=environment) as ranks:
        outcomes = ranks.finish()
    for rank, outcome in enumerate(outcomes):
        if outcome.code != 0:
            raise AssertionError(f"rank {rank} ended with {outcome.code}:\n{outcome.output}")
    return [outcome.output for outcome in outcomes]


class GraphMode(unittest.TestCase):
    def test_callbacks_copy_variables_average_metrics_and_set_the_rate(self):
        outputs = outputs_of("""
            keras = tf.keras
            keras.utils.set_random_seed(hvd.rank())  # other weights on each rank

            def fit(rate, epochs, *callbacks):
                model = keras.Sequential([keras.layers.Dense(3, input_shape=(4,)), keras.layers.Dense(1)])
                model.compile(optimizer=keras.optimizers.legacy.SGD(rate, momentum=0.5), loss="mse")
                history = model.fit(numpy.ones((8, 4)), numpy.full((8, 1), float(hvd.rank())), batch_size=8,
                                    epochs=epochs, verbose=0, callbacks=list(callbacks)).history
                return model, history

            # At a rate of 0, training leaves the weights as they are.
            model, history = fit(0.0, 1, hvd.callbacks.BroadcastGlobalVariablesCallback(0),
                                 hvd.callbacks.MetricAverageCallback())
            print("weights", [each.tobytes().hex() for each in model.get_weights()], flush=True)
            print("loss", history["loss"], flush=True)
            momenta = []
            watch = keras.callbacks.LambdaCallback(on_batch_begin=lambda batch, logs: momenta.append(
                float(keras.backend.get_value(watch.model.optimizer.momentum))))
            _, history = fit(0.5, 2, hvd.callbacks.LearningRateScheduleCallback(0.5, 0.5), watch)
            print("rates", [float(each) for each in history["lr"]], "momenta", momenta, flush=True)
            from muster.tensorflow.keras.sessions import number
            print("numbers", [number(value) for value in (1, numpy.float32(0.5), keras.backend.variable(0.25))])
        """, TF_USE_LEGACY_KERAS="1")
        for name in ("loss", "weights"):
            lines = [[line for line in output.splitlines() if line.startswith(name)] for output in outputs]
            self.assertEqual(len(lines[0]), 1, outputs[0])
            self.assertEqual(lines[0], lines[1])
        for output in outputs:
            self.assertIn("rates [0.5, 0.25] momenta [0.5, 0.25]", output)
            self.assertIn("numbers [1.0, 0.5, 0.25]", output)

    def test_keras_3_is_refused_with_advice(self):
        outputs = outputs_of("""
            from muster.tensorflow.keras.sessions import now
            try:
                now(tf.constant(1.0))
            except RuntimeError as error:
                print("refused:", error, flush=True)
        """, TF_USE_LEGACY_KERAS=None)
        for output in outputs:
            self.assertIn("refused: this program has switched eager execution off", output)


if __name__ == "__main__":
    unittest.main()
