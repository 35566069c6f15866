"""Handwritten digits with Keras on several ranks, written like a program for horovod.tensorflow.keras:

    horovodrun -np 2 python examples/horovod/keras_digits.py

Prints at the end the accuracy on the 360 test images: above 0.9 with 2 ranks and the default epochs.
"""

import argparse
import sys
from pathlib import Path

import tensorflow as tf

try:
    import horovod.tensorflow.keras as hvd
except ImportError:  # if the horovod package is not installed
    import muster.tensorflow.keras as hvd

sys.path.append(str(Path(__file__).resolve().parents[1] / "data"))
import digits_data  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=0.1, help="learning rate for one rank")
    given = parser.parse_args()

    hvd.init()
    # Each rank takes its share of the images, in an order of its own.
    images, labels = digits_data.load("train")
    images, labels = images[hvd.rank()::hvd.size()], labels[hvd.rank()::hvd.size()]
    length = 1437 // hvd.size()  # the same number of batches on every rank
    data = tf.data.Dataset.from_tensor_slices((images[:length].reshape(-1, 8, 8, 1), labels[:length]))
    data = data.shuffle(length, seed=hvd.rank()).batch(given.batch_size)

    tf.keras.utils.set_random_seed(hvd.rank())
    model = tf.keras.Sequential([
        tf.keras.layers.Input((8, 8, 1)),
        tf.keras.layers.Conv2D(16, 3, activation="relu"),
        tf.keras.layers.MaxPooling2D(2),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(32, activation="relu"),
        tf.keras.layers.Dense(digits_data.CLASSES, activation="softmax"),
    ])
    # More ranks make a larger batch, which allows a larger step.
    rate = given.learning_rate * hvd.size()
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(rate, momentum=0.5))
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(data, epochs=given.epochs, verbose=2 if hvd.rank() == 0 else 0, callbacks=[
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),
        hvd.callbacks.LearningRateWarmupCallback(initial_lr=rate, warmup_epochs=3),
    ])

    if hvd.rank() == 0:
        images, labels = digits_data.load("t10k")
        _, accuracy = model.evaluate(images.reshape(-1, 8, 8, 1), labels, verbose=0)
        print(f"accuracy: {accuracy:.4f}")
        if given.epochs >= 12 and accuracy < 0.9:
            raise SystemExit("the network has not learned the digits")


if __name__ == "__main__":
    main()
