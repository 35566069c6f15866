"""Notifications to real HTTPS receivers that work, fail, are slow or do not exist; a server that is killed before it
delivers a notification; and the command hook."""

import hashlib
import hmac
import http.server
import json
import os
import queue
import select
import signal
import socket
import ssl
import subprocess
import threading
import time

from muster_harness import BOUND, MusterTest, closed_port, main, read_bytes


def certificate(folder):
    """A self-signed certificate for this machine, and its key."""
    files = folder / "receiver.pem", folder / "receiver.key"
    if not files[0].exists():
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=receiver",
                        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                        "-keyout", files[1], "-out", files[0]], check=True, capture_output=True)
    return files


class Receiver:
    """Receives notifications at https://127.0.0.1:PORT. `answers`: a status, or a function that returns the status
    (and a dictionary of headers) of the n-th answer."""

    def __init__(self, folder, answers=204, port=0):
        self.answers, self.requests, self.count = answers, queue.Queue(), 0
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.count += 1
                answer = receiver.answers
                answer = answer(receiver.count) if callable(answer) else answer
                status, headers = answer if isinstance(answer, tuple) else (answer, {})
                receiver.requests.put((self.path, dict(self.headers.items()), body))
                try:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                except OSError:
                    pass  # the client has disconnected

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):
                pass  # an abandoned handshake

        self._server = Server(("127.0.0.1", port), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate(folder))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True,
                                                  do_handshake_on_connect=False)
        self.port = self._server.server_address[1]
        self.url = f"https://127.0.0.1:{self.port}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def next(self):
        """The path of the next request, its headers in lower case, and its body as JSON and as bytes."""
        path, headers, body = self.requests.get(timeout=BOUND)
        return path, {name.lower(): value for name, value in headers.items()}, json.loads(body), body

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def signed_by(key, headers, body):
    """Checks a signature as a receiver does: docs/notifications.md."""
    parts = dict(part.split("=") for part in headers["muster-signature"].split(","))
    expected = hmac.new(key.encode(), parts["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, parts["v1"]) and abs(time.time() - int(parts["t"])) < 300


class NotifyTest(MusterTest):

    def serve(self, *ports, retry="20ms", more=()):
        """A server that trusts the receivers' certificate and may reach these ports."""
        trusted, _ = certificate(self.muster.work)
        self.server = self.muster.start_server(
            "--notify-allow", ",".join(f"127.0.0.1:{port}" for port in ports),
            "--notify-first-retry", retry, *more, environment={"SSL_CERT_FILE": str(trusted)})
        return self.server

    def receiver(self, *arguments, **options):
        receiver = Receiver(self.muster.work, *arguments, **options)
        self.addCleanup(receiver.close)
        return receiver

    def subscribe(self, url, *words):
        ran = self.muster.run("notify", "add", url, *words, "-o", "json")
        added = json.loads(ran.stdout)
        return added["subscription"]["id"], added["key"]

    def dead(self):
        return json.loads(self.muster.run("notify", "dead", "-o", "json").stdout)["deliveries"]

    def until_dead(self, count=1):
        """Waits for this number of dead letters and returns them."""
        deadline = time.monotonic() + BOUND
        while len(letters := self.dead()) < count:
            self.assertLess(time.monotonic(), deadline, letters)
        return letters


class Deliveries(NotifyTest):

    def test_a_notification_of_a_job_is_signed(self):
        receiver = self.receiver()
        self.serve(receiver.port)
        subscription, key = self.subscribe(receiver.url + "?x=1", "--on", "all", "--job", "tr*n")

        self.muster.run("submit", "single", "other", "--follow", "--", "true")
        self.muster.run("submit", "single", "train", "--follow", "--env", "SECRET=s3same", "--",
                        "echo", "s3same")

        told = []
        for _ in range(2):
            path, headers, body, raw = receiver.next()
            self.assertEqual(path, "/hook?x=1")
            self.assertTrue(signed_by(key, headers, raw))
            self.assertFalse(signed_by("another", headers, raw))
            self.assertEqual(headers["muster-event"], body["event"])
            self.assertEqual(headers["muster-delivery"], body["id"])
            self.assertEqual(body["job"]["name"], "train")
            self.assertNotIn(b"s3same", raw)
            told.append(body["event"])
        self.assertEqual(told, ["job.started", "job.succeeded"])
        self.assertNotIn(key, self.muster.run("notify", "list", "-o", "json").stdout)
        self.assertNotIn(key, self.server.errors)
        self.muster.run("notify", "remove", subscription)
        self.assertEqual(self.muster.run("notify", "list", "-o", "names").stdout, "")

    def test_the_end_of_an_array_is_notified_and_its_members_on_request(self):
        whole, each = self.receiver(), self.receiver()
        self.serve(whole.port, each.port)
        self.subscribe(whole.url)
        self.subscribe(each.url, "--on", "failed", "--members")

        self.muster.run("submit", "single", "train", "--array", "0-2", "--follow", "--", "sh", "-c",
                        "exit $((MUSTER_ARRAY_INDEX == 1))", code=1)

        _, headers, body, _ = whole.next()
        self.assertEqual((headers["muster-event"], body["event"]), ("array.failed", "array.failed"))
        self.assertEqual(body["array"]["counts"], {"members": 3, "succeeded": 2, "failed": 1, "stopped": 0})
        told = {each.next()[2]["event"] for _ in range(2)}
        self.assertEqual(told, {"job.failed", "array.failed"})
        self.assertTrue(whole.requests.empty())

    def test_a_notification_of_a_failure_has_its_last_lines_on_request(self):
        plain, curious = self.receiver(), self.receiver()
        self.serve(plain.port, curious.port)
        self.subscribe(plain.url, "--on", "failed")
        self.subscribe(curious.url, "--on", "failed", "--with-lines")

        self.muster.run("submit", "single", "sad", "--follow", "--", "sh", "-c",
                        "echo no room here; exit 3", code=3)

        _, _, body, raw = plain.next()
        self.assertEqual((body["event"], body["job"]["exit_code"]), ("job.failed", 3))
        self.assertIn("3", body["failure"]["cause"])
        self.assertNotIn(b"no room here", raw)
        _, _, body, _ = curious.next()
        self.assertIn("no room here", body["failure"]["last_lines"])

    def test_a_delivery_that_fails_twice_arrives_with_the_same_id(self):
        receiver = self.receiver(lambda n: 500 if n <= 2 else 200)
        self.serve(receiver.port)
        self.subscribe(receiver.url)

        self.muster.run("submit", "single", "one", "--follow", "--", "true")

        ids = {receiver.next()[1]["muster-delivery"] for _ in range(3)}
        self.assertEqual(len(ids), 1)
        self.muster.run("notify", "test", self.ids()[0])
        self.assertEqual(receiver.next()[2]["event"], "ping")  # no other request arrived in between
        self.assertEqual(self.dead(), [])

    def ids(self):
        return self.muster.run("notify", "list", "-o", "names").stdout.split()

    def test_the_next_server_sends_the_deliveries_of_a_killed_one(self):
        port = closed_port(self)
        server = self.serve(port)
        _, key = self.subscribe(f"https://127.0.0.1:{port}/hook", "--on", "all")
        self.muster.run("submit", "single", "one", "--follow", "--", "true")
        server.process.kill()
        server.finish()

        receiver = self.receiver(port=port)
        self.serve(port)

        told = [receiver.next() for _ in range(2)]
        self.assertEqual({body["event"] for _, _, body, _ in told}, {"job.started", "job.succeeded"})
        self.assertTrue(all(signed_by(key, headers, raw) for _, headers, _, raw in told))
        self.muster.run("notify", "test", self.ids()[0])
        self.assertEqual(receiver.next()[2]["event"], "ping")

    def test_a_slow_receiver_does_not_delay_other_receivers(self):
        released = threading.Event()
        self.addCleanup(released.set)
        slow = self.receiver(lambda n: released.wait(BOUND) and 200)
        quick = self.receiver()
        self.serve(slow.port, quick.port)
        self.subscribe(slow.url, "--on", "all")
        self.subscribe(quick.url, "--on", "all")

        self.muster.run("submit", "single", "one", "--follow", "--", "true")
        self.muster.run("submit", "single", "two", "--follow", "--", "true")

        told = [quick.next()[2]["job"]["name"] for _ in range(4)]
        self.assertEqual(told, ["one", "one", "two", "two"])
        released.set()
        for _ in range(4):
            slow.next()


class DeadLetters(NotifyTest):

    def test_a_refused_delivery_is_listed_and_can_be_retried(self):
        receiver = self.receiver(404)
        self.serve(receiver.port)
        subscription, _ = self.subscribe(receiver.url)
        self.muster.run("submit", "single", "one", "--follow", "--", "true")
        _, headers, _, _ = receiver.next()

        letters = self.until_dead()

        self.assertEqual(letters[0]["id"], headers["muster-delivery"])
        self.assertEqual(letters[0]["subscription"], subscription)
        self.assertEqual(letters[0]["fault"], "answered 404")
        self.assertIn("answered 404", self.muster.run("notify", "dead").stdout)
        receiver.answers = 200
        ran = self.muster.run("notify", "retry", letters[0]["id"])
        self.assertEqual(ran.stdout, "tries 1 dead letter again\n")
        self.assertEqual(receiver.next()[1]["muster-delivery"], letters[0]["id"])
        self.assertEqual(self.dead(), [])
        self.muster.run("notify", "retry", letters[0]["id"], code=3)
        self.assertEqual(self.muster.run("notify", "retry", "--all").stdout,
                         "tries 0 dead letters again\n")

    def test_a_delivery_to_a_receiver_that_refuses_connections_becomes_a_dead_letter(self):
        port = closed_port(self)
        self.serve(port, more=("--notify-give-up-after", "200ms"))
        self.subscribe(f"https://127.0.0.1:{port}/hook")
        self.muster.run("submit", "single", "one", "--follow", "--", "true")

        letters = self.until_dead()

        self.assertIn("Connection refused", letters[0]["fault"])

    def test_a_redirect_is_not_followed(self):
        receiver = self.receiver(lambda n: (302, {"location": "/elsewhere"}))
        self.serve(receiver.port, more=("--notify-give-up-after", "100ms"))
        subscription, _ = self.subscribe(receiver.url)

        ran = self.muster.run("notify", "test", subscription, code=1)
        self.assertIn("answered 302, and no redirect is followed", ran.stdout)
        self.muster.run("submit", "single", "one", "--follow", "--", "true")
        self.until_dead()

        paths = set()
        while not receiver.requests.empty():
            paths.add(receiver.next()[0])
        self.assertEqual(paths, {"/hook"})

    def test_a_self_signed_certificate_is_not_trusted(self):
        receiver = self.receiver()
        self.muster.start_server("--notify-allow", f"127.0.0.1:{receiver.port}")
        subscription, _ = self.subscribe(receiver.url)

        ran = self.muster.run("notify", "test", subscription, code=1)

        self.assertIn("cannot verify the certificate", ran.stdout)
        self.assertTrue(receiver.requests.empty())


class Addresses(NotifyTest):

    def test_an_address_of_the_servers_own_network_is_refused_with_the_reason(self):
        self.muster.start_server()
        for host in ("127.0.0.1", "localhost", "[::1]", "10.0.0.1", "169.254.169.254",
                     "[::ffff:127.0.0.1]", "2130706433", "0x7f.1"):
            ran = self.muster.run("notify", "add", f"https://{host}/s3cret", code=4)
            self.assertIn("are not allowed", ran.stderr, host)
            self.assertIn("notify.allow", ran.stderr, host)
        ran = self.muster.run("notify", "add", "http://example.com", code=4)
        self.assertIn("notifications require https", ran.stderr)
        self.assertEqual(self.muster.run("notify", "list", "-o", "names").stdout, "")

    def test_a_url_with_a_password_is_refused_without_being_repeated(self):
        self.muster.start_server()
        ran = self.muster.run("notify", "add", "https://ada:s3same@example.com", code=2)

        self.assertIn("contains a user or a password", ran.stderr)
        self.assertNotIn("s3same", ran.stderr)

    def test_allowed_addresses_are_reloaded_while_the_server_runs(self):
        receiver = self.receiver()
        path = self.muster.work / "muster.yaml"
        path.write_text("notify:\n  allow: []\n")
        trusted, _ = certificate(self.muster.work)
        server = self.muster.start_server("--config", path,
                                          environment={"SSL_CERT_FILE": str(trusted)})
        self.muster.run("notify", "add", receiver.url, code=4)

        path.write_text(f"notify:\n  allow: ['127.0.0.0/8:{receiver.port}']\n")
        server.process.send_signal(signal.SIGHUP)
        self.until_logged(server, "took over notify.allow")
        subscription, _ = self.subscribe("-", "--on", "failed", input=receiver.url + "\n")
        self.muster.run("notify", "test", subscription)

        # Nothing is sent to an address that is no longer allowed.
        path.write_text("notify:\n  allow: []\n")
        server.process.send_signal(signal.SIGHUP)
        self.until_logged(server, "took over notify.allow", times=2)
        ran = self.muster.run("notify", "test", subscription, code=1)
        self.assertIn("are not allowed", ran.stdout)
        path.write_text("notify:\n  allow: [not/an/address]\n")
        server.process.send_signal(signal.SIGHUP)
        self.until_logged(server, "the configuration is unchanged")

    def subscribe(self, url, *words, input=None):
        ran = self.muster.run("notify", "add", url, *words, "-o", "json", input=input)
        added = json.loads(ran.stdout)
        return added["subscription"]["id"], added["key"]

    def until_logged(self, server, words, times=1):
        deadline = time.monotonic() + BOUND
        while (text := server.errors).count(words) < times:
            self.assertLess(time.monotonic(), deadline, text)
            os.sched_yield()


class Command(NotifyTest):

    def test_a_command_of_the_server_runs_for_every_job(self):
        done = self.muster.work / "done"
        os.mkfifo(done)
        descriptor = os.open(done, os.O_RDWR)
        self.addCleanup(os.close, descriptor)
        hook = self.muster.script("hook", f"""#!/bin/sh
cat > {self.muster.work}/$MUSTER_EVENT
env > {self.muster.work}/$MUSTER_EVENT.env
echo the hook speaks
echo x > {done}
""")
        path = self.muster.work / "muster.yaml"
        path.write_text(f"notify:\n  command: [{hook}]\n")
        server = self.muster.start_server("--config", path, environment={"SECRET": "s3same"})

        self.muster.run("submit", "single", "one", "--follow", "--", "true")

        told = b""
        while len(told) < 4:
            self.assertTrue(select.select([descriptor], [], [], BOUND)[0])
            told += os.read(descriptor, 4 - len(told))
        body = json.loads(read_bytes(self.muster.work / "job.succeeded"))
        self.assertEqual(body["job"]["name"], "one")
        environment = read_bytes(self.muster.work / "job.started.env").decode()
        self.assertIn("MUSTER_JOB=one\n", environment)
        self.assertIn("MUSTER_PROJECT=default\n", environment)
        self.assertNotIn("s3same", environment)
        deadline = time.monotonic() + BOUND
        while server.errors.count("the hook speaks") < 2:
            self.assertLess(time.monotonic(), deadline)
            os.sched_yield()


if __name__ == "__main__":
    main()
