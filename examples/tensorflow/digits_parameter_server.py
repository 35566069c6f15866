#!/usr/bin/env python3
"""Trains on handwritten digits with TensorFlow and parameter servers (ParameterServerStrategy). The servers hold the
weights, workers pull weights and push gradients without waiting for each other, and the chief distributes the steps.

    muster submit grpc digits --workers 2 --parameter-servers 1 -- python3 digits_parameter_server.py

TF_CONFIG lists the tasks, and has the type of this one.
"""

import argparse
import os
import sys
from pathlib import Path

# Keras 2 (the package tf-keras), since Keras 3 does not support parameter servers.
os.environ["TF_USE_LEGACY_KERAS"] = "1"
# TensorFlow's default of one thread per CPU may be too few: a thread that waits for another task is occupied.
os.environ.setdefault("TF_NUM_INTEROP_THREADS", str(max(4, os.cpu_count())))
import tensorflow as tf

sys.path.append(str(Path(__file__).resolve().parents[1] / "data"))
import digits_data


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=32, help="images per step of each worker")
    parser.add_argument("--data", default=digits_data.FOLDER, help="folder with the four files, named as in MNIST")
    return parser.parse_args()


def network():
    model = tf.keras.Sequential([
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(digits_data.CLASSES),
    ])
    # Without momentum: gradients arrive late here, and momentum would continue in an outdated direction.
    model.compile(tf.keras.optimizers.SGD(0.1),
                  tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def serve(resolver):
    """Runs a worker or parameter server, which executes the chief's requests until the job ends."""
    # Tasks start in any order, and calls wait for tasks that have not started yet.
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
        """All images, in a different order on each worker."""
        everything = tf.data.Dataset.from_tensor_slices((images, labels))
        return everything.shuffle(len(images)).repeat().batch(options.batch)

    def tell(epoch, logs):
        # Muster reads metrics from such lines: docs/metrics.md.
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
          f"test accuracy: {right:.2%} with {counted(workers, 'worker')} and {counted(servers, 'parameter server')}",
          flush=True)


def counted(number, noun):
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def main():
    options = arguments()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        serve(resolver)
    elif resolver.task_type == "chief":
        train(resolver, options)
    else:
        task = resolver.task_type or "without a type"
        sys.exit(f"TF_CONFIG names the task {task}, not a chief, worker or ps: run this as a "
                 "grpc job, with a chief")


if __name__ == "__main__":
    main()
