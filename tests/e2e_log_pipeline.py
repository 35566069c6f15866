"""Logs between tasks and readers: quotas, filters, and broken connections."""

import json
import re
import signal
import socket
import subprocess
import threading
import urllib.parse

from e2e_login import Person, TOKEN
from muster_harness import BOUND, MusterTest, Stream, Typed, UnixConnection, main, tls_port

MIB = 1 << 20
# Numbered lines of 100 bytes.
NUMBERED = "for i in range({}): print(f'{{i:099}}')\n"


class LogsWithAQuota(MusterTest):

    def setUp(self):
        super().setUp()
        self.muster.environment["MUSTER_LOG_QUOTA"] = "1Mi"

    def numbers_of(self, text):
        """The numbers of the lines, and the notices between them."""
        notices, numbers = [], []
        for line in text.splitlines():
            if line.startswith("muster: "):
                notices.append(line)
            else:
                numbers.append(int(line))
        return numbers, notices

    def test_the_oldest_part_is_dropped_and_the_reader_gets_a_notice(self):
        script = self.muster.script("print.py", NUMBERED.format(50_000))
        self.muster.run("submit", "single", "job", "--follow", "--", "python3", script)

        numbers, notices = self.numbers_of(self.muster.logs("job", "--no-prefix"))

        self.assertEqual(len(notices), 1, notices)
        self.assertRegex(notices[0], r"^muster: [0-9.]+ MiB of output before this were cut: "
                                     r"the log of a task may have 1 MiB \(log_quota\)$")
        # The line at the cut may lack its beginning.
        self.assertEqual(numbers[1:], list(range(50_000 - len(numbers) + 1, 50_000)))
        self.assertGreater(len(numbers), 8_000)
        log = self.muster.task_folder(self.muster.job("job"), "main") / "log"
        self.assertLess(log.stat().st_blocks * 512, 1.2 * MIB)
        self.assertGreater(log.stat().st_size, 4 * MIB)

    def test_a_reader_of_the_last_lines_gets_no_notice_of_the_first(self):
        script = self.muster.script("print.py", NUMBERED.format(50_000))
        self.muster.run("submit", "single", "job", "--follow", "--", "python3", script)

        self.assertEqual(self.numbers_of(self.muster.logs("job", "--no-prefix", "--tail", "3")),
                         ([49_997, 49_998, 49_999], []))

    def test_a_reader_that_is_too_slow_gets_a_notice_of_missed_lines(self):
        gate = self.muster.gate()
        count = 400_000  # more than the server buffers for a slow reader
        script = self.muster.script("print.py", NUMBERED.format(count))
        self.muster.run("submit", "single", "job", "--", "sh", "-c",
                        f"echo 0; {gate.wait}; exec python3 {script}")
        follow = self.muster.stream("logs", "job", "-f", "--no-prefix")
        self.assertEqual(follow.line(), "0")
        follow.process.send_signal(signal.SIGSTOP)
        gate.open()
        self.muster.ended("job")
        follow.process.send_signal(signal.SIGCONT)
        self.assertEqual(follow.finish(), 0)

        # The lines between notices; those beside a notice may be cut in the middle.
        parts = [[]]
        for line in follow.text.splitlines()[1:]:
            if "of output before this were cut" in line:
                parts.append([])
            else:
                parts[-1].append(line)
        self.assertGreater(len(parts), 1)
        for at, part in enumerate(parts):
            whole = part[1 if at else 0:-1 if at + 1 < len(parts) else None]
            first = int(whole[0]) if whole else 0
            self.assertEqual([int(line) for line in whole], list(range(first, first + len(whole))))
            if at == 0 and whole:  # the first notice may come before the first whole line
                self.assertEqual(first, 0)
        self.assertEqual(int(parts[-1][-1]), count - 1)
        self.assertGreater(len(parts[-1]), 8_000)

    def test_a_log_within_its_quota_is_complete(self):
        script = self.muster.script("print.py", NUMBERED.format(10_000))
        self.muster.run("submit", "single", "job", "--follow", "--", "python3", script)

        self.assertEqual(self.numbers_of(self.muster.logs("job", "--no-prefix")),
                         (list(range(10_000)), []))


class Filters(MusterTest):

    def ask(self, **query):
        """The status of an answer, and its lines or its error."""
        connection = UnixConnection(self.muster.state / "muster.sock")
        connection.request("GET", "/v1/jobs/job/logs?" + urllib.parse.urlencode(query))
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        if answer.status != 200:
            return answer.status, json.loads(text)["faults"]
        events = [event.splitlines() for event in text.split("\n\n")]
        return 200, [json.loads(event[1].removeprefix("data: "))["text"]
                     for event in events if event and event[0] == "event: log"]

    def test_the_server_finds_lines_by_a_pattern_and_the_last_of_them(self):
        self.muster.run("submit", "single", "job", "--follow", "--", "sh", "-c",
                        "for i in $(seq 30); do echo line $i; echo loss $i; done")

        self.assertEqual(self.ask(grep="^loss 1?5$"), (200, ["loss 5", "loss 15"]))
        self.assertEqual(self.ask(grep="loss", tail=2), (200, ["loss 29", "loss 30"]))
        self.assertEqual(self.ask(rank=0), (200, []))

    def test_an_invalid_pattern_is_refused_with_its_fault(self):
        self.muster.run("submit", "single", "job", "--follow", "--", "true")

        status, faults = self.ask(grep="(", rank="-1")

        self.assertEqual(status, 400)
        self.assertEqual([fault["field"] for fault in faults], ["grep", "rank"])


def shut(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:  # the other end has closed it already
        pass


class Proxy:
    """A proxy between a client and a server that can cut its connections. `connect` opens a connection to the server.
    `on_taken` is called with bytes of the server once they are written to the client's socket."""

    def __init__(self, listener, connect, on_taken=lambda data: None):
        self.listener, self.connect, self.on_taken = listener, connect, on_taken
        self.sockets = []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._accept)]
        self.threads[0].start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:  # closed
                return
            far = self.connect()
            with self.lock:
                self.sockets += [near, far]
                for source, target, on_taken in ((near, far, lambda data: None), (far, near, self.on_taken)):
                    self.threads.append(threading.Thread(target=self._copy, args=(source, target, on_taken)))
                    self.threads[-1].start()

    def _copy(self, source, target, on_taken):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
                on_taken(data)
        except OSError:  # cut
            pass
        shut(target)
        with self.lock:
            self.sockets.remove(source)
            source.close()

    def cut(self):
        with self.lock:
            for end in self.sockets:
                shut(end)

    def close(self):
        shut(self.listener)
        self.threads[0].join()
        self.listener.close()
        self.cut()
        for thread in self.threads:
            thread.join()


class CutConnections(MusterTest):

    def setUp(self):
        super().setUp()
        server = self.muster.start_server("--listen", "127.0.0.1:0")
        port = tls_port(server)
        self.proxy = Proxy(socket.create_server(("127.0.0.1", 0)),
                           lambda: socket.create_connection(("127.0.0.1", port)))
        self.addCleanup(self.proxy.close)
        fingerprint = self.muster.run("server", "--fingerprint").stdout.split()[-1]
        self.muster.run("project", "create", "team")
        token = TOKEN.search(self.muster.run("user", "create", "ada", "--project",
                                             "team=member").stdout).group(0)
        self.person = Person(self.muster, "ada")
        self.person.run("login", f"https://127.0.0.1:{self.proxy.listener.getsockname()[1]}", "--name", "lab",
                        "--fingerprint", fingerprint.replace(":", "").lower(), "--token-stdin",
                        input=token + "\n")

    def follow(self, *flags):
        stream = Stream(self.muster.argv("logs", "-f", "job", *flags), self.person.environment)
        self.addCleanup(stream.close)
        return stream

    def test_a_follow_reconnects_without_losing_or_repeating_a_line(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "job", "--project", "team", "--", "sh", "-c",
                        f"for i in 1 2 3 4; do seq 5000; echo round $i; {gate.wait}; done")
        follow = self.follow()
        for number in range(1, 5):
            follow.until(f"round {number}")
            self.proxy.cut()
            gate.open()

        self.assertEqual(follow.finish(), 0, follow.errors)
        wanted = [f"[main] {word}" for number in range(1, 5)
                  for word in [*range(1, 5001), f"round {number}"]]
        self.assertEqual(follow.text.splitlines(), wanted)

    def test_a_follow_that_is_disconnected_during_heavy_output_is_complete(self):
        lines = 300_000
        script = self.muster.script("print.py", NUMBERED.format(lines))
        self.muster.run("submit", "single", "job", "--project", "team", "--", "python3", script)
        printed = bytearray()
        with subprocess.Popen(self.muster.argv("logs", "-f", "job", "--no-prefix"),
                              env=self.person.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            cuts = 0
            while data := process.stdout.read1(1 << 16):
                printed += data
                if len(printed) > (cuts + 1) * lines * 100 // 6:
                    self.proxy.cut()
                    cuts += 1
            said = process.stderr.read()

        self.assertEqual((process.returncode, cuts), (0, 5), said)
        self.assertTrue(printed == b"".join(b"%099d\n" % number for number in range(lines)))


class Passage:
    """Waits until the reader of a stream has read past some words: more bytes followed them than the socket of the
    reader can hold, and all were written to it."""

    BEYOND = MIB

    def __init__(self, words):
        self.words = words
        self.done = threading.Event()
        self._last = b""
        self._after = None

    def take(self, data):
        if self._after is not None:
            self._after += len(data)
        elif self.words in self._last + data:
            self._after = 0
        self._last = data[-len(self.words):]
        if self._after is not None and self._after > self.BEYOND:
            self.done.set()


class SlowTerminals(MusterTest):
    """worker-0 prints MUCH lines, then the master one line, then worker-0 SOME lines."""

    MUCH, SOME = 120_000, 20_000

    def setUp(self):
        super().setUp()
        self.muster.environment.update(TERM="xterm", NO_COLOR="1")
        self.start = self.muster.gate("start")
        turn, back = self.muster.gate("turn"), self.muster.gate("back")
        script = self.muster.script("print.py", "import sys\n" + NUMBERED.format("int(sys.argv[1])"))
        path = {gate: gate.wait.split()[3] for gate in (turn, back)}
        self.muster.run("submit", "torch", "job", "--workers", 1, "--", "sh", "-c",
                        f"if [ $RANK = 1 ]; then {self.start.wait}; python3 {script} {self.MUCH}; "
                        f"printf x > {path[turn]}; {back.wait}; exec python3 {script} {self.SOME}; fi; "
                        f"echo ready; {turn.wait}; echo the quiet line; printf x > {path[back]}")

    def follow(self, *flags, environment=None):
        follow = Typed(self.muster, "logs", "job", "-f", *flags, environment=environment)
        self.addCleanup(follow.close)
        follow.until(b"[master] ready\r\n")
        return follow

    def follow_through(self, passage):
        """Starts a follow through a proxy, whose socket is in another state folder in place of the server's."""
        folder = self.muster.folder / "proxied"
        folder.mkdir(mode=0o700)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(folder / "muster.sock"))
        listener.listen()

        def connect():
            far = socket.socket(socket.AF_UNIX)
            far.connect(str(self.muster.state / "muster.sock"))
            return far

        self.addCleanup(Proxy(listener, connect, passage.take).close)
        return self.follow(environment=self.muster.environment | {"MUSTER_STATE_DIR": str(folder)})

    def numbers(self):
        return [*range(self.MUCH), *range(self.SOME)]

    def test_a_slow_terminal_shows_lines_of_quiet_tasks_and_the_number_of_skipped_lines(self):
        passage = Passage(b"the quiet line")
        follow = self.follow_through(passage)
        self.start.open()

        # Nothing reads the terminal meanwhile.
        self.assertTrue(passage.done.wait(BOUND))

        self.assertEqual(follow.finish(), 0)
        text = follow.text.decode().replace("\r\n", "\n")
        self.assertLess(text.index("[master] the quiet line\n"), MIB / 2)
        numbers, gaps, at = self.numbers(), 0, 0
        for line in text.splitlines():
            if not line.startswith("[worker-0] "):
                continue
            words = line.removeprefix("[worker-0] ")
            gap = re.fullmatch(r"\.\.\. \(([0-9,]+) lines? not shown; --no-fold shows all\)", words)
            if gap:
                gaps += 1
                at += int(gap.group(1).replace(",", ""))
            else:
                self.assertEqual(int(words), numbers[at])
                at += 1
        self.assertEqual(at, len(numbers))
        self.assertGreater(gaps, 0)

    def test_no_fold_and_a_pipe_show_every_line(self):
        terminal = self.follow("--no-fold")
        with subprocess.Popen(self.muster.argv("logs", "job", "-f"), env=self.muster.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as pipe:
            self.assertEqual(pipe.stdout.readline(), b"[master] ready\n")
            self.start.open()
            self.muster.ended("job")

            self.assertEqual(terminal.finish(), 0)
            piped = pipe.stdout.read().decode()

        for text in (terminal.text.decode(), piped, self.muster.logs("job")):
            lines = text.splitlines()
            self.assertEqual([int(line.split()[1]) for line in lines if line.startswith("[worker-0]")],
                             self.numbers())
            self.assertEqual(lines.count("[master] the quiet line"), 1)


if __name__ == "__main__":
    main()
