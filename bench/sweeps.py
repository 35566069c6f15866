"""ASHA compared with random search with the same number of epochs: the best accuracy of `digits` that each finds.

    bench/sweeps.py [--seeds N] [--trials N]

For each seed a sweep with the method asha searches the learning rate, the batch size and the number of hidden units,
with rungs at 2, 10 and 40 epochs. digits writes no checkpoints, so a promoted trial begins anew, and all its epochs
count. Then a sweep with the method random and other values runs trials of 40 epochs until it has used at least as many
epochs. The accuracy is the best accuracy on the test images that any trial reported.
"""

import argparse
import json
import statistics

from measure import BUILD, Server

EPOCHS = 40
DIGITS = BUILD / "examples" / "digits" / "digits"
COMMAND = (f"exec {DIGITS} --epochs $MUSTER_SWEEP_STEPS --learning-rate {{lr}} --batch {{batch}} "
           "--hidden {hidden} --seed {seed}")
PARAMETERS = ("lr=log:1e-4..1", "batch=8,16,32,64", "hidden=log:int:4..128")


def sweep(server, name, method, trials, seed):
    words = [word for parameter in PARAMETERS for word in ("--param", parameter)]
    server.muster("sweep", "create", name, *words, "--param", f"seed={seed}", "--method", method,
                  "--metric", "accuracy", "--max-steps", str(EPOCHS), "--max-trials", str(trials),
                  "--max-concurrent", "2", "--seed", str(seed), "--", "sh", "-c", COMMAND)
    server.muster("sweep", "wait", name)
    return json.loads(server.muster("sweep", "get", name, "-o", "json"))


def epochs_of(found):
    """The epochs of all attempts. A trial that reached a rung has run from the start to that rung and to each rung
    below."""
    return sum(sum(found["budgets"][:len(trial.get("rungs", []))]) for trial in found["trials"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=16)
    options = parser.parse_args()
    results = []
    print("seed  ASHA  epochs  random  epochs  trials")
    with Server() as server:
        for seed in range(options.seeds):
            asha = sweep(server, f"asha-{seed}", "asha", options.trials, seed)
            used = epochs_of(asha)
            trials = -(-used // EPOCHS)
            drawn = sweep(server, f"random-{seed}", "random", trials, 1000 + seed)
            results.append((asha["best"], drawn["best"], used, trials * EPOCHS))
            print(f"{seed:4}  {asha['best']:.3f}  {used:5}   {drawn['best']:.3f}  {trials * EPOCHS:5}  {trials:5}",
                  flush=True)
    better = sum(asha > drawn for asha, drawn, *_ in results)
    equal = sum(asha == drawn for asha, drawn, *_ in results)
    print(f"median  {statistics.median(result[0] for result in results):.3f} (ASHA)  "
          f"{statistics.median(result[1] for result in results):.3f} (random)")
    print(f"ASHA is better for {better} of {len(results)} seeds, equal for {equal}")


if __name__ == "__main__":
    main()
