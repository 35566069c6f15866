"""Completes and checks the arguments of DistributedOptimizer."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Iterable, List, Optional, Sequence, Tuple

import torch

from ..common.basics import size
from ..common.process_sets import ProcessSet, global_process_set
from ..common.reduce_ops import ReduceOp
from .compression import has_feedback


def named_parameters_of(optimizer: torch.optim.Optimizer,
                        given: Optional[Iterable[Tuple[str, torch.Tensor]]]) -> List[Tuple[str, torch.Tensor]]:
    """The given names, or names made of the positions of the parameters.

    Errors: ValueError if `given` is not a sequence of pairs, contains a name twice, or lacks a parameter.
    """
    parameters = [(group_number, place, parameter) for group_number, group in enumerate(optimizer.param_groups)
                  for place, parameter in enumerate(group["params"])]
    if given is None:
        return [(name_of_unnamed(group_number, place), parameter) for group_number, place, parameter in parameters]
    named = list(given)
    if not all(isinstance(each, tuple) and len(each) == 2 for each in named):
        raise ValueError("named_parameters must be a sequence of tuples (name, parameter), as "
                         "model.named_parameters() gives")
    twice = sorted(name for name, count in Counter(name for name, _ in named).items() if count > 1)
    if twice:
        raise ValueError(f"names in named_parameters must be unique; duplicates: {', '.join(twice)}")
    known = {id(parameter) for _, parameter in named}
    unnamed = [f"{place} of group {group_number} {tuple(parameter.shape)}"
               for group_number, place, parameter in parameters if id(parameter) not in known]
    if unnamed:
        raise ValueError(f"named_parameters was given, but has no names for these parameters of the optimizer: "
                         f"{'; '.join(unnamed)}")
    return named


def name_of_unnamed(group: int, place: int) -> str:
    return f"allreduce.noname.{group}.{place}"


def check(op: ReduceOp, compression: Any, predivide: float, passes: int, groups: Any, process_set: ProcessSet) -> None:
    """Errors: ValueError; NotImplementedError for Adasum in a process set."""
    if op not in (ReduceOp.AVERAGE, ReduceOp.SUM, ReduceOp.ADASUM):
        raise ValueError(f"DistributedOptimizer takes op Average, Sum or Adasum, not {op.name.capitalize()}")
    if has_feedback(compression) and (op == ReduceOp.ADASUM or predivide != 1.0):
        raise ValueError(f"{compression.text} computes averages with error feedback: it can be used with op Average or "
                         f"Sum, without gradient_predivide_factor")
    if predivide != 1.0:
        if op != ReduceOp.AVERAGE:
            raise ValueError(f"gradient_predivide_factor can be used with op=Average only, not with "
                             f"{op.name.capitalize()}")
        if not (math.isfinite(predivide) and predivide > 0):
            raise ValueError(f"gradient_predivide_factor is {predivide}: it must be greater than 0")
    check_passes(passes)
    if groups is not None:
        _check_groups(groups)
    if op == ReduceOp.ADASUM and process_set is not global_process_set:
        raise NotImplementedError("DistributedOptimizer does not support Adasum in a process set: omit "
                                  "process_set")
    size()  # raises before init()


def check_passes(passes: int) -> None:
    if passes <= 0:
        raise ValueError(f"backward_passes_per_step is {passes}: it must be > 0")


def places_of(groups: Any, parameters: Sequence[torch.Tensor]) -> List[List[int]]:
    """The groups as positions in `parameters`, without parameters that the optimizer does not train."""
    if groups is None or isinstance(groups, int):
        return []
    places = {id(parameter): place for place, parameter in enumerate(parameters)}
    listed = [[places[id(parameter)] for parameter in group if id(parameter) in places] for group in groups]
    return [group for group in listed if group]


def _check_groups(groups: Any) -> None:
    if isinstance(groups, int) and not isinstance(groups, bool):
        if groups < 0:
            raise ValueError(f"groups is {groups}: it must be a number of groups, or a list of lists of parameters")
        return
    if not isinstance(groups, (list, tuple)) or not all(isinstance(group, (list, tuple)) for group in groups) or \
            not all(isinstance(parameter, torch.Tensor) for group in groups for parameter in group):
        raise ValueError("groups must be a number of groups, or a list of lists of parameters")
    counts = Counter(id(parameter) for group in groups for parameter in group)
    if any(count > 1 for count in counts.values()):
        raise ValueError("groups contains a parameter more than once")
