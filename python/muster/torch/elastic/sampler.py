"""Which samples of an epoch each rank sees, where ranks come and go in the middle of it."""

from __future__ import annotations

import random
from typing import Any, Dict, Iterable, Iterator, List, Sized

import torch.utils.data

from ...common import basics


class ElasticSampler(torch.utils.data.Sampler):
    """Shares the samples of an epoch out among the ranks, and what is left of them out anew when the world changes.

        sampler = ElasticSampler(dataset)
        for index, batch in enumerate(DataLoader(dataset, batch_size, sampler=sampler)):
            ...
            sampler.record_batch(index, batch_size)
            state.commit()

    Ranks take their batches in step, and the last ones see a few samples again where the number of those that are left
    is no multiple of the number of ranks. In a TorchState it is saved, restored and shared out by itself.
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0) -> None:
        """`seed`: the same on all ranks."""
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        #: What this rank has recorded of the epoch, and what any had at the last sync.
        self.processed_indices: "set[int]" = set()
        # What the other ranks saw in the batches that this one recorded. A rank that is lost cannot tell any more.
        self._processed_elsewhere: "set[int]" = set()
        # Of this epoch. Two ranks whose numbers are the same know of the same batches.
        self._recorded_batches = 0
        self.reset()

    @property
    def processed_num(self) -> int:
        """How many samples of the epoch have been seen, on this rank or elsewhere, as far as this rank knows."""
        return len(self.processed_indices | self._processed_elsewhere)

    def set_epoch(self, epoch: int) -> None:
        """Begins another epoch, of which nothing has been seen."""
        self.epoch = epoch
        self.processed_indices = set()
        self._processed_elsewhere = set()
        self._recorded_batches = 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """The ranks have all trained on their batch of this number, counted from 0 since the sampler was last shared
        out, of `batch_size` samples a rank. Where a program goes on counting after the sampler was shared out anew, a
        number past the end stands for the next batch."""
        if batch_idx * batch_size >= len(self.indices):
            batch_idx = self._recorded_since_shared
        self._recorded_since_shared += 1
        self.record_indices(self.get_indices(batch_idx, batch_size))
        self._recorded_batches += 1
        begin = batch_idx * batch_size * self.num_replicas
        self._processed_elsewhere.update(self._shared[begin:begin + batch_size * self.num_replicas])

    def record_indices(self, indices: "list[int]") -> None:
        """This rank has trained on these samples."""
        self.processed_indices.update(indices)

    def get_indices(self, batch_idx: int, batch_size: int) -> "list[int]":
        """The samples of this rank's batch of that number."""
        return self.indices[batch_idx * batch_size:(batch_idx + 1) * batch_size]

    def state_dict(self) -> Dict[str, Any]:
        return {"epoch": self.epoch, "processed_indices": self.processed_indices | self._processed_elsewhere,
                "recorded_batches": self._recorded_batches}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Shares what that state leaves out among the ranks that there are now."""
        self.epoch = state_dict["epoch"]
        if "processed_indices" in state_dict:
            self.processed_indices = set(state_dict["processed_indices"])
        else:
            # Of Horovod's sampler, which counts along one order of the whole epoch.
            self.processed_indices = set(self._shuffled(range(len(self.dataset)))[:state_dict["processed_num"]])
        self._processed_elsewhere = set()
        self._recorded_batches = state_dict.get("recorded_batches", 0)
        self.reset()

    def reset(self) -> None:
        """Shares out what is left of the epoch among the ranks that there are now: the same result on all of them."""
        joined = basics.is_initialized()
        self.num_replicas = basics.size() if joined else 1
        self.rank = basics.rank() if joined else 0
        processed = self.processed_indices | self._processed_elsewhere
        self.remaining_indices = [each for each in range(len(self.dataset)) if each not in processed]
        order = self._shuffled(self.remaining_indices)
        self._recorded_since_shared = 0
        self.num_samples = -(-len(order) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas
        #: In the order in which the ranks take turns.
        self._shared: List[int] = [order[each % len(order)] for each in range(self.total_size)]
        self.indices = self._shared[self.rank:self.total_size:self.num_replicas]

    def _shuffled(self, indices: Iterable[int]) -> List[int]:
        order = list(indices)
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        return order

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)

    def __len__(self) -> int:
        return self.num_samples
