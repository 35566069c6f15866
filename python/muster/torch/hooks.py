"""Calls a function when the gradient of a parameter is ready."""

from __future__ import annotations

from typing import Any, Callable

import torch


class _NodeHook:
    """A hook on the node that accumulates a parameter's gradient. Keeps the node alive."""

    def __init__(self, node: Any, handle: Any) -> None:
        self._node = node
        self._handle = handle

    def remove(self) -> None:
        self._handle.remove()
        self._node = None


def on_gradient(parameter: torch.Tensor, hook: Callable[..., None]) -> Any:
    """Calls `hook` after each backward pass that has added to `parameter.grad`, once per pass, however often the
    parameter was used. The returned object has remove()."""
    register = getattr(parameter, "register_post_accumulate_grad_hook", None)
    if register is not None:  # PyTorch 2.1 and later
        return register(hook)
    with torch.enable_grad():
        node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]  # type: ignore[union-attr]
    return _NodeHook(node, node.register_hook(hook))
