"""The samples of an epoch for each rank, in a world whose ranks may change in the middle of the epoch."""

from __future__ import annotations

import random
from typing import Any, Dict, Iterable, Iterator, List, Sized

import torch.utils.data

from ...common import basics


class ElasticSampler(torch.utils.data.Sampler):
    """Shares the samples of an epoch among the ranks, and shares the rest of them anew when the world changes.

        sampler = ElasticSampler(dataset)
        for index, batch in enumerate(DataLoader(dataset, batch_size, sampler=sampler)):
            ...
            sampler.record_batch(index, batch_size)
            state.commit()
        state.epoch += 1
        sampler.set_epoch(state.epoch)
        state.commit()

    Ranks take their batches in step. If the number of remaining samples is not a multiple of the number of ranks, the
    last ranks see a few samples again. As a part of a TorchState, the sampler is saved, restored and shared anew
    automatically.
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0) -> None:
        """seed: the same on all ranks. Errors: ValueError before init(), since all ranks would get all samples."""
        basics.size()
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        #: The samples that this rank has recorded in the epoch, and those that any rank had recorded at the last sync.
        self.processed_indices: "set[int]" = set()
        # The samples of the other ranks in the batches that this rank recorded. A lost rank cannot report its own.
        self._processed_elsewhere: "set[int]" = set()
        # In this epoch. Two ranks with the same number have recorded the same batches.
        self._recorded_batches = 0
        self.reset()

    @property
    def processed_num(self) -> int:
        """The number of samples of the epoch that any rank has seen, according to the records of this rank."""
        return len(self.processed_indices | self._processed_elsewhere)

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch in which no sample has been seen. Call it after an epoch and not before: an elastic training
        function is called again in the middle of an epoch, whose samples would be forgotten then."""
        self.epoch = epoch
        self.processed_indices = set()
        self._processed_elsewhere = set()
        self._recorded_batches = 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Records that all ranks have trained on their next batch, of `batch_size` samples per rank.

        As in Horovod, each call stands for the batch after the last recorded one, and `batch_idx` is ignored: a program
        may continue to count after the samples were shared anew, or begin again."""
        del batch_idx
        begin = self._recorded_since_shared
        end = begin + batch_size
        self._recorded_since_shared += batch_size
        self.record_indices(self.indices[begin:end])
        self._recorded_batches += 1
        self._processed_elsewhere.update(self._shared[begin * self.num_replicas:end * self.num_replicas])

    def record_indices(self, indices: "list[int]") -> None:
        """Records that this rank has trained on these samples."""
        self.processed_indices.update(indices)

    def get_indices(self, batch_idx: int, batch_size: int) -> "list[int]":
        """The samples of this rank's batch of that number."""
        return self.indices[batch_idx * batch_size:(batch_idx + 1) * batch_size]

    def state_dict(self) -> Dict[str, Any]:
        return {"epoch": self.epoch, "processed_indices": self.processed_indices | self._processed_elsewhere,
                "recorded_batches": self._recorded_batches}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Shares the samples that the state does not list as seen among the present ranks."""
        self.epoch = state_dict["epoch"]
        if "processed_indices" in state_dict:
            self.processed_indices = set(state_dict["processed_indices"])
        else:
            # A state of Horovod's sampler, which counts along one order of the whole epoch.
            self.processed_indices = set(self._shuffled(range(len(self.dataset)))[:state_dict["processed_num"]])
        self._processed_elsewhere = set()
        self._recorded_batches = state_dict.get("recorded_batches", 0)
        self.reset()

    def reset(self) -> None:
        """Shares the rest of the epoch among the present ranks: the result is the same on all of them."""
        joined = basics.is_initialized()
        self.num_replicas = basics.size() if joined else 1
        self.rank = basics.rank() if joined else 0
        processed = self.processed_indices | self._processed_elsewhere
        self.remaining_indices = [each for each in range(len(self.dataset)) if each not in processed]
        order = self._shuffled(self.remaining_indices)
        # The number of samples of this rank that were recorded since they were shared: a position in `indices`.
        self._recorded_since_shared = 0
        self.num_samples = -(-len(order) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas
        #: Ranks take samples from it in turns.
        self._shared: List[int] = [order[each % len(order)] for each in range(self.total_size)]
        self.indices: List[int] = self._shared[self.rank:self.total_size:self.num_replicas]

    def _shuffled(self, indices: Iterable[int]) -> List[int]:
        order = list(indices)
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        return order

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)

    def __len__(self) -> int:
        return self.num_samples
