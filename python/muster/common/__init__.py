"""What the bindings of all frameworks share: the world of ranks, its operations by name, its process sets.

Needs no framework and no numpy. The modules: `basics` (init, rank, size ...), `process_sets`, `operations` (what is
handed over, and waiting for it), `handles` (the numbers that programs hold), `environment` (what launchers say).
"""
