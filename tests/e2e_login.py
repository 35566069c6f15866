"""A shared server, and users on machines of their own."""

import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
from pathlib import Path

from muster_harness import BOUND, MUSTER, MusterTest, all_below, closed_port, main, programs_below, read_bytes

TOKEN = re.compile(r"muster_[a-z2-7]{12}_[a-z2-7]{52}")


class Person:
    """A user on a separate machine: a home folder, and the commands that run there."""

    def __init__(self, muster, name):
        self.name = name
        self.home = muster.folder / f"home-{name}"
        self.home.mkdir()
        self.muster = muster
        self.environment = {key: value for key, value in muster.environment.items()
                            if key != "MUSTER_STATE_DIR"} | {"HOME": str(self.home)}

    def run(self, *words, code=0, input=None, environment=None):
        ran = subprocess.run([str(MUSTER), *map(str, words)],
                             env=self.environment | (environment or {}), cwd=self.home, text=True,
                             input=input, stdin=subprocess.DEVNULL if input is None else None,
                             capture_output=True, timeout=BOUND)
        if code is not None and ran.returncode != code:
            raise AssertionError(f"{self.name}: `muster {' '.join(map(str, words))}` ended with "
                                 f"{ran.returncode}, not {code}\n{ran.stdout}\n{ran.stderr}")
        return ran

    def names(self, *words):
        return self.run(*words, "-o", "names").stdout.split()

    @property
    def contexts_file(self):
        return self.home / ".config" / "muster" / "contexts.json"


class Conversation:
    """A command on a terminal, to which the test types."""

    def __init__(self, person, *words):
        keyboard, terminal = pty.openpty()
        self.keyboard = keyboard
        self.process = subprocess.Popen([str(MUSTER), *map(str, words)], env=person.environment,
                                        cwd=person.home, stdin=terminal, stdout=terminal,
                                        stderr=terminal, start_new_session=True)
        os.close(terminal)
        self.text = ""

    def until(self, words):
        deadline = time.monotonic() + BOUND
        while words not in self.text:
            left = max(0, deadline - time.monotonic())
            if not select.select([self.keyboard], [], [], left)[0] or not self._read():
                raise AssertionError(f"{words!r} was not said:\n{self.text}")

    def type(self, text):
        os.write(self.keyboard, text.encode())

    def finish(self):
        while self._read():
            pass
        os.close(self.keyboard)
        return self.process.wait(BOUND)

    def _read(self):
        try:
            data = os.read(self.keyboard, 4096)
        except OSError:  # the terminal's other side is closed
            return False
        self.text += data.decode(errors="replace")
        return bool(data)


class SharedServerTest(MusterTest):

    def setUp(self):
        super().setUp()
        self.port = closed_port(self)
        self.muster.start_server("--listen", f"127.0.0.1:{self.port}")
        self.url = f"https://127.0.0.1:{self.port}"
        shown = self.muster.run("server", "--fingerprint").stdout.split()[-1]
        self.fingerprint = shown.replace(":", "").lower()

    def admin(self, *words, **options):
        return self.muster.run(*words, **options)

    def invite(self, name, *flags):
        return TOKEN.search(self.admin("user", "create", name, *flags).stdout).group(0)

    def logged_in(self, name, *flags):
        person = Person(self.muster, name)
        self.log_in(person, self.invite(name, *flags))
        return person

    def log_in(self, person, token, *flags, code=0):
        return person.run("login", self.url, "--name", "lab", "--fingerprint", self.fingerprint,
                          "--token-stdin", *flags, input=token + "\n", code=code)

    def two_teams(self):
        for project in ("team-a", "team-b"):
            self.admin("project", "create", project, "--cpus", 1)
        return (self.logged_in("ada", "--project", "team-a=member"),
                self.logged_in("ben", "--project", "team-b=member"))

    def submit(self, person, name, project, *command):
        return person.run("submit", "single", name, "--project", project, "--folder",
                          self.muster.work, "--follow", "--", *command)


class Projects(SharedServerTest):

    def test_a_member_sees_and_changes_only_its_project(self):
        ada, ben = self.two_teams()
        self.submit(ada, "hers", "team-a", "echo", "of-ada")
        self.submit(ben, "his", "team-b", "echo", "of-ben")

        self.assertEqual(ada.names("list"), ["hers"])
        self.assertEqual(ben.names("list"), ["his"])
        self.assertEqual(ada.names("project", "list"), ["team-a"])
        self.assertIn("of-ada", ada.run("logs", "hers").stdout)
        for words in (("get", "hers"), ("logs", "hers"), ("events", "hers"), ("explain", "hers"),
                      ("stop", "hers"), ("delete", "hers"), ("project", "get", "team-a"),
                      ("get", "hers", "--project", "team-a")):
            ran = ben.run(*words, code=3)
            self.assertNotIn("of-ada", ran.stdout + ran.stderr)
        self.assertEqual(self.admin("list", "-o", "names").stdout.split(), ["his", "hers"])

    def test_a_name_in_two_projects_is_ambiguous(self):
        ada, ben = self.two_teams()
        self.submit(ada, "same", "team-a", "echo", "of-ada")
        self.submit(ben, "same", "team-b", "echo", "of-ben")

        self.assertIn("of-ada", ada.run("logs", "same").stdout)
        self.assertIn("of-ben", ben.run("logs", "same").stdout)
        self.assertIn("team-a", self.admin("logs", "same", code=4).stderr)
        self.assertIn("of-ben", self.admin("logs", "same", "--project", "team-b").stdout)

    def test_a_viewer_can_read_and_cannot_change_anything(self):
        ada, _ = self.two_teams()
        self.submit(ada, "hers", "team-a", "echo", "of-ada")
        eve = self.logged_in("eve", "--project", "team-a=viewer")

        self.assertIn("of-ada", eve.run("logs", "hers").stdout)
        self.assertIn("team-a", eve.run("delete", "hers", code=4).stderr)
        eve.run("submit", "single", "hers-too", "--project", "team-a", "--", "true", code=4)
        eve.run("user", "list", code=4)
        self.admin("project", "grant", "team-a", "eve", "member")
        self.assertEqual(eve.run("delete", "hers").stdout, "deleted hers\n")


class Logins(SharedServerTest):

    def test_whoami_shows_the_user_and_the_end_of_the_session(self):
        ada, _ = self.two_teams()

        page = ada.run("whoami").stdout
        self.assertRegex(page, r"(?m)^USER +ada$")
        self.assertRegex(page, rf"(?m)^SERVER +{re.escape(self.url)}$")
        self.assertRegex(page, r"(?m)^  team-a +member$")
        who = json.loads(ada.run("whoami", "-o", "json").stdout)
        self.assertEqual((who["user"], who["projects"]), ("ada", {"team-a": "member"}))
        self.assertIn("expires", who)
        self.assertRegex(self.admin("whoami").stdout, r"(?m)^FROM +local$")

    def test_an_invitation_can_be_used_only_for_one_login(self):
        invitation = self.invite("ada")
        ada = Person(self.muster, "ada")
        ran = ada.run("list", code=4, environment=self.environment_with(invitation))
        self.assertNotIn(invitation, ran.stderr)

        self.log_in(ada, invitation)
        ran = self.log_in(ada, invitation, code=4)

        self.assertIn("muster user invite NAME", ran.stderr)
        self.assertRegex(ada.run("whoami").stdout, r"(?m)^USER +ada$")

    def test_a_server_with_another_fingerprint_is_sent_no_token(self):
        ada = Person(self.muster, "ada")
        invitation = self.invite("ada")

        ran = ada.run("login", self.url, "--fingerprint", "0" * 64, "--token-stdin",
                      input=invitation, code=None)
        self.assertNotEqual(ran.returncode, 0)
        self.assertNotIn(invitation, ran.stdout + ran.stderr)
        unknown = ada.run("login", self.url, "--token-stdin", input=invitation, code=4)
        self.assertIn(f"--fingerprint {self.fingerprint}", unknown.stderr)
        # Neither attempt used up the invitation.
        self.log_in(ada, invitation)

    def test_an_ended_session_is_refused_with_the_advice_to_log_in(self):
        ada, ben = self.two_teams()
        session = TOKEN.search(ada.contexts_file.read_text()).group(0)
        self.admin("token", "revoke", session.split("_")[1])

        ran = ada.run("list", code=4)

        self.assertIn(f"log in again: muster login {self.url}", ran.stderr)
        self.assertNotIn(session, ran.stdout + ran.stderr)
        ben.run("list")
        self.admin("user", "set", "ben", "--disable")
        ben.run("list", code=4)
        # His session is valid again once he is enabled: it has not ended.
        self.assertIn("could not be ended on the server: user 'ben' is disabled", ben.run("logout", code=4).stderr)
        self.assertEqual(ada.run("logout").stdout.splitlines()[0], f"logged out of {self.url}")

    def test_logging_out_ends_the_session_on_the_server(self):
        ada, _ = self.two_teams()
        session = TOKEN.search(ada.contexts_file.read_text()).group(0)

        ada.run("logout")

        self.assertEqual(ada.names("context", "list"), ["local"])
        ada.run("list", code=4, environment=self.environment_with(session))

    def environment_with(self, token):
        return {"MUSTER_SERVER": self.url, "MUSTER_TOKEN": token,
                "MUSTER_FINGERPRINT": self.fingerprint}


class OnATerminal(SharedServerTest):

    def test_the_fingerprint_is_asked_about_and_the_token_typed_without_echo(self):
        ada = Person(self.muster, "ada")
        invitation = self.invite("ada")

        talk = Conversation(ada, "login", self.url)
        talk.until("(yes/no) ")
        self.assertIn(self.fingerprint.upper()[:2] + ":" + self.fingerprint.upper()[2:4], talk.text)
        talk.type("yes\n")
        talk.until("'muster token create'): ")
        talk.type(invitation + "\n")

        self.assertEqual(talk.finish(), 0, talk.text)
        self.assertIn("logged in to", talk.text)
        self.assertNotIn(invitation, talk.text)
        self.assertRegex(ada.run("whoami").stdout, r"(?m)^USER +ada$")

    def test_no_login_takes_place_if_the_user_does_not_trust_the_server(self):
        ada = Person(self.muster, "ada")

        talk = Conversation(ada, "login", self.url)
        talk.until("(yes/no) ")
        talk.type("no\n")

        self.assertEqual(talk.finish(), 4, talk.text)
        self.assertFalse(ada.contexts_file.exists())

    def test_ctrl_c_at_a_question_leaves(self):
        ada = Person(self.muster, "ada")

        talk = Conversation(ada, "login", self.url, "--fingerprint", self.fingerprint)
        talk.until("'muster token create'): ")
        talk.process.send_signal(signal.SIGINT)

        self.assertEqual(talk.finish(), 130, talk.text)

    def test_a_secret_is_typed_without_echo(self):
        self.admin("project", "create", "team-a", "--cpus", 1)
        ada = self.logged_in("ada", "--project", "team-a=admin")

        talk = Conversation(ada, "secret", "set", "API_KEY", "--project", "team-a")
        talk.until("(not shown): ")
        talk.type("sesame\n")

        self.assertEqual(talk.finish(), 0, talk.text)
        self.assertNotIn("sesame", talk.text)
        self.assertEqual(ada.names("secret", "list", "--project", "team-a"), ["API_KEY"])


class Contexts(SharedServerTest):

    def test_commands_can_switch_between_the_local_and_a_shared_server(self):
        ada, _ = self.two_teams()
        self.addCleanup(ada.run, "server", "--stop", code=None)
        self.submit(ada, "there", "team-a", "true")

        self.assertEqual(ada.run("context").stdout, "lab\n")
        ada.run("run", "--context", "local", "--name", "here", "--", "true")
        self.assertEqual(ada.names("list"), ["there"])
        ada.run("context", "use", "local")
        self.assertEqual(ada.names("list"), ["here"])
        self.assertEqual(ada.names("list", "--context", "lab"), ["there"])
        self.assertEqual(ada.run("list", "-o", "names", environment={"MUSTER_CONTEXT": "lab"}).stdout,
                         "there\n")
        ada.run("server", "--stop")

    def test_a_command_for_a_shared_server_starts_no_server_here(self):
        ada, _ = self.two_teams()

        ada.run("list")

        self.assertFalse((ada.home / ".local" / "state" / "muster").exists())

    def test_the_file_of_contexts_is_private_and_refused_if_it_is_not(self):
        ada, _ = self.two_teams()
        self.assertEqual(ada.contexts_file.stat().st_mode & 0o777, 0o600)
        ada.contexts_file.chmod(0o640)

        self.assertIn("chmod 600", ada.run("list", code=4).stderr)
        ada.contexts_file.chmod(0o600)
        ada.run("list")
        ada.contexts_file.write_text('{"version": 1, "con')
        self.assertIn("is damaged", ada.run("list", code=2).stderr)
        self.assertEqual(ada.contexts_file.read_text(), '{"version": 1, "con')


class Tokens(SharedServerTest):

    def test_a_token_does_no_more_than_its_ceiling_and_ends(self):
        ada, _ = self.two_teams()
        token = ada.run("token", "create", "--ceiling", "viewer", "--description", "look").stdout.strip()
        program = Person(self.muster, "program")
        environment = {"MUSTER_SERVER": self.url, "MUSTER_TOKEN": token,
                       "MUSTER_FINGERPRINT": self.fingerprint}

        program.run("list", environment=environment)
        program.run("submit", "single", "a", "--project", "team-a", "--", "true", code=4,
                    environment=environment)
        self.assertRegex(ada.run("token", "list").stdout, r"(?m)  api +viewer .*  look$")
        ada.run("token", "revoke", token.split("_")[1])
        program.run("list", code=4, environment=environment)

    def test_a_token_that_has_expired_is_refused(self):
        ada, _ = self.two_teams()
        token = ada.run("token", "create", "--expires", "1s").stdout.strip()
        expires = next(each["expires"] for each in
                       json.loads(ada.run("token", "list", "-o", "json").stdout)["tokens"]
                       if each["id"] == token.split("_")[1])
        environment = {"MUSTER_SERVER": self.url, "MUSTER_TOKEN": token,
                       "MUSTER_FINGERPRINT": self.fingerprint}
        deadline = time.monotonic() + BOUND
        # The server's clock is this machine's; RFC 3339 in UTC compares as text.
        while time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) <= expires[:19]:
            self.assertLess(time.monotonic(), deadline)
            select.select([], [], [], 0.05)

        self.assertIn("expired", ada.run("list", code=4, environment=environment).stderr)


class Audit(SharedServerTest):

    def test_the_audit_log_lists_actions_with_user_and_address(self):
        ada, _ = self.two_teams()
        self.submit(ada, "hers", "team-a", "true")
        ada.run("delete", "hers")

        records = json.loads(self.admin("audit", "--user", "ada", "-o", "json").stdout)["records"]
        done = [(record["action"], record["target"], record["project"], record["address"])
                for record in records]
        self.assertEqual([each for each in done if each[0].startswith("job.")],
                         [("job.delete", "hers", "team-a", "127.0.0.1"),
                          ("job.submit", "hers", "team-a", "127.0.0.1")])
        table = self.admin("audit", "--action", "user.create").stdout
        self.assertRegex(table, r"(?m)  local +user.create +- +ada")
        self.assertNotRegex(self.admin("audit", "-o", "json").stdout, TOKEN)
        ada.run("audit", code=4)


class Strangers(SharedServerTest):
    """Clients without a valid token that write HTTP by hand."""

    def connect(self):
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname = False
        trusting.verify_mode = ssl.CERT_NONE
        return trusting.wrap_socket(socket.create_connection(("127.0.0.1", self.port), timeout=BOUND))

    def answer_to(self, request):
        """Everything that the server sends until it closes the connection. The client does not end its request."""
        with self.connect() as client:
            client.sendall(request)
            answer = b""
            while piece := client.recv(1 << 16):
                answer += piece
            return answer.decode()

    def test_no_body_is_read_before_the_token_is_checked(self):
        for token in ("", "authorization: Bearer muster_wrong\r\n"):
            answer = self.answer_to(b"POST /v1/projects HTTP/1.1\r\nhost: h\r\n" + token.encode() +
                                    b"transfer-encoding: chunked\r\n\r\n5\r\n{")
            self.assertTrue(answer.startswith("HTTP/1.1 401 "), answer)
        answer = self.answer_to(b"GET /healthz HTTP/1.1\r\nhost: h\r\ncontent-length: 100\r\n\r\n{")
        self.assertTrue(answer.startswith("HTTP/1.1 413 "), answer)

    def test_a_chunk_line_without_an_end_is_refused(self):
        ada = self.logged_in("ada")
        token = ada.run("token", "create").stdout.strip()
        answer = self.answer_to(b"POST /v1/jobs HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n"
                                b"authorization: Bearer " + token.encode() + b"\r\n\r\n2;" + b"a" * 20000)
        self.assertTrue(answer.startswith("HTTP/1.1 400 "), answer)

    def test_a_request_hidden_in_a_body_is_not_carried_out(self):
        for coding in ("xchunked", "identity", "gzip", '"chunked"', "chunked, identity"):
            answer = self.answer_to(f"POST /healthz HTTP/1.1\r\nhost: h\r\ntransfer-encoding: {coding}\r\n\r\n"
                                    "GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n".encode())
            self.assertTrue(answer.startswith("HTTP/1.1 400 "), answer)
            self.assertNotIn("HTTP/1.1 200", answer)


class PrivatePlaces(SharedServerTest):
    """The private folders of the account, as tasks see them."""

    def setUp(self):
        super().setUp()
        self.ada, self.ben = self.two_teams()

    def lines_of(self, person, name, project, script):
        run = self.submit(person, name, project, "sh", "-c", script)
        return [line.removeprefix("[main] ") for line in run.stdout.splitlines()]

    def test_no_socket_and_no_file_of_the_account_is_within_reach(self):
        folder = tempfile.mkdtemp(prefix="account-", dir="/tmp")
        self.addCleanup(shutil.rmtree, folder)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"{folder}/socket")
            listener.listen()

            lines = self.lines_of(self.ada, "looks", "team-a",
                                  f"test -e {folder} && echo found; ls -A /run/user /var/tmp 2> /dev/null; ls -A ~ | wc -l;"
                                  "ls -A /tmp; echo end")

        # Of /tmp, only the path to the shared folder of these tests is visible.
        in_home = len(programs_below(Path.home()))
        self.assertEqual(lines[-3:], [str(in_home), self.muster.folder.name, "end"], lines)
        self.assertNotIn("found", lines)

    def test_a_private_folder_is_writable_for_all_and_removed_with_its_task(self):
        left = f"left-{os.getpid()}"
        write = f"echo x >/tmp/{left} && echo x >/var/tmp/{left} && stat -c %a /tmp /var/tmp"
        self.assertEqual(self.lines_of(self.ada, "writes", "team-a", write)[-2:], ["1777", "1777"])
        self.assertFalse(os.path.exists(f"/tmp/{left}") or os.path.exists(f"/var/tmp/{left}"))
        self.assertEqual(self.lines_of(self.ada, "reads", "team-a", f"test -e /tmp/{left} || echo none")[-1:], ["none"])

    def test_each_user_has_a_home_of_their_own(self):
        notes = f"notes-{os.getpid()}"
        self.submit(self.ada, "writes", "team-a", "sh", "-c", f"echo mine >~/{notes}")

        own = self.lines_of(self.ada, "again", "team-a", f"cat ~/{notes}")
        others = self.lines_of(self.ben, "other", "team-b", f"cat ~/{notes} 2> /dev/null || echo none")

        self.assertEqual(own[-1], "mine")
        self.assertEqual(others[-1], "none")
        self.assertFalse(os.path.exists(os.path.expanduser(f"~root/{notes}")))

    def test_no_process_in_a_task_shows_the_environment_of_the_server(self):
        self.muster.run("server", "--stop")
        self.muster.start_server("--listen", f"127.0.0.1:{self.port}",
                                 environment={"CLOUD_KEY": "open-sesame"})
        gate = self.muster.gate()
        self.ada.run("submit", "single", "waits", "--project", "team-a", "--folder", self.muster.work,
                     "--", "sh", "-c", gate.wait)
        while self.muster.job("waits")["phase"] != "Running":
            os.sched_yield()
        environments = "cat /proc/[0-9]*/environ | tr '\\0' '\\n'"

        seen = self.ada.run("exec", "waits", "--project", "team-a", "--", "sh", "-c", environments).stdout
        gate.open()

        self.assertIn("HOME=", seen)
        self.assertNotIn("open-sesame", seen)


class Secrecy(SharedServerTest):

    def test_no_command_line_and_no_log_contains_a_token_or_a_secret(self):
        self.admin("project", "create", "team-a", "--cpus", 1)
        ada = self.logged_in("ada", "--project", "team-a=admin")
        session = TOKEN.search(ada.contexts_file.read_text()).group(0)
        ada.run("secret", "set", "API_KEY", "--project", "team-a", input="open-sesame\n")
        gate = self.muster.gate()
        ada.run("submit", "single", "waits", "--project", "team-a", "--folder", self.muster.work,
                "--", "sh", "-c", gate.wait)
        follow = subprocess.Popen([str(MUSTER), "logs", "-f", "waits"], env=ada.environment,
                                  cwd=ada.home, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)

        words = b"".join(read_bytes(f"/proc/{pid}/cmdline") for pid in os.listdir("/proc")
                         if pid.isdigit())
        gate.open()
        self.assertEqual(follow.wait(BOUND), 0)

        for secret in (session, "open-sesame"):
            self.assertNotIn(secret.encode(), words)
            for path in all_below(self.muster.state):
                if path.is_file() and path.suffix in (".log", ".db", ".db-wal"):
                    self.assertNotIn(secret.encode(), read_bytes(path, 1 << 26), path)
        for line in ("secret list --project team-a -o json", "audit -o json", "token list -o json"):
            self.assertNotIn("open-sesame", self.admin(*line.split()).stdout)


if __name__ == "__main__":
    main()
