"""The assignment of ranks to workers in a round.

Rank 0 sends its state to all other ranks, so it is a worker with the newest state. Remaining workers keep their order,
so that ranks change as little as possible; ranks of one host are contiguous. The local rank follows the slot and not
the rank: a program that uses the GPU of its first local rank keeps it.
"""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

from .workers import Worker

Fields = Dict[str, Any]


def assign(workers: Sequence[Worker], host_order: Sequence[str]) -> List[Tuple[Worker, Fields]]:
    """The fields of each rank's `place` message that describe its position, by rank.

    `host_order`: the hosts in the order of discovery; other hosts come last.
    """
    on_host: Dict[str, List[Worker]] = {}
    for worker in workers:
        on_host.setdefault(worker.host, []).append(worker)
    for members in on_host.values():
        members.sort(key=_seniority)
    number = {host: index for index, host in enumerate(host_order)}
    hosts = sorted(on_host, key=lambda host: (_seniority(on_host[host][0])[:3], number.get(host, len(number)), host))

    placed: List[Tuple[Worker, Fields]] = []
    for host in hosts:
        by_slot = sorted(on_host[host], key=lambda worker: worker.slot)
        for worker in on_host[host]:
            local_rank = by_slot.index(worker)
            across = [each for each in hosts if len(on_host[each]) > local_rank]
            placed.append((worker, {
                "rank": len(placed), "size": len(workers), "local_rank": local_rank, "local_size": len(by_slot),
                "cross_rank": across.index(host), "cross_size": len(across)}))
    return placed


def _seniority(worker: Worker) -> Tuple[int, int, float, int]:
    """Sorts workers with the newest state first, then by their previous order, and new workers by their slots."""
    return (-worker.synced, -worker.commits, float("inf") if worker.rank is None else worker.rank, worker.slot)
