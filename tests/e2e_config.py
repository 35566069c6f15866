"""A server and its configuration: settings and faults, a reload, the end of the server, and backups of its store."""

import fcntl
import hashlib
import json
import os
import signal
import socket
import ssl
import subprocess
import time

from muster_harness import BOUND, MusterTest, UnixConnection, main, mode_of, tls_port


class ServerTest(MusterTest):

    def config(self, text, name="muster.yaml"):
        path = self.muster.work / name
        path.write_text(text)
        return path

    def serve(self, text, **options):
        self.path = self.config(text)
        return self.muster.start_server("--config", self.path, **options)

    def until_logged(self, server, words):
        """Waits until the server's log holds `words`."""
        deadline = time.monotonic() + BOUND
        while words not in (text := server.errors):
            self.assertIsNone(server.process.poll(), text)
            self.assertLess(time.monotonic(), deadline, text)
            os.sched_yield()
        return text

    def reload(self, server, text, says):
        self.path.write_text(text)
        server.process.send_signal(signal.SIGHUP)
        return self.until_logged(server, says)

    def certificate_at(self, port):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection(("127.0.0.1", port), BOUND) as plain:
            with context.wrap_socket(plain) as secure:
                return secure.getpeercert(binary_form=True)

    def answer(self, request, body=b""):
        """Status and body of a request over the unix socket."""
        connection = UnixConnection(self.muster.state / "muster.sock")
        method, path = request.split()
        try:
            connection.request(method, path, body)
        except BrokenPipeError:
            pass  # refused before all of it was sent; the answer has the reason
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, text


class Faults(ServerTest):

    def test_all_faults_of_the_file_are_reported_at_once_and_nothing_is_started(self):
        path = self.config("listn: 127.0.0.1:0\nlimits:\n  connections: many\n  request_rat: 5\n")

        ran = self.muster.run("server", "--config", path, code=2)

        self.assertIn("has 3 faults", ran.stderr)
        self.assertIn("line 1: listn: unknown key; did you mean 'listen'?", ran.stderr)
        self.assertIn("line 3: limits.connections: 'many' is not a whole number", ran.stderr)
        self.assertIn("line 4: limits.request_rat: unknown key; did you mean 'request_rate'?", ran.stderr)
        self.assertFalse(self.muster.state.exists())

    def test_a_named_file_that_does_not_exist_is_an_error(self):
        for command in ("server", "doctor"):
            ran = self.muster.run(command, "--config", "missing.yaml", code=2)

            self.assertIn("missing.yaml", ran.stderr)

    def test_a_yaml_bomb_is_refused_at_once(self):
        levels = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
        levels += [f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]" for a, b in zip("abcdefghi", "bcdefghij")]

        ran = self.muster.run("server", "--config", self.config("\n".join(levels)), code=2)

        self.assertIn("too much", ran.stderr)

    def test_a_password_among_the_arguments_is_refused_and_not_repeated(self):
        ran = self.muster.run("server", "--store", "postgres://ada:hidden@nowhere/m", code=2)

        self.assertIn("other users of this machine could read", ran.stderr)
        self.assertNotIn("hidden", ran.stderr)

    def test_keys_that_others_can_read_are_refused(self):
        key = self.muster.work / "secret.key"
        key.write_text("a" * 64)
        key.chmod(0o644)

        ran = self.muster.run("server", "--secret-key-file", key, code=None)

        self.assertNotEqual(ran.returncode, 0)
        self.assertIn(f"users other than the owner can read the key in '{key}'", ran.stderr)
        self.assertNotIn("a" * 64, ran.stderr)

    def test_an_address_that_is_taken_is_named(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            ran = self.muster.run("server", "--listen", address, code=None)

        self.assertNotEqual(ran.returncode, 0)
        self.assertIn(address, ran.stderr)

    def test_a_server_that_a_command_starts_reads_the_default_file(self):
        self.muster.configure("gpus: 3:A100\n")

        self.muster.run("list")

        self.assertIn("A100", self.muster.run("node", "list").stdout)


    def test_a_changed_file_causes_a_warning_until_it_is_read(self):
        warning = "the server's configuration file has changed since the server read it"
        self.assertNotIn(warning, self.muster.run("list").stderr)

        self.muster.configure("gpus: 3:A100\n")
        ran = self.muster.run("list")
        self.assertIn(warning, ran.stderr)
        self.assertIn("restart it: muster server --restart; jobs continue meanwhile", ran.stderr)

        self.muster.run("server", "--restart")
        self.assertNotIn(warning, self.muster.run("list").stderr)


class Tls(ServerTest):

    def test_the_certificate_it_makes_is_kept_and_its_fingerprint_shown(self):
        first = self.muster.start_server("--listen", "127.0.0.1:0")
        certificate = self.certificate_at(tls_port(first))
        shown = self.muster.run("server", "--fingerprint").stdout.strip()
        self.assertIn(shown, first.errors)
        folder = self.muster.state / "tls"
        self.assertEqual([mode_of(folder), mode_of(folder / "key.pem")], [0o700, 0o600])
        self.muster.run("server", "--stop")
        self.assertEqual(first.finish(), 0)

        second = self.muster.start_server("--listen", "127.0.0.1:0")

        self.assertEqual(self.certificate_at(tls_port(second)), certificate)

    def test_its_certificate_has_the_configured_names(self):
        server = self.serve("listen: 127.0.0.1:0\ntls: {names: [muster.test]}\n")
        context = ssl.create_default_context(cafile=str(self.muster.state / "tls" / "cert.pem"))
        with socket.create_connection(("127.0.0.1", tls_port(server)), BOUND) as plain:
            with context.wrap_socket(plain, server_hostname="muster.test") as secure:
                secure.sendall(b"GET /healthz HTTP/1.1\r\nhost: muster.test\r\nconnection: close\r\n\r\n")
                self.assertIn(b" 200 ", secure.recv(4096))

    def test_jobs_get_neither_its_key_nor_the_socket_of_systemd(self):
        self.serve("", environment={"MUSTER_SECRET_KEY": "b" * 64, "NOTIFY_SOCKET": "/nowhere"})

        ran = self.muster.run("run", "--", "env")

        self.assertNotIn("b" * 64, ran.stdout)
        self.assertNotIn("NOTIFY_SOCKET", ran.stdout)

    def test_a_job_of_a_shared_server_finds_no_file_of_the_server(self):
        key = self.muster.work / "own.key"
        key.write_text("c" * 64)
        key.chmod(0o600)
        store = self.muster.work / "own.db"
        self.serve(f"listen: 127.0.0.1:0\nsecret_key_file: {key}\n",
                   environment={"MUSTER_STORE": str(store)})

        ran = self.muster.run("run", "--", "/bin/sh", "-c",
                              f"ls -A '{self.muster.state}'; cat '{key}'; wc -c < '{store}'; "
                              "tr '\\0' '\\n' < /proc/1/environ; ls -A /generated > /dev/null && echo done")

        self.assertIn("done", ran.stdout)
        for word in ("muster.sock", "c" * 64, "MUSTER_STORE"):
            self.assertNotIn(word, ran.stdout)
        self.assertNotRegex(ran.stdout, r"(?m)^[1-9][0-9]*$")


class Reload(ServerTest):

    def test_changed_limits_take_effect(self):
        server = self.serve("limits: {body_bytes: 1Ki}\n")
        body = b"x" * 2000
        self.assertEqual(self.answer("POST /v1/jobs", body)[0], 413)

        self.reload(server, "limits: {body_bytes: 1Mi}\n", "took over limits.body_bytes")

        self.assertEqual(self.answer("POST /v1/jobs", body)[0], 400)

    def test_a_renewed_certificate_takes_effect(self):
        for name in ("one", "two"):
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                 "-nodes", "-subj", f"/CN={name}", "-days", "2", "-out", f"{name}.pem", "-keyout",
                 f"{name}.key"], cwd=self.muster.work, check=True, capture_output=True)
        text = "listen: 127.0.0.1:0\ntls: {certificate: used.pem, key: used.key}\n"
        self.use("one")
        server = self.serve(text)
        self.assertEqual(self.certificate_at(tls_port(server)), self.der("one"))

        self.use("two")
        log = self.reload(server, text, "read the configuration again")

        self.assertEqual(self.certificate_at(tls_port(server)), self.der("two"))
        shown = hashlib.sha256(self.der("two")).hexdigest().upper()
        shown = ":".join(shown[at:at + 2] for at in range(0, len(shown), 2))
        self.assertIn(f"serves a new certificate, fingerprint sha256 {shown}\n", log)
        # Without --config as well: the folder records which certificate its server uses.
        self.assertEqual(self.muster.run("server", "--fingerprint").stdout, shown + "\n")
        for path in self.muster.work.glob("*.key"):
            path.unlink()

    def use(self, name):
        for suffix in (".pem", ".key"):
            used = self.muster.work / ("used" + suffix)
            used.write_bytes((self.muster.work / (name + suffix)).read_bytes())
            used.chmod(0o600)

    def der(self, name):
        return ssl.PEM_cert_to_DER_cert((self.muster.work / f"{name}.pem").read_text())

    def test_a_broken_file_changes_nothing_and_is_reported(self):
        server = self.serve("limits: {body_bytes: 1Ki}\n")

        log = self.reload(server, "limits: {body_bytes: 1Mi}\nlog_format: xml\n",
                          "the configuration is unchanged")

        self.assertIn("log_format: 'xml' is invalid: expected one of text, json", log)
        self.assertEqual(self.answer("POST /v1/jobs", b"x" * 2000)[0], 413)

    def test_keys_that_require_a_restart_are_named(self):
        server = self.serve("node_pool: a\n")

        log = self.reload(server, "node_pool: b\nlimits: {request_rate: 7}\n", "takes effect only after a restart")

        self.assertIn("took over limits.request_rate", log)
        self.assertRegex(log, "takes effect only after a restart: node_pool\n")

    def test_a_file_that_was_read_again_causes_no_warning_unless_a_key_requires_a_restart(self):
        server = self.serve("node_pool: a\nkeep_jobs: 5\n")

        self.reload(server, "node_pool: a\nkeep_jobs: 6\n", "took over keep_jobs")
        self.assertEqual(self.muster.run("list").stderr, "")

        self.reload(server, "node_pool: b\nkeep_jobs: 6\n", "takes effect only after a restart: node_pool")
        self.assertIn("without effect until it is restarted: node_pool\n", self.muster.run("list").stderr)

        self.reload(server, "node_pool: a\nkeep_jobs: 6\n", "no setting changed")
        self.assertEqual(self.muster.run("list").stderr, "", "the earlier value is back")

    def test_a_flag_still_overrides_the_file_after_a_reload(self):
        self.path = self.config("")
        server = self.muster.start_server("--config", self.path, "--body-bytes", "1Ki")

        self.reload(server, "limits: {body_bytes: 1Mi}\n", "no setting changed")

        self.assertEqual(self.answer("POST /v1/jobs", b"x" * 2000)[0], 413)

    def test_the_log_becomes_json(self):
        server = self.serve("log_format: text\n")

        log = self.reload(server, "log_format: json\n", '"text":"read the configuration again')

        self.assertEqual(json.loads(log.splitlines()[-1])["level"], "info")


class StartedOtherwise(ServerTest):
    """The folder of a server that was started with --config, or for a team: no command starts a private server there."""

    def kill(self, server):
        server.process.send_signal(signal.SIGKILL)
        server.finish()

    def origin(self):
        return self.muster.state / "server.origin"

    def test_no_command_starts_a_server_in_its_place(self):
        server = self.serve("listen: 127.0.0.1:0\n")
        self.muster.run("submit", "single", "held", "--hold", "--", "true")
        self.assertEqual(mode_of(self.origin()), 0o600)
        self.kill(server)

        for words in (("list",), ("submit", "single", "new", "--", "true"), ("node", "list"), ("stop", "held"),
                      ("server", "--restart")):
            ran = self.muster.run(*words, code=5)
            self.assertIn(f"no server runs: the server of '{self.muster.state}' is started with --config {self.path}",
                          ran.stderr)
            self.assertIn(f"start it: muster server --config {self.path}", ran.stderr)
        by_hand = self.muster.run("server", code=1)

        self.assertIn("muster server --take-over", by_hand.stderr)
        self.assertIn(f"no server is running: the server of '{self.muster.state}' is started with --config {self.path}",
                      self.muster.run("version").stdout)
        self.muster.start_server("--config", self.path)
        self.assertEqual([job["spec"]["name"] for job in self.muster.jobs()], ["held"])

    def test_a_server_that_listens_is_not_replaced_either(self):
        self.kill(self.muster.start_server("--listen", "127.0.0.1:0"))

        ran = self.muster.run("list", code=5)

        self.assertIn("listens for a team", ran.stderr)
        self.assertIn("muster server --listen", ran.stderr)
        self.muster.start_server("--listen", "127.0.0.1:0")
        self.muster.run("list")

    def test_a_server_of_the_default_file_is_started_by_commands_that_read_it(self):
        self.muster.configure("listen: 127.0.0.1:0\n")
        self.muster.run("list")
        self.muster.run("server", "--stop")

        self.muster.run("list")

        self.muster.run("server", "--stop")
        other = self.muster.work / "other-home"
        other.mkdir()
        self.muster.run("list", code=5, environment={"HOME": str(other)})

    def test_commands_start_a_server_with_the_default_file_even_if_it_was_named_once(self):
        self.muster.configure("limits: {request_rate: 500}\n")
        server = self.muster.start_server("--config", self.muster.home / ".config" / "muster" / "server.yaml")
        self.muster.run("server", "--stop")
        server.finish()

        self.assertIn("the next command that needs a server starts one", self.muster.run("version").stdout)
        self.muster.run("list")

    def test_a_server_that_fails_to_start_leaves_the_folder_to_the_one_before_it(self):
        self.muster.run("list")
        self.muster.run("server", "--stop")
        blocked = self.muster.state / "jobs" / "leader.lock"
        with open(blocked, "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)

            refused = self.muster.run("server", "--listen", "127.0.0.1:0", code=1)

        self.assertIn("another server uses", refused.stderr)
        self.assertFalse(self.origin().exists())
        self.muster.run("list")

    def test_a_flag_gives_the_folder_to_another_server(self):
        self.kill(self.serve("listen: 127.0.0.1:0\n"))

        private = self.muster.start_server("--take-over")

        self.assertFalse(self.origin().exists())
        self.muster.run("server", "--stop")
        private.finish()
        self.muster.run("list")
        self.muster.run("server", "--take-over", "--restart", code=2)

    def test_a_follow_waits_until_its_server_is_started_again(self):
        gate = self.muster.gate()
        server = self.serve("listen: 127.0.0.1:0\n")
        self.muster.run("submit", "single", "job", "--", "sh", "-c", f"echo before; {gate.wait}; echo after")
        follow = self.muster.stream("logs", "job", "-f")
        follow.until("before")

        self.kill(server)
        self.muster.start_server("--config", self.path)
        gate.open()

        self.assertEqual(follow.finish(), 0, follow.errors)
        self.assertIn("after", follow.text)


class FileSizes(ServerTest):

    def test_a_limit_of_file_sizes_refuses_changes_as_a_full_disk_does_and_is_not_inherited_as_ignored(self):
        # In units of 512 bytes.
        self.muster.start_server(prefix=("sh", "-c", 'ulimit -f 4000; exec "$@"', "sh"))
        ignored = self.muster.run("run", "--", "grep", "SigIgn", "/proc/self/status").stdout
        self.assertFalse(int(ignored.split()[-1], 16) & 1 << (signal.SIGXFSZ - 1), ignored)

        for number in range(1000):
            value = os.urandom(30_000).hex()
            ran = self.muster.run("submit", "single", f"held-{number}", "--hold", "--env", f"V={value}", "--", "true",
                                  code=None)
            if ran.returncode != 0:
                break

        self.assertEqual(ran.returncode, 4, ran.stderr)
        self.assertIn("has no room to grow", ran.stderr)
        self.assertIn("limit of file sizes", ran.stderr)
        self.assertIn("held-0", self.muster.run("list").stdout)
        self.muster.run("server", "--stop")  # the next server has no limit


class Ending(ServerTest):

    def test_a_pending_request_is_answered_completely(self):
        server = self.serve("")
        for name in range(15):
            spec = {"name": f"big-{name}", "kind": "single", "command": ["true"], "folder": "/",
                    "environment": {"V": "v" * 100_000, "W": "w" * 100_000}}
            status, text = self.answer("POST /v1/jobs", json.dumps(spec).encode())
            self.assertEqual(status, 201, text[:500])
        connection = UnixConnection(self.muster.state / "muster.sock")
        connection.request("GET", "/v1/jobs")
        answer = connection.getresponse()  # its head; the body is larger than any socket holds

        server.process.send_signal(signal.SIGTERM)
        self.until_nobody_listens()

        self.assertEqual(len(json.loads(answer.read())["jobs"]), 15)
        self.assertEqual(server.finish(), 0)

    def until_nobody_listens(self):
        path = self.muster.state / "muster.sock"
        deadline = time.monotonic() + BOUND
        while True:
            self.assertLess(time.monotonic(), deadline)
            try:
                UnixConnection(path).connect()
            except OSError:
                return

    def test_watchers_do_not_delay_its_end(self):
        gate = self.muster.gate()
        server = self.serve("")
        self.muster.run("submit", "single", "job", "--", "sh", "-c", f"echo one; {gate.wait}; echo two")
        connection = UnixConnection(self.muster.state / "muster.sock")
        connection.request("GET", "/v1/jobs/job/logs?follow=true")
        answer = connection.getresponse()
        self.assertIn(b"one", self.until_event(answer))

        server.process.send_signal(signal.SIGTERM)

        self.assertEqual(server.finish(), 0)
        self.serve("")  # no command starts it
        gate.open()
        self.assertEqual(self.muster.ended("job")["phase"], "Succeeded")
        self.assertEqual(self.muster.logs("job"), "[main] one\n[main] two\n")

    @staticmethod
    def until_event(answer):
        text = b""
        while b"one" not in text:
            line = answer.readline()
            if not line:
                raise AssertionError(f"the stream ended before the line: {text}")
            text += line
        return text

    def test_it_reports_its_state_to_systemd(self):
        path = self.muster.work / "notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
            systemd.bind(str(path))
            systemd.settimeout(BOUND)
            server = self.serve("", environment={"NOTIFY_SOCKET": str(path)})
            self.assertEqual(systemd.recv(4096), b"READY=1\nSTATUS=leads")
            server.process.send_signal(signal.SIGHUP)
            self.assertEqual([systemd.recv(4096), systemd.recv(4096)], [b"RELOADING=1", b"READY=1"])
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(systemd.recv(4096), b"STOPPING=1")
            self.assertEqual(server.finish(), 0)


class StoreTools(ServerTest):

    def counts(self, *words):
        return json.loads(self.muster.run("store", *words, "-o", "json").stdout)["counts"]

    def test_a_backup_is_made_while_the_server_runs_and_restored_into_an_empty_store(self):
        self.muster.run("run", "--name", "kept", "--", "true")

        self.assertEqual(self.counts("backup", "all.db")["jobs"], 1)

        self.assertEqual(mode_of(self.muster.work / "all.db"), 0o600)
        self.muster.run("server", "--stop")
        (self.muster.state / "muster.db").unlink()
        for rest in self.muster.state.glob("muster.db-*"):
            rest.unlink()
        self.assertEqual(self.counts("restore", "all.db")["jobs"], 1)
        self.assertEqual(self.counts("check")["jobs"], 1)
        self.assertEqual(self.muster.job("kept")["phase"], "Succeeded")

    def test_a_backup_is_not_restored_into_a_store_that_a_server_uses(self):
        self.muster.run("list")
        self.muster.run("store", "backup", "all.db")

        ran = self.muster.run("store", "restore", "all.db", code=4)

        self.assertIn("a server uses", ran.stderr)
        self.assertIn("muster server --stop", ran.stderr)

    def test_a_damaged_store_is_reported(self):
        self.muster.run("run", "--", "true")
        self.muster.run("server", "--stop")
        path = self.muster.state / "muster.db"
        data = bytearray(path.read_bytes())
        data[4096:8192] = b"\xff" * 4096
        path.write_bytes(data)

        ran = self.muster.run("store", "check", code=None)

        self.assertNotEqual(ran.returncode, 0)
        self.assertRegex(ran.stdout + ran.stderr, "damaged|malformed|corrupt")
        path.unlink()  # the harness could not list anything from it when the test ends


if __name__ == "__main__":
    main()
