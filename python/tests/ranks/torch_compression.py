"""int8 and PowerSGD with error feedback in DistributedOptimizer."""

import copy
import os
import pickle

import torch

import muster.torch as hvd
from muster.torch.compressed_buckets import Int8Bucket, PowerSGDBucket
from ranks.torch_world import Case

STEPS = 6
COMPRESSIONS = {"int8": lambda: hvd.Compression.int8, "powersgd": lambda: hvd.Compression.powersgd(rank=2)}


def model_of(dtype=torch.float32):
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Conv2d(2, 8, 3), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(72, 33),
                               torch.nn.Tanh(), torch.nn.Linear(33, 5)).to(dtype)


def backward(model, step, rank, scale=1.0):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    dtype = next(model.parameters()).dtype
    inputs = torch.randn(4, 2, 5, 5, generator=generator).to(dtype)
    targets = torch.randn(4, 5, generator=generator).to(dtype)
    (torch.nn.functional.mse_loss(model(inputs), targets) * scale).backward()


def gradients_of(model, step, rank):
    """The gradients that `rank` computes, on a copy of the model."""
    alone = copy.deepcopy(model)
    alone.zero_grad()
    backward(alone, step, rank)
    return [parameter.grad for parameter in alone.parameters()]


def wrapped(model, compression, rate=0.05, **arguments):
    return hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=rate), model.named_parameters(),
                                    compression=compression, **arguments)


def train(model, optimizer, steps):
    for step in steps:
        optimizer.zero_grad()
        backward(model, step, hvd.rank())
        optimizer.step()


class Compressed(Case):
    def test_all_that_was_sent_and_the_last_error_are_all_gradients(self):
        """The sum over the steps of what the optimizer got, plus the mean of the errors of the last step, is the sum of
        the true averages."""
        for name, make in COMPRESSIONS.items():
            for groups in (None, 3):
                model = model_of()
                optimizer = wrapped(model, make(), groups=groups)
                got = [torch.zeros_like(parameter) for parameter in model.parameters()]
                true = [torch.zeros_like(parameter) for parameter in model.parameters()]
                largest = 0.0
                for step in range(STEPS):
                    for total, *each in zip(true, *(gradients_of(model, step, rank) for rank in range(hvd.size()))):
                        total += sum(each) / hvd.size()
                    optimizer.zero_grad()
                    backward(model, step, hvd.rank())
                    optimizer.synchronize()
                    for total, parameter in zip(got, model.parameters()):
                        total += parameter.grad
                        self.assert_same_bits(parameter.grad)
                    with optimizer.skip_synchronize():
                        optimizer.step()
                errors = self.mean_errors(optimizer, list(model.parameters()))
                for number, (sent, error, total) in enumerate(zip(got, errors, true)):
                    difference = (sent + error - total).abs().max().item()
                    self.assertLess(difference, 1e-5 * STEPS, f"{name} {number}")
                    largest = max(largest, error.abs().max().item())
                self.assertGreater(largest, 1e-5, "nothing was compressed")

    def mean_errors(self, optimizer, parameters):
        """The errors of all ranks, averaged, by parameter."""
        found = {id(parameter): torch.zeros_like(parameter) for parameter in parameters}
        for number, bucket in enumerate(optimizer._reducer._buckets):
            if isinstance(bucket, PowerSGDBucket):
                for place, (slot, error) in enumerate(bucket.errors()):
                    found[id(slot.parameter)] = hvd.allreduce(error, name=f"error.{number}.{place}").view(
                        slot.parameter.shape)
                continue
            self.assertIsInstance(bucket, Int8Bucket)
            whole = hvd.allreduce(bucket.error, name=f"error.{number}")
            whole += hvd.allgather(bucket.error_of_average, name=f"error.average.{number}")
            for slot, part in zip(bucket.slots, whole.split(bucket._lengths)):
                found[id(slot.parameter)] = part.view(slot.parameter.shape)
        return [found[id(parameter)] for parameter in parameters]

    def test_same_bits_again_and_on_all_ranks(self):
        for make in COMPRESSIONS.values():
            models = model_of(), model_of()
            for model in models:
                train(model, wrapped(model, make(), groups=2), range(STEPS))
            for left, right in zip(*(model.parameters() for model in models)):
                self.assertTrue(torch.equal(left, right))
                self.assert_same_bits(left)

    def test_bytes_on_the_wire(self):
        plain = self.bytes_with(hvd.Compression.none)
        ranks = hvd.size()
        elements = [parameter.numel() for parameter in model_of().parameters()]
        # Gradients begin at multiples of 64 bytes.
        self.assertEqual(plain, 2 * (ranks - 1) * sum(-(-4 * each // 64) * 64 for each in elements) // ranks)
        self.assertEqual(self.bytes_with(hvd.Compression.bf16), plain // 2)
        chunks = -(-sum(elements) // (512 * ranks))
        self.assertEqual(self.bytes_with(hvd.Compression.int8), 2 * (ranks - 1) * chunks * (512 + 4))
        # 144 in 8 x 18, 2376 in 33 x 72, 165 in 5 x 33; biases as they are.
        factors = 2 * (8 + 18) + 2 * (33 + 72) + 2 * (5 + 33) + 8 + 33 + 5
        self.assertEqual(self.bytes_with(hvd.Compression.powersgd(rank=2)), 2 * (ranks - 1) * 4 * factors // ranks)

    def bytes_with(self, compression):
        model = model_of()
        optimizer = wrapped(model, compression)
        self.assertEqual(optimizer.wire_bytes(), 0)
        train(model, optimizer, range(2))
        return optimizer.wire_bytes()

    def test_a_full_rank_is_exact(self):
        """PowerSGD sends a gradient unchanged if its factors would not be smaller."""
        models = model_of(torch.float64), model_of(torch.float64)
        train(models[0], wrapped(models[0], hvd.Compression.powersgd(rank=1000)), range(STEPS))
        train(models[1], wrapped(models[1], hvd.Compression.none), range(STEPS))
        for left, right in zip(*(model.parameters() for model in models)):
            self.assertLessEqual((left - right).abs().max().item(), 1e-5)

    def test_sum_and_16_bit_parameters(self):
        for make in COMPRESSIONS.values():
            models = model_of(), model_of()
            train(models[0], wrapped(models[0], make(), op=hvd.Sum, rate=0.05 / hvd.size()), range(STEPS))
            train(models[1], wrapped(models[1], make()), range(STEPS))
            for left, right in zip(*(model.parameters() for model in models)):
                self.assertLessEqual((left - right).abs().max().item(), 1e-5)
            model = model_of().bfloat16()
            optimizer = wrapped(model, make())
            for step in range(2):
                for parameter in model.parameters():
                    parameter.grad = torch.full_like(parameter, float(hvd.rank() + step))
                optimizer.step()
            for parameter in model.parameters():
                self.assertEqual(parameter.grad.dtype, torch.bfloat16)
                self.assert_same_bits(parameter.grad)

    def test_missing_gradients_count_as_zeros(self):
        for make in COMPRESSIONS.values():
            model = model_of()
            optimizer = wrapped(model, make())
            for _ in range(2):
                for number, parameter in enumerate(model.parameters()):
                    parameter.grad = None if hvd.rank() == number % 2 else torch.ones_like(parameter)
                optimizer.synchronize()
                with optimizer.skip_synchronize():
                    optimizer.step()
            for number, parameter in enumerate(model.parameters()):
                expected = 1 - (1 if number % 2 < hvd.size() else 0) / hvd.size()
                self.assertLess((parameter.grad - expected).abs().max().item(), 0.05)

    def test_an_infinity_spoils_one_step_only(self):
        for name, make in COMPRESSIONS.items():
            model = model_of()
            optimizer = wrapped(model, make())
            for step in range(4):
                optimizer.zero_grad()
                backward(model, step, hvd.rank(), float("inf") if step == 1 and hvd.rank() == 0 else 1.0)
                optimizer.synchronize()
                finite = torch.isfinite(model[3].weight.grad).all().item()
                self.assertEqual(finite, step != 1, f"{name}, step {step}")
                if finite:
                    with optimizer.skip_synchronize():
                        optimizer.step()

    def test_gradients_of_zeros(self):
        for name, make in COMPRESSIONS.items():
            model = model_of()
            optimizer = wrapped(model, make())
            for step in range(3):
                optimizer.zero_grad()
                backward(model, step, hvd.rank(), 0.0 if step == 1 else 1.0)
                optimizer.step()
            self.assertGreater(model[3].weight.grad.abs().max().item(), 1e-4, name)

    def test_a_state_loaded_in_between(self):
        for make in COMPRESSIONS.values():
            model = model_of()
            optimizer = wrapped(model, make())
            train(model, optimizer, range(2))
            backward(model, 2, hvd.rank())
            optimizer.load_state_dict(optimizer.state_dict())
            train(model, optimizer, range(3, 5))
            for parameter in model.parameters():
                self.assert_same_bits(parameter)

    def test_a_resumed_run_continues_to_the_same_bits(self):
        for name, make in COMPRESSIONS.items():
            with self.subTest(compression=name):
                whole = model_of()
                optimizer = wrapped(whole, make(), groups=2)
                train(whole, optimizer, range(3))
                saved = self.through_a_file({"model": whole.state_dict(), "optimizer": optimizer.state_dict(),
                                             "errors": optimizer.error_state_dict()})
                train(whole, optimizer, range(3, STEPS))
                resumed = {}
                for with_errors in (True, False):
                    model = model_of()
                    model.load_state_dict(saved["model"])
                    optimizer = wrapped(model, make(), groups=2)
                    optimizer.load_state_dict(saved["optimizer"])
                    if with_errors:
                        optimizer.load_error_state_dict(saved["errors"])
                        again = optimizer.error_state_dict()  # saved once more before the first step
                        self.assertEqual(set(again["buckets"]), set(saved["errors"]["buckets"]))
                    train(model, optimizer, range(3, STEPS))
                    resumed[with_errors] = [torch.equal(left, right) for left, right
                                            in zip(model.parameters(), whole.parameters())]
                self.assertTrue(all(resumed[True]))
                self.assertFalse(all(resumed[False]), "the errors make no difference")
                optimizer.load_error_state_dict(saved["errors"])  # between steps as well
                for bucket in optimizer._reducer._buckets:
                    for key, value in bucket.kept().items():
                        self.assertTrue(torch.equal(value, saved["errors"]["buckets"][bucket.name][key]))

    def through_a_file(self, state):
        path = f"{os.environ['TMPDIR']}/state-{hvd.rank()}"
        torch.save(state, path)
        return torch.load(path)

    def test_errors_of_another_training_are_refused(self):
        model = model_of()
        optimizer = wrapped(model, hvd.Compression.int8, groups=2)
        train(model, optimizer, range(1))
        errors = optimizer.error_state_dict()
        for changed, words in (({"rank": hvd.rank() + 1}, "'rank'"), ({"ranks": hvd.size() + 1}, "'ranks'"),
                               ({"compression": "PowerSGD of rank 4"}, "PowerSGD of rank 4")):
            with self.assertRaisesRegex(ValueError, words):
                optimizer.load_error_state_dict({**errors, **changed})
        others = wrapped(model_of(), hvd.Compression.int8, groups=3)
        others.load_error_state_dict(errors)
        self.refused_everywhere(ValueError, others.step, "other buckets")

    def test_refused(self):
        model = model_of()
        for compression in (hvd.Compression.int8, hvd.Compression.powersgd()):
            self.refused_everywhere(ValueError, lambda: hvd.allreduce(torch.ones(3), compression=compression),
                                    "DistributedOptimizer", "fp16")
            self.refused_everywhere(ValueError, lambda: wrapped(model, compression, op=hvd.Adasum), "error feedback")
            self.refused_everywhere(ValueError, lambda: wrapped(model, compression, gradient_predivide_factor=2.0),
                                    "error feedback")
        for rank in (0, -1, 1.5, True):
            self.refused_everywhere(ValueError, lambda: hvd.Compression.powersgd(rank=rank), "rank of PowerSGD")
        optimizer = wrapped(model_of(), hvd.Compression.int8 if hvd.rank() else hvd.Compression.powersgd())
        self.refused_everywhere(hvd.HorovodInternalError, optimizer.step, "int8", "PowerSGD of rank 4")

    def test_pickle(self):
        model = model_of()
        optimizer = pickle.loads(pickle.dumps(wrapped(model, hvd.Compression.powersgd(rank=3))))
        self.assertEqual(optimizer._settings["compression"].rank, 3)
