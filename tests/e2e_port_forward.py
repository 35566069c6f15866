"""Ports of tasks on this machine: `muster port-forward`, through a real server."""

import http.client
import os
import re
import socket
import threading

from muster_harness import BOUND, MUSTER, MusterTest, await_no_process, main

# A file server, a server that answers after it has received everything, and a server that sends first and
# then continues to receive. Each prints its port.
SERVERS = r"""
import http.server, os, socket, threading

def listening():
    socket_ = socket.create_server(("127.0.0.1", 0))
    return socket_, socket_.getsockname()[1]

def answer_the_length(connection):
    heard = 0
    while more := connection.recv(1 << 16):
        heard += len(more)
    connection.sendall(b"heard %d" % heard)
    connection.close()

def speak_then_listen(connection):
    connection.sendall(b"that was all")
    connection.shutdown(socket.SHUT_WR)
    answer = b""
    while more := connection.recv(1 << 16):
        answer += more
    print("afterwards came", answer.decode(), flush=True)

def serve(socket_, what):
    while True:
        connection, _ = socket_.accept()
        threading.Thread(target=what, args=(connection,), daemon=True).start()

files = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=files.serve_forever, daemon=True).start()
ports = [files.server_address[1]]
for what in (answer_the_length, speak_then_listen):
    socket_, port = listening()
    ports.append(port)
    threading.Thread(target=serve, args=(socket_, what), daemon=True).start()
print("ports", *ports, flush=True)
open(os.environ["GATE"], "rb").read(1)
"""

LARGE = 20 << 20


class ForwardingPorts(MusterTest):

    def setUp(self):
        super().setUp()
        self.gate = self.muster.gate()
        self.muster.script("servers.py", SERVERS)
        (self.muster.work / "large").write_bytes(os.urandom(LARGE))
        self.muster.run("submit", "single", "job", "--env", f"GATE={self.muster.work / 'gate'}",
                        "--", "python3", "servers.py")
        self.log = self.muster.stream("logs", "job", "-f", "--no-prefix")
        self.files, self.counter, self.speaker = map(int, self.log.until("ports").split()[1:])

    def forward(self, *ports, words=("port-forward", "job"), argv=None):
        """Starts the command; returns it with the local ports that it has chosen."""
        words = [*words, *(f":{port}" if argv is None else port for port in ports)]
        command = self.muster.stream(*words) if argv is None else self.muster.stream_of([*argv, *words])
        local = []
        for _ in [port for port in words if ":" in str(port)]:
            line = command.until("Forwarding")
            local.append(int(re.fullmatch(r"Forwarding \S+:(\d+) -> main:\d+", line).group(1)))
        return command, local

    def get(self, port, path="/large"):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=BOUND)
        connection.request("GET", path)
        return connection.getresponse().read()

    def test_many_requests_go_through_at_once(self):
        command, (port,) = self.forward(self.files)
        bodies = []
        threads = [threading.Thread(target=lambda: bodies.append(self.get(port))) for _ in range(4)]

        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        expected = (self.muster.work / "large").read_bytes()
        self.assertEqual([body == expected for body in bodies], [True] * 4)
        command.interrupt()
        self.assertEqual(command.finish(), 130)
        await_no_process(f"connect\0{self.files}\0", BOUND)

    def test_each_side_can_close_its_sending_half_and_still_receive(self):
        command, (counter, speaker) = self.forward(self.counter, self.speaker)
        with socket.create_connection(("127.0.0.1", counter), BOUND) as connection:
            connection.sendall(b"x" * LARGE)
            connection.shutdown(socket.SHUT_WR)
            self.assertEqual(read_all(connection), b"heard %d" % LARGE)
        with socket.create_connection(("127.0.0.1", speaker), BOUND) as connection:
            self.assertEqual(read_all(connection), b"that was all")
            connection.sendall(b"this")
            connection.shutdown(socket.SHUT_WR)
            self.assertEqual(self.log.until("afterwards"), "afterwards came this")
        command.interrupt()
        command.finish()

    def test_a_failed_connection_is_reported_and_the_others_continue(self):
        # A bound socket that does not listen reserves the port and refuses connections.
        unused = socket.socket()
        self.addCleanup(unused.close)
        unused.bind(("127.0.0.1", 0))
        nobodys = unused.getsockname()[1]
        command, (dead, files) = self.forward(nobodys, self.files)

        with socket.create_connection(("127.0.0.1", dead), BOUND) as connection:
            self.assertEqual(read_all(connection), b"")

        self.assertEqual(len(self.get(files)), LARGE)
        command.interrupt()
        self.assertEqual(command.finish(), 130)
        self.assertIn(f"-> main:{nobodys}: no program listens on port {nobodys}", command.errors)

    def test_it_outlives_the_server_and_ends_with_the_job(self):
        command, (port,) = self.forward(self.files)
        self.assertEqual(len(self.get(port)), LARGE)

        self.muster.kill_server()
        self.muster.run("list")  # starts another

        self.assertEqual(len(self.get(port)), LARGE)
        self.gate.open()
        self.assertEqual(command.finish(), 0)
        self.assertIn("job 'job' has ended: Succeeded", command.errors)

    def test_a_port_that_cannot_be_forwarded_is_reported(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            cases = [
                (["job"], 2, "a port is missing"),
                (["job", "x"], 2, "'x' is neither PORT nor LOCAL:REMOTE"),
                (["job", "70000"], 2, "'70000' is neither PORT nor LOCAL:REMOTE"),
                (["job", f"{port}:80"], 4, str(port)),
                (["nobody", "80"], 3, "nobody"),
                (["job", "80", "--task", "worker-3"], 3, "has no task 'worker-3'"),
                (["job", ":80", "--address", "192.0.2.1"], 2, "192.0.2.1"),
            ]
            for words, code, sentence in cases:
                with self.subTest(words=words):
                    ran = self.muster.run("port-forward", *words, code=code)
                    self.assertIn(sentence, ran.stderr)

    def test_it_listens_at_the_given_address_and_warns(self):
        command, _ = self.forward(self.files, words=("port-forward", "job", "--address", "0.0.0.0"))
        command.interrupt()
        command.finish()
        self.assertIn("warning: everyone who can reach 0.0.0.0 of this machine", command.errors)

    def test_runai_forwards_ports_by_its_own_flags(self):
        command, (port,) = self.forward(
            argv=[str(MUSTER.with_name("runai"))],
            words=("port-forward", "job", "--port", f":{self.files}", "--address", "127.0.0.1",
                   "--pod", "job-main", "--pod-running-timeout", "10s"))
        self.assertEqual(len(self.get(port)), LARGE)
        command.interrupt()
        self.assertEqual(command.finish(), 130)


def read_all(connection):
    text = b""
    while more := connection.recv(1 << 16):
        text += more
    return text


if __name__ == "__main__":
    main()
