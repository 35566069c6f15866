"""Elastic runs with a real driver and real workers: they are killed, hosts come and go, and no batch is lost or trained
twice beyond the last commit."""

import os
import random
import signal
import unittest

from elastic_run import ElasticRun


class Killed(unittest.TestCase):
    def goes_on_after(self, kill, size, **options):
        with ElasticRun(size, "-np", str(size), "--min-np", "1", **options) as run:
            before = run.until_all_entered(size)
            run.until(r"trained \d*5 ")
            run.kill(*kill)
            run.until_trained_with(size - len(kill))
            survivors = [each.worker for each in before if each.rank not in kill]
            after = run.until_all_entered(size)
            # The survivors keep their order, and the first is rank 0: it has the state.
            self.assertEqual([each.worker for each in after if each.worker in survivors], survivors)
            self.assertEqual(after[0].worker, survivors[0])
            self.assertEqual(sorted(each.local_rank for each in after), list(range(size)))
            run.until_trained_with(size)
            run.finish()
            self.assertEqual(run.code, 0, run.text)
            run.assert_every_batch_counted_once(self)

    def test_rank_0(self):
        self.goes_on_after([0], 2)

    def test_the_last_rank(self):
        self.goes_on_after([2], 3)

    def test_two_at_once(self):
        self.goes_on_after([0, 2], 4)

    def test_at_any_moment_also_while_a_world_comes_about(self):
        # Half of the time a worker that has just entered a world, which has hardly begun or already ends.
        chance = random.Random(10)
        node = os.uname().nodename
        with ElasticRun(0, "--min-np", "1", "--max-np", "4", "--blacklist-cooldown-range", "1", "1",
                        hosts=f"localhost:2 127.0.0.1:1 {node}:1") as run:
            run.until_all_entered(4)
            killed = 0
            while killed < 12:
                for _ in range(chance.randint(1, 20)):
                    run.next_line()
                newest = [each.process for each in run.entered.values()][-4:]
                killed += run.kill_process(newest[-1] if chance.random() < 0.5 else chance.choice(newest))
            run.until("trained")
            run.finish()
            self.assertEqual(run.code, 0, run.text)
            self.assertNotIn("exact False", run.text)
            self.assertIn("exact True", run.text)

    def test_in_the_middle_of_a_commit(self):
        with ElasticRun(2, "-np", "2", "--min-np", "1", program=["--crash-in-commit", 1]) as run:
            run.until_all_entered(2)
            run.until_trained_with(1)
            run.until_all_entered(2)
            run.until_trained_with(2)
            run.finish()
            self.assertEqual(run.code, 0, run.text)
            run.assert_every_batch_counted_once(self)


class Hosts(unittest.TestCase):
    def test_one_is_added_and_another_removed_while_training_goes_on(self):
        with ElasticRun(0, "--min-np", "2", hosts="localhost:2") as run:
            run.until_all_entered(2)
            run.hosts("localhost:2 127.0.0.1:2")
            grown = run.until_all_entered(4)
            self.assertEqual([(each.host, each.local_rank, each.local_size, each.cross_rank, each.cross_size)
                              for each in grown],
                             [("localhost", 0, 2, 0, 2), ("localhost", 1, 2, 0, 2), ("127.0.0.1", 0, 2, 1, 2),
                              ("127.0.0.1", 1, 2, 1, 2)])
            self.assertGreater(grown[0].batch, 0)
            run.until_trained_with(4)
            run.hosts("127.0.0.1:2")
            shrunk = run.until_all_entered(2)
            self.assertEqual([each.worker for each in shrunk], [grown[2].worker, grown[3].worker])
            run.until_trained_with(2)
            run.finish()
            self.assertEqual(run.code, 0, run.text)
            self.assertEqual(run.text.count("this worker leaves: host localhost is no longer among the hosts"), 2)
            run.assert_every_batch_counted_once(self)

    def test_one_is_gone_with_all_of_its_processes(self):
        with ElasticRun(0, "--min-np", "2", hosts="localhost:2 127.0.0.1:2") as run:
            run.until_all_entered(4)
            run.until(r"trained \d*5 ")
            run.hosts("127.0.0.1:2")
            run.kill(0, 1)
            self.assertEqual([each.host for each in run.until_all_entered(2)], ["127.0.0.1"] * 2)
            run.until_trained_with(2)
            run.finish()
            self.assertEqual(run.code, 0, run.text)
            run.assert_every_batch_counted_once(self)

    def test_slots_of_a_host_come_and_go(self):
        with ElasticRun(0, "--min-np", "1", "--max-np", "3", hosts="localhost:1") as run:
            run.until_all_entered(1)
            run.hosts("localhost:5")
            run.until_all_entered(3)
            run.until_trained_with(3)
            run.hosts("localhost:2")
            run.until_all_entered(2)
            run.finish()
            self.assertEqual(run.code, 0, run.text)
            self.assertIn("host localhost has 2 slots now", run.text)
            run.assert_every_batch_counted_once(self)

    def test_hosts_without_a_number_have_the_slots_that_were_asked_for(self):
        with ElasticRun(0, "--min-np", "2", "--slots-per-host", "2", hosts="localhost") as run:
            run.until_all_entered(2)
            run.finish()
            self.assertEqual(run.code, 0, run.text)


class Discovery(unittest.TestCase):
    def test_a_script_that_fails_at_first_is_repeated_and_its_fault_is_reported_once(self):
        script = ("n=$(cat $ELASTIC_TEST/runs 2>/dev/null || echo 0); echo $((n + 1)) > $ELASTIC_TEST/runs; "
                  "[ $n -ge 3 ] || { echo 'no such cluster' >&2; exit 7; }; cat $ELASTIC_TEST/hosts")
        with ElasticRun(1, "--min-np", "1", script=script) as run:
            run.until_all_entered(1)
            run.finish()
            self.assertEqual(run.code, 0, run.text)
            self.assertEqual(run.text.count("the discovery script ended with code 7: no such cluster"), 1)

    def test_a_script_that_hangs_does_not_hold_up_a_round(self):
        script = ("if [ -e $ELASTIC_TEST/hang ]; then echo > $ELASTIC_TEST/hangs; cat $ELASTIC_TEST/fifo; fi; "
                  "cat $ELASTIC_TEST/hosts")
        with ElasticRun(2, "--min-np", "1", script=script) as run:
            run.until_all_entered(2)
            (run.folder / "hang").touch()
            while not (run.folder / "hangs").exists():
                run.until("trained")
            run.kill(1)
            run.until_trained_with(1)
            run.until_all_entered(2)
            run.finish()
            self.assertEqual(run.code, 0, run.text)
            run.assert_every_batch_counted_once(self)


class Failing(unittest.TestCase):
    def test_an_error_of_the_program_ends_the_job_with_its_code_and_is_not_tried_again(self):
        with ElasticRun(2, "--min-np", "1", program=["--raise-at", 7]) as run:
            run.wait()
            self.assertEqual(run.code, 1)
            self.assertIn("ArithmeticError: the loss is not a number", run.text)
            self.assertIn("horovodrun: the program failed on rank 0 on localhost: ArithmeticError: the loss is not a "
                          "number", run.lines[-1])
            self.assertEqual(len(run.logs()), 2)

    def test_ranks_that_disagree_end_the_job(self):
        with ElasticRun(2, "--min-np", "1", program=["--mismatch-at", 7]) as run:
            run.wait()
            self.assertEqual(run.code, 1)
            self.assertIn("MismatchError", run.lines[-1])
            self.assertEqual(len(run.logs()), 2)

    def test_a_program_that_fails_as_it_starts_is_given_up(self):
        with ElasticRun(1, "--min-np", "1", command=["sh", "-c", "echo started; exit 3"]) as run:
            run.wait()
            self.assertEqual(run.code, 3)
            self.assertEqual(run.text.count("<stdout>:started"), 3)
            self.assertIn("no host takes workers any more", run.lines[-1])

    def test_a_program_that_does_not_train_may_end_well(self):
        with ElasticRun(2, "-np", "2", "--min-np", "2", command=["echo", "hello"]) as run:
            run.wait()
            self.assertEqual(run.code, 0, run.text)
            self.assertEqual(run.text.count("hello"), 2)

    def test_the_world_is_not_built_more_often_than_allowed(self):
        with ElasticRun(3, "-np", "3", "--min-np", "1", "--max-np", "3", "--reset-limit", "1") as run:
            run.until_all_entered(3)
            run.kill(2)
            run.until_trained_with(2)
            run.kill(1)
            run.wait()
            self.assertNotEqual(run.code, 0)
            self.assertIn("--reset-limit 1", run.lines[-1])

    def test_with_too_few_workers_the_run_waits_and_reports_how_many_are_missing(self):
        with ElasticRun(1, "-np", "2", "--min-np", "2", "--elastic-timeout", "5") as run:
            run.wait()
            self.assertNotEqual(run.code, 0)
            self.assertIn("waiting for workers: 1 of the 2 required workers are ready", run.text)
            self.assertIn("not enough workers within 5 s (--elastic-timeout): 1 of the 2", run.lines[-1])

    def test_below_the_minimum_the_others_wait_until_there_are_enough(self):
        with ElasticRun(3, "-np", "3", "--min-np", "3") as run:
            run.until_all_entered(3)
            run.until(r"trained \d*5 ")
            run.kill(1)
            run.until_all_entered(3)
            run.finish()
            self.assertEqual(run.code, 0, run.text)
            self.assertNotIn("with 2 worker", run.text)
            run.assert_every_batch_counted_once(self)


class Late(unittest.TestCase):
    def test_a_stuck_worker_does_not_delay_the_others_and_joins_again_later(self):
        with ElasticRun(3, "-np", "3", "--min-np", "1", "--max-np", "3", program=["--block-at", 14]) as run:
            run.until_all_entered(3)
            run.until("blocks worker")
            run.kill(0)
            run.until("does not come back: the others continue without it")
            run.until_trained_with(2)
            with open(run.fifo, "w"):
                pass
            run.until("unblocked worker")
            run.until_all_entered(3)
            run.finish()
            self.assertEqual(run.code, 0, run.text)
            self.assertEqual(run.text.count("exact True"), 3)

    def test_a_worker_that_is_stopped_is_left_behind_and_joins_again_when_it_goes_on(self):
        with ElasticRun(2, "-np", "2", "--min-np", "1", "--max-np", "2") as run:
            run.until_all_entered(2)
            run.until(r"trained \d*5 ")
            process = run.process_of(1)
            os.kill(process, signal.SIGSTOP)
            run.until_trained_with(1)
            os.kill(process, signal.SIGCONT)
            run.until_all_entered(2)
            run.finish()
            self.assertEqual(run.code, 0, run.text)


class Ends(unittest.TestCase):
    def test_the_driver_is_killed_and_nothing_is_left(self):
        # The end of the block looks and waits for remaining processes.
        with ElasticRun(2, "--min-np", "1") as run:
            run.until_all_entered(2)
            run.process.kill()
            run.wait()

    def test_ctrl_c_ends_all_workers(self):
        with ElasticRun(2, "--min-np", "1") as run:
            run.until_all_entered(2)
            run.process.send_signal(signal.SIGINT)
            run.wait()
            self.assertEqual(run.code, 130)
            self.assertIn("interrupted", run.lines[-1])


if __name__ == "__main__":
    unittest.main()
