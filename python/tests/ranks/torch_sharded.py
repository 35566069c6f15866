"""ShardedOptimizer against DistributedOptimizer, to the bit, and its checkpoints."""

import collections
import copy
import datetime
import enum
import os
import pathlib
import shutil
import tempfile
import threading
import unittest

import numpy
import torch

import muster.torch as hvd
from muster.torch import sharded_state, shards
from ranks.torch_world import Case

STEPS = 5


def model_of(dtype=torch.float32, seed=1):
    """Layers of odd lengths, so that pieces end within parameters and vectors within pieces; strides of a convolution
    in channels_last; a scalar; a parameter that is not trained."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 7, 3), torch.nn.Tanh(), torch.nn.Flatten(),
                                torch.nn.Linear(63, 37), torch.nn.Tanh(), torch.nn.Linear(37, 19), torch.nn.PReLU(),
                                torch.nn.Linear(19, 3))
    model[0] = model[0].to(memory_format=torch.channels_last)
    model[7].bias.requires_grad_(False)
    return model.to(dtype)


def batch(step, rank, dtype):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return (torch.randn(4, 3, 5, 5, generator=generator, dtype=torch.float64).to(dtype),
            torch.randn(4, 3, generator=generator, dtype=torch.float64).to(dtype))


OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01,
                                                   nesterov=True),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01, weight_decay=0.1),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, amsgrad=True),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01, momentum=0.5),
    "adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=0.01),
}


def unsharded(model, make, **arguments):
    return hvd.DistributedOptimizer(make(model.parameters()), model.named_parameters(), **arguments)


def sharded(model, make, **arguments):
    # Small buckets, so that there are several.
    return hvd.ShardedOptimizer(make(model.parameters()), model.named_parameters(), bucket_bytes=4096, **arguments)


def train(model, optimizer, steps, passes=1):
    dtype = next(model.parameters()).dtype
    for step in steps:
        optimizer.zero_grad()
        for number in range(passes):
            inputs, targets = batch(step * passes + number, hvd.rank(), dtype)
            torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()


class Sharded(Case):
    def assert_equal_models(self, left, right, message=""):
        for (name, own), other in zip(left.named_parameters(), right.parameters()):
            self.assertTrue(torch.equal(own, other), f"{message} {name}: {(own - other).abs().max()}")
            self.assert_same_bits(own)

    def compare(self, make, dtype=torch.float32, passes=1, message="", **arguments):
        expected, model = model_of(dtype), model_of(dtype)
        right = unsharded(expected, make, backward_passes_per_step=passes,
                          **{name: value for name, value in arguments.items() if name != "stage"})
        left = sharded(model, make, backward_passes_per_step=passes, **arguments)
        train(expected, right, range(STEPS), passes)
        train(model, left, range(STEPS), passes)
        self.assert_equal_models(model, expected, message)

    def test_same_bits_as_unsharded(self):
        for name, make in OPTIMIZERS.items():
            for stage in (1, 2):
                self.compare(make, stage=stage, message=f"{name}, stage {stage}")
        for stage in (1, 2):
            self.compare(OPTIMIZERS["adam"], torch.float64, stage=stage)
            self.compare(OPTIMIZERS["adam"], stage=stage, op=hvd.Sum)

    def test_same_bits_with_accumulation_and_16_bits_on_the_wire(self):
        for stage in (1, 2):
            self.compare(OPTIMIZERS["adam"], stage=stage, passes=3)
            self.compare(OPTIMIZERS["momentum"], stage=stage, compression=hvd.Compression.fp16)
            self.compare(OPTIMIZERS["momentum"], stage=stage, compression=hvd.Compression.bf16)

    def test_same_bits_with_several_threads(self):
        threads = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            self.compare(OPTIMIZERS["adam"])
        finally:
            torch.set_num_threads(threads)

    def test_groups_and_schedulers(self):
        def make(parameters):
            listed = list(parameters)
            return torch.optim.SGD([{"params": listed[:3], "lr": 0.2}, {"params": listed[3:], "momentum": 0.5}],
                                   lr=0.1)

        models = model_of(), model_of()
        for model, wrap in zip(models, (sharded, unsharded)):
            optimizer = wrap(model, make)
            scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
            for step in range(STEPS):
                train(model, optimizer, [step])
                scheduler.step()
        self.assert_equal_models(*models)

    def test_added_group(self):
        models = model_of(), model_of()
        for model, wrap in zip(models, (sharded, unsharded)):
            listed = list(model.named_parameters())
            optimizer = torch.optim.Adam([each for _, each in listed[:4]], lr=0.01)
            optimizer = (hvd.ShardedOptimizer if wrap is sharded else hvd.DistributedOptimizer)(optimizer, listed[:4])
            train(model, optimizer, range(2))
            for _, parameter in listed[4:]:
                parameter.grad = None
            optimizer.add_param_group({"params": [each for _, each in listed[4:]], "lr": 0.02})
            train(model, optimizer, range(2, 4))
        self.assert_equal_models(*models)

    def test_state_is_divided(self):
        model = model_of()
        optimizer = sharded(model, OPTIMIZERS["adam"])
        train(model, optimizer, range(1))
        own = sum(value.numel() for part in optimizer.shard().parts.values() for key, value in part.values.items()
                  if key == "exp_avg")
        trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
        total = hvd.allreduce(torch.tensor([own]), op=hvd.Sum).item()
        self.assertEqual(total, trained)
        # Up to one unit of alignment more than its share in each bucket.
        self.assertLessEqual(own, trained / hvd.size() + 64 * len(optimizer._buckets))

    def test_gradients_of_stage_2_are_released(self):
        model = model_of()
        optimizer = sharded(model, OPTIMIZERS["adam"], stage=2)
        inputs, targets = batch(0, hvd.rank(), torch.float32)
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        self.assertEqual([name for name, parameter in model.named_parameters() if parameter.grad is not None], [])
        optimizer.step()

    def test_gradients_of_some_ranks_only(self):
        models = model_of(), model_of()
        for model, wrap in zip(models, (sharded, unsharded)):
            optimizer = wrap(model, OPTIMIZERS["momentum"])
            for step in range(STEPS):
                optimizer.zero_grad()
                inputs, targets = batch(step, hvd.rank(), torch.float32)
                hidden = model[:5](inputs)
                if hvd.rank() == 0:
                    hidden.square().mean().backward()
                else:
                    torch.nn.functional.mse_loss(model[5:](hidden), targets).backward()
                optimizer.step()
        self.assert_equal_models(*models)

    def test_clipping(self):
        expected, model = model_of(torch.float64), model_of(torch.float64)
        right, left = unsharded(expected, OPTIMIZERS["sgd"]), sharded(model, OPTIMIZERS["sgd"])
        for step in range(STEPS):
            inputs, targets = batch(step, hvd.rank(), torch.float64)
            for each, optimizer in ((expected, right), (model, left)):
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(each(inputs), targets).backward()
            right.synchronize()
            norm = torch.nn.utils.clip_grad_norm_(expected.parameters(), 0.05)
            with right.skip_synchronize():
                right.step()
            self.assertAlmostEqual(left.clip_grad_norm_(0.05), float(norm), 12)
            left.step()
        for own, other in zip(model.parameters(), expected.parameters()):
            self.assertLessEqual((own - other).abs().max().item(), 1e-12)

    def test_closure_and_hooks(self):
        model = model_of()
        optimizer = sharded(model, OPTIMIZERS["adam"])
        inputs, targets = batch(0, hvd.rank(), torch.float32)

        def closure():
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            return loss

        calls = []
        if hasattr(optimizer, "register_step_post_hook"):
            optimizer.register_step_post_hook(lambda *_: calls.append(1))
        losses = [float(optimizer.step(closure)) for _ in range(10)]
        self.assertLess(losses[-1], losses[0])
        self.assertEqual(len(calls), 10 if hasattr(optimizer, "register_step_post_hook") else 0)

    # --- State ---

    def test_full_state_is_that_of_one_process(self):
        expected, model = model_of(), model_of()
        right, left = unsharded(expected, OPTIMIZERS["adam"]), sharded(model, OPTIMIZERS["adam"])
        train(expected, right, range(2))
        train(model, left, range(2))
        root = hvd.size() - 1
        full = left.full_state_dict(root)
        self.assertEqual(full is None, hvd.rank() != root)
        full = hvd.broadcast_object(full, root)
        plain = OPTIMIZERS["adam"](model.parameters())
        plain.load_state_dict(full)
        wanted = right.state_dict()
        self.assertEqual(sorted(full["state"]), sorted(wanted["state"]))
        for place, values in wanted["state"].items():
            for key, value in values.items():
                self.assertTrue(torch.equal(torch.as_tensor(full["state"][place][key]), torch.as_tensor(value)),
                                f"{place} {key}")
        # The other way: a sharded optimizer goes on with the state of an unsharded one.
        fresh = copy.deepcopy(expected)
        again = hvd.ShardedOptimizer(OPTIMIZERS["adam"](fresh.parameters()), fresh.named_parameters())
        again.load_state_dict(wanted)
        train(fresh, again, range(2, 4))
        train(expected, right, range(2, 4))
        self.assert_equal_models(fresh, expected)

    def test_state_of_a_parameter_without_dimensions(self):
        class Scaled(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = torch.nn.Parameter(torch.ones([]))
                self.layer = model_of()

            def forward(self, inputs):
                return self.layer(inputs) * self.scale.exp()

        makes = {**OPTIMIZERS, "asgd": lambda parameters: torch.optim.ASGD(parameters, lr=0.01),
                 "nadam": lambda parameters: torch.optim.NAdam(parameters, lr=0.01),
                 "rprop": lambda parameters: torch.optim.Rprop(parameters, lr=0.01)}
        for name, make in makes.items():
            expected, model = Scaled(), Scaled()
            right, left = unsharded(expected, make), sharded(model, make)
            train(expected, right, range(2))
            train(model, left, range(2))
            full, wanted = hvd.broadcast_object(left.full_state_dict()), right.state_dict()
            for key, value in wanted["state"].get(0, {}).items():
                if isinstance(value, torch.Tensor):
                    self.assertEqual(full["state"][0][key].shape, value.shape, f"{name} {key}")
            for state in (full, wanted):
                again, resumed = copy.deepcopy(expected), copy.deepcopy(expected)
                optimizer, plain = sharded(again, make), unsharded(resumed, make)
                optimizer.load_state_dict(state)
                plain.load_state_dict(wanted)
                train(again, optimizer, range(2, 4))
                train(resumed, plain, range(2, 4))
                self.assert_equal_models(again, resumed, name)

    def test_wrapping_an_optimizer_with_state(self):
        expected, model = model_of(), model_of()
        right = unsharded(expected, OPTIMIZERS["momentum"])
        train(expected, right, range(2))
        plain = OPTIMIZERS["momentum"](model.parameters())
        model.load_state_dict(expected.state_dict())
        plain.load_state_dict(right.state_dict())
        left = hvd.ShardedOptimizer(plain, model.named_parameters())
        train(expected, right, range(2, 4))
        train(model, left, range(2, 4))
        self.assert_equal_models(model, expected)

    def test_resume_on_another_number_of_ranks(self):
        """All ranks save; the first ones alone go on, and save; all go on from there."""
        folder = hvd.broadcast_object(tempfile.mkdtemp() if hvd.rank() == 0 else None)
        try:
            model = model_of()
            optimizer = sharded(model, OPTIMIZERS["adam"])
            self.assertIsNone(hvd.load_sharded(folder, optimizer, model))
            train(model, optimizer, range(2))
            hvd.save_sharded(folder, optimizer, model, {"step": 2})
            whole = hvd.broadcast_object(optimizer.full_state_dict())
            weights = {name: value.clone() for name, value in model.state_dict().items()}

            # The same number of ranks: the same bits as without an interruption.
            other = model_of(seed=9)
            resumed = sharded(other, OPTIMIZERS["adam"])
            self.assertEqual(hvd.load_sharded(folder, resumed, other), {"step": 2})
            train(other, resumed, range(2, 4))
            train(model, optimizer, range(2, 4))
            self.assert_equal_models(other, model)

            if hvd.size() == 1:
                return
            fewer = hvd.add_process_set(list(range(hvd.size() - 1)))
            if fewer.included():
                self.resume_on_fewer(folder, fewer, whole, weights)
            hvd.barrier()
            last = model_of(seed=11)
            resumed = sharded(last, OPTIMIZERS["adam"])
            self.assertEqual(hvd.load_sharded(folder, resumed, last), {"step": 3})
            self.assertEqual(sorted(name.split(".")[0] for name in os.listdir(folder)),
                             sorted(["checkpoint", "model"] + ["optimizer"] * (hvd.size() - 1)))
            hvd.barrier()
            hvd.remove_process_set(fewer)
        finally:
            hvd.barrier()
            if hvd.rank() == 0:
                shutil.rmtree(folder)

    def resume_on_fewer(self, folder, fewer, whole, weights):
        model = model_of(seed=10)
        optimizer = sharded(model, OPTIMIZERS["adam"], process_set=fewer)
        self.assertEqual(hvd.load_sharded(folder, optimizer, model), {"step": 2})
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, weights[name]), name)
        full = optimizer.full_state_dict()
        if fewer.rank() == 0:
            for place, values in whole["state"].items():
                for key, value in values.items():
                    self.assertTrue(torch.equal(torch.as_tensor(full["state"][place][key]), torch.as_tensor(value)))
        hvd.save_sharded(folder, optimizer, model, {"step": 3})

    def test_damaged_and_foreign_checkpoints(self):
        folder = hvd.broadcast_object(tempfile.mkdtemp() if hvd.rank() == 0 else None)
        try:
            model = model_of()
            optimizer = sharded(model, OPTIMIZERS["adam"])
            train(model, optimizer, range(1))
            hvd.save_sharded(folder, optimizer, model)
            other = torch.nn.Linear(3, 2)
            foreign = sharded(other, OPTIMIZERS["adam"])
            before = [parameter.clone() for parameter in other.parameters()]
            self.refused_everywhere(ValueError, lambda: hvd.load_sharded(folder, foreign, other), "another model")
            self.refused_everywhere(ValueError, lambda: hvd.load_sharded(folder, foreign), "does not fit", "'weight'")
            self.assertTrue(all(torch.equal(*pair) for pair in zip(before, other.parameters())))
            hvd.barrier()
            if hvd.rank() == 0:
                path = next(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(f"0-of-"
                                                                                                       f"{hvd.size()}"))
                with open(path, "r+b") as file:
                    file.truncate(os.path.getsize(path) // 2)
            hvd.barrier()
            self.refused_everywhere(ValueError, lambda: hvd.load_sharded(folder, optimizer, model), "rank 0")
            train(model, optimizer, range(1, 2))
        finally:
            hvd.barrier()
            if hvd.rank() == 0:
                shutil.rmtree(folder)

    def test_other_files_in_the_folder_remain_and_drafts_of_a_killed_save_go(self):
        folder = hvd.broadcast_object(tempfile.mkdtemp() if hvd.rank() == 0 else None)
        others = ["model.10.pt", "optimizer.3.pt", "model.\u00b2", "model.", "optimizer.1.0-of-1.bak", "old.model.1",
                  ".new-experiment"]
        try:
            if hvd.rank() == 0:
                for name in [*others, ".muster-draft-x"]:
                    pathlib.Path(folder, name).touch()
                os.mkdir(os.path.join(folder, "model.7"))
            model = model_of()
            optimizer = sharded(model, OPTIMIZERS["adam"])
            train(model, optimizer, range(1))
            for step in range(2):
                hvd.save_sharded(folder, optimizer, model, {"step": step})
            own = ["checkpoint.json", "model.2", *(f"optimizer.2.{rank}-of-{hvd.size()}" for rank in range(hvd.size()))]
            self.assertEqual(sorted(os.listdir(folder)), sorted([*others, "model.7", *own]))
            self.assertEqual(hvd.load_sharded(folder, optimizer, model), {"step": 1})
        finally:
            hvd.barrier()
            if hvd.rank() == 0:
                shutil.rmtree(folder)

    def test_values_that_could_not_be_loaded_are_refused_before_anything_is_written(self):
        class Color(enum.IntEnum):
            RED = 1

        Pair = collections.namedtuple("Pair", "left right")
        folder = hvd.broadcast_object(tempfile.mkdtemp() if hvd.rank() == 0 else None)
        try:
            model = model_of()
            optimizer = sharded(model, OPTIMIZERS["adam"])
            train(model, optimizer, range(1))
            optimizer.param_groups[0]["eps"] = numpy.float32(0.5)
            stored = {"epoch": numpy.int64(3), "rate": numpy.float32(0.25), "flag": numpy.bool_(True),
                      "word": numpy.str_("a"), numpy.int64(7): [1.5, ("b", None, 1 << 40)], 5: torch.Size([2, 3]),
                      "named": collections.OrderedDict(loss=0.125)}
            hvd.save_sharded(folder, optimizer, model, stored)
            names = sorted(os.listdir(folder))
            loaded = hvd.load_sharded(folder, optimizer, model)
            self.assertEqual(loaded, {"epoch": 3, "rate": 0.25, "flag": True, "word": "a",
                                      7: [1.5, ("b", None, 1 << 40)], 5: torch.Size([2, 3]), "named": {"loss": 0.125}})
            self.assertEqual([type(loaded[each]) for each in ("epoch", "rate", "flag", "word")],
                             [int, float, bool, str])
            self.assertEqual((type(optimizer.param_groups[0]["eps"]), optimizer.param_groups[0]["eps"]), (float, 0.5))
            for value, kind in ((pathlib.PurePosixPath("a"), "PurePosixPath"), (datetime.datetime.now(), "datetime"),
                                (Color.RED, "Color"), (Pair(1, 2), "Pair"), (numpy.zeros(2), "ndarray"),
                                (numpy.datetime64("2026-11-30"), "date"),
                                (numpy.longdouble(1), numpy.longdouble.__name__), (lambda: 0, "function"),
                                (threading.Lock(), "lock"), (object(), "object")):
                self.refused_everywhere(
                    ValueError, lambda: hvd.save_sharded(folder, optimizer, model, {"deep": [{"x": value}]}),
                    f"rank 0: progress['deep'][0]['x'] has type {kind}, which load_sharded() cannot read")
            self.refused_everywhere(
                ValueError, lambda: hvd.save_sharded(folder, optimizer, model, {pathlib.PurePosixPath("a"): 1}),
                "the key PurePosixPath('a') of progress has type PurePosixPath")
            self.refused_everywhere(
                ValueError, lambda: hvd.save_sharded(folder, optimizer, model, {"x": {"float.hex": 1}}),
                "progress['x'] has the single key 'float.hex', which is reserved")
            last = hvd.size() - 1
            optimizer.param_groups[0]["eps"] = pathlib.PurePosixPath("a") if hvd.rank() == last else 0.5
            self.refused_everywhere(ValueError, lambda: hvd.save_sharded(folder, optimizer, model), f"rank {last}: "
                                    "optimizer.state_dict()['param_groups'][0]['eps'] has type PurePosixPath")
            optimizer.param_groups[0]["eps"] = 0.5
            endless = []
            endless.append(endless)
            self.refused_everywhere(ValueError, lambda: hvd.save_sharded(folder, optimizer, model, {"x": endless}),
                                    "rank 0: ")
            self.assertEqual(sorted(os.listdir(folder)), names)
            self.assertEqual(hvd.load_sharded(folder, optimizer, model), loaded)
        finally:
            hvd.barrier()
            if hvd.rank() == 0:
                shutil.rmtree(folder)

    # --- Errors ---

    def test_parameters_without_elements(self):
        for stage in (1, 2):
            model = torch.nn.ParameterDict({"empty": torch.nn.Parameter(torch.ones(0, 3, dtype=torch.float64)),
                                            "number": torch.nn.Parameter(torch.tensor(1.0))})
            optimizer = hvd.ShardedOptimizer(torch.optim.SGD(model.parameters(), lr=0.5), model.named_parameters(),
                                             stage=stage)
            for _ in range(2):
                optimizer.zero_grad()
                (model["empty"].sum() + model["number"]).backward()
                optimizer.step()
            self.assertEqual(model["number"].item(), 0.0)
            self.assertEqual(model["empty"].shape, (0, 3))

    def test_refused_arguments(self):
        model = model_of()

        def make(optimizer=None, **arguments):
            return lambda: hvd.ShardedOptimizer(optimizer or OPTIMIZERS["sgd"](model.parameters()), **arguments)

        class Own(torch.optim.SGD):
            pass

        refused = self.refused_everywhere
        refused(ValueError, make(stage=3), "stage is 3")
        refused(ValueError, make(op=hvd.Adasum), "Adasum")
        refused(ValueError, make(backward_passes_per_step=0, bucket_bytes=0), "bucket_bytes is 0",
                "backward_passes_per_step is 0")
        refused(ValueError, make(torch.optim.LBFGS(model.parameters())), "LBFGS", "whole tensors")
        refused(ValueError, make(Own(model.parameters(), lr=0.1)), "elementwise=True")
        refused(ValueError, make(unsharded(model_of(), OPTIMIZERS["sgd"])), "distributed already")
        refused(TypeError, lambda: copy.deepcopy(make(Own(model_of().parameters(), lr=0.1), elementwise=True)()),
                "full_state_dict")

    def test_misuse(self):
        model = model_of()
        optimizer = sharded(model, OPTIMIZERS["sgd"])
        inputs, targets = batch(0, hvd.rank(), torch.float32)
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        with self.assertRaisesRegex(AssertionError, "zero_grad"):
            optimizer.zero_grad()
        with self.assertRaisesRegex(AssertionError, "backward_passes_per_step"):
            torch.nn.functional.mse_loss(model(inputs), targets).backward()

    def test_moved_parameters(self):
        model = model_of()
        optimizer = sharded(model, OPTIMIZERS["sgd"])
        model[3].weight.data = model[3].weight.data.clone()
        inputs, targets = batch(0, hvd.rank(), torch.float32)
        with self.assertRaisesRegex(RuntimeError, "'3.weight' was moved"):
            torch.nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()

    def test_different_parameters(self):
        if hvd.size() == 1:
            return
        layer = torch.nn.Linear(3, 2 + hvd.rank() % 2)
        self.refused_everywhere(hvd.HorovodInternalError, lambda: hvd.ShardedOptimizer(
            OPTIMIZERS["sgd"](layer.parameters()), layer.named_parameters()), "float32[2, 3]", "float32[3, 3]")


class Layouts(unittest.TestCase):
    """Without ranks."""

    def test_every_element_belongs_to_one_rank(self):
        for ranks in (1, 2, 3, 7):
            for lengths in ([], [0], [1], [63, 64, 65], [1000, 3, 17], [5] * 20):
                layout = shards.layout_of(lengths, ranks)
                self.assertEqual(len(layout.counts), ranks)
                self.assertEqual(layout.total, sum(-(-length // 64) * 64 for length in lengths))
                self.assertTrue(all(count % 64 == 0 for count in layout.counts))

    def test_shards_of_any_number_of_ranks(self):
        values = {"m": torch.arange(100.0), "step": 7}

        def shard_of(rank, size):
            begin, end = 100 * rank // size, 100 * (rank + 1) // size
            return sharded_state.Shard(rank, size, [{"lr": 0.1, "params": ["w"]}], {"w": sharded_state.Part(
                begin, end - begin, (10, 10), (10, 1), {"m": values["m"][begin:end], "step": 7})})

        for size in (1, 2, 3, 7):
            wanted = {"w": sharded_state.Part(13, 41, (10, 10), (10, 1), {})}
            taker = sharded_state.Taker(wanted, {"w"})
            for rank in range(size):
                taker.take(shard_of(rank, size))
            taken = taker.finish([1])
            self.assertTrue(torch.equal(taken.values["w"]["m"], values["m"][13:54]))
            self.assertEqual(taken.values["w"]["step"], 7)
        taker = sharded_state.Taker(wanted, {"w"})
        taker.take(shard_of(0, 2))
        with self.assertRaisesRegex(ValueError, "37 of 41 elements of 'w'"):
            taker.finish([1])


if __name__ == "__main__":
    unittest.main()
