"""DistributedOptimizer with the tools of PyTorch around optimizers, in any version: the implementations of a step
among which PyTorch chooses, loss scaling, schedulers, checkpoints, and gradients that programs keep."""

import gc
import io
import unittest
import warnings

import torch

import muster.torch as hvd
from ranks.torch_optimizer import STEPS, batch, loss_of, model_of, sgd
from ranks.torch_world import Case

VERSION = tuple(int(number) for number in torch.__version__.split("+")[0].split(".")[:2])
HAS_FUSED_ON_CPU = VERSION >= (2, 4)
HAS_SCALER_ON_CPU = VERSION >= (2, 3)


def train(make, together, steps=STEPS, between=lambda optimizer: optimizer.zero_grad()):
    """Trains in one process on the batches of all ranks, or on all ranks."""
    model = model_of()
    optimizer = make(model.parameters())
    if together:
        optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    for step in range(steps):
        between(optimizer)
        loss_of(model, *inputs_of(step, together)).backward()
        optimizer.step()
    return model


def inputs_of(step, together):
    ranks = [hvd.rank()] if together else range(hvd.size())
    return [torch.cat(each) for each in zip(*(batch(step, rank) for rank in ranks))]


class Ecosystem(Case):
    def assert_equal_models(self, model, expected, tolerance=1e-12):
        for (name, own), right in zip(model.named_parameters(), expected.parameters()):
            self.assertLessEqual((own - right).abs().max().item(), tolerance, name)
            self.assert_same_bits(own)


class Steps(Ecosystem):
    def test_one_by_one_foreach_and_fused(self):
        ways = [{"foreach": False}, {"foreach": True}] + [{"fused": True}] * HAS_FUSED_ON_CPU
        for kind in (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD):
            for way in ways:
                with self.subTest(kind=kind.__name__, **way):
                    def make(parameters):
                        return kind(parameters, lr=0.01, weight_decay=0.1, **way)

                    self.assert_equal_models(train(make, True), train(make, False))

    @unittest.skipIf(VERSION < (2, 1), "learning rates are numbers before PyTorch 2.1")
    def test_a_learning_rate_that_is_a_tensor(self):
        for way in [{"foreach": False}] + [{"fused": True}] * HAS_FUSED_ON_CPU:
            def make(parameters):
                return torch.optim.AdamW(parameters, lr=torch.tensor(0.01, dtype=torch.float64), **way)

            self.assert_equal_models(train(make, True), train(make, False))
            model = model_of()
            optimizer = make(model.parameters())
            optimizer.param_groups[0]["lr"].mul_(1 + hvd.rank())
            optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
            hvd.broadcast_optimizer_state(optimizer, root_rank=hvd.size() - 1)
            self.assertAlmostEqual(float(optimizer.param_groups[0]["lr"]), 0.01 * hvd.size())
            loss_of(model, *inputs_of(0, True)).backward()
            optimizer.step()
            for parameter in model.parameters():
                self.assert_same_bits(parameter)

    def test_hooks_of_steps_are_called_once(self):
        model = model_of()
        optimizer = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
        called = []
        if VERSION >= (2, 0):
            optimizer.register_step_pre_hook(lambda *_: called.append("before"))
            optimizer.register_step_post_hook(lambda *_: called.append("after"))
        for step in range(2):
            optimizer.zero_grad()
            loss_of(model, *batch(step, hvd.rank())).backward()
            optimizer.step()
        self.assertEqual(called, ["before", "after"] * 2 if VERSION >= (2, 0) else [])


class Scaling(Ecosystem):
    @unittest.skipUnless(HAS_SCALER_ON_CPU, "scales on GPUs only before PyTorch 2.3")
    def test_overflow_on_one_rank_is_skipped_by_all(self):
        def of(together):
            model = model_of()
            optimizer = sgd(model.parameters())
            if together:
                optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
            scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=2)
            scales = []
            for step in range(STEPS):
                optimizer.zero_grad()
                loss = loss_of(model, *inputs_of(step, together))
                if step == 3 and (not together or hvd.rank() == hvd.size() - 1):
                    loss = loss * float("inf")
                scaler.scale(loss).backward()
                if together:
                    optimizer.synchronize()
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                if together:
                    with optimizer.skip_synchronize():
                        scaler.step(optimizer)
                else:
                    scaler.step(optimizer)
                scaler.update()
                scales.append(scaler.get_scale())
            return model, scales

        (own, own_scales), (right, right_scales) = of(True), of(False)
        self.assert_equal_models(own, right)
        self.assertEqual(own_scales, right_scales)
        self.assertEqual(own_scales[3], own_scales[2] / 2)


class Schedulers(Ecosystem):
    def test_no_warning_whether_made_before_or_after(self):
        for op in (hvd.Average, hvd.Adasum):
            for before in (True, False):
                model = model_of()
                optimizer = inner = sgd(model.parameters())
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    if before:
                        scheduler = torch.optim.lr_scheduler.StepLR(inner, 2, gamma=0.5)
                    optimizer = hvd.DistributedOptimizer(inner, model.named_parameters(), op=op)
                    if not before:
                        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
                    for step in range(STEPS):
                        optimizer.zero_grad()
                        loss_of(model, *batch(step, hvd.rank())).backward()
                        optimizer.step()
                        scheduler.step()
                self.assertEqual([str(each.message) for each in caught], [], (op, before))
                self.assertAlmostEqual(optimizer.param_groups[0]["lr"], 0.1 * 0.5 ** (STEPS // 2))

    def test_a_warning_for_a_wrong_order(self):
        for before in (True, False):
            model = model_of()
            inner = sgd(model.parameters())
            if before:
                scheduler = torch.optim.lr_scheduler.StepLR(inner, 2)
            optimizer = hvd.DistributedOptimizer(inner, model.named_parameters())
            if not before:
                scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                scheduler.step()
            self.assertEqual(len(caught), 1, before)
            self.assertIn("before `optimizer.step()`", str(caught[0].message))


class Gradients(Ecosystem):
    def test_are_in_one_place_whatever_is_cleared_between(self):
        places = []

        def between(optimizer):
            gradients = [p.grad for group in optimizer.param_groups for p in group["params"]]
            if hvd.size() > 1 and gradients[0] is not None:
                places.append([gradient.data_ptr() for gradient in gradients])
            optimizer.zero_grad()
            if VERSION >= (2, 0):
                self.assertTrue(all(p.grad is None for group in optimizer.param_groups for p in group["params"]))

        self.assert_equal_models(train(sgd, True, between=between), train(sgd, False))
        self.assertTrue(all(each == places[0] for each in places))

    def test_kept_gradients_outlive_the_world(self):
        model = model_of()
        optimizer = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
        for step in range(3):
            optimizer.zero_grad()
            loss_of(model, *batch(step, hvd.rank())).backward()
            optimizer.step()
        kept = [parameter.grad for parameter in model.parameters()]
        arrays = [gradient.numpy() for gradient in kept]
        values = [gradient.clone() for gradient in kept]
        for _ in range(2):
            hvd.barrier()
            hvd.shutdown()
            for gradient, array, value in zip(kept, arrays, values):
                self.assertTrue(torch.equal(gradient, value))
                self.assertEqual(array.tolist(), value.tolist())
                gradient.add_(1)
                value.add_(1)
            hvd.init()
            loss_of(model, *batch(9, hvd.rank())).backward()
            optimizer.step()
            optimizer.zero_grad()
        for gradient, value in zip(kept, values):
            self.assertTrue(torch.equal(gradient, value))

    def test_memory_is_freed_after_the_last_reference(self):
        def mappings():
            gc.collect()  # an optimizer and its state refer to each other
            with open("/proc/self/maps") as maps:
                return sum("muster-collective" in line for line in maps)

        before = mappings()
        model = model_of()
        optimizer = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
        for step in range(2):
            optimizer.zero_grad()
            loss_of(model, *batch(step, hvd.rank())).backward()
            optimizer.step()
        if hvd.size() > 1:
            self.assertGreater(mappings(), before)
        kept = next(model.parameters()).grad
        del model, optimizer
        self.assertEqual(mappings(), before + (hvd.size() > 1))
        del kept
        self.assertEqual(mappings(), before)


class Checkpoints(Ecosystem):
    def test_are_loaded_as_pytorch_does_by_default(self):
        def make(parameters):
            return torch.optim.AdamW(parameters, lr=0.01)

        model = model_of()
        optimizer = hvd.DistributedOptimizer(make(model.parameters()), model.named_parameters())
        for step in range(STEPS):
            if step == STEPS // 2:
                file = io.BytesIO()
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
                file.seek(0)
                loaded = torch.load(file)
                model = model_of(seed=9)
                optimizer = hvd.DistributedOptimizer(make(model.parameters()), model.named_parameters())
                model.load_state_dict(loaded["model"])
                optimizer.load_state_dict(loaded["optimizer"])
            optimizer.zero_grad()
            loss_of(model, *batch(step, hvd.rank())).backward()
            optimizer.step()
        self.assert_equal_models(model, train(make, False))


if __name__ == "__main__":
    unittest.main()
