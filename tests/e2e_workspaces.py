"""The files that are sent with a job: which files are sent, how they arrive, and which are refused."""

import base64
import hashlib
import http.server
import json
import os
import re
import secrets
import select
import shutil
import socket
import subprocess
import threading
import zipfile
from contextlib import suppress

from muster_harness import (BOUND, MPIRUN, MUSTER, MusterTest, Typed, UnixConnection, all_below, describe,
                            kill_and_wait, main, matching, processes_naming, read_bytes, without_mpirun_warnings)

SINGLE = ["--container", "image", "--machineType", "C3"]


class WorkspaceTest(MusterTest):

    def setUp(self):
        super().setUp()
        self.tree = self.muster.work / "tree"
        self.tree.mkdir()
        self.jobs = 0

    def write(self, name, content="x", mode=0o644):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(mode)
        return path

    def run_in(self, workspace, command, *flags):
        """The output of a job that runs in the workspace, and the message about the transfer."""
        self.jobs += 1
        ran = self.muster.run("submit", "single", f"job-{self.jobs}", "--workspace", workspace,
                              *flags, "--follow", "--no-prefix", "--", "sh", "-c", command)
        said = re.search(r"^muster: workspace: (.*)\n", ran.stderr)
        self.assertIsNotNone(said, ran.stderr)
        return ran.stdout, said.group(1)

    def refused(self, workspace, *flags, code=2):
        """The message for a workspace that cannot be sent; nothing is submitted or stored."""
        ran = self.muster.run("submit", "single", "refused", f"--workspace={workspace}", *flags,
                              "--", "true", code=code)
        self.assertEqual(ran.stdout, "")
        self.assertEqual(self.muster.jobs(), [])
        self.assertEqual(self.chunks(), [])
        return ran.stderr

    def chunks(self):
        return [path for path in matching(self.muster.state, "jobs/trees/*/chunks/*/*") if path.is_file()]


class SentFolders(WorkspaceTest):

    def test_an_unchanged_folder_is_not_sent_again_and_only_changes_of_a_changed_folder_are_sent(self):
        self.write("large", os.urandom(3 << 20))
        self.write("train.py", "print(1)\n")

        self.assertEqual(self.run_in("tree", "cat train.py"),
                         ("print(1)\n", "2 files, 3.1 MiB; sent 3.1 MiB"))
        self.assertEqual(self.run_in("tree", "cat train.py")[1],
                         "2 files, 3.1 MiB; nothing new to send")
        self.write("train.py", "print(22)\n")
        self.assertEqual(self.run_in("tree", "cat train.py"),
                         ("print(22)\n", "2 files, 3.1 MiB; sent 10 B"))

        self.muster.run("server", "--stop")
        self.assertEqual(self.run_in("tree", "cat train.py"),
                         ("print(22)\n", "2 files, 3.1 MiB; nothing new to send"))

    def test_files_excluded_by_gitignore_and_the_command_are_not_sent(self):
        for name in ("train.py", "debug.log", "kept.log", "data/raw.bin", "data/labels.csv",
                     "sub/cache/x", "sub/notes.txt", ".git/config"):
            self.write(name)
        self.write(".gitignore", "*.log\n!kept.log\n")
        self.write("sub/.gitignore", "/cache/\n")

        files, _ = self.run_in("tree", "find . -type f | sort", "--ignore", "*.bin", "--ignore",
                               "sub/notes.txt")
        ran = self.muster.run("gradient", "experiments", "run", "singlenode", *SINGLE, "--workspace",
                              "tree", "--ignoreFiles", "*.bin, sub/notes.txt", "--command",
                              "find . -type f | sort")

        expected = ["./.gitignore", "./data/labels.csv", "./kept.log", "./sub/.gitignore", "./train.py"]
        self.assertEqual(files.split(), expected)
        self.assertEqual([line.split("\t")[2] for line in ran.stdout.splitlines()[2:]], expected)
        self.assertIn("gradient: workspace: 5 files, ", ran.stderr)

    def test_names_modes_and_links_arrive_as_they_are(self):
        self.write("two\nlines", "of a name")
        self.write("-rf", "option")
        self.write("Größe μ", "letters")
        self.write("run", "#!/bin/sh\necho ran\n", mode=0o755)
        self.write("data", "no program", mode=0o644)
        (self.tree / "link").symlink_to("data")
        (self.tree / "empty").mkdir()

        said, _ = self.run_in("tree", "cat 'two\nlines' ./-rf 'Größe μ'; echo; ./run; "
                              "test -x data || echo not executable; readlink link; ls empty; ls | wc -l")

        self.assertEqual(said, "of a nameoptionletters\nran\nnot executable\ndata\n8\n")

    def test_all_tasks_of_a_gang_see_the_same_files(self):
        self.write("weights", os.urandom(1 << 20))
        digest = hashlib.sha256((self.tree / "weights").read_bytes()).hexdigest()
        report = "echo $(hostname) $(pwd) $(sha256sum weights)"

        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, "--workspace", "tree",
                              "--follow", "--no-prefix", "--", "sh", "-c",
                              f"echo by the launcher > note; {' '.join(MPIRUN)} "
                              f"sh -c '{report}; cat note'")

        lines = sorted(without_mpirun_warnings(ran.stdout))
        self.assertEqual(lines, ["by the launcher"] * 2 + [
            f"dist-worker-{i} /workspace {digest} weights" for i in range(2)])
        self.assertFalse((self.tree / "note").exists())

    def test_a_job_writes_to_its_own_copy(self):
        self.write("word", "sent\n")

        self.assertEqual(self.run_in("tree", "echo changed > word; cat word")[0], "changed\n")
        self.assertEqual(self.run_in("tree", "cat word")[0], "sent\n")

        self.assertEqual((self.tree / "word").read_text(), "sent\n")

    def test_on_a_terminal_the_progress_is_shown_and_erased(self):
        self.write("large", os.urandom(3 << 20))

        typed = Typed(self.muster, "submit", "single", "job", "--workspace", "tree", "--", "true")
        self.addCleanup(typed.close)

        self.assertEqual(typed.finish(), 0)
        self.assertIn(b"\r\x1b[Kmuster: workspace: 1 file, 3 MiB; sent 3 MiB\r\n", typed.text)
        self.assertIn(b"%", typed.text)
        self.muster.ended("job")

    def test_the_files_of_a_job_that_waits_outlive_the_server_and_the_folder(self):
        self.muster.environment["MUSTER_DECLARE_GPUS"] = "1"
        gate = self.muster.gate()
        self.muster.run("submit", "single", "first", "--gpus", 1, "--", "sh", "-c", gate.wait)
        self.write("word", "as it was sent\n")
        self.muster.run("submit", "single", "second", "--gpus", 1, "--workspace", "tree", "--", "cat",
                        "word")
        shutil.rmtree(self.tree)
        self.assertEqual(self.muster.job("second")["phase"], "Queued")

        self.muster.kill_server()
        self.assertEqual(self.muster.job("second")["phase"], "Queued")
        gate.open()

        self.assertEqual(self.muster.ended("second")["phase"], "Succeeded")
        self.assertEqual(self.muster.logs("second", "--no-prefix"), "as it was sent\n")


class RefusedFolders(WorkspaceTest):

    def test_a_link_that_leads_out_of_the_folder_is_named(self):
        self.write("train.py")
        (self.tree / "inside").mkdir()
        (self.tree / "inside" / "out").symlink_to("../../../etc/passwd")
        (self.tree / "absolute").symlink_to("/etc/passwd")

        said = self.refused("tree")

        self.assertIn("'inside/out': is a link to '../../../etc/passwd'", said)
        self.assertIn("'absolute': is a link to '/etc/passwd'", said)
        ran = self.muster.run("gradient", "experiments", "run", "singlenode", *SINGLE, "--command",
                              "true", "--workspace", "tree", code=2)
        self.assertIn("'inside/out': is a link to", ran.stderr)
        self.assertEqual(self.muster.jobs(), [])

    def test_special_files_are_named(self):
        os.mkfifo(self.tree / "pipe")

        self.assertIn("'pipe'", self.refused("tree"))

    def test_two_gibibytes_are_refused_with_the_folders_that_hold_them(self):
        self.write("train.py")
        for name in ("data/raw/images.bin", "models/old.bin"):
            os.truncate(self.write(name), 1 << 30)

        said = self.refused("tree")

        self.assertIn("it has 2.1 GiB, but at most 1 GiB is sent", said)
        self.assertIn("'data/raw/': has 1 GiB in ", said)
        self.assertIn("'models/': has 1 GiB in ", said)
        self.assertIn("MUSTER_WORKSPACE_LIMIT=3G", said)
        # Excluded files cause no error.
        self.assertEqual(self.run_in("tree", "find . -type f", "--ignore", "*.bin")[0], "./train.py\n")

    def test_several_reasons_are_reported_with_the_flags_of_this_command(self):
        os.mkfifo(self.tree / "pipe")
        for name in ("old.bin", "older.bin"):
            os.truncate(self.write(name), 1 << 30)

        said = self.refused("tree")

        self.assertEqual(said.count("--ignore"), 2, said)
        self.assertNotIn("--ignoreFiles", said)

    def test_a_missing_folder_is_named(self):
        self.assertIn("there is no folder 'nowhere'", self.refused("nowhere", code=3))


class Archives(WorkspaceTest):

    def zip(self, **files):
        path = self.muster.work / "tree.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, (text, mode) in files.items():
                entry = zipfile.ZipInfo(name)
                entry.external_attr = (0o100000 | mode) << 16
                archive.writestr(entry, text)
        return path

    def test_an_archive_is_unpacked(self):
        path = self.zip(**{"src/word": ("packed\n", 0o644), "run": ("#!/bin/sh\ncat src/word\n", 0o755)})

        self.assertEqual(self.run_in(path, "./run")[0], "packed\n")

    def test_an_archive_that_leads_outside_is_refused_and_writes_nothing(self):
        temporary = self.muster.work / "tmp"
        temporary.mkdir()
        self.muster.environment["TMPDIR"] = str(temporary)

        said = self.refused(self.zip(**{"train.py": ("x", 0o644), "../evil": ("x", 0o644)}))

        self.assertIn("../evil", said)
        self.assertEqual([path for path in all_below(self.muster.folder) if path.name == "evil"], [])
        self.assertEqual(list(temporary.iterdir()), [])

    def test_a_file_that_is_not_an_archive_is_refused(self):
        (self.muster.work / "tree.zip").write_text("no archive")

        self.assertIn("tree.zip", self.refused("tree.zip"))


class RepositoryTest(WorkspaceTest):

    def setUp(self):
        super().setUp()
        self.temporary = self.muster.work / "tmp"
        self.temporary.mkdir()
        self.muster.environment |= {"TMPDIR": str(self.temporary), "no_proxy": "127.0.0.1"}
        self.git("init", "-q", "-b", "main")
        self.first = self.commit("word", "first")
        self.git("tag", "v1")
        self.git("checkout", "-q", "-b", "side")
        self.commit("word", "on the side")
        self.git("checkout", "-q", "main")
        self.last = self.commit("word", "last")

    def tearDown(self):
        self.assertEqual(list(self.temporary.iterdir()), [], "what was fetched is still there")

    def git(self, *words):
        ran = subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words],
                             cwd=self.tree, env=self.muster.environment, check=True,
                             capture_output=True, text=True, timeout=BOUND)
        return ran.stdout.strip()

    def commit(self, name, text):
        self.write(name, text)
        self.git("add", ".")
        self.git("commit", "-q", "-m", text)
        return self.git("rev-parse", "HEAD")


class Repositories(RepositoryTest):

    def test_a_repository_is_fetched_at_a_branch_a_tag_or_a_commit(self):
        url = f"file://{self.tree}"
        for ref, word in ((None, "last"), ("side", "on the side"), ("v1", "first"),
                          (self.first, "first"), (self.first[:9], "first")):
            with self.subTest(ref):
                flags = ["--workspace-ref", ref] if ref else []
                said, sent = self.run_in(url, "cat word; ls -A", *flags)
                self.assertEqual(said, word + "word\n")
                self.assertTrue(sent.startswith("commit "), sent)
        job = self.muster.job("job-3")
        self.assertEqual(job["spec"]["annotations"]["muster/commit"], self.first)

    def test_gradient_fetches_it_too_and_keeps_which_commit_it_was(self):
        ran = self.muster.run("gradient", "experiments", "run", "singlenode", "--name", "x", *SINGLE,
                              "--workspace", f"file://{self.tree}", "--workspaceRef", "main",
                              "--command", "cat word; echo")

        self.assertIn("\tlast\n", ran.stdout)
        annotations = self.muster.job("x")["spec"]["annotations"]
        self.assertEqual(annotations["gradient/workspaceCommit"], self.last)

    def test_a_missing_ref_is_named(self):
        said = self.refused(f"file://{self.tree}", "--workspace-ref", "v2", code=3)

        self.assertIn("has no branch, tag or commit 'v2'", said)

    def test_an_invalid_url_of_a_repository_is_refused_without_starting_git(self):
        mark = self.muster.work / "ran"
        programs = self.muster.work / "bin"
        programs.mkdir()
        git = programs / "git"
        git.write_text(f"#!/bin/sh\ntouch {mark}\n")
        git.chmod(0o755)
        self.muster.environment["PATH"] = f"{programs}:{self.muster.environment['PATH']}"
        for url, words in (
                (f"--upload-pack=touch {mark}", "is an option"),
                (f"ext::sh -c 'touch {mark}'", "would run a program for 'ext::'"),
                ("git@-oProxyCommand=touch:a.git", "is not the address of a repository"),
                ("ssh://-oProxyCommand=touch/a.git", "contains no host"),
                ("file://server.example/srv/a.git", "is not a repository on this machine"),
                ("https://example.org/a.html", "may not be a repository"),
                ("https://ada:hunter2@example.org/a.git", "the URL of the workspace contains a password"),
                ("s3://bucket/a", "S3")):
            with self.subTest(url):
                for said in (self.refused(url), self.refused_by_gradient(url)):
                    self.assertIn(words, said)
                    self.assertNotIn("hunter2", said)
        with self.subTest("a ref"):
            said = self.refused(f"file://{self.tree}", "--workspace-ref", f"--upload-pack=touch {mark}")
            self.assertIn("is not a branch, a tag or a commit", said)
        self.assertFalse(mark.exists())

    def refused_by_gradient(self, url):
        ran = self.muster.run("gradient", "experiments", "run", "singlenode", *SINGLE, "--command",
                              "true", f"--workspace={url}", code=2)
        self.assertEqual((ran.stdout, self.muster.jobs()), ("", []))
        return ran.stderr

    def test_a_server_does_not_accept_a_path_in_place_of_a_tree(self):
        self.muster.run("list")
        for kind, source in (("tree", "/etc"), ("tree", f"file://{self.tree}"), ("tree", "../../etc"),
                             ("storage", "../../etc"), ("storage", "/etc")):
            with self.subTest(f"{kind} {source}"):
                connection = UnixConnection(self.muster.state / "muster.sock")
                self.addCleanup(connection.close)
                connection.request("POST", "/v1/jobs", json.dumps({
                    "name": "sly", "kind": "single", "folder": "/", "command": ["cat", "/x/passwd"],
                    "volumes": [{"kind": kind, "source": source, "target": "/x"}]}),
                    {"content-type": "application/json"})
                answer = connection.getresponse()
                text = answer.read().decode()
                self.assertIn(answer.status, (400, 404, 422), text)
                self.assertIn("volumes[0]", text)
        self.assertEqual(self.muster.jobs(), [])


class GitOverHttp(http.server.ThreadingHTTPServer):
    """Serves the repositories below a folder to clients with the password. While git waits for an answer, it checks
    which processes have the password in their arguments. No other run of this test has the same password."""

    PASSWORD = f"correct-horse-{secrets.token_hex(8)}"

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), GitHandler)
        self.folder = folder
        self.asked = []
        self.seen = set()
        self._thread = threading.Thread(target=self.serve_forever)
        self._thread.start()

    def url(self, path):
        return f"http://127.0.0.1:{self.server_port}/{path}"

    def close(self):
        self.shutdown()
        self._thread.join()
        self.server_close()


class GitHandler(http.server.BaseHTTPRequestHandler):

    def do_GET(self):
        server = self.server
        wanted = base64.b64encode(f"ada:{server.PASSWORD}".encode()).decode()
        shown = self.headers.get("authorization")
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        server.asked.append((self.path, shown is not None))
        server.seen.update(map(describe, processes_naming(server.PASSWORD)))
        if shown != f"Basic {wanted}":
            return self.answer(401, {"www-authenticate": 'Basic realm="test"'}, b"")
        path, _, query = self.path.partition("?")
        ran = subprocess.run(
            ["git", "http-backend"], input=body, capture_output=True, timeout=BOUND, check=True,
            env={"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(server.folder),
                 "GIT_HTTP_EXPORT_ALL": "1", "REQUEST_METHOD": self.command, "PATH_INFO": path,
                 "QUERY_STRING": query, "CONTENT_TYPE": self.headers.get("content-type") or "",
                 "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding") or "",
                 "GIT_PROTOCOL": self.headers.get("git-protocol") or "",
                 "CONTENT_LENGTH": str(len(body)), "REMOTE_USER": "ada"})
        head, _, content = ran.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.answer(int(headers.pop("Status", "200").split()[0]), headers, content)

    do_POST = do_GET

    def answer(self, status, headers, content):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *words):
        pass


class PrivateRepositories(RepositoryTest):
    """Repositories that require a password, with a terminal on which git could ask."""

    def setUp(self):
        super().setUp()
        self.server = GitOverHttp(self.muster.work)
        self.addCleanup(self.server.close)
        self.url = self.server.url("tree/.git")

    def on_a_terminal(self, *flags, code):
        typed = Typed(self.muster, "gradient", "experiments", "run", "singlenode", "--name", "x",
                      *SINGLE, "--command", "cat word; echo", "--workspace", self.url, *flags)
        self.addCleanup(typed.close)
        self.assertEqual(typed.finish(), code, typed.text)
        text = typed.text.decode()
        self.assertNotRegex(text, r"(?m)^(Username|Password) for")
        self.assertNotIn(self.server.PASSWORD, text)
        return text

    def options_file(self, password):
        path = self.muster.work / "options.yaml"
        path.write_text(f"workspaceUsername: ada\nworkspacePassword: {password}\n")
        path.chmod(0o600)
        return path

    def assert_nobody_keeps_the_password(self):
        kept = [path for path in all_below(self.muster.state) if path.is_file()
                and self.server.PASSWORD.encode() in read_bytes(path)]
        self.assertEqual(kept, [])

    def test_without_a_password_the_command_is_refused_without_a_prompt(self):
        text = self.on_a_terminal(code=4)

        self.assertIn(f"the repository '{self.url}' requires a password, or does not exist", text)
        self.assertIn("--workspaceUsername and --workspacePassword", text)
        self.assertEqual(self.muster.jobs(), [])
        self.assertEqual([shown for _, shown in self.server.asked], [False])
        ran = self.muster.run("submit", "single", "x", "--workspace", self.url, "--", "true", code=4)
        self.assertIn("requires a password", ran.stderr)

    def test_a_wrong_password_is_refused_without_being_repeated(self):
        text = self.on_a_terminal("--optionsFile", self.options_file("wrong-horse-8"), code=4)

        self.assertIn("rejects the given password", text)
        self.assertNotIn("wrong-horse-8", text)
        self.assertEqual(self.muster.jobs(), [])

    def test_a_password_from_a_file_works_and_is_in_no_command_line(self):
        text = self.on_a_terminal("--optionsFile", self.options_file(self.server.PASSWORD), code=0)

        self.assertIn("\tlast", re.sub(r"\x1b\[[0-9;]*m", "", text))
        self.assertTrue(any(shown for _, shown in self.server.asked))
        self.assertEqual(self.server.seen, set())
        self.assert_nobody_keeps_the_password()

    def test_a_password_on_the_command_line_is_passed_to_no_other_process(self):
        self.on_a_terminal("--workspaceUsername", "ada", "--workspacePassword", self.server.PASSWORD,
                           "--workspaceRef", "v1", code=0)

        self.assertEqual(len(self.server.seen), 1, self.server.seen)
        self.assertRegex(*self.server.seen, r"\A\d+ \S*muster gradient experiments run ")
        self.assert_nobody_keeps_the_password()
        details = self.muster.run("gradient", "experiments", "details", "--id", "x").stdout
        self.assertNotIn(self.server.PASSWORD, details)


class Between:
    """A proxy that takes the place of a server's socket. It kills the server when the first files arrive, and ends."""

    SENDS_FILES = b"PUT /v1/projects/default/chunks "

    def __init__(self, muster):
        self.server = muster.server_pid()
        self.path = muster.state / "muster.sock"
        self.behind = muster.state / "behind.sock"
        os.rename(self.path, self.behind)
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(self.path))
        self.listening.listen()
        self.peers = {}
        self.killed = False
        self.thread = threading.Thread(target=self.hand_on, daemon=True)
        self.thread.start()

    def hand_on(self):
        asked = {}  # by client: its request
        while not self.killed:
            ready = select.select([self.listening, *self.peers], [], [])[0][0]
            if ready is self.listening:
                asked[self.take()] = b""
                continue
            data = self.read(ready)
            if ready in asked:
                asked[ready] += data
                if self.SENDS_FILES in asked[ready]:
                    self.peers[ready].sendall(data[:len(data) // 2])
                    self.end()
                    continue
            self.pass_to_peer(ready, data)

    def take(self):
        client, server = self.listening.accept()[0], socket.socket(socket.AF_UNIX)
        server.connect(str(self.behind))
        self.peers |= {client: server, server: client}
        return client

    @staticmethod
    def read(side):
        """The next bytes; none if this side has closed, even if it had not read everything before."""
        try:
            return side.recv(1 << 16)
        except ConnectionResetError:
            return b""

    def pass_to_peer(self, side, data):
        if data:
            with suppress(BrokenPipeError, ConnectionResetError):  # its own end is read later
                self.peers[side].sendall(data)
            return
        other = self.peers.pop(side)
        del self.peers[other]
        side.close()
        other.close()

    def end(self):
        kill_and_wait(self.server)
        self.path.unlink()
        self.behind.unlink()
        for each in (self.listening, *self.peers):
            each.close()
        self.killed = True


class ServersInTrouble(WorkspaceTest):

    def test_a_server_killed_during_a_transfer_is_restarted_and_gets_the_rest(self):
        self.write("large", os.urandom(6 << 20))
        digest = hashlib.sha256((self.tree / "large").read_bytes()).hexdigest()
        self.muster.run("list")
        between = Between(self.muster)

        said, _ = self.run_in("tree", "sha256sum large")

        between.thread.join(BOUND)
        self.assertTrue(between.killed)
        self.assertEqual(said.split()[0], digest)
        self.assertEqual(self.muster.starts_of_server(), 2)
        self.assertEqual(self.run_in("tree", "sha256sum large")[1], "1 file, 6 MiB; nothing new to send")

    def test_a_full_disk_is_reported_and_the_rest_is_sent_later(self):
        # The state folder is a small file system, in a namespace of bubblewrap.
        self.write("large", os.urandom(12 << 20))
        digest = hashlib.sha256((self.tree / "large").read_bytes()).hexdigest()
        filler = self.muster.state / "filler"
        self.muster.state.mkdir(mode=0o700)
        script = (
            "muster list\n"
            "muster version -o json > before\n"
            f"head -c {30 << 20} /dev/zero > {filler}\n"
            "muster submit single first --workspace tree -- true 2> said || echo $? > code\n"
            "muster list -o json > jobs\n"
            f"rm {filler}\n"
            "muster submit single second --workspace tree --follow --no-prefix -- "
            "sha256sum large > digest 2> sent\n"
            "muster version -o json > after\n"
            "muster server --stop\n")

        ran = subprocess.run(
            ["bwrap", "--dev-bind", "/", "/", "--size", str(40 << 20), "--perms", "0700", "--tmpfs",
             str(self.muster.state), "sh", "-ec", script.replace("muster ", f"{MUSTER} ")],
            env=self.muster.environment, cwd=self.muster.work, capture_output=True, text=True,
            timeout=BOUND)

        names = ("said", "code", "jobs", "before", "after", "digest", "sent")
        found = {name: self.found(name) for name in names}
        self.assertEqual(ran.returncode, 0, f"{ran.stderr}\n{found}")
        self.assertEqual(found["code"], "4\n", found)
        self.assertIn("and the server keeps the last 2 MiB", found["said"])
        self.assertIn("free space on that disk, then try again", found["said"])
        self.assertEqual(json.loads(found["jobs"])["jobs"], [])
        self.assertEqual(found["digest"].split()[0], digest)
        sent = float(re.search(r"12 MiB; sent ([0-9.]+) MiB\n", found["sent"]).group(1))
        self.assertLess(sent, 12)
        pids = [json.loads(found[name])["server"]["pid"] for name in ("before", "after")]
        self.assertEqual(pids[0], pids[1])

    def found(self, name):
        path = self.muster.work / name
        return path.read_text() if path.exists() else ""


if __name__ == "__main__":
    main()
