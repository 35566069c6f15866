"""The common part of the bindings of all frameworks: the world of ranks, its operations by name, its process sets.

Requires neither a framework nor numpy. The modules: `basics` (init, rank, size ...), `process_sets`, `operations`
(hand-over and waiting), `handles` (the numbers that programs hold), `environment` (the variables of launchers).
"""
