"""Guarantees of DistributedOptimizer besides the numbers: its class, its errors and warnings, gradients that are
missing, sparse or replaced, and Adasum."""

import os
import unittest
import warnings
from unittest import mock

import torch

import muster.torch as hvd
from ranks.torch_optimizer import batch, loss_of, model_of, sgd
from ranks.torch_world import Case


def distributed(model, **arguments):
    return hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters(), **arguments)


def backward(model, step=0):
    loss_of(model, *batch(step, hvd.rank())).backward()


class Rules(Case):
    def test_its_class(self):
        model = model_of()
        inner = sgd(model.parameters())
        optimizer = hvd.DistributedOptimizer(inner, model.named_parameters())
        self.assertEqual(type(optimizer).__name__, "SGD")
        self.assertIsInstance(optimizer, torch.optim.SGD)
        self.assertEqual(optimizer.param_groups[0]["momentum"], 0.9)
        self.assertEqual(set(optimizer._parameter_names.values()), {name for name, _ in model.named_parameters()})
        with self.assertRaises(ValueError):
            hvd.DistributedOptimizer(optimizer, model.named_parameters())

    def test_a_removed_process_set_does_not_matter_to_optimizers_of_all_ranks(self):
        if hvd.size() == 1:
            return
        for make in (distributed, lambda model: distributed(model, op=hvd.Adasum),
                     lambda model: hvd.ShardedOptimizer(sgd(model.parameters()), model.named_parameters())):
            models = model_of(), model_of()
            for model, removes in zip(models, (False, True)):
                optimizer = make(model)
                for step in range(4):
                    optimizer.zero_grad()
                    backward(model, step)
                    if removes and step == 2:
                        # Rank 0 only is in the set. The gradients are on their way.
                        hvd.remove_process_set(hvd.add_process_set([0]))
                    optimizer.step()
            for left, right in zip(*(model.parameters() for model in models)):
                self.assertTrue(torch.equal(left, right))

    def test_invalid_arguments_are_refused(self):
        model = model_of()
        names = list(model.named_parameters())
        for arguments, words in (
                ({"named_parameters": [parameter for _, parameter in names]}, "tuples"),
                ({"named_parameters": names + names[:1]}, "unique"),
                ({"named_parameters": names[1:]}, "no names for"),
                ({"gradient_predivide_factor": 2.0, "op": hvd.Sum}, "Average"),
                ({"gradient_predivide_factor": 0.0}, "greater than 0"),
                ({"backward_passes_per_step": 0}, "must be > 0"),
                ({"groups": -1}, "number of groups"), ({"groups": [names[0][1]]}, "list of lists"),
                ({"groups": [[names[0][1]], [names[0][1]]]}, "more than once"),
                ({"op": hvd.Max}, "Max"), ({"op": 77}, "77")):
            with self.subTest(arguments=list(arguments)):
                with self.assertRaises(ValueError) as caught:
                    hvd.DistributedOptimizer(sgd(model.parameters()), **arguments)
                self.assertIn(words, str(caught.exception))
        with self.assertRaises(ValueError):
            distributed(model).set_backward_passes_per_step(0)

    def test_one_warning_for_step_after_synchronize(self):
        model = model_of()
        optimizer = distributed(model)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            backward(model)
            optimizer.synchronize()
            with optimizer.skip_synchronize():
                optimizer.step()
            self.assertEqual(len(caught), 0)
            optimizer.zero_grad()
            backward(model)
            optimizer.synchronize()
            optimizer.step()
            optimizer.zero_grad()
            backward(model)
            optimizer.step()
        self.assertEqual(len(caught), 1, [str(each.message) for each in caught])
        self.assertIn("optimizer.step() called without optimizer.skip_synchronize()", str(caught[0].message))

    def test_gradients_are_not_cleared_while_they_are_reduced(self):
        if hvd.size() == 1:
            return
        model = model_of()
        optimizer = distributed(model)
        backward(model)
        with self.assertRaises(AssertionError):
            optimizer.zero_grad()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        self.assertTrue(all(parameter.grad is None for parameter in model.parameters()))
        backward(model)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        self.assertTrue(all(not parameter.grad.any() for parameter in model.parameters()))

    def test_more_passes_than_were_announced(self):
        if hvd.size() == 1:
            return
        model = model_of()
        optimizer = distributed(model, backward_passes_per_step=2)
        backward(model)
        backward(model, 1)
        with self.assertRaises(AssertionError) as caught:
            backward(model, 2)
        self.assertIn("backward_passes_per_step", str(caught.exception))
        optimizer.synchronize()
        with optimizer.skip_synchronize():
            optimizer.step()
        optimizer.zero_grad()
        optimizer.set_backward_passes_per_step(1)
        backward(model)
        optimizer.step()
        self.assertEqual(optimizer.backward_passes_per_step, 1)

    def test_fewer_passes_than_were_announced(self):
        model = model_of()
        optimizer = distributed(model, backward_passes_per_step=3)
        for _ in range(2):
            backward(model)
            optimizer.step()
            optimizer.zero_grad()
        for parameter in model.parameters():
            self.assert_same_bits(parameter)

    def test_step_without_synchronize_in_skip_synchronize_is_refused(self):
        if hvd.size() == 1:
            return
        model = model_of()
        optimizer = distributed(model)
        backward(model)
        with self.assertRaises(RuntimeError), optimizer.skip_synchronize():
            optimizer.step()
        optimizer.step()

    def test_changes_of_gradients_during_their_reduction_cause_a_warning(self):
        if hvd.size() == 1:
            return
        model = model_of()
        optimizer = distributed(model)
        for step in range(3):
            optimizer.zero_grad()
            backward(model, step)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                if step == 2:
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
                optimizer.step()
            self.assertEqual(len(caught), 1 if step == 2 else 0)

    def test_gradients_that_are_replaced_while_they_are_reduced_do_not_part_the_ranks(self):
        if hvd.size() == 1:
            return
        for late in (lambda parameter: torch.full_like(parameter, float(hvd.rank())), lambda parameter: None):
            model = model_of()
            optimizer = distributed(model)
            for step in range(3):
                optimizer.zero_grad()
                backward(model, step)
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    if step == 2:
                        for parameter in model.parameters():
                            parameter.grad = late(parameter)
                    optimizer.step()
                self.assertEqual(len(caught), 1 if step == 2 else 0)
            for parameter in model.parameters():
                self.assertTrue(torch.equal(parameter.grad, hvd.broadcast(parameter.grad, 0)))
                self.assertTrue(torch.equal(parameter, hvd.broadcast(parameter.detach(), 0)))

    def test_parameters_without_gradient_on_some_rank_or_on_all(self):
        torch.manual_seed(0)
        model = torch.nn.ModuleDict({name: torch.nn.Linear(2, 1, bias=False) for name in ("all", "some", "none")})
        optimizer = distributed(model)
        for step in range(4):
            optimizer.zero_grad(set_to_none=step % 2 == 0)
            x = torch.ones(1, 2)
            loss = model["all"](x).sum()
            if hvd.rank() == hvd.size() - 1:
                loss = loss + model["some"](x).sum()
            loss.backward()
            optimizer.step()
            self.assertEqual(model["all"].weight.grad.tolist(), [[1.0, 1.0]])
            share = torch.full((1, 2), 1.0 / hvd.size())
            self.assertTrue(torch.allclose(model["some"].weight.grad, share))
            if hvd.size() > 1:
                self.assertEqual(model["none"].weight.grad.tolist(), [[0.0, 0.0]])

    def test_a_parameter_that_is_used_twice(self):
        weight = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=0.0), [("w", weight)])
        for _ in range(3):
            optimizer.zero_grad()
            ((weight * (hvd.rank() + 1)).sum() + (weight * 3).sum()).backward()
            optimizer.step()
            self.assertAlmostEqual(weight.grad[0].item(), 3 + (hvd.size() + 1) / 2)

    def test_a_graph_that_gradients_are_taken_of(self):
        weight = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=0.0), [("w", weight)])
        for _ in range(3):
            optimizer.zero_grad()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of the cycle that is cut below
                (weight ** 3).sum().backward(create_graph=True)
            optimizer.step()
            self.assertEqual(weight.grad.tolist(), [3.0] * 3)
            weight.grad = None

    def test_frozen_parameters_are_left_alone(self):
        model = model_of()
        model[0].weight.requires_grad_(False)
        before = model[0].weight.clone()
        optimizer = distributed(model)
        for step in range(2):
            optimizer.zero_grad()
            backward(model, step)
            optimizer.step()
        self.assertTrue(torch.equal(model[0].weight, before))
        self.assertIsNone(model[0].weight.grad)

    def test_optimizers_that_do_not_fit_are_refused_everywhere(self):
        if hvd.size() == 1:
            return
        model = torch.nn.Linear(3, 2 + (hvd.rank() == 0))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
        model(torch.ones(1, 3)).sum().backward()
        self.refused_everywhere(RuntimeError, optimizer.step, "float32[2", "float32[3")

    def test_ranks_that_divide_gradients_differently_get_an_error(self):
        if hvd.size() == 1:
            self.skipTest("one rank agrees with itself")
        odd = hvd.rank() == hvd.size() - 1
        for variables, groups, words in (({"HOROVOD_FUSION_THRESHOLD": "64" if odd else "128"}, None, "of 64 bytes"),
                                         ({}, 2 if odd else 1, "in 2 buckets")):
            model = torch.nn.Linear(3, 2)
            optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1),
                                                 model.named_parameters(), groups=groups)
            with mock.patch.dict(os.environ, variables):
                model(torch.ones(1, 3)).sum().backward()
                self.refused_everywhere(RuntimeError, optimizer.step, words)

    def test_two_optimizers_at_a_time(self):
        first, second = model_of(1), model_of(2)
        optimizers = [distributed(first), hvd.DistributedOptimizer(
            sgd(second.parameters()), [(f"second.{name}", p) for name, p in second.named_parameters()])]
        for step in range(3):
            for optimizer in optimizers:
                optimizer.zero_grad()
            (loss_of(first, *batch(step, hvd.rank())) + loss_of(second, *batch(step, hvd.rank()))).backward()
            for optimizer in optimizers:
                optimizer.step()
        for model in (first, second):
            for parameter in model.parameters():
                self.assert_same_bits(parameter)

    def test_two_optimizers_in_an_order_of_each_rank(self):
        first, second = model_of(1), model_of(2)
        alone = model_of(1), model_of(2)
        optimizers = [distributed(first), hvd.DistributedOptimizer(
            sgd(second.parameters()), [(f"second.{name}", p) for name, p in second.named_parameters()])]
        others = [sgd(each.parameters()) for each in alone]
        for step in range(3):
            for optimizer in optimizers + others:
                optimizer.zero_grad()
            ranks = [hvd.rank()]
            for models in ((first, second), alone):
                inputs, targets = (torch.cat(each) for each in zip(*(batch(step, rank) for rank in ranks)))
                (loss_of(models[0], inputs, targets) + loss_of(models[1], inputs, targets)).backward()
                ranks = range(hvd.size())
            for optimizer in optimizers if (hvd.rank() + step) % 2 else reversed(optimizers):
                optimizer.step()
            for optimizer in others:
                optimizer.step()
        for model, expected in zip((first, second), alone):
            for own, right in zip(model.parameters(), expected.parameters()):
                self.assertLessEqual((own - right).abs().max().item(), 1e-12)
                self.assert_same_bits(own)

    def test_a_world_may_end_before_the_first_steps_of_several_optimizers(self):
        models = [model_of(1), model_of(2)]
        optimizers = [hvd.DistributedOptimizer(sgd(model.parameters()), [
            (f"{number}.{name}", p) for name, p in model.named_parameters()]) for number, model in enumerate(models)]
        for number, model in enumerate(models):
            # Not all ranks have gradients for the second optimizer, so its ranks wait for each other.
            if number == 0 or hvd.rank() == 0:
                backward(model)
        hvd.barrier()
        hvd.shutdown()
        hvd.init()
        for step in range(2):
            for model, optimizer in zip(models, optimizers):
                optimizer.zero_grad()
                backward(model, step)
            for optimizer in optimizers if hvd.rank() % 2 else reversed(optimizers):
                optimizer.step()
        for model in models:
            for parameter in model.parameters():
                self.assert_same_bits(parameter)


class SparseGradients(Case):
    def train(self, together, sparse_as_dense=False, only_rank=None):
        torch.manual_seed(2)
        model = torch.nn.Sequential(torch.nn.Embedding(10, 4, sparse=True), torch.nn.Linear(4, 2)).double()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        if together:
            optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters(),
                                                 sparse_as_dense=sparse_as_dense)
        for step in range(4):
            optimizer.zero_grad(set_to_none=True)
            loss = 0
            for rank in [hvd.rank()] if together else range(hvd.size()):
                if only_rank is None or rank == only_rank:
                    words = torch.tensor([(step + rank) % 10, (step * rank) % 10, 3])
                    loss = loss + model(words).square().mean() * (1 if together else 1 / hvd.size())
                else:
                    loss = loss + model[1](torch.ones(1, 4).double()).sum() * (1 if together else 1 / hvd.size())
            loss.backward()
            optimizer.step()
            if together and hvd.size() > 1:
                self.assertTrue(model[0].weight.grad.is_sparse)
        return model

    def compare(self, **arguments):
        expected = self.train(False, only_rank=arguments.get("only_rank"))
        for own, right in zip(self.train(True, **arguments).parameters(), expected.parameters()):
            self.assertLessEqual((own - right).abs().max().item(), 1e-12)
            self.assert_same_bits(own)

    def test_stay_sparse(self):
        self.compare()

    def test_made_dense(self):
        self.compare(sparse_as_dense=True)

    def test_made_dense_for_an_optimizer_that_takes_sparse_gradients_alone(self):
        embedding = torch.nn.Embedding(10, 4, sparse=True)
        hvd.broadcast_parameters(embedding.state_dict(), 0)
        optimizer = hvd.DistributedOptimizer(torch.optim.SparseAdam(list(embedding.parameters()), lr=0.1),
                                             embedding.named_parameters(), sparse_as_dense=True)
        for step in range(3):
            optimizer.zero_grad()
            embedding(torch.tensor([step, hvd.rank()])).sum().backward()
            optimizer.step()
        self.assert_same_bits(embedding.weight)

    def test_of_one_rank_alone(self):
        self.compare(only_rank=hvd.size() - 1)

    def test_that_zero_grad_has_emptied(self):
        """Its zero_() makes all dimensions of a sparse gradient sparse."""
        embedding = torch.nn.Embedding(10, 4, sparse=True)
        torch.nn.init.ones_(embedding.weight)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(embedding.parameters(), lr=1.0),
                                             embedding.named_parameters(), op=hvd.Sum)
        for step in range(3):
            optimizer.zero_grad(set_to_none=False)
            if step == 0 or hvd.rank() == 0:
                embedding(torch.tensor([step])).sum().backward()
            optimizer.step()
        self.assertEqual(embedding.weight[:4, 0].tolist(), [1.0 - hvd.size(), 0.0, 0.0, 1.0])
        self.assert_same_bits(embedding.weight)


def adasum_of(vectors):
    """Maleki et al., equation 3, over a tree of pairs; the ranks beyond a power of two are folded in first."""
    vectors = list(vectors)
    whole = 1 << (len(vectors).bit_length() - 1)
    for extra in range(whole, len(vectors)):
        vectors[extra - whole] = combined(vectors[extra - whole], vectors[extra])
    vectors = vectors[:whole]
    distance = 1
    while distance < whole:
        for low in range(0, whole, 2 * distance):
            vectors[low] = combined(vectors[low], vectors[low + distance])
        distance *= 2
    return vectors[0]


def combined(a, b):
    product, square_a, square_b = (a * b).sum(), (a * a).sum(), (b * b).sum()
    share_a = 1 - product / (2 * square_a) if square_a > 0 else 1
    share_b = 1 - product / (2 * square_b) if square_b > 0 else 1
    return share_a * a + share_b * b


class AdasumTraining(Case):
    def test_against_the_definition(self):
        for passes in (1, 2):
            for make in (sgd, lambda parameters: torch.optim.Adam(parameters, lr=0.01)):
                model = model_of()
                optimizer = hvd.DistributedOptimizer(make(model.parameters()), model.named_parameters(),
                                                     op=hvd.Adasum, backward_passes_per_step=passes)
                ranks = [model_of() for _ in range(hvd.size())]
                inner = [make(each.parameters()) for each in ranks]
                for step in range(4):
                    for rank, (each, own) in enumerate(zip(ranks, inner)):
                        own.zero_grad()
                        for number in range(passes):
                            loss_of(each, *batch(step * passes + number, rank)).backward()
                    before = [parameter.detach().clone() for parameter in ranks[0].parameters()]
                    for own in inner:
                        own.step()
                    for place, start in enumerate(before):
                        changes = [list(each.parameters())[place].detach() - start for each in ranks]
                        change = adasum_of(changes)
                        for each in ranks:
                            list(each.parameters())[place].data.copy_(start + change)
                    optimizer.zero_grad()
                    for number in range(passes):
                        loss_of(model, *batch(step * passes + number, hvd.rank())).backward()
                    optimizer.step()
                for own, right in zip(model.parameters(), ranks[0].parameters()):
                    self.assertLessEqual((own - right).abs().max().item(), 1e-10)
                    self.assert_same_bits(own)

    def adasum(self, model, make=sgd, **arguments):
        return hvd.DistributedOptimizer(make(model.parameters()), model.named_parameters(), op=hvd.Adasum, **arguments)

    def test_steps_during_the_backward_pass_have_the_same_bits(self):
        for arguments in ({}, {"backward_passes_per_step": 2}, {"compression": hvd.Compression.fp16}):
            for make in (sgd, lambda parameters: torch.optim.Adam(parameters, lr=0.01)):
                models = model_of(), model_of()
                optimizers = [self.adasum(model, make, **arguments) for model in models]
                passes = arguments.get("backward_passes_per_step", 1)
                for step in range(5):
                    for model, optimizer in zip(models, optimizers):
                        optimizer.zero_grad()
                        for number in range(passes):
                            loss_of(model, *batch(step * passes + number, hvd.rank())).backward()
                        if optimizer is optimizers[1]:
                            for parameter in model.parameters():
                                parameter.grad.mul_(1.0)  # as clipping does: keeps the exchange in step()
                        elif hvd.size() > 1 and step > 0:
                            self.assertTrue(all(bucket.handle is not None for bucket in optimizer._buckets))
                        optimizer.step()
                if hvd.size() > 1:
                    self.assertEqual([optimizer._overlaps for optimizer in optimizers], [True, False])
                for left, right in zip(*(model.parameters() for model in models)):
                    self.assertTrue(torch.equal(left, right))
                    self.assert_same_bits(left)

    def test_changed_gradients_of_one_rank_keep_all_ranks_in_step(self):
        if hvd.size() == 1:
            return
        model = model_of()
        optimizer = self.adasum(model)
        loss_of(model, *batch(0, hvd.rank())).backward()
        if hvd.rank() == 0:
            list(model.parameters())[0].grad.mul_(0.5)
        optimizer.step()
        self.assertIs(optimizer._overlaps, False)

    def test_gradients_that_change_too_late_and_missing_ones(self):
        if hvd.size() == 1:
            return
        model = model_of()
        optimizer = self.adasum(model)
        for step in range(2):
            optimizer.zero_grad()
            loss_of(model, *batch(step, hvd.rank())).backward()
            if step == 1:
                list(model.parameters())[0].grad.mul_(0.5)
                with self.assertWarnsRegex(UserWarning, "had no effect"):
                    optimizer.step()
            else:
                optimizer.step()
        # No backward pass on one rank, and a state that is loaded between the backward pass and step().
        optimizer.zero_grad()
        if hvd.rank() > 0:
            loss_of(model, *batch(2, hvd.rank())).backward()
        optimizer.step()
        loss_of(model, *batch(3, hvd.rank())).backward()
        optimizer.load_state_dict(optimizer.state_dict())
        optimizer.zero_grad()
        loss_of(model, *batch(4, hvd.rank())).backward()
        optimizer.step()
        for parameter in model.parameters():
            self.assert_same_bits(parameter)

    def test_refusals(self):
        model = model_of()
        if hvd.size() > 1:
            optimizer = distributed(model, op=hvd.Adasum)
            with self.assertRaises(AssertionError), optimizer.skip_synchronize():
                pass
        with self.assertRaises(NotImplementedError):
            distributed(model, op=hvd.Adasum, process_set=hvd.ProcessSet([0]))


if __name__ == "__main__":
    unittest.main()
