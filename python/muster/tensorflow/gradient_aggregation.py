"""Horovod has internal classes of its optimizers under this name, which have no counterpart here."""

raise ImportError("muster has no tensorflow.gradient_aggregation: DistributedOptimizer("
                  "backward_passes_per_step=...) adds up gradients, and its _agg_helper.counter counts the passes")
