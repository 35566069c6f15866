#!/usr/bin/env python3
"""Trains on handwritten digits with ChainerMN, in the style of its own MNIST example: a communicator over mpi4py, data
that rank 0 scatters, a multi-node optimizer and evaluator, a trainer.

    mpirun -np 2 python3 train_digits.py
    muster submit mpi digits --workers 2 -- mpirun -np 2 --hostfile /generated/hostfile python3 train_digits.py
"""

import argparse
import sys
from pathlib import Path

import chainer
import chainermn
import numpy
from chainer import functions, links, training
from chainer.training import extensions

sys.path.append(str(Path(__file__).resolve().parents[1] / "data"))
import digits_data


class Network(chainer.Chain):
    """Three fully connected layers."""

    def __init__(self, units):
        super().__init__()
        with self.init_scope():
            self.first = links.Linear(None, units)
            self.second = links.Linear(units, units)
            self.last = links.Linear(units, digits_data.CLASSES)

    def forward(self, images):
        return self.last(functions.relu(self.second(functions.relu(self.first(images)))))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32, help="images per step on each rank")
    parser.add_argument("--units", type=int, default=64)
    parser.add_argument("--communicator", default="naive", help="the communicator of ChainerMN; naive runs on CPUs")
    parser.add_argument("--data", default=digits_data.FOLDER, help="folder with the four files, named as in MNIST")
    return parser.parse_args()


def dataset(part, options, comm):
    """This rank's share of the images; only rank 0 reads them."""
    whole = None
    if comm.rank == 0:
        images, labels = digits_data.load(part, options.data)
        whole = chainer.datasets.TupleDataset(images.astype("float32"), labels.astype("int32"))
    return chainermn.scatter_dataset(whole, comm, shuffle=part == "train", seed=1)


def main():
    options = arguments()
    comm = chainermn.create_communicator(options.communicator)
    # Seeds the order of the images on each rank; the initial weights of all ranks are rank 0's.
    numpy.random.seed(1 + comm.rank)
    model = links.Classifier(Network(options.units))
    optimizer = chainermn.create_multi_node_optimizer(chainer.optimizers.Adam(), comm)
    optimizer.setup(model)

    train = chainer.iterators.SerialIterator(dataset("train", options, comm), options.batch)
    test = chainer.iterators.SerialIterator(dataset("t10k", options, comm), options.batch, repeat=False, shuffle=False)
    trainer = training.Trainer(training.StandardUpdater(train, optimizer), (options.epochs, "epoch"), out="result")
    evaluator = chainermn.create_multi_node_evaluator(extensions.Evaluator(test, model), comm)
    trainer.run()

    accuracy = evaluator()["main/accuracy"]
    weights = sum(float(abs(parameter.array).sum()) for parameter in model.params())
    print(f"rank {comm.rank} of {comm.size} ends with weights of {weights:.3f}", flush=True)
    if comm.rank == 0:
        print(f"test accuracy: {100 * accuracy:.2f}%", flush=True)


if __name__ == "__main__":
    main()
