"""The digits example with both strategies: ring all-reduce and one parameter server, with 1, 2 and 4 workers, in turns.
Its clock starts when all processes have joined, and includes the tests after each epoch. A parameter server is one
more process on the same cores."""

import json
import secrets
import statistics

import aims
import launching
from measure import BUILD, percentile
from strategies_plot import svg

WORKERS = [1, 2, 4]
STRATEGIES = ["ring", "parameter server"]
EPOCHS, QUICK_EPOCHS = 40, 10
GOOD = 0.95
DIGITS = BUILD / "examples" / "digits" / "digits"


def ring(workers, flags):
    world = {"MUSTER_WORLD_SIZE": str(workers),
             "MUSTER_RENDEZVOUS": f"127.0.0.1:{launching.free_port()}",
             "MUSTER_RENDEZVOUS_KEY": secrets.token_hex(32)}
    return [([str(DIGITS), *flags], launching.environment(**world, MUSTER_RANK=str(rank)))
            for rank in range(workers)]


def parameter_server(workers, flags):
    def address():
        return f"127.0.0.1:{launching.free_port()}"

    cluster = {"ps": [address()], "worker": [address() for _ in range(workers)]}
    key = secrets.token_hex(32)

    def task(kind, index):
        config = json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})
        return ([str(DIGITS), "--strategy", "parameter-server", *flags],
                launching.environment(TF_CONFIG=config, MUSTER_RENDEZVOUS_KEY=key))

    return [task("ps", 0), *(task("worker", index) for index in range(workers))]


START = dict(zip(STRATEGIES, (ring, parameter_server)))


def measure(bench, progress):
    """Returns a function that prints the table and, if a file was given, draws the chart."""
    epochs = QUICK_EPOCHS if bench.options.quick else EPOCHS
    flags = ["--epochs", str(epochs), "--output", "json"]
    runs = {(strategy, workers): [] for workers in WORKERS for strategy in STRATEGIES}

    def turn(strategy, workers):
        try:
            lines, _ = launching.take(START[strategy](workers, flags), patience=180)
        except (launching.Failed, OSError) as error:
            bench.figures.note(f"digits: {strategy} of {workers} failed: {error}")
            return
        *rows, _outcome = lines
        bench.figures.bursts.append({"section": "digits", "subject": strategy, "workers": workers,
                                     "rows": rows})
        runs[strategy, workers].append(rows)

    for round_ in range(bench.rounds):
        for strategy, workers in runs:
            turn(strategy, workers)
        progress(f"digits, round {round_ + 1} of {bench.rounds}")

    def finish():
        show(runs, epochs)
        if bench.options.plot_digits:
            bench.options.plot_digits.write_text(svg(curves(runs), speeds_of(runs)))
    return finish


def speed(rows):
    # The chief may join after the first steps: seconds begin when it joins, images with the first step.
    return rows[-1]["images"] / rows[-1]["seconds"]


def time_to(rows, accuracy):
    """The seconds until a test reached this accuracy, or None."""
    return next((row["seconds"] for row in rows if row["test_accuracy"] >= accuracy), None)


def show(runs, epochs):
    print(f"\n  digits, {epochs} epochs, batches of 16 on each worker; one parameter server\n")
    rows = [["workers", "", "images/s", "p10", "p90", f"to {GOOD:.0%}, s", "p10", "p90",
             "at the end, %", "p10", "p90"]]
    for (strategy, workers), found in runs.items():
        if not found:
            continue
        times = [time for time in (time_to(run, GOOD) for run in found) if time is not None]
        rows.append([str(workers), strategy, *spread([speed(run) for run in found], 0),
                     *(spread(times, 2) if len(times) == len(found) else ["never"] + ["-"] * 2),
                     *spread([100 * run[-1]["test_accuracy"] for run in found], 1)])
    aims.print_columns(rows, left=2)


def spread(values, digits):
    return [f"{value:,.{digits}f}" for value in (statistics.median(values), percentile(values, 0.1),
                                                 percentile(values, 0.9))]


def curves(runs):
    """(strategy, workers) -> [(seconds, accuracy), ...]: the medians of all runs for each epoch."""
    lines = {}
    for key, found in runs.items():
        by_epoch = {}
        for row in (row for run in found for row in run):
            by_epoch.setdefault(row["epoch"], []).append(row)
        lines[key] = [tuple(statistics.median(row[name] for row in by_epoch[epoch])
                            for name in ("seconds", "test_accuracy")) for epoch in sorted(by_epoch)]
    return lines


def speeds_of(runs):
    """(strategy, workers) -> images/s."""
    return {key: statistics.median(map(speed, found)) for key, found in runs.items() if found}
