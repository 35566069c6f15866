"""A private PostgreSQL server for a test, on a unix socket in a temporary folder, or at an address.

    with Postgres() as postgres:
        url = postgres.new_url()        # the URL of a new, empty schema
        postgres.restart_at_once()      # as after a crash

PostgreSQL refuses to run as root, so a test that runs as root starts it as the user `postgres` or `nobody`. The server
reports on a socket that it is ready, like a service of systemd, so the test does not poll.
"""

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
# The time limit of a start in seconds. Only a hang reaches it.
BOUND = 60

_PR_SET_PDEATHSIG = 1


class Postgres:
    def __init__(self, durable=False, address=""):
        """`durable`: syncs to disk and has PostgreSQL's own settings for memory, for measurements; tests need neither.
        `address`: clients without access to the socket connect there; its network must belong to the test."""
        self._address = address
        self._settings = [] if durable else ["-c", "fsync=off", "-c", "shared_buffers=16MB"]
        self.folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        self._user = self._unprivileged_user()
        if self._user:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        self._ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._ready.bind(str(self.folder / "ready"))
        os.chmod(self.folder / "ready", 0o777)
        self._ready.settimeout(BOUND)
        self._process = None
        self._schemas = 0
        made = self._spawn("initdb", "--no-sync", "--auth=trust", "--username=muster",
                           "--encoding=UTF8", "--locale=C.UTF-8", "--pgdata", self.folder / "data")
        if made.wait(BOUND) != 0:
            raise RuntimeError("initdb failed:\n" + self.log())
        if address:
            with open(self.folder / "data" / "pg_hba.conf", "a", encoding="utf-8") as rules:
                rules.write("host all all all trust\n")
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self._process:
            self.stop_at_once()
        self._ready.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def new_url(self):
        self._schemas += 1
        schema = f"s{self._schemas}"
        self.sql(f"CREATE SCHEMA {schema}")
        return f"{self._url()}&options=-csearch_path%3D{schema}"

    def sql(self, text, url=None):
        """Executes `text`. Returns the rows as psql prints them: one row in each line, with '|' between the fields."""
        ran = subprocess.run([PROGRAMS / "psql", "--no-psqlrc", "--quiet", "--tuples-only",
                              "--no-align", "--set=ON_ERROR_STOP=1", "--command", text,
                              url or self._url()],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=BOUND, check=False)
        if ran.returncode != 0:
            raise RuntimeError(ran.stderr)
        return ran.stdout.splitlines()

    def start(self):
        """The server ends with the thread that starts it: call this from the thread of the test."""
        self._process = self._spawn(
            "postgres", "-D", self.folder / "data", "-k", self.folder, "-c", f"listen_addresses={self._address}",
            "-c", "max_connections=50", *self._settings)
        while b"READY=1" not in self._ready.recv(4096):
            pass

    def stop(self):
        self._stop_by(signal.SIGINT)

    def stop_at_once(self):
        """Stops the server as in a crash: every connection breaks, and the next start recovers from the log."""
        self._stop_by(signal.SIGQUIT)

    def restart_at_once(self):
        self.stop_at_once()
        self.start()

    def end_sessions_of_leaders(self):
        """Breaks the database connection of every Muster server that is a leader."""
        self.sql("SELECT pg_terminate_backend(pid, 10000) FROM pg_locks"
                 " WHERE locktype = 'advisory' AND granted")

    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def _url(self):
        if self._address:
            return f"postgres://muster@{self._address}/postgres?connect_timeout={BOUND}"
        return f"postgres://muster@/postgres?host={self.folder}"

    def _stop_by(self, number):
        self._process.send_signal(number)
        self._process.wait(BOUND)
        self._process = None

    def _spawn(self, program, *words):
        parent = os.getpid()
        libc = ctypes.CDLL(None)

        def prepare():
            # The server ends even if the test is killed.
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)
            if os.getppid() != parent:
                os._exit(125)

        as_user = {}
        if self._user:
            as_user = {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}
        with open(self.folder / "log", "ab") as log:
            return subprocess.Popen(
                [PROGRAMS / program, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={"NOTIFY_SOCKET": str(self.folder / "ready"), "LC_ALL": "C.UTF-8"}, cwd="/",
                start_new_session=True, preexec_fn=prepare, **as_user)

    @staticmethod
    def _unprivileged_user():
        if os.geteuid() != 0:
            return None
        for name in ("postgres", "nobody"):
            try:
                return pwd.getpwnam(name)
            except KeyError:
                pass
        raise RuntimeError("PostgreSQL does not run as root, and there is no other user")
