"""Elastic training with PyTorch: states, the sampler, and whole runs with killed workers."""

import re
import sys
import unittest
from pathlib import Path
from unittest import mock

import torch

import muster.torch as hvd
from elastic_run import TESTS, ElasticRun
from muster.common import basics
from muster.torch.elastic import handlers
from muster.torch.elastic import state as states
from muster.torch.elastic.handlers import handler_for

TRAINING = [sys.executable, str(Path(TESTS) / "ranks" / "elastic_torch.py")]
STEPS = [sys.executable, str(Path(TESTS) / "ranks" / "elastic_optimizers.py")]


def sampler_of(samples, rank, size, **options):
    with placed(rank, size):
        return hvd.elastic.ElasticSampler(range(samples), **options)


def placed(rank, size):
    """Pretends that this process is that rank."""
    return mock.patch.multiple(basics, is_initialized=lambda: True, rank=lambda: rank, size=lambda: size)


class Sampler(unittest.TestCase):
    def test_is_refused_before_init(self):
        with self.assertRaisesRegex(ValueError, r"init\(\)"):
            hvd.elastic.ElasticSampler(range(4))

    def test_the_ranks_share_an_epoch_out(self):
        for samples in (1, 2, 7, 12, 100):
            for size in (1, 2, 3, 4):
                parts = [list(sampler_of(samples, rank, size)) for rank in range(size)]
                self.assertEqual({each for part in parts for each in part}, set(range(samples)))
                self.assertEqual({len(part) for part in parts}, {-(-samples // size)})

    def test_nothing_of_an_epoch_is_left_out_or_seen_twice_though_the_ranks_change(self):
        for sizes in ([2, 3, 1], [4, 2, 4], [1, 5]):
            state, seen = {"epoch": 3, "processed_indices": set()}, []
            for size in sizes:
                samplers = [sampler_of(120, rank, size, seed=5) for rank in range(size)]
                for rank, sampler in enumerate(samplers):
                    with placed(rank, size):
                        sampler.load_state_dict(state)
                for number in range(3 if size is not sizes[-1] else 1000):
                    for sampler in samplers:
                        seen += sampler.get_indices(number, 4)
                        sampler.record_batch(number, 4)
                states = [sampler.state_dict() for sampler in samplers]
                self.assertTrue(all(each == states[0] for each in states))
                state = states[-1]
            self.assertEqual(sorted(set(seen)), list(range(120)))
            self.assertLess(len(seen) - 120, max(sizes))

    def test_each_rank_records_the_samples_of_the_others_in_the_same_batches(self):
        zero, one = (sampler_of(10, rank, 2, shuffle=False) for rank in (0, 1))
        zero.record_batch(0, 2)
        self.assertEqual(zero.processed_indices, {0, 2})
        self.assertEqual(zero.state_dict()["processed_indices"], {0, 1, 2, 3})
        self.assertEqual(zero.processed_num, 4)
        one.record_indices([9])
        self.assertEqual(one.state_dict()["processed_indices"], {9})

    def test_an_epoch_has_its_own_order_and_begins_with_nothing_seen(self):
        sampler = sampler_of(50, 0, 1)
        first = list(sampler)
        sampler.record_batch(0, 10)
        sampler.set_epoch(1)
        self.assertEqual(sorted(sampler), list(range(50)))
        self.assertNotEqual(list(sampler), first)
        sampler.set_epoch(0)
        self.assertEqual(list(sampler), first)
        self.assertEqual(list(sampler_of(5, 0, 1, shuffle=False)), [0, 1, 2, 3, 4])

    def test_a_state_of_horovods_sampler_can_be_loaded(self):
        sampler = sampler_of(50, 0, 1)
        order = list(sampler)
        sampler.load_state_dict({"epoch": 0, "processed_num": 20})
        self.assertEqual(sampler.processed_num, 20)
        self.assertEqual(sorted(sampler), sorted(order[20:]))

    def test_every_call_records_the_next_batch_whatever_its_number(self):
        for samples in (8, 20):  # after the samples were shared anew, number 2 is past the end, or within the rest
            for number in (2, 0, 1):
                sampler = sampler_of(samples, 0, 1)
                sampler.record_batch(0, 2)
                sampler.record_batch(1, 2)
                sampler.load_state_dict(sampler.state_dict())
                before = set(sampler.processed_indices)
                sampler.record_batch(number, 2)
                self.assertEqual(sampler.processed_indices, before | set(sampler.indices[:2]))

    def test_batches_of_different_sizes_follow_one_another(self):
        zero, one = (sampler_of(16, rank, 2, shuffle=False) for rank in (0, 1))
        for sampler in (zero, one):
            sampler.record_batch(0, 4)
            sampler.record_batch(1, 2)
        self.assertEqual(zero.processed_indices, {0, 2, 4, 6, 8, 10})
        self.assertEqual(one.state_dict()["processed_indices"], set(range(12)))

    def test_after_the_last_sample_nothing_is_left(self):
        sampler = sampler_of(4, 0, 2, shuffle=False)
        with placed(0, 2):
            sampler.load_state_dict({"epoch": 0, "processed_indices": {0, 1, 2, 3}})
        self.assertEqual((list(sampler), len(sampler)), ([], 0))


class Counter:
    """An object with a state dictionary."""

    count = 0

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]


def sync_on_rank_1(state, given, *of_others):
    """Synchronizes the state as on rank 1, to which rank 0 sends `given`: attributes and dictionaries. `of_others`: the
    states of rank 0 and of ranks 2, 3, ..., by default one that has the same objects."""
    first, *later = of_others or (state,)
    with mock.patch.object(states, "allgather_object",
                           lambda mine, **_: [first._objects(), mine, *(each._objects() for each in later)]), \
            mock.patch.multiple(state, _rank=lambda: 1, _bcast_object=lambda _: given):
        state.sync()


class States(unittest.TestCase):
    def setUp(self):
        self.model = torch.nn.Linear(2, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.state = hvd.elastic.TorchState(self.model, self.optimizer, batch=3, history=[1])

    def train(self):
        self.optimizer.zero_grad()
        self.model(torch.ones(1, 2)).sum().backward()
        self.optimizer.step()

    def test_restoring_brings_back_model_optimizer_and_objects(self):
        self.train()
        self.state.commit()
        weight = self.model.weight.detach().clone()
        momentum = self.optimizer.state[self.model.weight]["momentum_buffer"].clone()
        for _ in range(2):  # a restored state may be trained and restored again
            self.train()
            self.state.batch, self.state.history = 9, self.state.history + [2]
            self.assertFalse(torch.equal(self.model.weight, weight))
            self.state.restore()
            self.assertTrue(torch.equal(self.model.weight, weight))
            self.assertTrue(torch.equal(self.optimizer.state[self.model.weight]["momentum_buffer"], momentum))
            self.assertEqual((self.state.batch, self.state.history), (3, [1]))

    def scheduler_after(self, steps, optimizer=None):
        optimizer = optimizer or self.optimizer
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
        for _ in range(steps):
            optimizer.step()
            scheduler.step()
        return scheduler

    def rate(self):
        return self.optimizer.param_groups[0]["lr"]

    def test_a_restored_scheduler_still_drives_the_optimizer(self):
        scheduler = self.scheduler_after(1)
        state = hvd.elastic.TorchState(self.model, self.optimizer, scheduler=scheduler)
        for _ in range(2):
            self.train()
            state.scheduler.step()
            self.assertEqual(self.rate(), 0.025)
            state.restore()
            self.assertIs(state.scheduler, scheduler)
            self.assertEqual((self.rate(), scheduler.last_epoch), (0.05, 1))

    def test_a_scheduler_takes_rank_0s_state_and_drives_its_own_optimizer(self):
        others = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
        given = self.scheduler_after(3, others).state_dict()
        scheduler = self.scheduler_after(0)
        state = hvd.elastic.TorchState(scheduler=scheduler, batch=1)
        sync_on_rank_1(state, ({"batch": 5}, {"scheduler": given}))
        self.assertIs(state.scheduler, scheduler)
        self.assertIs(scheduler.optimizer, self.optimizer)
        self.train()
        scheduler.step()
        state.batch += 1
        state.restore()
        self.assertEqual((scheduler.last_epoch, state.batch), (3, 5))

    def test_objects_that_only_some_ranks_have_are_refused(self):
        def state_with(**objects):
            return hvd.elastic.TorchState(**objects, batch=1)

        everywhere = {"model": self.model, "counter": Counter()}
        for of_rank_0, of_rank_1, of_rank_2, words in (
                ({"ema": Counter()}, {"ema": None}, {}, "'ema' is of type Counter on rank 0 and absent on rank 1"),
                ({"ema": None}, {"ema": None}, {"ema": Counter()},
                 "'ema' is absent on rank 0 and of type Counter on rank 2"),
                ({"ema": self.model}, {"ema": self.model}, {"ema": Counter()},
                 "'ema' is of type Linear on rank 0 and of type Counter on rank 2"),
                ({"a": Counter()}, {"b": Counter()}, {}, "'a' is of type Counter on rank 0 and absent on rank 1; "
                                                         "'b' is absent on rank 0 and of type Counter on rank 1")):
            first, mine, last = (state_with(**everywhere, **each) for each in (of_rank_0, of_rank_1, of_rank_2))
            with self.assertRaises(ValueError) as caught:
                sync_on_rank_1(mine, None, first, last)
            self.assertIn(f"the ranks have different objects in TorchState: {words}. Pass each model",
                          str(caught.exception))

    def test_an_object_with_a_state_dictionary_stays_and_one_without_is_copied(self):
        counter, bag = Counter(), [1]
        state = hvd.elastic.TorchState(counter=counter, bag=bag, kind=Counter)
        counter.count = 5
        state.restore()
        self.assertIs(state.counter, counter)
        self.assertEqual(counter.count, 0)
        self.assertIsNot(state.bag, bag)
        self.assertIs(state.kind, Counter)

    def test_after_a_skipped_sync_the_model_is_restored_to_the_samples_that_count_as_seen(self):
        sampler = sampler_of(8, 0, 1)
        state = hvd.elastic.TorchState(self.model, self.optimizer, sampler=sampler, batch=0)
        self.train()
        sampler.record_batch(0, 2)
        state.batch = 1
        weight = self.model.weight.detach().clone()
        with mock.patch.multiple(handlers, broadcast_object=lambda value, **_: value,
                                 allgather_object=lambda value, **_: [value]):
            state.on_sync_skipped()
        self.train()
        state.batch = 2
        state.restore()
        self.assertEqual((state.batch, sampler.processed_num), (1, 2))
        self.assertTrue(torch.equal(self.model.weight, weight))

    def test_a_model_that_is_set_is_the_one_from_then_on(self):
        other = torch.nn.Linear(2, 1)
        self.state.model = other
        saved = other.weight.detach().clone()
        with torch.no_grad():
            other.weight.fill_(0)
        self.state.restore()
        self.assertTrue(torch.equal(other.weight, saved))

    def test_an_optimizer_whose_state_is_divided_is_refused(self):
        hvd.init()  # a world of one rank
        self.addCleanup(hvd.shutdown)
        model = torch.nn.Linear(2, 1)
        sharded = hvd.ShardedOptimizer(torch.optim.Adam(model.parameters()), model.named_parameters())
        for refused in (lambda: hvd.elastic.TorchState(model, sharded), lambda: hvd.elastic.TorchState(second=sharded),
                        lambda: setattr(self.state, "optimizer", sharded)):
            with self.assertRaisesRegex(ValueError, "ShardedOptimizer cannot be a part of TorchState.*load_sharded"):
                refused()
        self.assertIs(self.state.optimizer, self.optimizer)
        self.train()
        self.state.commit()

    def test_types_may_have_handlers_of_their_own(self):
        class Plain:
            pass

        class Handler(hvd.elastic.StateHandler):
            def save(self):
                pass

        before = hvd.elastic.get_handler_registry()
        self.addCleanup(hvd.elastic.set_handler_registry, before)
        self.assertIsNone(handler_for(Plain()))
        hvd.elastic.set_handler_registry([*before, (Plain, Handler)])
        self.assertIsInstance(handler_for(Plain()), Handler)


class Runs(unittest.TestCase):
    def trains_through(self, *killed, size):
        with ElasticRun(size, "-np", str(size), "--min-np", "1", "--max-np", str(size),
                        command=[*TRAINING, "--gate", "fifo"]) as run:
            run.until_all_entered(size)
            with open(run.fifo, "w"):  # opens once rank 0 has come to it
                if killed:
                    run.kill(*killed)
            run.wait()
            self.assertEqual(run.code, 0, run.text)
            ends = re.findall(r"weights (\w+) momenta (\w+)", run.text)
            self.assertEqual(len(set(ends)), 1, run.text)
            epochs = re.findall(r"epoch \d saw (\d+) samples, (\d+) twice, shared out (\d+) times", run.text)
            self.assertEqual(len(epochs), 2 * len(ends))
            for samples, twice, share_outs in epochs:
                self.assertEqual(samples, "120")
                self.assertLess(int(twice), size * int(share_outs))
            return run.text

    def test_no_worker_is_killed(self):
        text = self.trains_through(size=2)
        self.assertEqual(text.count("samples, 0 twice, shared out 2 times"), 4)

    def test_rank_0_is_killed(self):
        self.assertIn("rank 0 on localhost was killed", self.trains_through(0, size=2))

    def test_the_last_rank_is_killed(self):
        self.assertIn("rank 2 on localhost was killed", self.trains_through(2, size=3))


class Optimizers(unittest.TestCase):
    """Optimizers that keep something from step to step, which the workers of the next world must share."""

    def assert_trained(self, run, size):
        run.wait()
        self.assertEqual(run.code, 0, run.text)
        ends = re.findall(r"done as (\d) of (\d) weights (\w+)", run.text)
        self.assertEqual(sorted(end[:2] for end in ends), [(str(rank), str(size)) for rank in range(size)], run.text)
        self.assertEqual(len({end[2] for end in ends}), 1, run.text)

    def replaces(self, optimizer, where):
        with ElasticRun(2, "-np", "2", "--min-np", "2", "--max-np", "2",
                        command=[*STEPS, optimizer, "--size", "2", "--lose", where]) as run:
            self.assert_trained(run, 2)
            self.assertIn("rank 1 on localhost was killed", run.text)
            return run.text

    def test_a_worker_with_adasum_is_replaced(self):
        self.replaces("adasum", "between steps")

    def test_a_second_worker_joins_one_that_trains_alone_with_adasum(self):
        with ElasticRun(1, "-np", "1", "--min-np", "1", "--max-np", "2",
                        command=[*STEPS, "adasum", "--size", "2"]) as run:
            run.until("trained 3 steps with 1 workers")
            run.hosts("localhost:2")
            self.assert_trained(run, 2)

    def test_a_worker_is_lost_in_the_backward_pass(self):
        for optimizer in ("adasum", "int8", "powersgd"):
            with self.subTest(optimizer):
                self.assertIn("lost in the backward pass", self.replaces(optimizer, "in the backward pass"))


if __name__ == "__main__":
    unittest.main()
