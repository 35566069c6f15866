"""The HTTP API with hostile and unlucky clients, over the unix socket that the command line uses."""

import json
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor

from muster_harness import BOUND, MusterTest, UnixConnection, main


class Api(MusterTest):
    def setUp(self):
        super().setUp()
        self.server = self.muster.start_server()
        self.socket = self.muster.state / "muster.sock"

    def ask(self, method, target, body=None, headers=()):
        connection = UnixConnection(self.socket)
        try:
            connection.request(method, target, body=body, headers=dict(headers))
            answer = connection.getresponse()
            return answer, answer.read()
        finally:
            connection.close()

    def submit(self, name, command, key=None, **fields):
        spec = {"name": name, "command": command, "folder": "/", "sandbox": "none", **fields}
        headers = {"content-type": "application/json"}
        if key is not None:
            headers["idempotency-key"] = key
        answer, body = self.ask("POST", "/v1/jobs", json.dumps(spec), headers)
        return answer.status, json.loads(body)

    def raw(self, data, then_read=True):
        """The server's answer to these bytes; it must not wait for more."""
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.settimeout(60)
        client.connect(str(self.socket))
        with client:
            try:
                client.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it has answered and closed the connection
            said = b""
            while then_read and (piece := client.recv(1 << 16)):
                said += piece
                if b"\r\n\r\n" in said:
                    break
            return said

    def assertAlive(self):
        answer, _ = self.ask("GET", "/healthz")
        self.assertEqual(answer.status, 200)


class IdempotencyKeys(Api):

    def test_ten_clients_with_one_key_make_one_job(self):
        gate = self.muster.gate()
        with ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(lambda _: self.submit("once", ["sh", "-c", gate.wait], key="k"), range(10)))

        self.assertEqual({status for status, _ in answers}, {201})
        self.assertEqual(len({job["id"] for _, job in answers}), 1)
        _, listing = self.ask("GET", "/v1/jobs")
        self.assertEqual(len(json.loads(listing)["jobs"]), 1)
        gate.open()

    def test_a_key_outlives_the_server(self):
        _, first = self.submit("once", ["true"], key="k")
        self.server.process.kill()
        self.server.finish()
        self.server = self.muster.start_server()

        status, second = self.submit("once", ["true"], key="k")

        self.assertEqual((status, second["id"]), (201, first["id"]))

    def test_a_key_that_is_too_long_is_refused(self):
        self.assertEqual(self.submit("a", ["true"], key="x" * 200)[0], 201)
        self.assertEqual(self.submit("b", ["true"], key="x" * 201)[0], 400)


class Floods(Api):

    def test_a_body_of_a_gigabyte_is_refused_before_it_is_read(self):
        said = self.raw(b"POST /v1/jobs HTTP/1.1\r\nhost: m\r\ncontent-length: 1073741824\r\n\r\n" + b"x" * 65536)

        self.assertTrue(said.startswith(b"HTTP/1.1 413"), said[:200])
        self.assertAlive()

    def test_a_chunked_body_without_end_is_refused(self):
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        said = self.raw(b"POST /v1/jobs HTTP/1.1\r\nhost: m\r\ntransfer-encoding: chunked\r\n\r\n" + chunk * 200)

        self.assertTrue(said.startswith(b"HTTP/1.1 413"), said[:200])
        self.assertAlive()

    def test_headers_without_end_are_refused(self):
        said = self.raw(b"GET /v1/jobs HTTP/1.1\r\nhost: m\r\n" + b"x: y\r\n" * 100_000)

        self.assertRegex(said[:20], rb"HTTP/1.1 (400|431)")
        self.assertAlive()

    def test_json_nested_a_hundred_thousand_deep_is_an_error_and_not_a_crash(self):
        answer, body = self.ask("POST", "/v1/jobs", "[" * 100_000, {"content-type": "application/json"})

        self.assertEqual(answer.status, 400)
        self.assertEqual(answer.getheader("content-type"), "application/problem+json")
        self.assertAlive()


class Tricks(Api):

    def test_odd_spellings_of_a_path_reach_no_other_route(self):
        self.submit("victim", ["true"])
        for target in ("/v1/jobs/../jobs/victim", "/v1/jobs/%2e%2e/jobs/victim", "/v1/jobs%2fvictim",
                       "/v1//jobs/victim", "/v1/jobs/victim%00", "/v1/jobs/./victim",
                       "//v1/jobs/victim", "/v1/jobs/victim%2Flogs", "/%76%31/jobs/victim%0a"):
            answer, body = self.ask("GET", target)
            self.assertIn(answer.status, (400, 404, 405), target)
            self.assertNotIn(b'"spec"', body, target)
        self.assertAlive()

    def test_a_name_as_long_as_the_limit_of_a_head_is_not_found(self):
        answer, _ = self.ask("GET", "/v1/jobs/" + "a" * 8000)
        self.assertIn(answer.status, (400, 404))
        self.assertAlive()

    def test_an_ambiguous_request_is_refused(self):
        for head in (b"content-length: 3\r\ncontent-length: 4\r\n",
                     b"content-length: 3\r\ntransfer-encoding: chunked\r\n",
                     b"content-length: -1\r\n", b"content-length: 0x3\r\n",
                     b"transfer-encoding: identity, chunked, x\r\n", b"bad header\r\n", b"x\0y: z\r\n"):
            said = self.raw(b"POST /v1/jobs HTTP/1.1\r\nhost: m\r\n" + head + b"\r\n{}")
            self.assertRegex(said[:20], rb"HTTP/1.1 (400|413|501)", head)
        self.assertAlive()


class SlowReaders(Api):

    def test_a_client_that_stops_reading_a_log_delays_no_other(self):
        lines = 200_000
        status, job = self.submit("loud", ["sh", "-c", f"seq {lines}"])
        self.assertEqual(status, 201)
        lazy = UnixConnection(self.socket)
        lazy.request("GET", "/v1/jobs/loud/logs?follow=true")
        self.addCleanup(lazy.close)

        eager = self.muster.run("logs", "-f", "loud").stdout

        self.assertEqual(eager.count("\n"), lines)
        self.assertAlive()
        # The unread output is on the disk, not in memory: the client gets all of it when it continues.
        late = lazy.getresponse().read()
        self.assertEqual(late.count(b"event: log"), lines)

    def test_the_connection_of_a_client_that_disconnects_during_a_log_is_closed(self):
        gate = self.muster.gate()
        self.submit("long", ["sh", "-c", f"echo begun; {gate.wait}"])
        before = self.open_sockets()
        for _ in range(20):
            client = UnixConnection(self.socket)
            client.request("GET", "/v1/jobs/long/logs?follow=true")
            client.getresponse().read(1)
            client.close()
        self.assertAlive()
        gate.open()
        self.muster.run("logs", "-f", "long")
        # The server notices each closed connection before it answers a later request, or right after.
        deadline = time.monotonic() + BOUND
        while self.open_sockets() > before + 1:
            self.assertLess(time.monotonic(), deadline, "a connection was not closed")
            self.assertAlive()

    def open_sockets(self):
        return sum(self.is_socket(entry) for entry in os.scandir(f"/proc/{self.server.process.pid}/fd"))

    @staticmethod
    def is_socket(entry):
        try:
            return os.readlink(entry.path).startswith("socket:")
        except FileNotFoundError:
            return False


if __name__ == "__main__":
    main()
