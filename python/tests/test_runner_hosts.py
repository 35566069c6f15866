"""The hosts of a run, and the places of its ranks."""

import shutil
import tempfile
import unittest
from pathlib import Path

from muster.runner.hosts import Host, hosts_of_cluster, hosts_of_file, hosts_of_list, is_local
from muster.runner.places import Place, environment_of, lay_out, own_part


class Hosts(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="muster-runner-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def file(self, text):
        path = self.folder / "hostfile"
        path.write_text(text)
        return str(path)

    def of_file(self, text):
        faults = []
        hosts = hosts_of_file(self.file(text), faults)
        self.assertEqual(faults, [])
        return [tuple(host) for host in hosts]

    def faults_of_file(self, text):
        faults = []
        hosts_of_file(self.file(text), faults)
        return faults

    def test_a_list(self):
        for text, hosts in [("a:2", [("a", 2)]), ("a:2,b:1", [("a", 2), ("b", 1)]), ("a, b:3 ", [("a", 1), ("b", 3)]),
                            ("a:1,b:1,a:2", [("a", 3), ("b", 1)]), ("[fe80::1]:2", [("fe80::1", 2)]),
                            ("fe80::1", [("fe80::1", 1)]), ("10.0.0.1:4", [("10.0.0.1", 4)])]:
            faults = []
            self.assertEqual([tuple(host) for host in hosts_of_list(text, faults)], hosts, text)
            self.assertEqual(faults, [])

    def test_the_files_of_horovod_open_mpi_and_hydra(self):
        self.assertEqual(self.of_file("alpha slots=2\nbeta slots=4\n"), [("alpha", 2), ("beta", 4)])
        self.assertEqual(self.of_file("alpha:2\nbeta:4"), [("alpha", 2), ("beta", 4)])
        self.assertEqual(self.of_file("# head\n\nalpha  slots=2 max_slots=8 # tail\r\n\tbeta\n"),
                         [("alpha", 2), ("beta", 1)])
        self.assertEqual(self.of_file("a slots=1\nb slots=1\na slots=2\n"), [("a", 3), ("b", 1)])

    def test_every_invalid_line_is_named(self):
        found = self.faults_of_file("good slots=1\na slots=x\nb:0\n-c:1\nd two words\n")
        self.assertEqual([fault.split(": ", 1)[0].rpartition(", ")[2] for fault in found],
                         ["line 2", "line 3", "line 4", "line 5"])
        self.assertIn("contains no host", self.faults_of_file("# nothing\n")[0])
        faults = []
        hosts_of_file(str(self.folder), faults)
        hosts_of_file("/no/such", faults)
        (self.folder / "hostfile").write_bytes(b"\xff\xfe")
        hosts_of_file(str(self.folder / "hostfile"), faults)
        self.assertEqual([each.rpartition(": ")[2] for each in faults],
                         ["Is a directory", "No such file or directory", "it is not UTF-8 text"])

    def test_names_that_ssh_or_a_shell_would_obey_are_refused(self):
        for name in ("-oProxyCommand=id", "user@-oProxyCommand=id", "$(id)", "`id`", "a;id", "a|id", "a&", "a'b", "a\x00",
                     "a/b", "@a", "a@b@c", "[-oX]"):
            with self.subTest(name):
                faults = []
                self.assertEqual(hosts_of_list(f"{name}:2", faults), ())
                self.assertIn("is not a host name: expected NAME:SLOTS", faults[0])
        for node in ("-oProxyCommand=id", "-o[1-2]", "$(id)"):
            hosts, faults = self.cluster(SLURM_JOB_NODELIST=node, SLURM_TASKS_PER_NODE="1(x2)")
            self.assertEqual((hosts, bool(faults)), ([], True), node)
        for name in ("user@node-1.example", "n_1", "fe80::1%eth0"):
            faults = []
            self.assertEqual([host.name for host in hosts_of_list(f"[{name}]:2", faults)], [name])

    def cluster(self, **environment):
        faults = []
        hosts = hosts_of_cluster(environment, faults)
        return [tuple(host) for host in hosts], faults

    def test_lsf(self):
        self.assertEqual(self.cluster(LSB_MCPU_HOSTS="a 4 b 8"), ([("a", 4), ("b", 8)], []))
        self.assertEqual(len(self.cluster(LSB_MCPU_HOSTS="a 4 b")[1]), 1)
        self.assertEqual(len(self.cluster(LSB_MCPU_HOSTS="a x b y")[1]), 2)

    def test_slurm(self):
        for nodes, tasks, hosts in [
                ("a", "2", [("a", 2)]), ("a,b", "2,3", [("a", 2), ("b", 3)]),
                ("n[1-3]", "2(x2),1", [("n1", 2), ("n2", 2), ("n3", 1)]),
                ("n[08-10,12]x,m", "1(x5)", [("n08x", 1), ("n09x", 1), ("n10x", 1), ("n12x", 1), ("m", 1)]),
                ("r[1-2]n[3-4]", "1(x4)", [("r1n3", 1), ("r1n4", 1), ("r2n3", 1), ("r2n4", 1)])]:
            self.assertEqual(self.cluster(SLURM_JOB_NODELIST=nodes, SLURM_TASKS_PER_NODE=tasks), (hosts, []), nodes)
        self.assertEqual(self.cluster(SLURM_JOB_NODELIST="a", SLURM_JOB_CPUS_PER_NODE="8"), ([("a", 8)], []))
        for nodes, tasks in [("a[1-", "1"), ("a[2-1]", "1"), ("a[x]", "1"), ("a,,b", "1"), ("a", "x"), ("a", "2(x"),
                             ("a[1-9999999]", "1"), ("a", "0"), ("a[\u00b2]", "1"), ("a", "\u00b2")]:
            _, faults = self.cluster(SLURM_JOB_NODELIST=nodes, SLURM_TASKS_PER_NODE=tasks)
            self.assertEqual(len(faults), 1, (nodes, tasks))

    def test_a_muster_job_comes_before_what_is_around_it(self):
        self.file("w-0 slots=2\n")
        self.assertEqual(self.cluster(MUSTER_GENERATED=str(self.folder), LSB_MCPU_HOSTS="a 4"), ([("w-0", 2)], []))
        self.assertEqual(self.cluster(MUSTER_GENERATED="/no/such"), ([], []))
        self.assertEqual(self.cluster(), ([], []))

    def test_which_names_are_this_host(self):
        import os
        for name in ("localhost", "127.0.0.1", "::1", os.uname().nodename):
            self.assertTrue(is_local(name), name)
        for name in ("127.0.0.2", "other", "localhost.example"):
            self.assertFalse(is_local(name), name)


class Layout(unittest.TestCase):
    def test_hosts_are_filled_in_their_order(self):
        places = lay_out([Host("a", 2), Host("b", 1), Host("c", 3)], 5)
        self.assertEqual(places, [
            Place("a", 0, 5, 0, 2, 0, 3), Place("a", 1, 5, 1, 2, 0, 2), Place("b", 2, 5, 0, 1, 1, 3),
            Place("c", 3, 5, 0, 2, 2, 3), Place("c", 4, 5, 1, 2, 1, 2)])

    def test_what_is_left_over_stays_empty(self):
        self.assertEqual([place.host for place in lay_out([Host("a", 4), Host("b", 4)], 3)], ["a"] * 3)

    def test_every_layout_is_consistent(self):
        for slots in ([1], [3], [1, 1], [2, 1, 4], [1, 5, 1, 2]):
            for size in range(1, sum(slots) + 1):
                places = lay_out([Host(f"h{n}", count) for n, count in enumerate(slots)], size)
                self.assertEqual([place.rank for place in places], list(range(size)))
                for place in places:
                    near = [each for each in places if each.host == place.host]
                    across = [each for each in places if each.local_rank == place.local_rank]
                    self.assertEqual((place.local_size, place.cross_size), (len(near), len(across)))
                    self.assertEqual((near[place.local_rank], across[place.cross_rank]), (place, place))

    def test_the_environment_says_the_place_twice(self):
        said = environment_of(Place("a", 3, 5, 1, 2, 0, 2))
        self.assertEqual((said["MUSTER_RANK"], said["HOROVOD_RANK"], said["HOROVOD_CROSS_SIZE"]), ("3", "3", "2"))

    def test_what_goes_to_other_hosts(self):
        here = {"PATH": "/p", "OWN": "1", "SSH_CONNECTION": "x", "HOME": "/h", "MUSTER_RANK": "1", "DISPLAY": ":0",
                "BASH_FUNC_x%%": "()", "HOROVOD_LOG_LEVEL": "info"}
        self.assertEqual(own_part(here), ({"PATH": "/p", "OWN": "1", "HOROVOD_LOG_LEVEL": "info"}, {}))
        job = {**here, "MUSTER_GENERATED": "/generated", "CUDA_VISIBLE_DEVICES": "3"}
        self.assertEqual(own_part(job), ({}, {"PATH": "/p", "OWN": "1", "HOROVOD_LOG_LEVEL": "info",
                                              "MUSTER_GENERATED": "/generated"}))


if __name__ == "__main__":
    unittest.main()
