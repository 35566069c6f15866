"""The authenticated channel between a job's driver and its processes, which strangers cannot disturb."""

import json
import os
import resource
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

from muster.common import wire
from muster.common.wire_server import WireServer

#: A time limit only so that a fault fails the test and does not hang it.
LONG = 30.0


class Peers(unittest.TestCase):
    def setUp(self):
        self.key = wire.new_key()
        self.server = self.serve()
        self.pool = ThreadPoolExecutor(4)
        self.addCleanup(self.pool.shutdown)

    def serve(self, **options):
        server = WireServer(self.key, **options)
        self.addCleanup(lambda: server.__exit__())
        return server

    def events_until(self, kind, server=None):
        """All events up to the first of that kind."""
        seen = []
        while not any(event.kind == kind for event in seen):
            more = (server or self.server).events(LONG)
            self.assertTrue(more, f"no event {kind!r} came; seen: {seen}")
            seen += more
        return next(event for event in seen if event.kind == kind), seen

    def until(self, holds, server=None):
        while not holds():
            (server or self.server).events(0.05)

    def joined(self, server=None, key=None, **options):
        server = server or self.server
        channel = self.pool.submit(wire.connect, server.address, key or self.key, timeout=LONG, **options)
        event, _ = self.events_until("joined", server)
        self.addCleanup(channel.result().close)
        return channel.result(), event.connection

    def stranger(self, server=None):
        server = server or self.server
        raw = socket.create_connection((server.host, server.port), timeout=LONG)
        self.addCleanup(raw.close)
        return raw

    def assert_hung_up(self, raw):
        """Waits for the end of the connection, and ignores the bytes before it."""
        try:
            while raw.recv(4096):
                pass
        except ConnectionResetError:
            pass


class Messages(Peers):
    def test_messages_go_both_ways_in_their_order(self):
        channel, connection = self.joined()
        sent = [{"n": n, "text": "ö" * n, "list": [1, 2.5, None, True]} for n in range(50)]
        for message in sent:
            channel.send(message)
            connection.send(message)
        got = []
        while len(got) < 50:
            got += [event.message for event in self.server.events(LONG)]
        self.assertEqual(got, sent)
        self.assertEqual([channel.receive(LONG) for _ in sent], sent)

    def test_a_request_is_answered(self):
        channel, _ = self.joined()
        answer = self.pool.submit(channel.request, {"what": "place"}, LONG)
        event, _ = self.events_until("message")
        event.connection.send({"rank": 1})
        self.assertEqual(answer.result(LONG), {"rank": 1})

    def test_a_large_message_arrives_whole_while_the_server_waits_for_nobody(self):
        channel, connection = self.joined()
        large = {"text": "x" * (8 << 20)}
        connection.send(large)
        answer = self.pool.submit(channel.receive, LONG)
        self.until(answer.done)
        self.assertEqual(answer.result(), large)

    def test_the_end_of_either_side_is_seen_by_the_other(self):
        channel, _ = self.joined()
        channel.close()
        event, _ = self.events_until("left")
        self.assertEqual(event.why, "")
        channel, connection = self.joined()
        connection.close()
        self.assertIsNone(channel.receive(LONG))
        self.assertEqual(self.server.connections, [])

    def test_receive_gives_up_after_its_time_and_loses_nothing(self):
        channel, connection = self.joined()
        with self.assertRaises(TimeoutError):
            channel.receive(0)
        connection.send({"late": True})
        self.assertEqual(channel.receive(LONG), {"late": True})

    def test_closing_from_another_thread_ends_a_wait(self):
        channel, _ = self.joined()
        waiting = self.pool.submit(channel.receive)
        channel.close()
        self.assertIsNone(waiting.result(LONG))
        self.assertIsNone(channel.receive(LONG))

    def test_wake_ends_a_wait_for_events(self):
        thread = threading.Thread(target=self.server.wake)
        thread.start()
        self.assertEqual(self.server.events(), [])
        thread.join()

    def test_the_connection_to_a_peer_that_does_not_read_is_closed(self):
        _, connection = self.joined()
        with mock.patch("muster.common.wire_server.MAX_UNSENT", 1 << 20):
            while connection.is_open:
                connection.send({"text": "x" * (1 << 20)})
        event, _ = self.events_until("left")
        self.assertEqual(event.why, "it does not read its messages")

    def test_an_invalid_or_too_long_message_is_refused_before_it_is_sent_and_the_channel_stays_usable(self):
        server = self.serve(max_message=1000)
        channel, _ = self.joined(server, max_message=1000)
        for bad in ({"x": float("nan")}, {"x": b"bytes"}, {"x": "y" * 1000}):
            with self.assertRaises((ValueError, TypeError)):
                channel.send(bad)
        channel.send({"x": 1})
        self.assertEqual(self.events_until("message", server)[0].message, {"x": 1})

    def test_threads_may_send_at_once(self):
        channel, _ = self.joined()
        for thread in range(4):
            self.pool.submit(lambda t=thread: [channel.send({"t": t, "n": n}) for n in range(200)])
        got = []
        while len(got) < 800:
            got += [event.message for event in self.server.events(LONG)]
        for thread in range(4):
            self.assertEqual([m["n"] for m in got if m["t"] == thread], list(range(200)))


class Keys(Peers):
    def test_a_client_with_another_key_gets_an_error_and_the_server_keeps_nothing_of_it(self):
        other = self.pool.submit(wire.connect, self.server.address, wire.new_key(), timeout=LONG)
        self.until(lambda: self.server.strangers_refused == 1)
        with self.assertRaisesRegex(wire.AuthenticationError, "does not hold this job's key"):
            other.result(LONG)
        self.assertEqual(self.server.connections, [])
        self.joined()

    def test_a_server_without_the_key_is_rejected(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = wire.join_address(*listener.getsockname()[:2])
            answer = self.pool.submit(wire.connect, address, self.key, timeout=LONG)
            peer, _ = listener.accept()
            with peer:
                hello = peer.recv(wire.HELLO_BYTES, socket.MSG_WAITALL)
                # The client's own bytes as an answer.
                peer.sendall(hello + hello[-wire.MAC_BYTES:])
                with self.assertRaises(wire.AuthenticationError):
                    answer.result(LONG)

    def test_the_servers_proof_is_no_proof_of_a_client(self):
        raw = self.stranger()
        raw.sendall(wire.PROTOCOL + b"n" * wire.NONCE_BYTES)
        self.server.events(0)
        self.server.events(0)
        answer = raw.recv(wire.HELLO_BYTES + wire.MAC_BYTES, socket.MSG_WAITALL)
        raw.sendall(answer[wire.HELLO_BYTES:])
        self.until(lambda: self.server.strangers_refused == 1)
        self.assert_hung_up(raw)

    def test_an_invalid_key_is_refused_and_not_printed(self):
        for key in ("", "abc", "zz" * 32, "ab" * 31, "ab" * 33):
            with self.assertRaisesRegex(ValueError, "64 hexadecimal digits") as caught:
                WireServer(key)
            self.assertNotIn("zz", str(caught.exception))

    def test_addresses(self):
        self.assertEqual(wire.split_address("127.0.0.1:80"), ("127.0.0.1", 80))
        self.assertEqual(wire.split_address("[::1]:80"), ("::1", 80))
        self.assertEqual(wire.join_address("::1", 80), "[::1]:80")
        for bad in ("", "host", "host:", ":80", "host:0", "host:65536", "host:x", "host:8 0"):
            with self.assertRaises(ValueError, msg=bad):
                wire.split_address(bad)

    def test_an_absent_driver_is_an_error_with_the_address(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))  # bound, so that no other process can listen there
            port = closed.getsockname()[1]
            with self.assertRaisesRegex(wire.WireError,
                                        f"cannot reach the job's driver at 127.0.0.1:{port}: Connection"):
                wire.connect(f"127.0.0.1:{port}", self.key)

    def test_the_wait_for_a_silent_server_ends(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            with self.assertRaisesRegex(wire.WireError, "no answer within 0.2 s"):
                wire.connect(wire.join_address(*listener.getsockname()[:2]), self.key, timeout=0.2)


class Strangers(Peers):
    def test_garbage_closes_its_connection_and_does_not_delay_others(self):
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x80\x04cos\nsystem\n", b"\0" * 100000, b"\xff", b"MUSTERJ2"):
            before = self.server.strangers_refused
            raw = self.stranger()
            raw.sendall(garbage)
            self.until(lambda: self.server.strangers_refused > before)
            self.assert_hung_up(raw)
        self.joined()

    def test_nothing_a_stranger_sends_is_printed(self):
        program = ("import socket, sys\n"
                   "from muster.common.wire_server import WireServer\n"
                   "server = WireServer('ab' * 32)\n"
                   "raw = socket.create_connection((server.host, server.port))\n"
                   "raw.sendall(b'\\x1b[31mEVIL' * 100)\n"
                   "while not server.strangers_refused: server.events(1)\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=LONG,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))

    def test_a_slow_stranger_is_disconnected_after_its_time_and_others_pass_meanwhile(self):
        server = self.serve(handshake=LONG)
        slow = self.stranger(server)
        slow.sendall(wire.PROTOCOL + b"only some")
        self.joined(server)
        self.assertEqual(server.strangers_refused, 0)
        clock = time.monotonic
        with mock.patch.object(time, "monotonic", lambda: clock() + LONG):
            self.until(lambda: server.strangers_refused == 1, server)
        self.assert_hung_up(slow)
        self.assertIsNone(server.wait_at_most())

    def test_more_strangers_than_there_is_room_for_push_out_the_oldest(self):
        server = self.serve(max_strangers=4)
        crowd = [self.stranger(server) for _ in range(10)]
        self.until(lambda: server.strangers_refused == 6, server)
        for raw in crowd[:6]:
            self.assert_hung_up(raw)
        self.joined(server)

    def test_a_recorded_conversation_sent_again_is_worth_nothing(self):
        record = self._record([{"do": "harm"}])
        again = self.stranger()
        again.sendall(record)
        self.until(lambda: self.server.strangers_refused == 1)
        self.assertEqual(self.server.connections, [])

    def test_a_message_sent_twice_changed_or_cut_short_ends_the_connection(self):
        cases = {
            "twice": lambda one, two: one + one,
            "out of order": lambda one, two: two,
            "changed": lambda one, two: one.replace(b"1", b"2"),
            "a bit of its MAC": lambda one, two: one[:-1] + bytes([one[-1] ^ 1]),
            "huge": lambda one, two: struct.pack(">I", 0xffffffff),
            "shorter than it says": lambda one, two: one[:-5],
        }
        for name, spoil in cases.items():
            with self.subTest(name):
                channel, connection = self.joined()
                one, two = channel._sealer.seal({"n": 1}), channel._sealer.seal({"n": 1})
                channel._socket.sendall(spoil(one, two))
                channel._socket.shutdown(socket.SHUT_WR)
                event, seen = self.events_until("left")
                self.assertIs(event.connection, connection)
                self.assertNotEqual(event.why, "")
                self.assertEqual([e.message for e in seen if e.kind == "message" and name != "twice"], [])

    def test_a_message_of_the_other_direction_is_not_taken(self):
        channel, connection = self.joined()
        channel._socket.sendall(connection._sealer.seal({"n": 1}))
        self.assertIn("was changed in transit", self.events_until("left")[0].why)

    def test_a_sealed_message_that_is_not_an_object_ends_the_connection(self):
        for text in (b"[1]", b"1", b"{", b"\xff", b"[" * 100000, b'{"a":' * 100000):
            channel, _ = self.joined()
            with mock.patch.object(json, "dumps", return_value=mock.Mock(encode=lambda *_: text)):
                sealed = channel._sealer.seal({})
            channel._socket.sendall(sealed)
            self.assertEqual(self.events_until("left")[0].why, "a message is not a JSON object")

    def test_a_server_without_descriptors_left_turns_strangers_away_and_goes_on(self):
        self.server.events(0)
        raws = [socket.socket() for _ in range(2)]
        for raw in raws:
            self.addCleanup(raw.close)
            raw.settimeout(LONG)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        free = os.open(os.devnull, os.O_RDONLY)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
        try:
            raws[0].connect((self.server.host, self.server.port))
            self.until(lambda: self.server.strangers_refused == 1)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        self.assert_hung_up(raws[0])
        self.joined()

    def _record(self, messages):
        """All bytes that a client sends in a conversation, recorded on the way."""
        channel, relay = None, bytearray()
        real = socket.socket.sendall

        def sendall(sock, data, *rest):
            relay.extend(data)
            return real(sock, data, *rest)

        with mock.patch.object(socket.socket, "sendall", sendall):
            channel, _ = self.joined()
            for message in messages:
                channel.send(message)
        self.events_until("message")
        channel.close()
        self.events_until("left")
        return bytes(relay)


if __name__ == "__main__":
    unittest.main()
