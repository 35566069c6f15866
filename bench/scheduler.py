"""The scheduler: Kueue's benchmark workloads in real time, and the plain planner on a large cluster.

    bench/scheduler.py [--only baseline|large|cycle|projects|mixed] [--rounds N]

baseline, large   kubernetes-sigs/kueue, test/performance/scheduler/configs/{baseline,large-scale}: the same cohorts,
                  queues, classes, intervals and run times, submitted within the process to the server's own
                  controller and its SQLite store, which syncs every commit to disk. Tasks are simulated by timers.
                  Upstream's published figures come from a harness with an API server, limited to 50 queries per
                  second; this benchmark has no API server.
cycle             10,000 nodes with 8 GPUs, 100,000 gangs of 1 to 64 GPUs in 200 projects: a full plan, then the plan
                  after one job has ended, and the list of all waiting jobs. Only the scheduler: no store, no tasks.
projects          The same with 10,000 projects.
mixed             As cycle, but half of the gangs have time limits, and a quarter has a launcher beside its workers.

The plans of cycle, projects and mixed are given in CPU time of their thread, which other programs disturb less than the
time by the clock.
"""

import argparse
import json
import statistics
import subprocess
import tempfile

from measure import BUILD, percentile, print_table, row, verdict

PROGRAMS = BUILD / "bench" / "scheduler"

# The figures that upstream publishes; waits in seconds from submission to admission.
KUEUE_BASELINE = {"makespan_s": 351.1, "held_percent": 55.9,
                  "wait_s": {"large": 16.5, "medium": 76.8, "small": 215.5}}
KUEUE_LARGE = {"makespan_s": 1179.4, "rate": 42.4}

AIM_MAKESPAN_S = 75
AIM_USE = 0.90
AIM_ADMISSIONS = 10_000
AIM_CYCLE_S = 1
AIM_EVENT_MS = 5
AIM_EVENT_OF_PROJECTS_MS = 10
AIM_PAGE_MS = 20


def output_of(program, *arguments):
    done = subprocess.run([PROGRAMS / program, *arguments], check=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def run_queues(*arguments):
    # Beside the build, since /tmp may not be on a disk.
    with tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD) as folder:
        workload, *rest = arguments
        return output_of("queues", workload, folder, *rest)


def published(line, figure, aim=None, holds=None):
    """A row with the figure that upstream publishes and, if there is one, the aim."""
    line[5] = f"Kueue {figure}"
    if aim is not None:
        line[5] += f", aim {aim}  " + verdict(holds)
    return line


def baseline(rounds):
    runs = [run_queues("baseline") for _ in range(rounds)]
    makespan = row("makespan", [run["makespan_s"] for run in runs], "s", 1)
    held = row("slots held", [100 * run["held"] for run in runs], "%", 1)
    useful = row("slots held by work that was not lost", [100 * run["useful"] for run in runs], "%", 1)
    useful[5] = f"aim at least {AIM_USE * 100:.0f}  " + verdict(float(useful[1]) >= 100 * AIM_USE)
    rows = [published(makespan, KUEUE_BASELINE["makespan_s"], f"at most {AIM_MAKESPAN_S}",
                      float(makespan[1]) <= AIM_MAKESPAN_S),
            published(held, KUEUE_BASELINE["held_percent"], f"at least {AIM_USE * 100:.0f}",
                      float(held[1]) >= 100 * AIM_USE),
            useful]
    for name, figure in KUEUE_BASELINE["wait_s"].items():
        waits = row(f"mean wait, {name}", [run["wait_s"][name] for run in runs], "s", 2)
        rows.append(published(waits, figure))
    rows.append(row("evictions", [run["evictions"] for run in runs], ""))
    calm = [run_queues("baseline", "protected") for _ in range(rounds)]
    rows.append(row("makespan, none evicted in its first second",
                    [run["makespan_s"] for run in calm], "s", 1))
    print(f"Kueue's baseline: {runs[0]['jobs']} jobs, 5 cohorts of 6 queues, 600 slots; {rounds} run(s)")
    print_table(rows)


def large(rounds):
    runs = [run_queues("large") for _ in range(rounds)]
    together = [run_queues("large", "at-once") for _ in range(rounds)]
    makespan = row("makespan", [run["makespan_s"] for run in runs], "s", 2)
    rows = [published(makespan, KUEUE_LARGE["makespan_s"])]
    for name, those in (("admissions, as they come", runs), ("admissions, all at once", together)):
        rate = row(name, [run["admissions"] / run["admission_span_s"] for run in those], "per s")
        rows.append(published(rate, KUEUE_LARGE["rate"], f"at least {AIM_ADMISSIONS}",
                              float(rate[1]) >= AIM_ADMISSIONS))
    rows.append(row("evictions, as they come", [run["evictions"] for run in runs], ""))
    print(f"Kueue's large scale: {runs[0]['jobs']} jobs, 10 cohorts of 100 queues, 20,000 slots; "
          f"{rounds} run(s) each; the slots allow no more than 50,000 jobs in 4.0 s")
    print_table(rows)


def aimed_ms(name, figures, aim):
    line = row(name, figures, "ms", 2)
    line[5] = f"at most {aim}  " + verdict(float(line[1]) <= aim)
    return line


def rows_of_events(runs, aim):
    events = [run["events_cpu_ms"] for run in runs]
    return [aimed_ms("plan after an end", [statistics.median(one) for one in events], aim),
            aimed_ms("plan after an end, p99", [percentile(one, 0.99) for one in events], aim),
            row("list of all waiting jobs", [statistics.median(run["queue_cpu_ms"]) for run in runs], "ms", 2),
            aimed_ms("list of the first 100 of them", [statistics.median(run["queue_page_cpu_ms"]) for run in runs],
                     AIM_PAGE_MS)]


def cycle(rounds):
    runs = [output_of("cycle", "10000", "100000", "200", "1000") for _ in range(rounds)]
    full = row("full plan", [run["plan_s"] for run in runs], "s", 2)
    full[5] = f"at most {AIM_CYCLE_S}  " + verdict(float(full[1]) <= AIM_CYCLE_S)
    rows = [row("adding 100,000 gangs", [run["submit_s"] for run in runs], "s", 2), full]
    rows.append(row("evening out: plans until nothing moves", [run["settle_plans"] for run in runs], ""))
    rows.append(row("evening out: in all", [run["settle_s"] for run in runs], "s", 2))
    rows += rows_of_events(runs, AIM_EVENT_MS)
    print(f"10,000 nodes, 100,000 gangs, 200 projects: {runs[0]['started']} start, {runs[0]['waiting']} wait; "
          f"{rounds} run(s), in each {len(runs[0]['events_cpu_ms'])} ends; {runs[0]['queue']} wait after them")
    print_table(rows)


def projects(rounds):
    runs = [output_of("cycle", "10000", "100000", "10000", "200", "20") for _ in range(rounds)]
    print(f"10,000 nodes, 100,000 gangs, 10,000 projects: {rounds} run(s), in each "
          f"{len(runs[0]['events_cpu_ms'])} ends")
    print_table(rows_of_events(runs, AIM_EVENT_OF_PROJECTS_MS))


def mixed(rounds):
    runs = [output_of("cycle", "--mixed", "10000", "100000", "200", "200", "20") for _ in range(rounds)]
    print(f"10,000 nodes, 100,000 gangs, 200 projects, with time limits and launchers: {runs[0]['started']} start, "
          f"{runs[0]['waiting']} wait; {rounds} run(s), in each {len(runs[0]['events_cpu_ms'])} ends")
    events = [run["events_cpu_ms"] for run in runs]
    print_table([row("full plan", [run["plan_s"] for run in runs], "s", 2),
                 row("plan after an end", [statistics.median(one) for one in events], "ms", 2),
                 row("plan after an end, p99", [percentile(one, 0.99) for one in events], "ms", 2)])


PARTS = {"cycle": (cycle, 5), "projects": (projects, 1), "mixed": (mixed, 1), "large": (large, 3),
         "baseline": (baseline, 1)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--rounds", type=int)
    chosen = parser.parse_args()
    for name, (measure, rounds) in PARTS.items():
        if chosen.only in (None, name):
            measure(chosen.rounds or rounds)
            print(flush=True)


if __name__ == "__main__":
    main()
