#!/usr/bin/env python3
"""Trains on handwritten digits with TensorFlow, by parameter servers (ParameterServerStrategy): they hold the weights,
workers fetch them and bring gradients, none waits for another, and the chief hands out the steps.

    muster submit grpc digits --workers 2 --parameter-servers 1 -- python3 digits_parameter_server.py

TF_CONFIG says who takes part, and what this one is.
"""

import argparse
import os
import sys
from pathlib import Path

# Keras 2 (the package tf-keras): Keras 3 knows no parameter servers.
os.environ["TF_USE_LEGACY_KERAS"] = "1"
# As many threads as CPUs, which TensorFlow takes by itself, may be too few: one that waits for another task holds one.
os.environ.setdefault("TF_NUM_INTEROP_THREADS", str(max(4, os.cpu_count())))
import tensorflow as tf

sys.path.append(str(Path(__file__).resolve().parents[1] / "data"))
import digits_data


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=32, help="images of a step of a worker")
    parser.add_argument("--data", default=digits_data.FOLDER, help="folder with the four files, as of MNIST")
    return parser.parse_args()


def network():
    model = tf.keras.Sequential([
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(digits_data.CLASSES),
    ])
    # Without momentum: gradients come late here, and momentum would go on where they no longer point.
    model.compile(tf.keras.optimizers.SGD(0.1),
                  tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def serve(resolver):
    """What workers and parameter servers do, until the job ends: whatever the chief tells them."""
    # They come up in any order, and calls wait for those that are not there yet.
    os.environ["GRPC_FAIL_FAST"] = "use_caller"
    server = tf.distribute.Server(resolver.cluster_spec(), resolver.task_type, resolver.task_id)
    print(f"TensorFlow {tf.__version__}: {resolver.task_type} {resolver.task_id} serves", flush=True)
    server.join()


def train(resolver, options):
    servers = len(resolver.cluster_spec().job_tasks("ps"))
    print(f"TensorFlow {tf.__version__}: chief", flush=True)
    strategy = tf.distribute.ParameterServerStrategy(
        resolver, tf.distribute.experimental.partitioners.MinSizePartitioner(max_shards=servers))
    images, labels = digits_data.load("train", options.data)

    def shuffled(context):
        """All images, in an order of its own on each worker."""
        everything = tf.data.Dataset.from_tensor_slices((images, labels))
        return everything.shuffle(len(images)).repeat().batch(options.batch)

    def tell(epoch, logs):
        # A line that Muster takes for metrics: docs/metrics.md.
        print(f"::metrics epoch={epoch + 1} epochs={options.epochs} loss={logs['loss']:.4f}", flush=True)

    with strategy.scope():
        model = network()
    model.fit(tf.keras.utils.experimental.DatasetCreator(shuffled), epochs=options.epochs,
              steps_per_epoch=len(images) // options.batch, verbose=0,
              callbacks=[tf.keras.callbacks.LambdaCallback(on_epoch_end=tell)])

    images, labels = digits_data.load("t10k", options.data)
    right = (model(images).numpy().argmax(axis=1) == labels).mean()
    workers = len(resolver.cluster_spec().job_tasks("worker"))
    print(f"::metrics accuracy={right:.4f}\n"
          f"test accuracy: {right:.2%} with {workers} workers and {servers} parameter servers", flush=True)


def main():
    options = arguments()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        serve(resolver)
    elif resolver.task_type == "chief":
        train(resolver, options)
    else:
        sys.exit(f"TF_CONFIG names the task {resolver.task_type or 'of nobody'}, not a chief, worker or ps: run this as a "
                 "grpc job, with a chief")


if __name__ == "__main__":
    main()
