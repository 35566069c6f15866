"""What an elastic job's driver and its workers say to each other, over the channel of `muster.common.wire`.

A round is one world: a fixed set of workers with their ranks, from the moment in which they meet until one of them is
lost, or hosts come or go. Each worker asks for its place in the next round, and asks again after each.

    worker -> driver
        hello      worker                  who it is: the number that its environment carries
        ready      round, because, synced, commits, error, blames
                                           wants a place; `round` is the one it comes from (0: none), `because` one of
                                           BECAUSE_*, `synced` the newest round in which it had the state of training
                                           and `commits` how often it has saved it since,
                                           `error` what its world failed of, `blames` the rank that is to blame or null
        listening  round, endpoint         rank 0 alone: where the others meet it
        gave_up    error                   the program itself failed: no round can help
    driver -> worker
        place      round, rank, size, local_rank, local_size, cross_rank, cross_size, may_skip_sync, announced, and
                   either `listen_at` (rank 0 of several: an address of this host to open a port on, or "" for that by
                   which it reaches the driver) or `endpoint` (where rank 0 listens)
        hosts      serial, result          the hosts have changed: come back at the next commit. `result` is a
                                           HostUpdateResult; a place's `announced` is the newest serial that it covers
        off        round                   somebody of this round was lost: do not wait for the others to meet
        leave      why                     no longer wanted: end with code 0

The key of the job is in each worker's environment, and never in a message.
"""

HELLO = "hello"
READY = "ready"
LISTENING = "listening"
GAVE_UP = "gave_up"
PLACE = "place"
HOSTS = "hosts"
CALLED_OFF = "off"
LEAVE = "leave"

#: Why a worker asks for a place: it has just started; the hosts have changed; its world has failed.
BECAUSE_STARTED = "started"
BECAUSE_HOSTS_CHANGED = "hosts"
BECAUSE_WORLD_FAILED = "failed"

#: Where the driver listens, HOST:PORT, and which of its workers a process is.
DRIVER_VARIABLE = "MUSTER_ELASTIC_DRIVER"
WORKER_VARIABLE = "MUSTER_ELASTIC_WORKER"
KEY_VARIABLE = "MUSTER_RENDEZVOUS_KEY"
