"""The attempts of a hostile job, with one function for each. The program runs inside a task.

    python3 tenants_attacker.py FACTS.json

FACTS.json contains facts about the victim and the server that an attacker may know: paths, ports, process numbers.
Each attempt uses real system calls. The program prints a line for each attempt: "NAME held" if it failed, "NAME BROKEN:
how" if it succeeded, and "NAME absent: why" if this machine lacks something that the attempt needs."""

import ctypes
import errno
import glob
import json
import os
import socket
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
ATTEMPTS = {}


class Absent(Exception):
    """This machine lacks something that the attempt needs."""


def attempt(kind):
    def note(function):
        ATTEMPTS[function.__name__] = (kind, function)
        return function
    return note


def call(number, *arguments):
    """Makes a system call by its number on x86-64. Raises OSError."""
    if os.uname().machine != "x86_64":
        raise Absent("the numbers of the system calls are those of x86-64")
    LIBC.syscall.restype = ctypes.c_long
    result = LIBC.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def refused(number, *arguments):
    """The result of a system call that the filter should refuse with any arguments."""
    try:
        return f"returned {call(number, *arguments)}"
    except OSError as error:
        return None if error.errno in (errno.EPERM, errno.ENOSYS) else f"failed only with {error.strerror}"


def content(path):
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except OSError:
        return b""


def listing(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


def connects(family, address):
    with socket.socket(family) as tried:
        tried.settimeout(2)
        try:
            tried.connect(address)
            return f"connected to {address!r}"
        except OSError:
            return None


# --- files

@attempt("files")
def read_the_servers_state_folder(facts):
    return listing(facts["state"]) or None


@attempt("files")
def read_the_servers_database(facts):
    return "read it" if content(facts["state"] + "/muster.db") else None


@attempt("files")
def read_the_servers_keys(facts):
    keys = [path for name in ("secret.key", "tls/key.pem") if content(path := f"{facts['state']}/{name}")]
    return keys or None


@attempt("files")
def connect_to_the_servers_socket(facts):
    return connects(socket.AF_UNIX, facts["state"] + "/muster.sock")


@attempt("files")
def list_the_folders_of_jobs(facts):
    return listing(facts["state"] + "/jobs") or None


@attempt("files")
def guess_the_folder_of_the_victim(facts):
    return listing(facts["victim_folder"]) or None


@attempt("files")
def read_the_victims_keys(facts):
    found = glob.glob(facts["victim_folder"] + "/**/*key*", recursive=True)
    return found or None


@attempt("files")
def read_the_victims_temporary_files(facts):
    found = [place for place in ("/tmp", "/var/tmp", "/dev/shm") if "victim-file" in listing(place)]
    return found or None


@attempt("files")
def find_the_victims_home(facts):
    return "found it" if "victim-home" in listing(os.path.expanduser("~")) else None


@attempt("files")
def read_the_accounts_password_file(facts):
    return "read it" if content(facts["password_file"]) else None


@attempt("files")
def read_the_accounts_ssh_keys(facts):
    return listing(facts["home"] + "/.ssh") or None


@attempt("files")
def leave_a_program_for_others_in_the_home(facts):
    path = facts["home"] + "/.profile-of-attacker"
    try:
        with open(path, "w") as file:
            file.write("echo owned\n")
    except OSError:
        pass
    return None  # the test looks for the file outside


@attempt("files")
def connect_to_the_accounts_tmux(facts):
    return connects(socket.AF_UNIX, facts["account_socket"])


@attempt("files")
def connect_to_any_socket_in_run(facts):
    found = []
    for folder, _, names in os.walk("/run"):
        for name in names:
            path = os.path.join(folder, name)
            try:
                is_socket = (os.stat(path).st_mode & 0o170000) == 0o140000
            except OSError:
                continue
            if is_socket and connects(socket.AF_UNIX, path):
                found.append(path)
    return found or None


@attempt("files")
def climb_above_the_generated_folder(facts):
    climbed = os.path.realpath("/generated/..")
    return climbed if climbed != "/" else None


@attempt("files")
def find_names_of_other_jobs_among_the_mounts(facts):
    text = content("/proc/self/mountinfo").decode(errors="replace")
    return "found the victim's id" if facts["victim_id"] in text else None


@attempt("files")
def watch_the_folder_of_jobs(facts):
    watch = LIBC.inotify_init()
    mask = 0x100 | 0x40 | 0x80
    added = LIBC.inotify_add_watch(watch, (facts["state"] + "/jobs").encode(), mask)
    # The task may see another, empty folder at that path, which has no events.
    shown = listing(facts["state"] + "/jobs")
    return "watches it" if added >= 0 and shown else None


@attempt("files")
def uncover_what_is_hidden_by_unmounting(facts):
    return refused(166, facts["state"].encode(), 2)


@attempt("files")
def mount_something_else(facts):
    return refused(165, b"none", b"/mnt", b"tmpfs", 0, None)


@attempt("files")
def open_a_file_by_its_handle(facts):
    return refused(304, -100, None, 0)


@attempt("files")
def read_the_disk_itself(facts):
    opened = []
    for name in ("sda", "vda", "nvme0n1", "xvda", "mem", "kmem", "loop0"):
        if content("/dev/" + name)[:1]:
            opened.append(name)
    return opened or None


@attempt("files")
def make_a_device_node(facts):
    try:
        os.mknod("/tmp/disk-of-attacker", 0o060600, os.makedev(8, 0))
        os.unlink("/tmp/disk-of-attacker")
    except OSError:
        return None
    return "made a node of the first disk"


# --- processes

@attempt("processes")
def read_the_environment_with_which_the_server_was_started(facts):
    found = [path for path in glob.glob("/proc/[0-9]*/environ") if facts["secret"].encode() in content(path)]
    return found or None


@attempt("processes")
def find_the_victims_processes(facts):
    found = [path for path in glob.glob("/proc/[0-9]*/cmdline") if b"victim-mark" in content(path)]
    return found or None


@attempt("processes")
def read_through_the_roots_of_processes(facts):
    found = [path for path in glob.glob("/proc/[0-9]*/root") if listing(path + facts["state"])]
    return found or None


@attempt("processes")
def signal_the_victim(facts):
    own = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    for pid in facts["victim_pids"]:
        if pid in own:
            continue
        try:
            os.kill(pid, 0)
            return f"may signal {pid}"
        except OSError:
            continue
    return None


@attempt("processes")
def trace_the_victim(facts):
    for pid in facts["victim_pids"]:
        if os.path.exists(f"/proc/{pid}"):
            continue
        if LIBC.ptrace(16, pid, None, None) == 0:
            return f"attached to {pid}"
    return None


@attempt("processes")
def read_the_victims_memory(facts):
    for pid in facts["victim_pids"]:
        if os.path.exists(f"/proc/{pid}"):
            continue
        if content(f"/proc/{pid}/mem") or content(f"/proc/{pid}/maps"):
            return f"read that of {pid}"
    return None


@attempt("processes")
def enter_the_namespaces_of_others(facts):
    descriptor = os.open("/proc/self/ns/uts", os.O_RDONLY)
    return refused(308, descriptor, 0)


@attempt("processes")
def slow_down_all_processes_of_the_account(facts):
    LIBC.setpriority(2, os.getuid(), 19)
    return None  # the test checks the victim


def group_files(*names):
    """The files of these names in all control groups that the task sees."""
    return [os.path.join(folder, name) for folder, _, files in os.walk("/sys/fs/cgroup") for name in names
            if name in files]


@attempt("processes")
def leave_the_control_groups(facts):
    left = []
    for path in group_files("cgroup.procs", "tasks"):
        try:
            with open(path, "w") as file:
                file.write(str(os.getpid()))
        except OSError:
            continue
        left.append(path)
    return left or None


@attempt("processes")
def freeze_by_control_groups(facts):
    frozen = []
    for path in group_files("freezer.state", "cgroup.freeze"):
        try:
            with open(path, "r+") as file:
                file.write(file.read())
        except OSError:
            continue
        frozen.append(path)
    return frozen or None


@attempt("processes")
def write_kernel_settings(facts):
    try:
        with open("/proc/sys/kernel/core_pattern", "r+") as file:
            file.write(file.read())
    except OSError:
        return None
    return "may set kernel.core_pattern"


# --- IPC

@attempt("IPC")
def attach_the_victims_shared_memory(facts):
    return "found the segment" if LIBC.shmget(facts["shm_key"], 0, 0) >= 0 else None


@attempt("IPC")
def list_shared_memory(facts):
    return "lists it" if len(content("/proc/sysvipc/shm").splitlines()) > 1 else None


@attempt("IPC")
def find_a_semaphore_set(facts):
    return "found it" if LIBC.semget(facts["shm_key"], 0, 0) >= 0 else None


@attempt("IPC")
def find_a_message_queue(facts):
    return "found it" if LIBC.msgget(facts["shm_key"], 0) >= 0 else None


@attempt("IPC")
def open_the_victims_posix_shared_memory(facts):
    return "opened it" if os.path.exists("/dev/shm/victim-file") else None


@attempt("IPC")
def connect_to_the_victims_abstract_socket(facts):
    return connects(socket.AF_UNIX, "\0" + facts["abstract"])


@attempt("IPC")
def connect_to_an_abstract_socket_of_the_account(facts):
    return connects(socket.AF_UNIX, "\0" + facts["account_abstract"])


@attempt("IPC")
def list_abstract_sockets(facts):
    text = content("/proc/net/unix").decode(errors="replace")
    return "lists them" if facts["abstract"] in text or facts["account_abstract"] in text else None


@attempt("IPC")
def read_the_session_keyring(facts):
    return refused(250, 0, -3, 0)


@attempt("IPC")
def read_the_keyring_of_the_user(facts):
    return refused(250, 0, -4, 0)


@attempt("IPC")
def add_a_key(facts):
    return refused(248, b"user", b"name", b"x", 1, -3)


# --- network

@attempt("network")
def connect_to_the_victims_port(facts):
    return connects(socket.AF_INET, ("127.0.0.1", facts["port"]))


@attempt("network")
def connect_to_the_victims_port_by_its_address(facts):
    return connects(socket.AF_INET, (facts["address"], facts["port"]))


@attempt("network")
def connect_to_a_service_of_the_machine(facts):
    return connects(socket.AF_INET, ("127.0.0.1", facts["machine_port"]))


@attempt("network")
def connect_to_a_service_of_the_machine_by_its_addresses(facts):
    addresses = list(facts["machine_addresses"])
    for line in content("/proc/net/route").decode().splitlines()[1:]:
        gateway = int(line.split()[2], 16)
        if gateway:
            addresses.append(socket.inet_ntoa(gateway.to_bytes(4, "little")))
    found = [how for address in addresses if (how := connects(socket.AF_INET, (address, facts["open_port"])))]
    return found or None


@attempt("network")
def list_the_victims_ports(facts):
    wanted = f":{facts['port']:04X} ".encode()
    return "lists them" if wanted in content("/proc/net/tcp") + content("/proc/net/tcp6") else None


@attempt("network")
def take_the_victims_port(facts):
    """In a private network this succeeds, but receives no connection of another job."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, 15, 1)  # SO_REUSEPORT
        try:
            taken.bind(("127.0.0.1", facts["port"]))
        except OSError:
            return None
    return None if not connects(socket.AF_INET, (facts["address"], facts["port"])) else "shares it"


# --- the kernel

@attempt("kernel")
def make_a_user_namespace(facts):
    return refused(272, 0x10000000)


@attempt("kernel")
def make_a_mount_namespace(facts):
    return refused(272, 0x00020000)


@attempt("kernel")
def clone_into_a_user_namespace(facts):
    child = None
    try:
        child = call(56, 0x10000000 | 17, None, None, None, None)
    except OSError as error:
        return None if error.errno == errno.EPERM else error.strerror
    if child == 0:
        os._exit(0)
    return "did it"


@attempt("kernel")
def load_a_bpf_program(facts):
    return refused(321, 0, None, 0)


@attempt("kernel")
def count_events_of_others(facts):
    return refused(298, None, -1, 0, -1, 0)


@attempt("kernel")
def handle_page_faults(facts):
    return refused(323, 1)


@attempt("kernel")
def set_up_an_io_ring(facts):
    return refused(425, 1, None)


@attempt("kernel")
def load_a_module(facts):
    return refused(175, None, 0, b"")


@attempt("kernel")
def load_another_kernel(facts):
    return refused(246, 0, 0, None, 0)


@attempt("kernel")
def set_the_clock(facts):
    return refused(227, 0, None)


@attempt("kernel")
def type_into_a_terminal(facts):
    master, slave = os.openpty()
    result = LIBC.ioctl(slave, 0x5412, b"x")
    refusal = ctypes.get_errno()
    os.close(master)
    os.close(slave)
    return None if result < 0 and refusal in (errno.EPERM, errno.EIO) else "typed"


@attempt("kernel")
def type_with_high_bits_set(facts):
    master, slave = os.openpty()
    outcome = refused(16, slave, ctypes.c_ulong((1 << 32) | 0x5412), b"x")
    os.close(master)
    os.close(slave)
    return outcome


def main():
    with open(sys.argv[1]) as file:
        facts = json.load(file)
    for name, (_, function) in ATTEMPTS.items():
        try:
            broken = function(facts)
            print(name, f"BROKEN: {broken}" if broken else "held", flush=True)
        except Absent as why:
            print(name, f"absent: {why}", flush=True)
        except Exception as error:  # an attempt that fails in an unforeseen way has not succeeded
            print(name, f"held ({type(error).__name__}: {error})", flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main()
