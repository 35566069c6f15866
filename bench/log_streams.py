"""The delivery of a job's output to its reader: its latency, its throughput, and its memory on the server.

Latency: the time from a task's write until the line arrives at the reader's terminal (a pty). Each line contains the
time at which it was written, and the reader records the time at which it arrives. Eight tasks print 20 lines per second
each. The peer is `tail -f` of plain files that the same program writes.

Throughput: the logs of eight tasks, 256 MiB each, read by one `muster logs` into a pipe, with lines of 100 bytes and of
1,000 bytes. The peer is `cat` of the same text in plain files.

Memory: the growth of the server's resident memory at its peak while 2 GiB pass to a fast reader, and to a slow reader
that is still at the beginning when the fast one has ended.
"""

import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time

from measure import MUSTER, percentile

TASKS = 8
MIB = 1 << 20
BYTES_OF_TASK = 256 * MIB
LATENCY_SECONDS = 10
FLOOD_MB_PER_SECOND = 100

CLOCKED = """
import sys, time
pause, count = float(sys.argv[1]), int(sys.argv[2])
for _ in range(count):
    time.sleep(pause)
    sys.stdout.write("@%d@\\n" % time.monotonic_ns())
    sys.stdout.flush()
"""

FLOODED = """
import os, sys, time
rate, seconds = float(sys.argv[1]) * 1e6, float(sys.argv[2])
block = b"".join(b"%099d\\n" % line for line in range(2500))
start, sent = time.monotonic(), 0
while time.monotonic() - start < seconds:
    sent += os.write(1, block[sent % len(block):])
    time.sleep(max(0, start + sent / rate - time.monotonic()))
"""


def open_terminal():
    """Returns the far end and the near end of a terminal in raw mode, which passes bytes unchanged."""
    reader, shown = pty.openpty()
    attributes = termios.tcgetattr(shown)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(shown, termios.TCSANOW, attributes)
    return reader, shown


class Reader:
    """A command on a terminal of its own, or in a pipe. A thread reads its output and notes the age of each line at its
    arrival."""

    def __init__(self, command, environment, open_ends=open_terminal):
        reader, shown = open_ends()
        self.milliseconds = []
        self._came = threading.Condition()
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=shown,
                                        stderr=subprocess.DEVNULL)
        os.close(shown)
        self.thread = threading.Thread(target=self._read, args=(reader,))
        self.thread.start()

    def _read(self, descriptor):
        rest = b""
        while True:
            try:
                data = os.read(descriptor, 1 << 16)
            except OSError:  # EIO: the command has ended
                break
            if not data:
                break
            if b"@" not in data and b"@" not in rest:
                continue
            now = time.monotonic_ns()
            rest += data
            *stamps, rest = rest.split(b"@\n") if b"@\n" in rest else [rest]
            for stamp in stamps:
                written = int(stamp.rpartition(b"@")[2])
                with self._came:
                    self.milliseconds.append((now - written) / 1e6)
                    self._came.notify()
            rest = rest[-64:]
        os.close(descriptor)

    def wait_for(self, count):
        with self._came:
            self._came.wait_for(lambda: len(self.milliseconds) >= count)

    def finish(self, ask_to_leave=False):
        if ask_to_leave:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.thread.join()
        return self.milliseconds


def latency_of_muster(server, name):
    """Milliseconds for each line that eight tasks print."""
    pause, count = 0.05, int(LATENCY_SECONDS / 0.05)
    server.muster("submit", "torch", name, "--workers", str(TASKS - 1), "--", "python3", "-c",
                  CLOCKED, str(pause), str(count))
    return Reader([MUSTER, "logs", "-f", name], server.environment).finish()


def latency_of_tail(server):
    pause, count = 0.05, int(LATENCY_SECONDS / 0.05)
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / str(task) for task in range(TASKS)]
        for path in paths:
            path.touch()
        terminal = Reader(["tail", "-q", "-f", *map(str, paths)], server.environment)
        tasks = []
        for path in paths:
            with path.open("wb") as file:
                tasks.append(subprocess.Popen(
                    [sys.executable, "-c", CLOCKED, str(pause), str(count)], stdout=file))
        for task in tasks:
            task.wait()
        terminal.wait_for(TASKS * count)
        return terminal.finish(ask_to_leave=True)


def latency_beside_a_flood(server, name, flags=(), open_ends=open_terminal):
    """Milliseconds for each line of one task while another prints 100 MB a second."""
    script = ('if [ "$RANK" = 1 ]; then exec python3 -c "$FLOOD" "$RATE" "$SECONDS_OF_IT"; fi; '
              'exec python3 -c "$CLOCKED" 0.05 "$COUNT"')
    values = {"FLOOD": FLOODED, "RATE": FLOOD_MB_PER_SECOND, "SECONDS_OF_IT": LATENCY_SECONDS,
              "CLOCKED": CLOCKED, "COUNT": int(LATENCY_SECONDS / 0.05) - 20}
    variables = [word for key, value in values.items() for word in ("--env", f"{key}={value}")]
    server.muster("submit", "torch", name, "--workers", "1", *variables, "--", "sh", "-c", script)
    return Reader([MUSTER, "logs", "-f", name, *flags], server.environment, open_ends).finish()


def print_much(server, name, line):
    """A job of eight tasks, each of which prints BYTES_OF_TASK in lines of `line` bytes."""
    text = "x" * (line - 1)
    server.muster("submit", "torch", name, "--workers", str(TASKS - 1), "--follow", "--", "sh", "-c",
                  f"yes {text} | head -c {BYTES_OF_TASK // line * line}")


def drained(command, environment):
    """Runs a command that prints into a pipe, at its own speed. Returns seconds and bytes."""
    start = time.monotonic()
    size = 0
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        while data := os.read(process.stdout.fileno(), MIB):
            size += len(data)
    if process.returncode != 0:
        raise SystemExit(f"{command} failed")
    return time.monotonic() - start, size


def rate_of_muster(server, name):
    """MB per second of the tasks' output, without the prefixes."""
    seconds, size = drained([MUSTER, "logs", name], server.environment)
    printed = TASKS * BYTES_OF_TASK
    if size < printed * 0.99:
        raise SystemExit(f"only {size} of {printed} bytes arrived")
    return printed / 1e6 / seconds


def rate_of_cat(server, path):
    seconds, size = drained(["cat", *[path] * TASKS], server.environment)
    return size / 1e6 / seconds


def rate_of_follow(server, name):
    """MB per second while the tasks print, from the submit to the end of the follow."""
    text = "x" * 99
    command = ["sh", "-c", f"yes {text} | head -c {BYTES_OF_TASK // 100 * 100}"]
    seconds, _ = drained([MUSTER, "submit", "torch", name, "--workers", str(TASKS - 1), "--follow",
                          "--", *command], server.environment)
    return TASKS * BYTES_OF_TASK / 1e6 / seconds


def server_process(server):
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if b"server" in words and server.folder.name.encode() in environment:
            return int(entry.name)
    raise SystemExit("the server is not running")


def memory_of(pid, field):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"no {field} of the server")


def growth_of_server(server, name):
    """The growth in MiB of the server at its peak while a fast and a slow reader read the log."""
    pid = server_process(server)
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak counts from now on
    before = memory_of(pid, "VmRSS")
    with subprocess.Popen([MUSTER, "logs", "-f", name], env=server.environment,
                          stdout=subprocess.PIPE) as slow:
        reading = threading.Event()

        def sip():
            while not reading.wait(0.05) and os.read(slow.stdout.fileno(), 1 << 16):
                pass

        sipping = threading.Thread(target=sip)
        sipping.start()
        rate_of_muster(server, name)
        drained([MUSTER, "logs", "-f", name], server.environment)
        reading.set()
        sipping.join()
        slow.kill()
    return memory_of(pid, "VmHWM") - before


def time_to_prompt(server, name):
    """Milliseconds from the start of `muster exec -t` to the shell's prompt."""
    reader, shown = pty.openpty()
    start = time.monotonic()
    process = subprocess.Popen([MUSTER, "exec", "-t", name, "--", "bash", "--norc"],
                               env=dict(server.environment, TERM="xterm"), stdin=shown, stdout=shown,
                               stderr=shown, start_new_session=True)
    os.close(shown)
    said = b""
    while b"$ " not in said and b"# " not in said:
        if not select.select([reader], [], [], 30)[0]:
            raise SystemExit(f"no prompt appeared: {said}")
        said += os.read(reader, 4096)
    took = (time.monotonic() - start) * 1000
    os.write(reader, b"exit\n")
    try:
        while os.read(reader, 4096):
            pass
    except OSError:  # EIO: the command has ended
        pass
    process.wait()
    os.close(reader)
    return took


def p50_and_p99(samples):
    return percentile(samples, 0.5), percentile(samples, 0.99)
