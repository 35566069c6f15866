"""Names below horovod.tensorflow that programs and plug-ins import."""

import importlib
import unittest

import tensorflow as tf

import muster.tensorflow as hvd
from muster.tensorflow import util
from muster.tensorflow.functions import allgather_object, broadcast_variables
from ranks.tensorflow_world import Case


class Util(Case):
    def test_whether_operations_run_at_once(self):
        self.assertTrue(hvd._executing_eagerly())
        self.assertIs(hvd.util._executing_eagerly, hvd._executing_eagerly)
        answers = []
        tf.function(lambda: answers.append(util._executing_eagerly()))()
        with tf.Graph().as_default():
            answers.append(util._executing_eagerly())
        self.assertEqual(answers, [False, False])

    def test_results_are_kept_for_eager_mode_and_for_graphs(self):
        calls = []
        cached = util._cache(lambda number: calls.append(number) or number + 1)
        self.assertEqual([cached(1), cached(1), cached(2)], [2, 2, 3])
        with tf.Graph().as_default():
            self.assertEqual([cached(1), cached(1)], [2, 2])
        self.assertEqual(calls, [1, 2, 1])

    def test_variables_as_keys_and_back(self):
        one, two, three = (tf.Variable(float(number)) for number in range(3))
        refs = util.vars_to_refs([one, [two, three]])
        self.assertEqual({refs: "known"}[util.vars_to_refs([one, [two, three]])], "known")
        back = util.refs_to_vars(refs)
        self.assertTrue(back[0] is one and back[1][0] is two and back[1][1] is three)

    def test_a_function_becomes_a_graph(self):
        self.assert_near(util._make_subgraph(lambda x: hvd.allreduce(x, op=hvd.Sum))(tf.ones(2)), [hvd.size()] * 2)


class Functions(Case):
    def test_are_those_of_the_package(self):
        self.assertIs(allgather_object, hvd.allgather_object)
        self.assertIs(broadcast_variables, hvd.broadcast_variables)


class Modules(Case):
    def test_the_layer_of_batch_normalization_has_a_module(self):
        from muster.tensorflow.sync_batch_norm import SyncBatchNormalization
        self.assertIs(SyncBatchNormalization, hvd.SyncBatchNormalization)

    def test_a_missing_name_is_an_error_that_names_the_replacement(self):
        for name in ("gradient_aggregation", "gradient_aggregation_eager"):
            with self.assertRaisesRegex(ImportError, "backward_passes_per_step"):
                importlib.import_module(f"muster.tensorflow.{name}")
        with self.assertRaisesRegex(ImportError, "tf.data.experimental.service"):
            importlib.import_module("muster.tensorflow.data")


if __name__ == "__main__":
    unittest.main()
