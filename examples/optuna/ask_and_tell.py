#!/usr/bin/env python3
"""Optuna chooses the parameters, Muster runs the trials: Optuna's ask-and-tell interface, with a job for each trial.

    scripts/python_env.sh optuna
    PYTHONPATH=python build/optuna/bin/python examples/optuna/ask_and_tell.py --trials 8 --concurrent 2 \\
        -- build/release/examples/digits/digits --epochs 4 --learning-rate {lr} --batch {batch}

The program reports the metric `accuracy` (docs/metrics.md).
"""

import argparse
import os

import muster
import optuna


def job_of(trial, command):
    lr = trial.suggest_float("lr", 1e-4, 1.0, log=True)
    batch = trial.suggest_categorical("batch", [8, 16, 32, 64])
    words = [word.replace("{lr}", f"{lr:.6g}").replace("{batch}", str(batch)) for word in command]
    return muster.JobSpec(name=f"optuna-{os.getpid()}-{trial.number}", command=words, folder=os.getcwd())


def accuracy_of(client, job):
    """The best accuracy that a job has reported; None: it failed, or has reported none."""
    ended = client.wait(job, check=False)
    series = client.metrics(job, "accuracy")
    if ended.phase != "Succeeded" or not series:
        return None
    return max(point.value for point in series[0].points)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--concurrent", type=int, default=2)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    with muster.Client() as client:
        running = []
        for _ in range(options.trials):
            trial = study.ask()
            running.append((trial, client.submit(job_of(trial, options.command))))
            if len(running) == options.concurrent:
                tell(study, client, *running.pop(0))
        for trial, job in running:
            tell(study, client, trial, job)
    print(f"best: {study.best_value:.4f} with {study.best_params}")


def tell(study, client, trial, job):
    value = accuracy_of(client, job)
    if value is None:
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    else:
        study.tell(trial, value)
    print(f"{job.spec.name}: {value} with {trial.params}", flush=True)


if __name__ == "__main__":
    main()
