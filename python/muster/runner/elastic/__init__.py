"""Elastic runs of horovodrun: hosts and workers come and go while the program trains.

`launch` begins; `driver` is the loop that waits for what happens and carries out what `run_rules` orders, and those,
with `rounds`, `staff`, `host_book` and `assignment`, are values and decisions alone.
"""
