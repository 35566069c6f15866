#!/usr/bin/env python3
"""Makes two_teams.csv: two days of an invented cluster of 4 nodes with 8 GPUs.

    examples/traces/make_two_teams.py > examples/traces/two_teams.csv

The jobs are invented, drawn from a fixed seed. Team vision submits many small jobs by day, team language a few wide
and long jobs at any hour, and both try things in short jobs with one GPU. The teams ask for slightly more GPUs than
the cluster has, so that some jobs wait.
"""

import random

DAY = 86_400
PROJECTS = {
    # project: (jobs, the share by day, [(GPUs, tasks, weight)], median minutes)
    "vision": (150, 0.9, [(1, 1, 50), (2, 1, 25), (4, 1, 15), (8, 1, 10)], 25),
    "language": (40, 0.4, [(8, 1, 55), (8, 2, 30), (4, 1, 15)], 110),
    "tryouts": (110, 0.8, [(1, 1, 90), (2, 1, 10)], 8),
}


def arrival(draw, by_day):
    day = draw.randrange(2) * DAY
    if draw.random() < by_day:
        return day + int(draw.triangular(8, 20, 11) * 3600)
    return day + draw.randrange(DAY)


def jobs(draw):
    for project, (count, by_day, shapes, minutes) in PROJECTS.items():
        for _ in range(count):
            gpus, tasks, _ = draw.choices(shapes, [weight for *_, weight in shapes])[0]
            duration = min(8 * 3600, max(30, int(draw.lognormvariate(0, 1.0) * minutes * 60)))
            # People request more time than they need, in round numbers.
            limit = -(-int(duration * draw.uniform(1.1, 4)) // 1800) * 1800
            yield arrival(draw, by_day), duration, gpus, tasks, project, limit


def main():
    print("submit_s,duration_s,gpus,tasks,project,time_limit_s")
    for job in sorted(jobs(random.Random(2))):
        print(*job, sep=",")


if __name__ == "__main__":
    main()
