"""The code blocks of our own pages: commands, and the output that the pages show.

A block is indented by four spaces or fenced. A line that begins with `$ ` is a command, and the lines up to the next
command are its output. A block without such a line contains only commands.
"""

import getpass
import re
import socket
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs"

# Matches any number of lines.
ANYTHING = "..."

# Values that differ between runs: their form on the pages, and a placeholder.
VOLATILE = [(re.compile(shown), pattern) for shown, pattern in (
    (r"\b\d+(\.\d+)?s\b", r"\d+(?:\.\d+)?s"),           # durations
    (r"\b\d+(\.\d+)? (B|KiB|MiB)(?=\W|$)", r"[\d.]+ (?:B|KiB|MiB)"),
    (r"\b\d+ files\b", r"\d+ files"),
    (r"\bcommit [0-9a-f]{12}\b", r"commit [0-9a-f]{12}"),
    (r"\b\d\d\.\d+ %", r"\d\d\.\d+ %"),                 # accuracies
    (r"(?<=\t)\d+(?=\t)", r"\d+"),                     # numbers of log lines
    (r"\bvm\b", re.escape(socket.gethostname())),
    (r"\broot\b", re.escape(getpass.getuser())),
)]

# Generated names. A name that is repeated on the page is repeated in the run. Names on the pages contain a
# digit, so that no ordinary word counts as one.
MADE_UP = re.compile(r"\brun-[a-z0-9]{6}\b|\b(?=[a-z]*\d)[a-z0-9]{12}\b")
ANY_NAME = r"run-[a-z0-9]{6}|[a-z0-9]{12}"

# Open MPI's mpirun prints this if the ssh that it has started was quick: its second setpgid comes too late,
# and is not needed.
NOISE = re.compile(r"plm:rsh: Warning: setpgid\(\d+,\d+\) failed in parent")


@dataclass(frozen=True)
class Block:
    page: str
    line: int  # of the page
    text: str

    def __str__(self):
        return f"{self.page}:{self.line}"

    @property
    def shows_output(self):
        return any(line.startswith("$ ") for line in self.text.splitlines())


@dataclass
class Step:
    command: str
    output: list = field(default_factory=list)


def blocks_of(page):
    """Every code block of a page, in order."""
    found, lines, begin, fenced = [], [], 0, False

    def end():
        text = "\n".join(lines).strip("\n")
        if text:
            found.append(Block(page, begin, text))
        lines.clear()

    before = ""
    for number, line in enumerate((FOLDER / page).read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            end()
            fenced, begin = not fenced, number + 1
        elif fenced:
            lines.append(line)
        elif line.startswith("    ") and (lines or not before):
            begin = begin if lines else number
            lines.append(line[4:])
        elif lines and not line:
            lines.append("")
        else:
            end()
        before = line
    end()
    return found


def steps_of(block):
    """The commands of a block, each with its output on the page."""
    if not block.shows_output:
        return [Step(line) for line in block.text.splitlines() if line]
    steps, continues = [], False
    for line in block.text.splitlines():
        if continues:
            steps[-1].command += "\n" + line
        elif line.startswith("$ "):
            steps.append(Step(line[2:]))
        else:
            steps[-1].output.append(line)
            continue
        continues = line.endswith("\\") or steps[-1].command.count("'") % 2 == 1
    return steps


class Names:
    """Maps the names on a page to the names of this run."""

    def __init__(self):
        self._ours = {}

    def in_command(self, text):
        return MADE_UP.sub(lambda name: self._ours.get(name.group(), name.group()), text)

    def match(self, shown, line):
        """Whether a line matches the page, apart from blanks and volatile values."""
        new = []

        def stand_in(part):
            for pattern, stands in VOLATILE:
                if match := pattern.search(part):
                    return (stand_in(part[:match.start()]) + stands + stand_in(part[match.end():]))
            return r"\s+".join(re.escape(word) for word in re.split(r"\s+", part))

        pattern, at = "", 0
        for name in MADE_UP.finditer(shown):
            pattern += stand_in(shown[at:name.start()])
            if name.group() in self._ours:
                pattern += re.escape(self._ours[name.group()])
            elif name.group() in new:
                pattern += rf"(?P=n{new.index(name.group())})"
            else:
                pattern += rf"(?P<n{len(new)}>{ANY_NAME})"
                new.append(name.group())
            at = name.end()
        found = re.fullmatch(pattern + stand_in(shown[at:]) + r"\s*", line)
        if found:
            self._ours |= {name: found[f"n{i}"] for i, name in enumerate(new)}
        return bool(found)

    def difference(self, shown, printed):
        """None if the lines match the page; else the difference."""
        printed = [line for line in printed if line.strip() and not NOISE.search(line)]
        shown = [line for line in shown if line.strip()]
        of_ranks = [line for line in shown if line.startswith("[")]  # in any order
        for line in of_ranks:
            ours = next((one for one in printed if self.match(line, one)), None)
            if ours is None:
                return f"not printed: {line}"
            printed.remove(ours)
        skips = False
        for line in (line for line in shown if line not in of_ranks):
            if line.strip() == ANYTHING:
                skips = True
                continue
            while printed and skips and not self.match(line, printed[0]):
                printed.pop(0)
            if not printed:
                return f"not printed: {line}"
            if not self.match(line, printed[0]):
                return f"the page shows: {line}\nthe command printed: {printed[0]}"
            printed.pop(0)
            skips = False
        return f"not on the page: {printed[0]}" if printed and not skips else None
