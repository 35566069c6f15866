"""The keys of an MPI job: their owner, their permissions, the pinned host keys, and their removal."""

import subprocess

from muster_harness import DOCUMENTS_MPIRUN, MusterTest, all_below, main, mode_of


class Keys(MusterTest):

    def start(self, name):
        """Starts an MPI job that waits; returns it while it runs."""
        gate = self.muster.gate(f"gate-{name}")
        follow = self.muster.stream("submit", "mpi", name, "--workers", 2, "--follow", "--",
                                    *DOCUMENTS_MPIRUN, "sh", "-c", f"echo here; {gate.wait}")
        follow.until("here")
        follow.until("here")
        return gate, follow, self.muster.job(name)

    def finish(self, gate, follow):
        gate.open(times=2)
        self.assertEqual(follow.finish(), 0, follow.errors)

    def ssh_folder(self, job, task):
        return self.muster.task_folder(job, task) / "generated" / "ssh"

    def public_line(self, private):
        """The public key of a private key, as `ssh-ed25519 AAAA...`."""
        ran = subprocess.run(["ssh-keygen", "-y", "-f", str(private)], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return " ".join(ran.stdout.split()[:2])

    def test_each_job_has_a_new_ed25519_client_key_and_another_host_key(self):
        jobs = [self.start(name) for name in ("one", "two")]

        lines = [self.public_line(self.ssh_folder(job, "worker-0") / key)
                 for _, _, job in jobs for key in ("id_ed25519", "host_ed25519")]

        self.assertEqual([line.split()[0] for line in lines], ["ssh-ed25519"] * 4)
        self.assertEqual(len(set(lines)), 4)
        for gate, follow, _ in jobs:
            self.finish(gate, follow)

    def test_only_the_owner_may_read_the_keys_and_the_launcher_has_no_host_key(self):
        gate, follow, job = self.start("dist")

        for task in ("launcher", "worker-0", "worker-1"):
            generated = self.muster.task_folder(job, task) / "generated"
            for path in (generated, *all_below(generated)):
                if {generated / "tmp", generated / "ranks"} & set(path.parents):
                    continue  # made by the program itself, and by its ranks
                allowed = (0o700,) if path.is_dir() else (0o600, 0o700)
                self.assertIn(mode_of(path), allowed, path)
            keys = self.muster.private_keys(generated)
            self.assertGreater(len(keys), 0)
            for key in keys:
                self.assertEqual(mode_of(key), 0o600, key)
        for folder in (self.muster.state, self.muster.state / "jobs",
                       self.muster.task_folder(job, "launcher").parent):
            self.assertEqual(mode_of(folder), 0o700, folder)
        self.assertFalse((self.ssh_folder(job, "launcher") / "host_ed25519").exists())
        self.finish(gate, follow)

    def test_known_hosts_pins_the_host_key_of_every_worker(self):
        gate, follow, job = self.start("dist")

        pinned = (self.ssh_folder(job, "launcher") / "known_hosts").read_text()

        self.assertEqual(pinned, "".join(
            f"dist-{worker} {self.public_line(self.ssh_folder(job, worker) / 'host_ed25519')}\n"
            for worker in ("worker-0", "worker-1")))
        self.finish(gate, follow)

    def test_ssh_refuses_unknown_host_keys_and_sshd_refuses_unknown_client_keys(self):
        ran = self.muster.run(
            "submit", "mpi", "dist", "--workers", 1, "--follow", "--", "sh", "-c",
            "ssh -G -F /generated/ssh/config dist-worker-0 | grep -i stricthostkeychecking\n"
            "ssh -F /generated/ssh/config dist-worker-0 echo known\n"
            "ssh-keygen -q -t ed25519 -N '' -f $TMPDIR/other\n"
            "echo dist-worker-0 $(cut -d' ' -f1,2 $TMPDIR/other.pub) > $TMPDIR/hosts\n"
            "ssh -F /generated/ssh/config -o UserKnownHostsFile=$TMPDIR/hosts dist-worker-0 echo reached"
            " || echo turned away\n"
            "sed s#/generated/ssh/id_ed25519#$TMPDIR/other# /generated/ssh/config > $TMPDIR/config\n"
            "ssh -F $TMPDIR/config dist-worker-0 echo entered || echo kept out\n")

        lines = [line.removeprefix("[launcher] ") for line in ran.stdout.splitlines()]
        self.assertIn(lines[0], ("stricthostkeychecking true", "stricthostkeychecking yes"))
        self.assertIn("known", lines)
        self.assertIn("turned away", lines)
        self.assertIn("kept out", lines)
        self.assertFalse({"reached", "entered"} & set(lines), ran.stdout)

    def test_private_keys_are_removed_when_the_job_ends_and_logs_when_it_is_deleted(self):
        gate, follow, job = self.start("dist")
        self.finish(gate, follow)

        self.assertEqual(self.muster.private_keys(), [])
        self.assertIn("[1@dist-worker-1] here", self.muster.logs("dist"))
        self.muster.run("delete", "dist")

        self.assertEqual(self.muster.job_folders(), [])
        self.assertEqual(self.muster.jobs(), [])

    def test_private_keys_are_removed_when_a_job_fails_or_is_stopped(self):
        self.muster.run("submit", "mpi", "fails", "--workers", 1, "--follow", "--", "false", code=1)
        gate, follow, _ = self.start("stopped")
        self.muster.run("stop", "stopped")
        follow.finish()

        self.assertEqual(self.muster.job("stopped")["phase"], "Stopped")
        self.assertEqual(self.muster.private_keys(), [])


if __name__ == "__main__":
    main()
