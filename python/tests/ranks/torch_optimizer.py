"""DistributedOptimizer against one process that trains on all ranks' batches together."""

import copy
import unittest

import torch

import muster.torch as hvd
from ranks.torch_world import Case

STEPS = 6


def model_of(seed=1):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 7), torch.nn.Tanh(),
                               torch.nn.Linear(7, 2)).double()


def batch(step, rank, count=4):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return (torch.randn(count, 5, generator=generator, dtype=torch.float64),
            torch.randn(count, 2, generator=generator, dtype=torch.float64))


def loss_of(model, inputs, targets):
    return torch.nn.functional.mse_loss(model(inputs), targets)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=0.01)


def train_alone(make, passes=1, steps=STEPS, factor=1.0):
    """Trains on the batches of all ranks and passes; gradients add up over passes."""
    model = model_of()
    optimizer = make(model.parameters())
    for step in range(steps):
        optimizer.zero_grad()
        for number in range(passes):
            batches = [batch(step * passes + number, rank) for rank in range(hvd.size())]
            inputs, targets = (torch.cat(each) for each in zip(*batches))
            (loss_of(model, inputs, targets) * factor).backward()
        optimizer.step()
    return model


def train_together(make, passes=1, steps=STEPS, zero_grad=lambda optimizer: optimizer.zero_grad(), model=None,
                   **arguments):
    model = model_of() if model is None else model
    optimizer = hvd.DistributedOptimizer(make(model.parameters()), model.named_parameters(),
                                         backward_passes_per_step=passes, **arguments)
    for step in range(steps):
        zero_grad(optimizer)
        for number in range(passes):
            loss_of(model, *batch(step * passes + number, hvd.rank())).backward()
        optimizer.step()
    return model


class Training(Case):
    def assert_equal_models(self, model, expected, tolerance=1e-12):
        for (name, own), right in zip(model.named_parameters(), expected.parameters()):
            self.assertLessEqual((own - right).abs().max().item(), tolerance, name)
            self.assert_same_bits(own)

    def test_as_one_process(self):
        for make in (sgd, adam):
            self.assert_equal_models(train_together(make), train_alone(make))

    def test_accumulation(self):
        for make in (sgd, adam):
            self.assert_equal_models(train_together(make, passes=3), train_alone(make, passes=3))

    def test_groups(self):
        model = model_of()
        parameters = list(model.parameters())
        for groups in (1, 2, 5, 100, [parameters[:2], parameters[3:5]], [[parameters[5], parameters[0]]], []):
            fresh = model_of()
            own = dict(zip(map(id, parameters), fresh.parameters()))
            if isinstance(groups, list):
                groups = [[own[id(parameter)] for parameter in group] for group in groups]
            self.assert_equal_models(train_together(sgd, model=fresh, groups=groups), train_alone(sgd))

    def test_num_groups_is_deprecated(self):
        with self.assertWarns(DeprecationWarning):
            self.assert_equal_models(train_together(sgd, num_groups=2), train_alone(sgd))

    def test_predivide(self):
        self.assert_equal_models(train_together(sgd, gradient_predivide_factor=2.5), train_alone(sgd))

    def test_sum(self):
        self.assert_equal_models(train_together(sgd, op=hvd.Sum), train_alone(sgd, factor=hvd.size()))

    def test_without_names(self):
        model = model_of()
        optimizer = hvd.DistributedOptimizer(sgd([{"params": [p]} for p in model.parameters()]))
        self.assertEqual(sorted(optimizer._parameter_names.values())[0], "allreduce.noname.0.0")
        for step in range(STEPS):
            optimizer.zero_grad()
            loss_of(model, *batch(step, hvd.rank())).backward()
            optimizer.step()
        self.assert_equal_models(model, train_alone(sgd))

    def test_ways_of_clearing_gradients(self):
        def by_hand(optimizer):
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    parameter.grad = None

        def of_some(optimizer):
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            for number, parameter in enumerate(parameters):
                parameter.grad = None if number % 2 else torch.zeros_like(parameter)

        for way in (by_hand, of_some, lambda optimizer: optimizer.zero_grad(set_to_none=True),
                    lambda optimizer: optimizer.zero_grad(set_to_none=False)):
            self.assert_equal_models(train_together(sgd, zero_grad=way), train_alone(sgd))

    def test_one_bucket_for_each_gradient_and_one_for_all(self):
        import os
        for limit in ("0", "200", "100000000"):
            os.environ["HOROVOD_FUSION_THRESHOLD"] = limit
            try:
                self.assert_equal_models(train_together(sgd), train_alone(sgd))
            finally:
                del os.environ["HOROVOD_FUSION_THRESHOLD"]

    def test_compression(self):
        for compression, tolerance in ((hvd.Compression.fp16, 5e-3), (hvd.Compression.bf16, 5e-2)):
            model = train_together(sgd, compression=compression)
            self.assert_equal_models(model, train_alone(sgd), tolerance)

    def test_a_compression_of_the_program(self):
        class Halves(hvd.Compression.none):
            @staticmethod
            def compress(tensor):
                return tensor.float() * 0.5, tensor.dtype

            @staticmethod
            def decompress(tensor, ctx):
                return tensor.to(ctx) * 2

        self.assert_equal_models(train_together(sgd, compression=Halves), train_alone(sgd), 1e-6)

    def test_types_that_are_mixed(self):
        torch.manual_seed(3)
        model = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.Linear(4, 4).double(),
                                     torch.nn.Linear(4, 4).bfloat16(), torch.nn.Linear(4, 4)])
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
        for _ in range(3):
            optimizer.zero_grad()
            x = torch.full((2, 4), hvd.rank() + 1.0)
            for layer in model:
                x = layer(x.to(layer.weight.dtype))
            x.sum().backward()
            optimizer.step()
        for parameter in model.parameters():
            self.assert_same_bits(parameter)

    def test_weights_that_do_not_lie_in_order(self):
        def of(wrap):
            torch.manual_seed(5)
            model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 2))
            model = model.double().to(memory_format=torch.channels_last)
            optimizer = wrap(torch.optim.SGD(model.parameters(), lr=0.1))
            for step in range(3):
                optimizer.zero_grad()
                generator = torch.Generator().manual_seed(step)
                images = torch.randn(2 * hvd.size(), 3, 8, 8, generator=generator, dtype=torch.float64)
                own = images if wrap is not hvd.DistributedOptimizer else images.chunk(hvd.size())[hvd.rank()]
                model(own.to(memory_format=torch.channels_last)).square().mean().backward()
                optimizer.step()
            return model

        self.assert_equal_models(of(hvd.DistributedOptimizer), of(lambda optimizer: optimizer))

    def test_closures(self):
        model = model_of()
        optimizer = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
        for step in range(STEPS):
            def closure():
                optimizer.zero_grad()
                loss = loss_of(model, *batch(step, hvd.rank()))
                loss.backward()
                return loss

            self.assertGreater(optimizer.step(closure).item(), 0)
        self.assert_equal_models(model, train_alone(sgd))

    def test_lbfgs_calls_its_closure_many_times(self):
        def of(together):
            model = model_of()
            optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5)
            if together:
                optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())

            def closure():
                optimizer.zero_grad()
                ranks = [hvd.rank()] if together else range(hvd.size())
                loss = loss_of(model, *(torch.cat(each) for each in zip(*(batch(0, rank) for rank in ranks))))
                loss.backward()
                # The loss decides the length of the search, so it must be equal on all ranks.
                return hvd.allreduce(loss.detach()) if together else loss

            for _ in range(3):
                optimizer.step(closure)
            return model

        self.assert_equal_models(of(True), of(False), 1e-9)

    def test_clipping_between_synchronize_and_step(self):
        def of(together):
            model = model_of()
            optimizer = sgd(model.parameters())
            if together:
                optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
            for step in range(STEPS):
                optimizer.zero_grad()
                ranks = [hvd.rank()] if together else range(hvd.size())
                loss_of(model, *(torch.cat(each) for each in zip(*(batch(step, r) for r in ranks)))).backward()
                if together:
                    optimizer.synchronize()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                if together:
                    with optimizer.skip_synchronize():
                        optimizer.step()
                else:
                    optimizer.step()
            return model

        self.assert_equal_models(of(True), of(False))

    def test_schedulers(self):
        def of(together, before):
            model = model_of()
            optimizer = sgd(model.parameters())
            if before:
                scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
            if together:
                optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
            if not before:
                scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
            for step in range(STEPS):
                optimizer.zero_grad()
                ranks = [hvd.rank()] if together else range(hvd.size())
                loss_of(model, *(torch.cat(each) for each in zip(*(batch(step, r) for r in ranks)))).backward()
                optimizer.step()
                scheduler.step()
            self.assertAlmostEqual(optimizer.param_groups[0]["lr"], 0.1 * 0.5 ** (STEPS // 2))
            return model

        for before in (True, False):
            self.assert_equal_models(of(True, before), of(False, before))

    def test_a_scaler_that_is_not_enabled(self):
        model = model_of()
        optimizer = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
        scaler = torch.cuda.amp.GradScaler(enabled=False)
        for step in range(STEPS):
            optimizer.zero_grad()
            scaler.scale(loss_of(model, *batch(step, hvd.rank()))).backward()
            optimizer.synchronize()
            scaler.unscale_(optimizer)
            with optimizer.skip_synchronize():
                scaler.step(optimizer)
            scaler.update()
        self.assert_equal_models(model, train_alone(sgd))

    def test_state_goes_from_one_to_the_next(self):
        half = model_of()
        optimizer = hvd.DistributedOptimizer(adam(half.parameters()), half.named_parameters())
        for step in range(STEPS):
            if step == STEPS // 2:
                state, weights = copy.deepcopy(optimizer.state_dict()), copy.deepcopy(half.state_dict())
                half = model_of(seed=9)
                optimizer = hvd.DistributedOptimizer(adam(half.parameters()), half.named_parameters())
                half.load_state_dict(weights)
                optimizer.load_state_dict(state)
            optimizer.zero_grad()
            loss_of(half, *batch(step, hvd.rank())).backward()
            optimizer.step()
        self.assert_equal_models(half, train_alone(adam))

    def test_a_copied_optimizer_remains_distributed(self):
        import pickle
        for duplicate in (copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))):
            model = model_of()
            optimizer = hvd.DistributedOptimizer(adam(model.parameters()), model.named_parameters())
            for step in range(STEPS):
                if step == STEPS // 2:
                    # Copied together: the copied optimizer has the parameters of the copied model.
                    model, optimizer = duplicate((model, optimizer))
                    self.assertIsInstance(optimizer, torch.optim.Adam)
                optimizer.zero_grad()
                loss_of(model, *batch(step, hvd.rank())).backward()
                optimizer.step()
            self.assert_equal_models(model, train_alone(adam))

    def test_a_second_optimizer_of_the_same_parameters(self):
        model = model_of()
        first = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
        for step in range(STEPS):
            optimizer = first if step < 2 else hvd.DistributedOptimizer(
                copy_state(first, sgd(model.parameters())), model.named_parameters()) if step == 2 else optimizer
            optimizer.zero_grad()
            loss_of(model, *batch(step, hvd.rank())).backward()
            optimizer.step()
        self.assert_equal_models(model, train_alone(sgd))

    def test_parameters_that_are_added(self):
        model = model_of()
        parameters = list(model.parameters())
        optimizer = hvd.DistributedOptimizer(sgd(parameters[2:]))
        alone = model_of()
        of_alone = list(alone.parameters())
        right = sgd(of_alone[2:])
        for step in range(STEPS):
            if step == 2:
                optimizer.add_param_group({"params": parameters[:2]})
                right.add_param_group({"params": of_alone[:2]})
            for mine, own, ranks in ((optimizer, model, [hvd.rank()]), (right, alone, range(hvd.size()))):
                mine.zero_grad()
                own.zero_grad()
                loss_of(own, *(torch.cat(each) for each in zip(*(batch(step, r) for r in ranks)))).backward()
                mine.step()
        self.assert_equal_models(model, alone)

    def test_gradients_are_of_all_ranks_after_shutdown_and_in_the_next_world(self):
        model = model_of()
        optimizer = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
        for step in range(STEPS):
            optimizer.zero_grad()
            loss_of(model, *batch(step, hvd.rank())).backward()
            optimizer.step()
            if step % 2:
                before = [parameter.grad.clone() for parameter in model.parameters()]
                hvd.shutdown()
                for parameter, gradient in zip(model.parameters(), before):
                    self.assertTrue(torch.equal(parameter.grad, gradient))
                hvd.init()
        self.assert_equal_models(model, train_alone(sgd))


def copy_state(source, target):
    target.load_state_dict(source.state_dict())
    return target


if __name__ == "__main__":
    unittest.main()
