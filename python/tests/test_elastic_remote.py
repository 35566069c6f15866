"""Elastic runs over hosts that are reached by ssh: real sshds on this machine, each with its own address."""

import unittest

from elastic_run import ElasticRun
from ssh_hosts import SshHosts


class Remote(unittest.TestCase):
    def setUp(self):
        self.hosts = SshHosts("alpha", "beta")
        self.addCleanup(self.hosts.close)

    def start(self, hosts, *arguments, **options):
        return ElasticRun(0, *arguments, hosts=hosts, environment={"PATH": self.hosts.path}, **options)

    def test_a_host_is_cut_off_and_training_goes_on_at_once(self):
        with self.start("alpha:2 beta:1", "-np", "3", "--min-np", "1") as run:
            before = run.until_all_entered(3)
            self.assertEqual([each.host for each in before], ["alpha", "alpha", "beta"])
            run.until(r"trained \d*5 ")
            run.hosts("beta:1")
            self.hosts.cut("alpha")
            run.until_trained_with(1)
            self.assertEqual([each.worker for each in run.current()], [before[2].worker])
            run.finish()
            self.assertEqual(run.code, 0, run.text)
            run.assert_every_batch_counted_once(self)

    def test_a_host_is_added_to_this_one(self):
        with self.start("localhost:1", "--min-np", "1") as run:
            run.until_all_entered(1)
            run.hosts("localhost:1 alpha:1 beta:1")
            grown = run.until_all_entered(3)
            self.assertEqual(grown[0].host, "localhost")
            self.assertEqual({each.host for each in grown[1:]}, {"alpha", "beta"})
            run.kill(2)
            run.until_trained_with(2)
            run.finish()
            self.assertEqual(run.code, 0, run.text)
            self.assertIn(f"host {grown[2].host} gets no more workers", run.text)
            run.assert_every_batch_counted_once(self)

    def test_an_unreachable_host_does_not_delay_the_run(self):
        with self.start("alpha:1", "--min-np", "1") as run:
            run.until_all_entered(1)
            run.hosts("alpha:1 gamma:2")
            run.until("host gamma cannot be reached: .*gamma")
            run.until("host gamma gets no more workers")
            run.until_trained_with(1)
            run.finish()
            self.assertEqual(run.code, 0, run.text)

    def test_the_driver_is_killed_and_nothing_is_left_on_any_host(self):
        with self.start("alpha:1 beta:1", "--min-np", "2") as run:
            run.until_all_entered(2)
            run.process.kill()
            run.wait()


if __name__ == "__main__":
    unittest.main()
