"""Elastic runs of horovodrun: hosts and workers come and go while the program trains.

`launch` starts the run. `driver` is the loop that waits for events and executes the orders of `run_rules`. `run_rules`,
`rounds`, `staff`, `host_book` and `assignment` contain values and decisions only.
"""
