"""Functions for objects and variables, under the name by which programs import them from Horovod."""

from .objects import allgather_object, broadcast_object, broadcast_object_fn
from .variables import broadcast_global_variables, broadcast_variables

__all__ = ["allgather_object", "broadcast_global_variables", "broadcast_object", "broadcast_object_fn",
           "broadcast_variables"]
