"""All samples of a run of the benchmark, and the figures that follow from them: the time of each subject for each
number of bytes, with the cores near to each other or far apart.
"""

import dataclasses
import json
import statistics

# Between the two states of the machine on which this was written: 50 and 200 ns for a cache line.
NEAR_BELOW_NS = 100
MOST_FOREIGN = 0.10
FEWEST_SAMPLES = 2


@dataclasses.dataclass
class Figure:
    median: float
    p10: float
    count: int


class Figures:
    """`keeps_disturbed`: to try the benchmark on a busy machine."""

    def __init__(self, keeps_disturbed=False):
        self.bursts = []
        self.notes = {}
        self.keeps_disturbed = keeps_disturbed
        self.left_out = {"the cores moved": 0, "other processes": 0}

    def add(self, section, subject, round_, bursts):
        for burst in bursts:
            self.bursts.append({"section": section, "subject": subject, "round": round_, **burst})

    def note(self, what):
        self.notes[what] = self.notes.get(what, 0) + 1

    def states(self, section):
        """The states of the cores that occurred, near first."""
        seen = {self.state(burst) for burst in self.bursts
                if burst["section"] == section and "probe" in burst}
        return [state for state in ("near", "far") if state in seen]

    @staticmethod
    def state(burst):
        near = [probe < NEAR_BELOW_NS for probe in burst["probe"]]
        return "near" if all(near) else "far" if not any(near) else "moved"

    def finish(self):
        """Counts the bursts that are left out. Called once, after the last one."""
        for burst in self.bursts:
            if "probe" not in burst:
                continue
            if self.state(burst) == "moved":
                self.left_out["the cores moved"] += 1
            elif not self.is_quiet(burst):
                self.left_out["other processes"] += 1

    def is_quiet(self, burst):
        return self.keeps_disturbed or burst["foreign"] <= MOST_FOREIGN

    def figure(self, section, subject, state, bytes_, place="in", type_="float32"):
        """Returns None if there are too few samples."""
        samples = [sample for burst in self.bursts
                   if (burst["section"], burst["subject"]) == (section, subject)
                   and burst.get("bytes") == bytes_ and burst["place"] == place
                   and burst["type"] == type_ and self.state(burst) == state
                   and self.is_quiet(burst) for sample in burst["us"]]
        if len(samples) < FEWEST_SAMPLES:
            return None
        samples.sort()
        return Figure(statistics.median(samples), samples[len(samples) // 10], len(samples))

    def save(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"notes": self.notes, "bursts": self.bursts}))
