#!/usr/bin/env python3
"""Trains on handwritten digits with TensorFlow, synchronously (MultiWorkerMirroredStrategy): each worker computes gradients
from its part of the images, and all workers apply the mean of these gradients.

    muster submit grpc digits --workers 1 -- python3 digits_mirrored.py      # a chief and a worker
    python3 digits_mirrored.py                                               # alone

TF_CONFIG lists the tasks. A parameter server has nothing to do in this example, and only waits.
"""

import argparse
import os
import signal
import sys
import zlib
from pathlib import Path

# Keras 2 (the package tf-keras), since Keras 3 does not train over several workers.
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf

sys.path.append(str(Path(__file__).resolve().parents[1] / "data"))
import digits_data


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64, help="images per step of all workers together")
    parser.add_argument("--data", default=digits_data.FOLDER, help="folder with the four files, named as in MNIST")
    return parser.parse_args()


def network():
    model = tf.keras.Sequential([
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(digits_data.CLASSES),
    ])
    model.compile(tf.keras.optimizers.SGD(0.1, momentum=0.9),
                  tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def who_takes_part():
    """Removes parameter servers from TF_CONFIG, because the strategy would wait for them for ever."""
    said = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster = {job: tasks for job, tasks in said.cluster_spec().as_dict().items() if job != "ps"}
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(cluster), task_type=said.task_type, task_id=said.task_id, rpc_layer="grpc")


def on_all(strategy, number):
    """The value of `number` on all workers."""
    @tf.function(autograph=False)
    def gather():
        return strategy.gather(strategy.run(lambda: tf.constant([number], tf.int64)), axis=0)

    return gather().numpy().tolist()


def main():
    options = arguments()
    resolver = who_takes_part()
    if resolver.task_type == "ps":
        print("a parameter server has nothing to do here", flush=True)
        signal.pause()
    me = f"{resolver.task_type} {resolver.task_id}" if resolver.task_type else "the only one"
    is_chief = resolver.task_type in (None, "", "chief")
    print(f"TensorFlow {tf.__version__}: {me}", flush=True)

    # The same initial weights and the same order of the images on all workers.
    tf.keras.utils.set_random_seed(1)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(resolver)
    images, labels = digits_data.load("train", options.data)

    def shard(context):
        """This worker's part of the images, in batches of its part of a step."""
        everything = tf.data.Dataset.from_tensor_slices((images, labels))
        mine = everything.shard(context.num_input_pipelines, context.input_pipeline_id)
        batch = context.get_per_replica_batch_size(options.batch)
        return mine.shuffle(len(images), seed=1).repeat().batch(batch)

    def tell(epoch, logs):
        # Muster reads metrics from such lines: docs/metrics.md.
        print(f"::metrics epoch={epoch + 1} epochs={options.epochs} loss={logs['loss']:.4f}", flush=True)

    with strategy.scope():
        model = network()
    model.fit(strategy.distribute_datasets_from_function(shard), epochs=options.epochs,
              steps_per_epoch=len(images) // options.batch, verbose=0,
              callbacks=[tf.keras.callbacks.LambdaCallback(on_epoch_end=tell)] if is_chief else [])

    checksum = zlib.crc32(b"".join(weights.tobytes() for weights in model.get_weights()))
    everyones = on_all(strategy, checksum)
    if len(set(everyones)) != 1:
        sys.exit(f"the workers have different weights: {everyones}")
    if is_chief:
        images, labels = digits_data.load("t10k", options.data)
        right = (model(images).numpy().argmax(axis=1) == labels).mean()
        print(f"::metrics accuracy={right:.4f}\ntest accuracy: {right:.2%}\n"
              f"weights checksum: {checksum:#010x} on all {len(everyones)} workers", flush=True)


if __name__ == "__main__":
    main()
