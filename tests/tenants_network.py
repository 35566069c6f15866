"""The Internet access of jobs. The server runs in a network namespace in place of a machine. Two further namespaces
stand for the Internet and for another machine of the local network. The network of the real machine is not changed."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import unittest

from muster_harness import BOUND, MusterTest, main, processes_naming, read_bytes
from tenants_process import Account

MACHINE, OUTSIDE, LOCAL = "198.51.100.2", "198.51.100.1", "192.168.77.2"
SITE, RESOLVER, METADATA = "203.0.113.10", "203.0.113.53", "169.254.169.254"

# For each argument WORD,ADDRESS,PORT: serves WORD over HTTP, or names over DNS if WORD is "dns".
SERVICES = r'''
import http.server, socket, struct, sys, threading
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{self.server.word} {self.client_address[0]}".encode())
    def log_message(self, *ignored):
        pass
for spec in sys.argv[1:]:
    word, address, port = spec.split(",")
    if word == "dns":
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind((address, int(port)))
        def serve(server=server):
            while True:
                question, client = server.recvfrom(512)
                end = question.index(0, 12) + 5
                kind = struct.unpack(">H", question[end - 4:end - 2])[0]
                answers = 1 if kind == 1 else 0
                reply = question[:2] + b"\x81\x80\0\1" + struct.pack(">HHH", answers, 0, 0) + question[12:end]
                if answers:
                    reply += b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton("203.0.113.10")
                server.sendto(reply, client)
    else:
        server = http.server.ThreadingHTTPServer((address, int(port)), Answer)
        server.word = word
        serve = server.serve_forever
    threading.Thread(target=serve, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
'''

# Fetches each URL and prints the answer or the error.
FETCH = r'''
import sys, urllib.request
for url in sys.argv[1:]:
    try:
        print(url, "answers", urllib.request.urlopen(url, timeout=5).read().decode(), flush=True)
    except OSError as error:
        print(url, "refuses", error, flush=True)
'''

# Serves inside a job until the gate opens.
SERVE = r'''
import http.server, os, socket, subprocess, sys, threading
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"a job")
server = http.server.ThreadingHTTPServer(("0.0.0.0", 8000), Answer)
threading.Thread(target=server.serve_forever, daemon=True).start()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
    try:
        asked.connect(("203.0.113.10", 9))
        print("serves at", asked.getsockname()[0], flush=True)
    except OSError as error:
        print("serves at nothing:", error, flush=True)
open(sys.argv[1]).read(1)
'''


class Namespace:
    """A network namespace, held by a process."""

    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo up; exec sleep infinity"],
                                       stdout=subprocess.PIPE)
        self.holder.stdout.read(1)
        self.enter = ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net"]
        self.services = None
        self.run("ip", "link", "set", "lo", "up")

    def run(self, *words, check=True):
        ran = subprocess.run([*self.enter, *words], capture_output=True, text=True, check=False)
        if check and ran.returncode != 0:
            raise AssertionError(f"{words}: {ran.stderr}")
        return ran.stdout

    def serve(self, *specs):
        self.services = subprocess.Popen([*self.enter, sys.executable, "-c", SERVICES, *specs], stdout=subprocess.PIPE)
        assert self.services.stdout.readline() == b"ready\n"

    def fetch(self, *urls):
        return self.run(sys.executable, "-c", FETCH, *urls)

    def close(self):
        for process in (self.services, self.holder):
            if process:
                process.kill()
                process.wait()
                process.stdout.close()


def connect(machine, device, address, other, other_address):
    """Connects two namespaces, as by a cable."""
    machine.run("ip", "link", "add", device, "type", "veth", "peer", "name", "far0", "netns", str(other.holder.pid))
    for namespace, name, own in ((machine, device, address), (other, "far0", other_address)):
        namespace.run("ip", "address", "add", f"{own}/24", "dev", name)
        namespace.run("ip", "link", "set", name, "up")


class Stage(MusterTest):
    """A machine, the Internet, and a machine of the local network."""

    # Commands that change the mounts of the server, in its own mount namespace.
    MOUNTS = ""

    def setUp(self):
        super().setUp()
        self.machine, self.internet, self.local = (self.enter_namespace() for _ in range(3))
        connect(self.machine, "up0", MACHINE, self.internet, OUTSIDE)
        connect(self.machine, "lan0", "192.168.77.1", self.local, LOCAL)
        self.machine.run("ip", "route", "add", "default", "via", OUTSIDE)
        for address in (SITE, RESOLVER, METADATA):
            self.internet.run("ip", "address", "add", f"{address}/32", "dev", "lo")
        self.machine.run("ip", "route", "add", "169.254.0.0/16", "via", OUTSIDE)
        # The Internet has no route to the addresses of jobs, so a packet with such a source address gets no answer.
        self.internet.run("ip", "route", "add", "192.168.77.0/24", "via", MACHINE)
        self.local.run("ip", "route", "add", "198.51.100.0/24", "via", "192.168.77.1")
        self.internet.serve(f"site,{SITE},80", f"metadata,{METADATA},80", f"dns,{RESOLVER},53")
        self.machine.serve("machine,0.0.0.0,7000", "loopback,127.0.0.1,7001")
        self.local.serve(f"local,{LOCAL},80")
        self.resolver = self.muster.work / "resolv.conf"
        self.resolver.write_text(f"search example.org\nnameserver 127.0.0.53\nnameserver {RESOLVER}\n")
        self.fetcher = self.muster.script("fetch.py", FETCH)
        self.server_script = self.muster.script("serve.py", SERVE)

    def new_muster(self, **options):
        muster = super().new_muster(**options)
        del muster.environment["MUSTER_TASK_INTERNET"]
        return muster

    def enter_namespace(self):
        namespace = Namespace()
        self.addCleanup(namespace.close)
        return namespace

    def serve(self, muster=None, *words, before=""):
        return (muster or self.muster).start_server(
            "--listen", "127.0.0.1:0", *words,
            prefix=[*self.machine.enter, "unshare", "--mount", "sh", "-c",
                    f'mount --bind {self.resolver} /etc/resolv.conf && {self.MOUNTS} {before} exec "$@"', "sh"])

    def fetched_by_job(self, *urls, muster=None):
        muster = muster or self.muster
        return muster.run("submit", "single", f"fetch-{time.monotonic_ns()}", "--follow", "--no-prefix", "--", "python3",
                          muster.script("fetch.py", FETCH), *urls).stdout

    def started_job(self, name="serving", muster=None):
        """Starts a job that serves. Returns its gate and its address."""
        muster = muster or self.muster
        gate = muster.gate(f"gate-{name}")
        muster.run("submit", "single", name, "--", "python3", muster.script("serve.py", SERVE), muster.work / f"gate-{name}")
        logs = muster.stream("logs", name, "-f")
        address = logs.until("serves at").split()[-1]
        # If the server is killed later, a command that follows the job would start another one.
        logs.close()
        return gate, address

    def end(self, gate, name="serving", muster=None):
        gate.open()
        self.assertEqual((muster or self.muster).ended(name)["phase"], "Succeeded")


@unittest.skipIf(os.geteuid() != 0, "only root can create bridges")
class AsRoot(Stage):

    def bridges(self):
        return {link["ifname"]: link for link in json.loads(self.machine.run("ip", "-j", "-d", "address"))
                if link["ifname"].startswith("muster-")}

    def left(self):
        """The traces of a server in the machine's network: its devices, its nft tables, and whether forwarding is
        on."""
        links = [link["ifname"] for link in json.loads(self.machine.run("ip", "-j", "link"))
                 if link["ifname"].startswith("mu")]
        tables = re.findall(r"muster\w*", self.machine.run("nft", "list", "tables"))
        forwarding = self.machine.run("sh", "-c", "cat /proc/sys/net/ipv4/conf/up0/forwarding").strip()
        return links, tables, forwarding

    def test_a_job_reaches_the_internet_and_nothing_that_is_refused(self):
        server = self.serve()
        gate, address = self.started_job()

        text = self.fetched_by_job("http://site.example/", f"http://{LOCAL}/", f"http://{METADATA}/",
                                   f"http://{MACHINE}:7000/", "http://192.168.77.1:7000/", "http://127.0.0.1:7001/",
                                   f"http://{address}:8000/")

        # The address that the site sees is the machine's.
        self.assertIn(f"http://site.example/ answers site {MACHINE}", text)
        self.assertIn(f"http://{LOCAL}/ answers local 192.168.77.1", text)
        for refused in (METADATA, f"{MACHINE}:7000", "192.168.77.1:7000", "127.0.0.1:7001", f"{address}:8000"):
            self.assertIn(f"http://{refused}/ refuses", text)
        gateway = next(info["local"] for link in self.bridges().values() for info in link["addr_info"]
                       if info["family"] == "inet")
        self.assertIn("refuses", self.fetched_by_job(f"http://{gateway}:7000/"))
        # Neither the machine nor the Internet can connect to a job.
        self.assertIn("refuses", self.machine.fetch(f"http://{address}:8000/"))
        self.internet.run("ip", "route", "add", "10.213.0.0/16", "via", MACHINE)
        self.assertIn("refuses", self.internet.fetch(f"http://{address}:8000/"))
        self.end(gate)
        self.muster.run("server", "--stop")
        server.finish()
        self.assertEqual(self.left(), ([], [], "0"))

    def test_a_machine_that_forwarded_nothing_forwards_only_packets_of_jobs(self):
        self.serve()
        self.assertIn("answers local", self.fetched_by_job(f"http://{LOCAL}/"))
        self.assertIn("refuses", self.internet.fetch(f"http://{LOCAL}/"))
        # Without the guard's rules the same packets are forwarded.
        self.machine.run("nft", "delete", "table", "inet", "muster_guard")
        self.assertIn("answers local", self.internet.fetch(f"http://{LOCAL}/"))

    def test_a_job_finds_the_nameservers_that_it_can_reach(self):
        self.serve()
        ran = self.muster.run("submit", "single", "reads", "--follow", "--no-prefix", "--", "cat", "/etc/resolv.conf")
        self.assertIn(f"search example.org\nnameserver {RESOLVER}\n", ran.stdout)
        self.assertNotIn("127.0.0.53", ran.stdout)

    def test_tasks_of_a_job_with_internet_access_find_each_other(self):
        self.serve()
        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, "--follow", "--",
                              "mpirun", "--allow-run-as-root", "-np", "2", "sh", "-c",
                              f"echo rank on $(hostname); python3 {self.fetcher} http://{SITE}/")
        self.assertEqual(sorted(re.findall(r"rank on (\S+)", ran.stdout)), ["dist-worker-0", "dist-worker-1"])
        self.assertEqual(ran.stdout.count(f"answers site {MACHINE}"), 2)

    def test_a_server_that_was_killed_leaves_its_network_to_the_next_one(self):
        self.serve()
        gate, address = self.started_job()
        before = self.bridges()
        self.muster.kill_server()
        self.assertEqual(set(self.bridges()), set(before))

        server = self.serve()

        self.assertEqual(set(self.bridges()), set(before))
        ran = self.muster.run("exec", "serving", "--", "python3", self.fetcher, f"http://{SITE}/")
        self.assertIn(f"answers site {MACHINE}", ran.stdout)
        text = self.fetched_by_job(f"http://{SITE}/", f"http://{address}:8000/")
        self.assertIn(f"http://{SITE}/ answers site", text)
        self.assertIn(f"http://{address}:8000/ refuses", text)
        self.end(gate)
        self.muster.run("server", "--stop")
        server.finish()
        self.assertEqual(self.left(), ([], [], "0"))

    def test_a_job_that_outlives_its_server_keeps_its_internet_access(self):
        server = self.serve()
        gate, _ = self.started_job()
        self.muster.run("server", "--stop")
        server.finish()
        links, tables, forwarding = self.left()
        self.assertEqual((len(links), len(tables), forwarding), (2, 2, "1"))
        self.serve()
        ran = self.muster.run("exec", "serving", "--", "python3", self.fetcher, f"http://{SITE}/")
        self.assertIn(f"answers site {MACHINE}", ran.stdout)
        self.end(gate)

    def test_jobs_of_two_servers_on_one_machine_are_isolated_from_each_other(self):
        first = self.serve()
        second_muster = self.new_muster()
        self.serve(second_muster)
        gate, address = self.started_job()
        other_gate, other_address = self.started_job("other", second_muster)
        self.assertEqual(len(self.bridges()), 2)
        self.assertNotEqual(address, other_address)
        self.assertIn("refuses", self.fetched_by_job(f"http://{other_address}:8000/"))
        self.assertIn("refuses", self.fetched_by_job(f"http://{address}:8000/", muster=second_muster))
        self.end(gate)
        self.muster.run("server", "--stop")
        first.finish()
        # The end of the first server does not change the network of the second one.
        self.assertEqual(len(self.bridges()), 1)
        self.assertIn(f"answers site {MACHINE}", self.fetched_by_job(f"http://{SITE}/", muster=second_muster))
        self.end(other_gate, "other", second_muster)
        second_muster.close()
        self.assertEqual(self.left(), ([], [], "0"))

    def test_flushed_rules_are_restored_before_the_next_job(self):
        self.serve()
        self.machine.run("nft", "flush", "ruleset")
        text = self.fetched_by_job(f"http://{SITE}/", f"http://{METADATA}/", f"http://{MACHINE}:7000/")
        self.assertIn(f"http://{SITE}/ answers site {MACHINE}", text)
        self.assertIn(f"http://{METADATA}/ refuses", text)
        self.assertIn(f"http://{MACHINE}:7000/ refuses", text)

    def test_jobs_have_no_internet_access_if_proc_sys_is_read_only(self):
        server = self.serve(None, before="mount --bind -o ro /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys &&")
        text = self.fetched_by_job(f"http://{SITE}/")
        self.assertIn("refuses", text)
        self.muster.run("server", "--stop")
        server.finish()
        self.assertIn("/proc/sys is read-only", server.errors)
        self.assertEqual(self.left(), ([], [], "0"))

    def test_the_administrator_can_disable_internet_access(self):
        self.serve(None, "--task-internet", "false")
        self.assertIn("refuses", self.fetched_by_job(f"http://{SITE}/"))
        self.assertEqual(self.left(), ([], [], "0"))

    def test_the_administrator_can_choose_refused_networks(self):
        self.serve(None, "--task-internet-refused", "203.0.113.10/32,192.168.0.0/16")
        text = self.fetched_by_job(f"http://{SITE}/", f"http://{LOCAL}/", f"http://{METADATA}/")
        self.assertIn(f"http://{SITE}/ refuses", text)
        self.assertIn(f"http://{LOCAL}/ refuses", text)
        self.assertIn(f"http://{METADATA}/ answers", text)


@unittest.skipIf(os.geteuid() != 0, "only root can create network namespaces")
@unittest.skipIf(shutil.which("pasta") is None, "needs pasta (apt install passt)")
class AsAnOrdinaryAccount(Stage):
    """A server of an ordinary account, on a machine where all accounts may open /dev/net/tun."""

    MOUNTS = "mount -t tmpfs none /dev/net && mknod -m 0666 /dev/net/tun c 10 200 &&"

    def new_muster(self, **options):
        self.account = account = Account(self)
        muster = super().new_muster(prefix=account.become, uid=account.uid, binary=account.muster, **options)
        muster.environment |= {"USER": account.name, "LOGNAME": account.name}
        return muster

    def pastas(self):
        """The processes of pasta that belong to the test's account."""
        owner = f"\nUid:\t{self.account.uid}\t".encode()
        return [pid for pid in processes_naming("--config-net")
                if read_bytes(f"/proc/{pid}/cmdline").split(b"\0")[0].endswith(b"pasta")
                and owner in read_bytes(f"/proc/{pid}/status")]

    def await_no_pasta(self):
        deadline = time.monotonic() + BOUND
        while self.pastas():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_a_job_reaches_the_internet_and_nothing_that_is_refused(self):
        server = self.serve()
        gate, _ = self.started_job()
        text = self.fetched_by_job("http://site.example/", f"http://{LOCAL}/", f"http://{METADATA}/",
                                   f"http://{MACHINE}:7000/", "http://192.168.77.1:7000/", "http://127.0.0.1:7001/",
                                   f"http://{MACHINE}:8000/")
        self.assertIn(f"http://site.example/ answers site {MACHINE}", text)
        self.assertIn(f"http://{LOCAL}/ answers local", text)
        for refused in (METADATA, f"{MACHINE}:7000", "192.168.77.1:7000", "127.0.0.1:7001", f"{MACHINE}:8000"):
            self.assertIn(f"http://{refused}/ refuses", text)
        # Neither the machine nor the Internet can connect to a job.
        self.assertIn("refuses", self.machine.fetch(f"http://{MACHINE}:8000/"))
        self.assertIn("refuses", self.internet.fetch(f"http://{MACHINE}:8000/"))
        self.end(gate)
        self.await_no_pasta()
        self.muster.run("server", "--stop")
        server.finish()
        self.assertIn("by pasta", server.errors)

    def test_pasta_ends_with_the_last_task_although_the_server_was_killed(self):
        self.serve()
        gate, _ = self.started_job()
        self.assertEqual(len(self.pastas()), 1)
        self.muster.kill_server()
        self.assertEqual(len(self.pastas()), 1)
        gate.open()
        self.await_no_pasta()

    def test_a_job_keeps_its_internet_access_when_the_server_is_restarted(self):
        self.serve()
        gate, _ = self.started_job()
        self.muster.kill_server()
        self.serve()
        ran = self.muster.run("exec", "serving", "--", "python3", self.fetcher, f"http://{SITE}/")
        self.assertIn(f"answers site {MACHINE}", ran.stdout)
        self.end(gate)
        self.await_no_pasta()


class AsAnAccountWithoutTheDevice(AsAnOrdinaryAccount):
    """The account may not open /dev/net/tun, as on most machines: jobs have no Internet access, and the server logs the
    reason."""

    MOUNTS = "mount -t tmpfs none /dev/net && mknod -m 0600 /dev/net/tun c 10 200 &&"

    def test_a_job_reaches_the_internet_and_nothing_that_is_refused(self):
        server = self.serve()
        self.assertIn("refuses", self.fetched_by_job(f"http://{SITE}/"))
        self.muster.run("server", "--stop")
        server.finish()
        self.assertIn("may not open /dev/net/tun, which pasta needs", server.errors)

    test_pasta_ends_with_the_last_task_although_the_server_was_killed = None
    test_a_job_keeps_its_internet_access_when_the_server_is_restarted = None


if __name__ == "__main__":
    main()
