"""broadcast_parameters, broadcast_optimizer_state, elastic states and SyncBatchNorm."""

import unittest

import torch

import muster.torch as hvd
from ranks.torch_optimizer import batch, loss_of, model_of
from ranks.torch_world import Case

OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01, amsgrad=True),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
    "adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=0.01),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01, centered=True),
    "lbfgs": lambda parameters: torch.optim.LBFGS(parameters, lr=0.1)}


def flattened(value):
    """All contents of a state, as comparable values."""
    if isinstance(value, torch.Tensor):
        return ("tensor", tuple(value.shape), value.double().reshape(-1).tolist())
    if isinstance(value, dict):
        return tuple((str(key), flattened(each)) for key, each in sorted(value.items(), key=lambda item: str(item[0])))
    if isinstance(value, (list, tuple)):
        return tuple(map(flattened, value))
    return value


class Broadcasts(Case):
    def test_parameters_in_all_their_forms(self):
        for root in range(hvd.size()):
            for form in (lambda model: model.state_dict(), lambda model: model.named_parameters(),
                         lambda model: list(model.named_parameters()), lambda model: list(model.parameters()),
                         lambda model: model.parameters()):
                model = model_of(seed=hvd.rank())
                hvd.broadcast_parameters(form(model), root)
                for own, right in zip(model.parameters(), model_of(seed=root).parameters()):
                    self.assertTrue(torch.equal(own, right))

    def test_buffers_numbers_and_weights_that_do_not_lie_in_order(self):
        torch.manual_seed(hvd.rank())
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)).to(
            memory_format=torch.channels_last)
        model(torch.randn(2, 3, 5, 5))
        hvd.broadcast_parameters(model.state_dict(), 0)
        for tensor in model.state_dict().values():
            self.assert_same_bits(tensor)

    def test_tensors_that_overlap(self):
        root = hvd.size() - 1
        module = torch.nn.Module()
        whole = torch.arange(20.0) + 100 * hvd.rank()
        for name, view in (("end", whole[10:]), ("even", whole[::2]), ("middle", whole[5:15]), ("none", whole[3:3]),
                           ("start", whole[:5]), ("whole", whole), ("words", whole.view(4, 5).t())):
            module.register_buffer(name, view)
        orders = (module.state_dict(), list(module.named_buffers()), list(module.named_buffers())[::-1])
        for form in orders:
            whole.copy_(torch.arange(20.0) + 100 * hvd.rank())
            hvd.broadcast_parameters(form, root)
            self.assertTrue(torch.equal(whole, torch.arange(20.0) + 100 * root))

    def test_refused(self):
        for given, words in ((torch.ones(2), "dict or a list"), (5, "dict or a list"), ({"a": 3}, "'a' has type int")):
            self.refused_everywhere(ValueError, lambda: hvd.broadcast_parameters(given, 0), words)
        if hvd.size() > 1:
            tensor = torch.ones(2 + (hvd.rank() == 0))
            self.refused_everywhere(RuntimeError, lambda: hvd.broadcast_parameters({"w": tensor}, 0), "float32[2]",
                                    "float32[3]")

    def test_optimizer_state_to_new_optimizers_and_to_others(self):
        for name, make in OPTIMIZERS.items():
            for everybody_trained in (False, True):
                with self.subTest(optimizer=name, everybody_trained=everybody_trained):
                    root = hvd.size() - 1
                    model = model_of()
                    optimizer = make(model.parameters())
                    if hvd.rank() == root or everybody_trained:
                        for step in range(1 + hvd.rank()):
                            def closure():
                                optimizer.zero_grad()
                                loss = loss_of(model, *batch(step, hvd.rank()))
                                loss.backward()
                                return loss

                            optimizer.step(closure)
                    optimizer.param_groups[0]["lr"] = 0.5 + hvd.rank()
                    hvd.broadcast_optimizer_state(optimizer, root)
                    states = hvd.allgather_object(flattened(optimizer.state_dict()))
                    self.assertEqual(states, [states[root]] * hvd.size())
                    self.assertEqual(optimizer.param_groups[0]["lr"], 0.5 + root)

    def test_state_of_a_distributed_optimizer_and_a_rate_that_is_a_tensor(self):
        model = model_of()
        inner = torch.optim.Adam(model.parameters(), lr=0.01)
        optimizer = hvd.DistributedOptimizer(inner, model.named_parameters())
        loss_of(model, *batch(0, hvd.rank())).backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"] = torch.tensor(0.25 * (hvd.rank() + 1))
        hvd.broadcast_optimizer_state(optimizer, 0, model)
        self.assertEqual(float(optimizer.param_groups[0]["lr"]), 0.25)
        states = hvd.allgather_object(flattened(optimizer.state_dict()))
        self.assertEqual(states, [states[0]] * hvd.size())

    def test_training_goes_on_after_the_state_was_broadcast(self):
        model = model_of()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
                                             model.named_parameters())
        for step in range(3):
            optimizer.zero_grad()
            loss_of(model, *batch(step, hvd.rank())).backward()
            optimizer.step()
            hvd.broadcast_optimizer_state(optimizer, step % hvd.size())
        for parameter in model.parameters():
            self.assert_same_bits(parameter)

    def test_a_state_that_is_loaded_while_gradients_are_reduced_forgets_them(self):
        model, alone = model_of(), model_of()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
        inner = torch.optim.SGD(alone.parameters(), lr=0.1)
        for step in range(3):
            loss_of(model, *batch(100 + step, hvd.rank())).backward()
            optimizer.load_state_dict(optimizer.state_dict())
            optimizer.zero_grad()
            loss_of(model, *batch(step, hvd.rank())).backward()
            optimizer.step()
            inner.zero_grad()
            inputs, targets = (torch.cat(each) for each in zip(*(batch(step, rank) for rank in range(hvd.size()))))
            loss_of(alone, inputs, targets).backward()
            inner.step()
        for own, right in zip(model.parameters(), alone.parameters()):
            self.assertLessEqual((own - right).abs().max().item(), 1e-12)
            self.assert_same_bits(own)

    def test_gradients_of_a_new_optimizer_are_zeros_after_the_broadcast(self):
        frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
        weight = torch.nn.Parameter(torch.ones(3))
        hvd.broadcast_optimizer_state(torch.optim.SGD([frozen, weight], lr=0.1), 0)
        self.assertIsNone(frozen.grad)
        self.assertEqual(weight.grad.tolist(), [0.0] * 3)
        embedding = torch.nn.Embedding(4, 2, sparse=True)
        hvd.broadcast_optimizer_state(torch.optim.SGD(embedding.parameters(), lr=0.1), 0, model=embedding)
        self.assertTrue(embedding.weight.grad.is_sparse)


class Counter:
    def __init__(self, count):
        self.count = count

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]


class ElasticStates(Case):
    def test_all_ranks_get_the_state_of_rank_0_though_their_plain_attributes_differ(self):
        model, counter = model_of(seed=hvd.rank()), Counter(5 + hvd.rank())
        plain = {"best": 1.5} if hvd.rank() else {}
        state = hvd.elastic.TorchState(model, counter=counter, **plain)
        state.sync()
        self.assertIs(state.counter, counter)
        self.assertEqual(counter.count, 5)
        for parameter in model.parameters():
            self.assert_same_bits(parameter)
        if plain:
            self.assertEqual(state.best, 1.5)

    def test_an_object_that_only_rank_0_has_is_refused_on_all_ranks(self):
        if hvd.size() == 1:
            return
        for make in (Counter, model_of):
            state = hvd.elastic.TorchState(model_of(), ema=make(1) if hvd.rank() == 0 else None)
            self.refused_everywhere(ValueError, state.sync, "'ema' is of type ", " on rank 0 and absent on rank 1")


class BatchNorm(Case):
    SHAPES = [(4, 3), (4, 3, 5), (4, 3, 5, 2), (2, 3, 2, 3, 2)]

    def compare(self, shapes, dtype=torch.float64, tolerance=1e-10, **arguments):
        """Compares batches of these shapes, one for each rank, with BatchNorm on all of them."""
        torch.manual_seed(0)
        norm = hvd.SyncBatchNorm(3, **arguments).to(dtype)
        alone = torch.nn.BatchNorm1d(3, **arguments).to(dtype)
        alone._check_input_dim = lambda _: None
        if norm.affine:
            with torch.no_grad():
                norm.weight.copy_(torch.randn(3))
                norm.bias.copy_(torch.randn(3))
            alone.load_state_dict(norm.state_dict())
        for step in range(3):
            batches = [torch.randn(shape, dtype=dtype) * 3 + 100 for shape in shapes]
            whole = torch.cat(batches).requires_grad_()
            own = batches[hvd.rank()].clone().requires_grad_()
            output, right = norm(own), alone(whole)
            begin = sum(len(each) for each in batches[:hvd.rank()])
            mine = slice(begin, begin + len(own))
            weights = torch.randn(whole.shape, dtype=dtype)
            for module in (norm, alone):
                module.zero_grad()
            (output * weights[mine]).sum().backward()
            (right * weights).sum().backward()
            for value, expected in ((output, right[mine]), (own.grad, whole.grad[mine])):
                self.assertEqual(value.dtype, dtype)
                if value.numel():
                    self.assertLessEqual((value - expected).abs().max().item(), tolerance)
            for (name, parameter), expected in zip(norm.named_parameters(), alone.parameters()):
                summed = hvd.allreduce(parameter.grad, op=hvd.Sum)
                self.assertLessEqual((summed - expected.grad).abs().max().item(), 100 * tolerance, name)
            for name, value in norm.state_dict().items():
                self.assertLessEqual((value - alone.state_dict()[name]).abs().max().item(), tolerance, name)
        norm.eval()
        alone.eval()
        unseen = torch.randn(shapes[-1], dtype=dtype)
        self.assertLessEqual((norm(unseen) - alone(unseen)).abs().max().item(), tolerance)

    def test_as_of_one_batch(self):
        for shape in self.SHAPES:
            self.compare([shape] * hvd.size())

    def test_batches_that_differ_in_size_and_are_empty(self):
        self.compare([(2 * rank + (hvd.size() == 1) * 4, 3, 4) for rank in range(hvd.size())])

    def test_settings(self):
        for arguments in ({"affine": False}, {"momentum": None}, {"momentum": 0.3, "eps": 1e-3},
                          {"track_running_stats": False}):
            self.compare([(4, 3, 5)] * hvd.size(), **arguments)

    def test_single_precision_far_from_zero(self):
        self.compare([(64, 3, 7)] * hvd.size(), dtype=torch.float32, tolerance=2e-3)

    def test_refused(self):
        norm = hvd.SyncBatchNorm(3)
        self.refused_everywhere(ValueError, lambda: norm(torch.ones(3)), "at least 2 dimensions")
        self.refused_everywhere(ValueError, lambda: norm(torch.ones(3, 4)), "3 channels")


class ElasticObjects(Case):
    def test_all_ranks_get_the_attributes_of_rank_0(self):
        for of_rank_0, of_others in (({"epoch": 3}, {}), ({}, {"epoch": 4}), ({"epoch": 5}, {"epoch": 6, "batch": 1})):
            state = hvd.elastic.ObjectState(**(of_rank_0 if hvd.rank() == 0 else of_others))
            state.sync()
            state.sync()
            for name, value in of_rank_0.items():
                self.assertEqual(getattr(state, name), value)


if __name__ == "__main__":
    unittest.main()
