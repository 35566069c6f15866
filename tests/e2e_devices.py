"""The devices in /dev that tasks of a shared server can open, and the size of their temporary folders."""

import os
import re
import unittest

from muster_harness import MusterTest, main

# A /dev with stand-ins for three GPUs and a disk, in a mount namespace of the server's own.
WITH_GPUS = """
set -e
mount -t tmpfs -o mode=755 none "$0"
for name in null zero full random urandom tty ptmx; do cp -a /dev/$name "$0/$name"; done
ln -s /proc/self/fd "$0/fd"
mkdir "$0/pts" "$0/shm"
mount --bind /dev/pts "$0/pts"
mount -t tmpfs -o mode=1777 none "$0/shm"
for gpu in 0 1 2; do mknod -m 666 "$0/nvidia$gpu" c 1 5; done
for driver in nvidiactl nvidia-uvm; do mknod -m 666 "$0/$driver" c 1 3; done
mknod -m 666 "$0/loop-of-others" b 7 7
mount --rbind "$0" /dev
exec "$@"
"""

DEVICES = ("for device in /dev/*; do head -c 0 $device 2>/dev/null && echo opens $(basename $device); done; "
           "echo gpus=$CUDA_VISIBLE_DEVICES")


def opened(text, pattern=r"\S+"):
    return set(re.findall(rf"opens ({pattern})$", text, re.MULTILINE))


@unittest.skipIf(os.geteuid() != 0, "only root can make device files")
class Devices(MusterTest):
    """The devices in /dev that tasks of a shared server can open."""

    def serve(self, *words):
        folder = self.muster.folder / "dev"
        folder.mkdir()
        self.muster.start_server("--listen", "127.0.0.1:0", "--declare-gpus", "3", *words,
                                 prefix=["unshare", "--mount", "--propagation", "private", "sh", "-c", WITH_GPUS,
                                         folder])

    def test_a_task_opens_the_gpus_that_it_claims_and_no_others(self):
        self.serve()
        gate = self.muster.gate()
        self.muster.run("submit", "single", "pair", "--folder", self.muster.work, "--gpus", 2, "--", "sh", "-c",
                        f"{DEVICES}; {gate.wait}")
        pair = self.muster.stream("logs", "pair", "-f", "--no-prefix")
        pair.until("gpus=0,1")

        one = self.muster.run("submit", "single", "one", "--gpus", 1, "--follow", "--no-prefix", "--", "sh", "-c",
                              DEVICES).stdout

        names = [opened(text, r"nvidia\d+") for text in (pair.text, one)]
        self.assertEqual([len(each) for each in names], [2, 1])
        self.assertFalse(names[0] & names[1])
        # CUDA counts the GPUs that it can open.
        self.assertIn("gpus=0\n", one)
        beside = self.muster.run("exec", "pair", "--", "sh", "-c", DEVICES).stdout
        self.assertEqual(opened(beside, r"nvidia\d+"), names[0])
        self.assertIn("gpus=0,1", beside)
        gate.open()

    def test_a_task_opens_common_devices_and_the_drivers_own_and_no_disks(self):
        self.serve()

        found = opened(self.muster.run("submit", "single", "job", "--follow", "--no-prefix", "--", "sh", "-c",
                                       DEVICES).stdout)

        self.assertLessEqual({"null", "zero", "full", "random", "urandom", "nvidiactl", "nvidia-uvm"}, found)
        self.assertFalse({"nvidia0", "nvidia1", "nvidia2", "loop-of-others"} & found)

    def test_devices_and_terminals_work(self):
        self.serve()

        ran = self.muster.run("submit", "single", "job", "--follow", "--no-prefix", "--", "python3", "-c", "\n".join((
            "import os, pty",
            "open('/dev/null', 'w').write('x')",
            "print(len(open('/dev/urandom', 'rb').read(8)), open('/dev/fd/0'))",
            "pid, terminal = pty.fork()",
            "if pid == 0: os.execlp('sh', 'sh', '-c', 'tty; echo here > /dev/tty')",
            "text = b''",
            "try:",
            "    while True: text += os.read(terminal, 100)",
            "except OSError: print(text)")))

        self.assertRegex(ran.stdout, r"8 .*\n.*/dev/pts/\d+.*here")

    def test_all_devices_are_open_where_the_administrator_wants_that(self):
        self.serve("--task-devices", "all")

        found = opened(self.muster.run("submit", "single", "job", "--follow", "--no-prefix", "--", "sh", "-c",
                                       DEVICES).stdout)

        self.assertLessEqual({"nvidia0", "nvidia1", "nvidia2"}, found)


class FullDisks(MusterTest):

    def test_a_task_that_fills_its_temporary_places_leaves_those_of_others(self):
        self.muster.start_server("--listen", "127.0.0.1:0", "--task-scratch", "20Mi")
        gate = self.muster.gate()
        self.muster.run("submit", "single", "filler", "--", "sh", "-c",
                        "for place in /tmp /var/tmp /dev/shm; do head -c 30000000 /dev/zero > $place/big; done 2>&1; "
                        f"echo full; {gate.wait}", "--folder", "/")
        filler = self.muster.stream("logs", "filler", "-f")
        filler.until("full")

        ran = self.muster.run("submit", "single", "other", "--folder", "/", "--follow", "--", "sh", "-c",
                              "for place in /tmp /var/tmp /dev/shm; do head -c 10000000 /dev/zero > $place/big; done && "
                              "echo fine")

        self.assertEqual(filler.text.count("No space left on device"), 3)
        self.assertIn("fine", ran.stdout)
        gate.open()


if __name__ == "__main__":
    main()
