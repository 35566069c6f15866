"""model.fit() of Keras 2, its legacy optimizers and Keras 3 on several ranks, against training alone on the
concatenated batches, in double precision."""

import inspect
import os
import tempfile
import unittest

import keras
import numpy
import tensorflow as tf
import tf_keras

import muster.tensorflow as hvd
from muster.tensorflow import sync_batch_norm
from muster.tensorflow.aggregation import LocalAggregation
from muster.tensorflow.elastic import variables_of_optimizer
from muster.tensorflow.keras.callback_classes import classes_for
from muster.tensorflow.keras.elastic_callbacks import elastic_classes_for
from muster.tensorflow.keras.loading import load_with
from ranks.tensorflow_world import Case

BATCHES, ROWS, WIDTH = 5, 4, 6
GENERATIONS = {"Keras 3": keras, "Keras 2": tf_keras}
# Also for losses and learning rates: a batch of three ranks must not be divided in single precision.
keras.config.set_floatx("float64")
tf_keras.backend.set_floatx("float64")


def features(rank):
    generator = numpy.random.default_rng(rank)
    return generator.normal(size=(BATCHES * ROWS, WIDTH)), generator.normal(size=(BATCHES * ROWS, 1))


def of_all_ranks():
    """The concatenated batches of all ranks."""
    parts = [features(rank) for rank in range(hvd.size())]
    return [numpy.concatenate([part[i].reshape(BATCHES, ROWS, -1) for part in parts], axis=1)
            .reshape(BATCHES * ROWS * hvd.size(), -1) for i in range(2)]


def network(library, seed, *more):
    library.utils.set_random_seed(seed)
    return library.Sequential([library.layers.Input((WIDTH,), dtype="float64"),
                               library.layers.Dense(8, activation="tanh", dtype="float64"), *more,
                               library.layers.Dense(1, dtype="float64")])


def optimizers():
    """By name: the library, and a function that makes an optimizer."""
    return {
        "SGD of Keras 3": (keras, lambda: keras.optimizers.SGD(0.1, momentum=0.9)),
        "Adam of Keras 3": (keras, lambda: keras.optimizers.Adam(0.05)),
        "SGD of Keras 2": (tf_keras, lambda: tf_keras.optimizers.SGD(0.1, momentum=0.9, jit_compile=False)),
        "Adam of Keras 2": (tf_keras, lambda: tf_keras.optimizers.Adam(0.05, jit_compile=False)),
        "legacy SGD": (tf_keras, lambda: tf_keras.optimizers.legacy.SGD(0.1, momentum=0.9)),
        "legacy Adam": (tf_keras, lambda: tf_keras.optimizers.legacy.Adam(0.05)),
    }


def fit(library, model, optimizer, data, rows, epochs=2, callbacks=(), **options):
    model.compile(optimizer=optimizer, loss="mse", **options)
    return model.fit(*data, batch_size=rows, epochs=epochs, shuffle=False, verbose=0, callbacks=list(callbacks))


class Fit(Case):
    def assert_weights(self, model, expected):
        for mine, other in zip(model.get_weights(), expected):
            numpy.testing.assert_allclose(mine, other, rtol=0, atol=1e-12)
        self.assert_same_bits(numpy.concatenate([each.ravel() for each in model.get_weights()]), "weights of fit")

    def test_is_fitting_alone_to_the_concatenated_batch(self):
        for name, (library, make) in optimizers().items():
            with self.subTest(name):
                alone = network(library, 0)
                fit(library, alone, make(), of_all_ranks(), ROWS * hvd.size())
                model = network(library, hvd.rank())
                optimizer = hvd.DistributedOptimizer(make())
                self.assertEqual(type(optimizer).__name__, type(make()).__name__)
                fit(library, model, optimizer, features(hvd.rank()), ROWS,
                    callbacks=[classes_for(library).BroadcastGlobalVariablesCallback(0)])
                self.assert_weights(model, alone.get_weights())

    def test_several_passes_equal_one_pass_of_a_larger_batch(self):
        for name, (library, make) in optimizers().items():
            if "SGD" not in name:
                continue
            with self.subTest(name):
                # 4 of the 5 batches of an epoch make two steps.
                data = [each[:4 * ROWS] for each in features(hvd.rank())]
                parts = [[each[:4 * ROWS].reshape(2, 2 * ROWS, -1) for each in features(rank)]
                         for rank in range(hvd.size())]
                whole = [numpy.concatenate([part[i] for part in parts], axis=1).reshape(4 * ROWS * hvd.size(), -1)
                         for i in range(2)]
                alone = network(library, 0)
                fit(library, alone, make(), whole, 2 * ROWS * hvd.size())
                model = network(library, 0)
                optimizer = hvd.DistributedOptimizer(make(), backward_passes_per_step=2,
                                                     average_aggregated_gradients=True)
                fit(library, model, optimizer, data, ROWS)
                self.assert_weights(model, alone.get_weights())
                # Schedules count batches, whether they were applied or not.
                self.assertEqual(int(tf.convert_to_tensor(optimizer.iterations)), 8)

    def test_local_layers_differ_and_the_others_do_not(self):
        for name in ("SGD of Keras 3", "SGD of Keras 2", "legacy SGD"):
            library, make = optimizers()[name]
            with self.subTest(name):
                model = network(library, 0)
                from muster.tensorflow.keras import PartialDistributedOptimizer
                optimizer = PartialDistributedOptimizer(make(), local_layers=model.layers[-1])
                fit(library, model, optimizer, features(hvd.rank()), ROWS, epochs=1)
                everyone = hvd.allgather_object([each.tobytes() for each in model.get_weights()], name=f"local {name}")
                same = [len({rank[i] for rank in everyone}) for i in range(4)]
                # The losses of the other ranks reach the shared layer through averaged gradients.
                self.assertEqual(same, [1, 1, hvd.size(), hvd.size()])

    def test_a_model_that_learns_its_shapes_from_the_first_batch(self):
        for library in GENERATIONS.values():
            library.utils.set_random_seed(hvd.rank())
            model = library.Sequential([library.layers.Dense(3, dtype="float64"),
                                        library.layers.Dense(1, dtype="float64")])
            optimizer = hvd.DistributedOptimizer(library.optimizers.SGD(0.1))
            fit(library, model, optimizer, features(hvd.rank()), ROWS, epochs=1,
                callbacks=[classes_for(library).BroadcastGlobalVariablesCallback(0)])
            self.assert_same_bits(model.get_weights()[0], f"late {library.__name__}")

    def test_a_model_that_only_the_root_has_built(self):
        for name, library in GENERATIONS.items():
            for root_is_built in (True, False):
                with self.subTest(name, root_is_built=root_is_built):
                    library.utils.set_random_seed(hvd.rank())
                    model = library.Sequential([library.layers.Dense(3, dtype="float64"),
                                                library.layers.Dense(1, dtype="float64")])
                    if (hvd.rank() == 0) == root_is_built:
                        model.build((None, WIDTH))
                    optimizer = hvd.DistributedOptimizer(library.optimizers.Adam(0.1))
                    callback = classes_for(library).BroadcastGlobalVariablesCallback(0)
                    fit(library, model, optimizer, features(hvd.rank()), ROWS, epochs=1, callbacks=[callback])
                    self.assertTrue(callback.broadcast_done)
                    for number, weight in enumerate(model.get_weights()):
                        self.assert_same_bits(weight, f"built by some {name} {root_is_built} {number}")

    def test_gradients_of_compute_gradients_are_reduced_once(self):
        for name, (library, make) in optimizers().items():
            if "SGD" not in name:
                continue
            for op, expected in ((hvd.Average, (hvd.size() + 1) / 2), (hvd.Sum, hvd.size() * (hvd.size() + 1) / 2)):
                with self.subTest(name, op=op):
                    optimizer = hvd.DistributedOptimizer(make(), op=op)
                    variable = tf.Variable(1.0, dtype=tf.float64)
                    ((gradient, of),) = optimizer._compute_gradients(lambda: variable * (hvd.rank() + 1.0), [variable])
                    self.assertIs(of, variable)
                    self.assert_near(gradient, expected)
                    optimizer.apply_gradients([(gradient, of)])
                    numpy.testing.assert_allclose(variable.numpy(), 1 - 0.1 * expected, rtol=1e-6)
                    # Other gradients are reduced as before.
                    other = tf.Variable(1.0, dtype=tf.float64)
                    optimizer = hvd.DistributedOptimizer(make(), op=op)
                    optimizer.apply_gradients([(tf.constant(hvd.rank() + 1.0, tf.float64), other)])
                    numpy.testing.assert_allclose(other.numpy(), 1 - 0.1 * expected, rtol=1e-6)

    def test_the_counter_of_passes(self):
        for name, (library, make) in optimizers().items():
            if "SGD" not in name:
                continue
            with self.subTest(name):
                optimizer = hvd.DistributedOptimizer(make(), backward_passes_per_step=3)
                variable = tf.Variable(1.0, dtype=tf.float64)
                seen = []
                for _ in range(4):
                    optimizer.apply_gradients(optimizer._compute_gradients(lambda: variable * 1.0, [variable]))
                    seen.append(int(optimizer._agg_helper.counter))
                self.assertEqual(seen, [1, 2, 0, 1])
                numpy.testing.assert_allclose(variable.numpy(), 1 - 0.1 * 3, rtol=1e-6)
        self.assertIsNone(hvd.DistributedOptimizer(keras.optimizers.SGD())._agg_helper)

    def test_variables_that_have_a_gradient_in_some_passes_only(self):
        made = {**optimizers(), "of TensorFlow 1": (None, lambda: tf.compat.v1.train.MomentumOptimizer(0.1, 0.9))}
        for name, (library, make) in made.items():
            if "Adam" in name:
                continue
            for omits in (False, True):  # a program may leave pairs without a gradient out
                with self.subTest(name, omits=omits):
                    optimizer = hvd.DistributedOptimizer(make(), backward_passes_per_step=2)
                    first, second, never = variables = [tf.Variable(1.0, dtype=tf.float64) for _ in range(3)]
                    if hasattr(optimizer, "build"):
                        optimizer.build(variables)
                    for gradients in ((1.0, None), (None, 2.0), (None, 3.0), (None, 1.0)):
                        pairs = [(None if each is None else tf.constant(each * (hvd.rank() + 1), tf.float64), variable)
                                 for each, variable in zip((*gradients, None), variables)]
                        optimizer.apply_gradients([each for each in pairs if not omits or each[0] is not None])
                    mean = (hvd.size() + 1) / 2
                    # In the second step the first variable has no gradient, and its momentum does not move it.
                    moved = 2.0 * mean
                    expected = [1 - 0.1 * mean, 1 - 0.1 * moved - 0.1 * (0.9 * moved + 4.0 * mean), 1.0]
                    numpy.testing.assert_allclose([each.numpy() for each in (first, second, never)], expected,
                                                  rtol=1e-6)

    def test_a_graph_whose_passes_have_gradients_of_other_variables_is_refused(self):
        for name in ("SGD of Keras 3", "SGD of Keras 2", "legacy SGD"):
            library, make = optimizers()[name]
            with self.subTest(name):
                optimizer = hvd.DistributedOptimizer(make(), backward_passes_per_step=2)
                always, other = variables = [tf.Variable(1.0, dtype=tf.float64, name=each)
                                             for each in ("always", "other")]

                @tf.function
                def step(has_other):
                    ones = [tf.ones((), tf.float64) if each else None for each in (True, has_other)]
                    optimizer.apply_gradients(list(zip(ones, variables)))

                step(False)
                for _ in range(2):
                    with self.assertRaisesRegex(ValueError, "no gradient of other.*unconnected_gradients"):
                        step(True)
                step(False)
                numpy.testing.assert_allclose([always.numpy(), other.numpy()], [1 - 0.1 * 2, 1.0], rtol=1e-6)

    def test_the_pass_after_an_error_in_the_last_one_makes_the_step(self):
        aggregation = LocalAggregation(2, False)
        sums = []

        def apply(gradients, variables):
            sums.append(float(gradients[0]))
            if len(sums) == 1:
                raise ArithmeticError("once")

        def add():
            aggregation.apply([tf.constant(1.0)], [variable], apply, tf.no_op)

        variable = tf.Variable(0.0)
        add()
        with self.assertRaises(ArithmeticError):
            add()
        for _ in range(3):
            add()
        self.assertEqual(sums, [2.0, 3.0, 2.0])

    def test_a_removed_process_set_does_not_end_the_passes_of_a_step(self):
        if hvd.size() == 1:
            return
        optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), backward_passes_per_step=2)
        variable = tf.Variable(1.0, dtype=tf.float64)
        for step in range(4):
            if step == 1:
                hvd.remove_process_set(hvd.add_process_set([0]))
            optimizer.apply_gradients([(tf.constant(hvd.rank() + 1.0, tf.float64), variable)])
        numpy.testing.assert_allclose(variable.numpy(), 1 - 0.1 * 4 * (hvd.size() + 1) / 2, rtol=1e-6)

    def test_the_ranks_of_the_next_world_begin_a_step_together(self):
        for name in ("SGD of Keras 3", "SGD of Keras 2", "legacy SGD"):
            library, make = optimizers()[name]
            for is_graph in (False, True):
                with self.subTest(name, is_graph=is_graph):
                    optimizer = hvd.DistributedOptimizer(make(), backward_passes_per_step=2)
                    variable = tf.Variable(1.0, dtype=tf.float64)

                    def step(gradient):
                        optimizer.apply_gradients([(gradient, variable)])

                    if is_graph:
                        step = tf.function(step)
                    gradient = tf.constant(hvd.rank() + 1.0, tf.float64)
                    if hvd.rank() == 0:  # the others are new in the next world
                        step(gradient)
                    hvd.shutdown()
                    hvd.init()
                    step(gradient)
                    self.assertEqual(variable.numpy(), 1.0)
                    step(gradient)
                    numpy.testing.assert_allclose(variable.numpy(), 1 - 0.1 * (hvd.size() + 1), rtol=1e-6)

    def test_anything_but_an_optimizer_is_refused(self):
        with self.assertRaisesRegex(ValueError, "takes an optimizer"):
            hvd.DistributedOptimizer("sgd")
        with self.assertRaisesRegex(ValueError, "already"):
            hvd.DistributedOptimizer(hvd.DistributedOptimizer(keras.optimizers.SGD()))
        with self.assertRaisesRegex(ValueError, "backward_passes_per_step is 0"):
            hvd.DistributedOptimizer(keras.optimizers.SGD(), backward_passes_per_step=0)

    @unittest.skipIf(hvd.size() == 1, "one rank agrees with itself")
    def test_a_loss_scale_outside_the_distributed_optimizer_is_refused(self):
        with self.assertRaisesRegex(ValueError, "wrap the other way round"):
            keras.optimizers.LossScaleOptimizer(hvd.DistributedOptimizer(keras.optimizers.SGD()))
        hvd.DistributedOptimizer(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD()))


class Layers(Case):
    def test_sync_batch_normalization_is_that_of_the_concatenated_batch(self):
        for name, library in GENERATIONS.items():
            with self.subTest(name):
                alone = network(library, 0, library.layers.BatchNormalization(dtype="float64"))
                fit(library, alone, library.optimizers.SGD(0.1), of_all_ranks(), ROWS * hvd.size())
                model = network(library, 0, sync_batch_norm.layer_for(library)(dtype="float64"))
                fit(library, model, hvd.DistributedOptimizer(library.optimizers.SGD(0.1)), features(hvd.rank()), ROWS)
                for mine, other in zip(model.get_weights(), alone.get_weights()):
                    numpy.testing.assert_allclose(mine, other, rtol=0, atol=1e-11)

    def test_fused_and_synchronized_are_refused(self):
        with self.assertRaisesRegex(ValueError, "fused and synchronized"):
            sync_batch_norm.layer_for(tf_keras)(fused=True, synchronized=True)


class Callbacks(Case):
    def test_metrics_are_averaged(self):
        for name, library in GENERATIONS.items():
            with self.subTest(name):
                callback = classes_for(library).MetricAverageCallback()
                # The order differs between the ranks.
                logs = dict(sorted({"loss": float(hvd.rank()), "accuracy": 0.5}.items(), reverse=hvd.rank() == 0))
                callback.on_epoch_end(0, logs)
                self.assertEqual(logs, {"loss": (hvd.size() - 1) / 2, "accuracy": 0.5})

    def test_the_learning_rate_grows_during_the_first_epochs(self):
        for name, (library, make) in optimizers().items():
            if "SGD" not in name:
                continue
            with self.subTest(name):
                rates = []
                seen = library.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: rates.append(
                    float(tf.convert_to_tensor(optimizer.learning_rate))))
                optimizer = hvd.DistributedOptimizer(make())
                fit(library, network(library, 0), optimizer, features(hvd.rank()), ROWS, epochs=3,
                    callbacks=[classes_for(library).LearningRateWarmupCallback(0.4, warmup_epochs=2), seen])
                growing = [0.4 / hvd.size() * (1 + (hvd.size() - 1) * (i + 1) / 10) for i in range(10)]
                numpy.testing.assert_allclose(rates, growing + [0.4] * 5, rtol=1e-6)

    def test_the_learning_rate_follows_a_schedule(self):
        history = []
        for library in GENERATIONS.values():
            callback = classes_for(library).LearningRateScheduleCallback(0.5, lambda epoch: 0.1 ** epoch,
                                                                         start_epoch=1)
            optimizer = hvd.DistributedOptimizer(library.optimizers.SGD(0.5))
            history = fit(library, network(library, 0), optimizer, features(hvd.rank()), ROWS, epochs=3,
                          callbacks=[callback]).history
            numpy.testing.assert_allclose(history["lr"], [0.5, 0.05, 0.005], rtol=1e-6)
        for staircase, expected in ((True, [0.5, 0.5, 0.25, 0.125]), (False, None)):
            callback = classes_for(keras).LearningRateScheduleCallback(0.5, 0.5, start_epoch=1, staircase=staircase)
            optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.5))
            history = fit(keras, network(keras, 0), optimizer, features(hvd.rank()), ROWS, epochs=4,
                          callbacks=[callback]).history
            # By batches, the last batch of an epoch begins when (BATCHES - 1) / BATCHES of it is done.
            expected = expected or [0.5, *(0.5 ** (1 + epoch + (BATCHES - 1) / BATCHES) for epoch in range(3))]
            numpy.testing.assert_allclose(history["lr"], expected, rtol=1e-6)
        with self.assertRaisesRegex(ValueError, "warmup_epochs is 0"):
            classes_for(keras).LearningRateWarmupCallback(0.1, warmup_epochs=0)

    def test_the_best_model_is_written_by_one_rank_and_comes_back_with_its_optimizer(self):
        for name, library in GENERATIONS.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "best.keras")
                optimizer = hvd.DistributedOptimizer(library.optimizers.Adam(0.05))
                model = network(library, 0)
                fit(library, model, optimizer, features(hvd.rank()), ROWS,
                    callbacks=[classes_for(library).BestModelCheckpoint("loss", filepath=path)])
                self.assertEqual(os.listdir(folder), ["best.keras"] if hvd.rank() == 0 else [])
                model.save(path)
                loaded = load_with(library, path, None, None, hvd.Compression.none)
                self.assertEqual(type(loaded.optimizer).__name__, "Adam")
                self.assertEqual(int(tf.convert_to_tensor(loaded.optimizer.iterations)), 2 * BATCHES)
                for mine, other in zip(loaded.get_weights(), model.get_weights()):
                    numpy.testing.assert_array_equal(mine, other)
                more = loaded.fit(*features(hvd.rank()), batch_size=ROWS, shuffle=False, verbose=0)
                self.assertEqual(len(more.history["loss"]), 1)
                self.assert_same_bits(loaded.get_weights()[0], f"loaded {name}")

    def test_a_checkpoint_without_a_path_is_an_error(self):
        callback = classes_for(keras).BestModelCheckpoint()
        with self.assertRaisesRegex(ValueError, "filepath"):
            callback.on_train_begin()

    def test_a_checkpoint_takes_the_arguments_of_horovod(self):
        from muster.keras.callbacks import BestModelCheckpoint

        def is_for_the_largest(callback):
            return callback.mode == "max" if hasattr(callback, "mode") else callback.monitor_op == numpy.greater

        for library in GENERATIONS.values():
            callback = classes_for(library).BestModelCheckpoint("accuracy", 1, True, "max", 7)
            self.assertEqual((callback.monitor, callback.verbose, callback.save_weights_only, callback.save_freq),
                             ("accuracy", 1, True, 7))
            self.assertTrue(is_for_the_largest(callback))
        callback = BestModelCheckpoint("accuracy", 1, "max", 7)
        self.assertEqual((callback.monitor, callback.save_weights_only, callback.save_freq), ("accuracy", False, 7))
        self.assertTrue(is_for_the_largest(callback))


class Elastic(Case):
    def test_the_state_follows_fit_and_comes_back(self):
        for name, (library, make) in optimizers().items():
            with self.subTest(name):
                model = network(library, hvd.rank())
                optimizer = hvd.DistributedOptimizer(make())
                model.compile(optimizer=optimizer, loss="mse")
                state = hvd.elastic.TensorFlowKerasState(model, optimizer, batch=0, epoch=0)
                state.sync()
                self.assert_same_bits(model.get_weights()[0], f"synchronized {name}")
                classes = elastic_classes_for(library)
                model.fit(*features(hvd.rank()), batch_size=ROWS, epochs=2, shuffle=False, verbose=0, callbacks=[
                    classes.UpdateEpochStateCallback(state), classes.UpdateBatchStateCallback(state),
                    classes.CommitStateCallback(state, batches_per_commit=2)])
                self.assertEqual((state.epoch, state.batch), (2, 0))
                saved = [tf.convert_to_tensor(each).numpy() for each in state._listed()]
                model.set_weights([0 * each for each in model.get_weights()])
                state.epoch = 9
                state.restore()
                self.assertEqual(state.epoch, 2)
                for mine, other in zip(state._listed(), saved):
                    numpy.testing.assert_array_equal(tf.convert_to_tensor(mine).numpy(), other)

    def test_the_batch_is_counted_over_the_runs_of_fit(self):
        for name, library in GENERATIONS.items():
            with self.subTest(name):
                model, optimizer = network(library, 0), library.optimizers.SGD(0.1)
                state = hvd.elastic.TensorFlowKerasState(model, optimizer, batch=3, epoch=0)
                seen = []
                fit(library, model, optimizer, features(hvd.rank()), ROWS, epochs=2, callbacks=[
                    elastic_classes_for(library).UpdateBatchStateCallback(state),
                    library.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: seen.append(state.batch))])
                self.assertEqual(seen, [4, 5, 6, 7, 8, 1, 2, 3, 4, 5])
                self.assertEqual(state.batch, 0)

    def test_a_model_without_variables_is_refused_with_advice(self):
        for name, library in GENERATIONS.items():
            with self.subTest(name):
                model = library.Sequential([library.layers.Dense(1, dtype="float64")])
                with self.assertRaisesRegex(ValueError, r"is not built, .*call model.build\(input_shape\)"):
                    hvd.elastic.TensorFlowKerasState(model, library.optimizers.SGD(0.1))
                model.build((None, WIDTH))
                hvd.elastic.TensorFlowKerasState(model, library.optimizers.SGD(0.1))

    def test_variables_that_a_model_gets_later_do_not_shift_those_of_the_optimizer(self):
        for name, library in GENERATIONS.items():
            with self.subTest(name):
                model, optimizer = network(library, 0), library.optimizers.SGD(0.1, momentum=0.9)
                optimizer.build(model.trainable_variables)
                state = hvd.elastic.TensorFlowKerasState(model, optimizer)
                before = [tf.convert_to_tensor(each).numpy() for each in variables_of_optimizer(optimizer)]
                model.add(library.layers.Dense(2, dtype="float64"))
                for each in variables_of_optimizer(optimizer):
                    each.assign(tf.ones_like(tf.convert_to_tensor(each)))
                state.restore()
                for variable, value in zip(variables_of_optimizer(optimizer), before):
                    numpy.testing.assert_array_equal(tf.convert_to_tensor(variable).numpy(), value)


class Names(Case):
    def test_arguments_have_the_order_of_horovod(self):
        # Horovod 0.28.1; arguments that Muster adds come last.
        for function, names in {
                hvd.allreduce: "tensor average device_dense device_sparse compression op prescale_factor "
                               "postscale_factor name process_set",
                hvd.grouped_allreduce: "tensors average device_dense device_sparse compression op prescale_factor "
                                       "postscale_factor process_set",
                hvd.reducescatter: "tensor device_dense compression op name process_set ignore_name_scope "
                                   "prescale_factor postscale_factor",
                hvd.grouped_reducescatter: "tensors device_dense compression op process_set prescale_factor "
                                           "postscale_factor",
                hvd.allgather: "tensor name ignore_name_scope process_set",
                hvd.broadcast: "tensor root_rank name ignore_name_scope process_set",
                hvd.alltoall: "tensor splits name ignore_name_scope process_set",
                hvd.broadcast_variables: "variables root_rank process_set"}.items():
            with self.subTest(function.__name__):
                given = list(inspect.signature(function).parameters)
                self.assertEqual(given[:len(names.split())], names.split())
        rows = hvd.reducescatter(tf.ones(hvd.size()), "", hvd.Compression.none, hvd.Sum, None, hvd.global_process_set,
                                 True, 2.0)
        self.assertEqual(rows.numpy().tolist(), [2.0 * hvd.size()])

    def test_values_of_keras_programs(self):
        import muster.keras
        import muster.tensorflow.keras
        for package in (muster.keras, muster.tensorflow.keras):
            self.assertEqual(package.allreduce(float(hvd.rank()), name="v"), (hvd.size() - 1) / 2)
            self.assertEqual(package.allgather([hvd.rank()]).tolist(), list(range(hvd.size())))
            self.assertEqual(int(package.broadcast(hvd.rank(), 1)), 1)
            self.assertEqual(package.reducescatter(numpy.ones(hvd.size()), op=package.Sum).tolist(), [hvd.size()])
            missing = [name for name in package.__all__ if not hasattr(package, name)]
            self.assertEqual(missing, [])
        missing = [name for name in hvd.__all__ if not hasattr(hvd, name)]
        self.assertEqual(missing, [])
        self.assertFalse(hasattr(hvd, "data"))
        with self.assertRaisesRegex(AttributeError, "tf.data.experimental"):
            hvd.data
        with self.assertRaisesRegex(ImportError, "tf.data.experimental"):
            from muster.tensorflow import data  # noqa: F401


if __name__ == "__main__":
    unittest.main()
