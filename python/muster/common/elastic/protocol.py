"""The protocol between the driver of an elastic job and its workers, over the channel of `muster.common.wire`.

A round is one world: a fixed set of workers with their ranks, from the moment in which they meet until one of them is
lost, or hosts are added or removed. Each worker requests its place in the next round, and again after each round.

    worker -> driver
        hello      worker                  identifies the worker by the number in its environment
        ready      round, because, synced, commits, error, blames
                                           requests a place; `round` is the last round of the worker (0: none),
                                           `because` one of BECAUSE_*, `synced` the newest round in which it had the
                                           state of training, `commits` the number of commits since, `error` the failure
                                           of its world, `blames` the rank at fault or null
        listening  round, endpoint         rank 0 only: the address where the other ranks meet
        gave_up    error                   the program itself failed, so no other round can help
    driver -> worker
        place      round, rank, size, local_rank, local_size, cross_rank, cross_size, may_skip_sync, announced, and
                   either `listen_at` (rank 0 of several: an address of this host to open a port on, or "" for the
                   address by which it reaches the driver) or `endpoint` (where rank 0 listens)
        hosts      serial, result          the hosts have changed: leave at the next commit. `result` is a
                                           HostUpdateResult; a place's `announced` is the newest serial that it covers
        off        round                   a worker of this round was lost: do not wait for the others to meet
        leave      why                     no longer needed: end with code 0

The key of the job is in the environment of each worker, and never in a message.
"""

HELLO = "hello"
READY = "ready"
LISTENING = "listening"
GAVE_UP = "gave_up"
PLACE = "place"
HOSTS = "hosts"
CALLED_OFF = "off"
LEAVE = "leave"

#: Why a worker requests a place: it has just started; the hosts have changed; its world has failed.
BECAUSE_STARTED = "started"
BECAUSE_HOSTS_CHANGED = "hosts"
BECAUSE_WORLD_FAILED = "failed"

#: The address of the driver, HOST:PORT, and the number of this worker.
DRIVER_VARIABLE = "MUSTER_ELASTIC_DRIVER"
WORKER_VARIABLE = "MUSTER_ELASTIC_WORKER"
KEY_VARIABLE = "MUSTER_RENDEZVOUS_KEY"
