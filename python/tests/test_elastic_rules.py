"""The rules of an elastic run, by values: no process, no clock."""

import unittest

from muster.common.elastic import protocol
from muster.runner.elastic.assignment import assign
from muster.runner.elastic.host_book import LOSSES_IN_A_ROW, ONE_LOSS, QUICK, HostBook
from muster.runner.elastic.orders import Limits
from muster.runner.elastic.rounds import FRUITLESS_ROUNDS, GATHERING, GRACE
from muster.runner.elastic.run_rules import RunRules
from muster.runner.elastic.workers import Phase, Worker


class Book:
    """Records the orders of the rules, and plays the workers."""

    def __init__(self, first=2, fewest=1, most=None, **limits):
        self.now = 0.0
        self.started = []
        self.ended = []
        self.sent = []
        self.said = []
        self.rules = RunRules(Limits(first, fewest, most, **limits), self)

    # --- Orders ---

    def start(self, worker):
        self.started.append(worker)

    def end(self, worker):
        self.ended.append(worker)

    def send(self, worker, kind, **fields):
        self.sent.append((worker, kind, fields))

    def say(self, sentence):
        self.said.append(sentence)

    def listen_at(self, host, hosts):
        return "127.0.0.1"

    # --- actions ---

    def hosts(self, **slots):
        self.rules.hosts_found(slots, self.now)
        self.rules.advance(self.now)

    def ready(self, *workers, because=protocol.BECAUSE_STARTED, synced=0, commits=0, blames=None, error=""):
        for worker in workers:
            self.rules.asks_for_place(worker, {"because": because, "synced": synced, "commits": commits,
                                               "blames": blames, "error": error}, self.now)
            self.rules.advance(self.now)

    def back(self, *workers, blames=None):
        """Workers with the state come back because their world failed."""
        self.ready(*workers, because=protocol.BECAUSE_WORLD_FAILED, synced=self.rules.round, blames=blames, error="e")

    def interrupted(self, *workers):
        self.ready(*workers, because=protocol.BECAUSE_HOSTS_CHANGED, synced=self.rules.round)

    def over(self, worker, code=0):
        self.rules.over(worker, code, f"{worker.name} is lost" if code else "", self.now)
        self.rules.advance(self.now)

    def later(self, seconds):
        self.now += seconds
        self.rules.advance(self.now)

    # --- observations ---

    def places(self):
        """The workers of the newest round by rank, according to their messages; rank 0 reports its address."""
        first, _, fields = self.of_kind(protocol.PLACE)[-1]
        self.rules.listens(first, fields["round"], "127.0.0.1:1")
        mine = [(fields["rank"], worker) for worker, _, fields in self.of_kind(protocol.PLACE)
                if fields["round"] == self.rules.round]
        return [worker for _, worker in sorted(mine, key=lambda each: each[0])]

    def of_kind(self, kind):
        return [each for each in self.sent if each[1] == kind]

    def told(self, worker, kind):
        return [fields for whom, what, fields in self.sent if whom is worker and what == kind]


def running(slots=2, **limits):
    """A run whose first round trains on `slots` of host a."""
    book = Book(first=slots, **limits)
    book.hosts(a=slots)
    book.ready(*book.started)
    return book, book.places()


class Beginning(unittest.TestCase):
    def test_the_first_round_waits_for_all_and_is_told_by_rank(self):
        book = Book(first=1)
        book.hosts(a=2, b=1)
        self.assertEqual([(each.host, each.slot) for each in book.started], [("a", 0), ("a", 1), ("b", 0)])
        book.ready(book.started[1], book.started[2])
        self.assertEqual(book.sent, [])
        book.ready(book.started[0])
        self.assertEqual(book.places(), book.started)
        self.assertEqual(book.rules.round, 1)

    def test_others_are_placed_once_rank_0_listens(self):
        book = Book()
        book.hosts(a=2)
        book.ready(*book.started)
        (first, _, fields), = book.sent
        self.assertEqual((first, fields["listen_at"]), (book.started[0], "127.0.0.1"))
        book.rules.listens(first, 7, "elsewhere:1")
        self.assertEqual(len(book.sent), 1)
        book.rules.listens(first, 1, "127.0.0.1:5")
        self.assertEqual(book.sent[1][2]["endpoint"], "127.0.0.1:5")

    def test_no_more_workers_are_started_than_allowed(self):
        book = Book(first=1, most=2)
        book.hosts(a=5)
        self.assertEqual(len(book.started), 2)

    def test_a_failed_start_is_repeated_until_the_host_is_left_out_for_good(self):
        book = Book(first=1)
        book.hosts(a=1)
        for attempt in range(LOSSES_IN_A_ROW):
            self.assertEqual(len(book.started), attempt + 1)
            book.later(ONE_LOSS)
            book.over(book.started[-1], 3)
            book.later(ONE_LOSS)
        self.assertEqual(len(book.started), LOSSES_IN_A_ROW)
        self.assertEqual(book.rules.verdict.code, 3)
        self.assertIn("no host takes workers any more", book.rules.verdict.sentence)

    def test_too_few_within_the_time_end_the_run(self):
        book = Book(first=2, fewest=2, elastic_timeout=60)
        book.hosts(a=1)
        book.ready(*book.started)
        book.later(59)
        self.assertIn("1 of the 2 required workers", book.said[-1])
        self.assertIsNone(book.rules.verdict)
        book.later(2)
        self.assertIn("--elastic-timeout", book.rules.verdict.sentence)

    def test_after_that_time_the_first_round_begins_with_the_fewest_too(self):
        book = Book(first=3, fewest=1, elastic_timeout=60)
        book.hosts(a=1)
        book.ready(*book.started)
        book.later(61)
        self.assertEqual(book.places(), book.started)


class Losing(unittest.TestCase):
    def test_survivors_go_on_at_once_and_the_replacement_is_taken_in_later(self):
        book, (zero, one) = running()
        book.over(zero, 137)
        self.assertEqual([(each.host, each.slot) for each in book.started[2:]], [("a", 0)])
        book.back(one)
        self.assertEqual(book.places(), [one])
        self.assertEqual(book.told(one, protocol.HOSTS), [])
        book.ready(book.started[2])
        (update,) = book.told(one, protocol.HOSTS)
        self.assertEqual(update["result"], 2)
        book.interrupted(one)
        self.assertEqual(book.places(), [one, book.started[2]])
        # The slot is the GPU that the program uses: it does not change.
        self.assertEqual([book.told(each, protocol.PLACE)[-1]["local_rank"] for each in (one, book.started[2])], [1, 0])
        self.assertEqual(book.told(one, protocol.PLACE)[-1]["announced"], update["serial"])

    def test_a_world_that_still_meets_is_called_off(self):
        book, (zero, one, two) = running(3)
        book.over(two, 137)
        for each in (zero, one):
            self.assertEqual(book.told(each, protocol.CALLED_OFF), [{"round": 1}])

    def test_a_worker_without_a_place_in_the_round_is_in_the_next(self):
        book = Book(first=3)
        book.hosts(a=3)
        book.ready(*book.started)
        book.over(book.started[0], 137)  # rank 0, before it reported its address
        self.assertEqual(book.places(), book.started[1:3])
        self.assertEqual(book.rules.round, 2)

    def test_a_loss_while_rank_0_opens_its_port_spares_the_others_that_round(self):
        book = Book(first=3)
        book.hosts(a=3)
        book.ready(*book.started)
        zero, one, two = book.started[:3]
        book.over(two, 137)
        book.rules.listens(zero, 1, "127.0.0.1:1")
        self.assertEqual(book.told(one, protocol.PLACE), [])
        book.back(zero)
        self.assertEqual(book.rules.round, 2)
        self.assertEqual(book.places(), [zero, one])

    def test_a_worker_that_does_not_come_back_is_left_behind_after_a_grace(self):
        book, (zero, one, two) = running(3)
        book.over(zero, 137)
        book.back(one)
        book.later(GRACE / 2)
        self.assertEqual(book.rules.round, 1)
        self.assertLessEqual(book.rules.next_deadline(book.now), book.now + GRACE / 2)
        book.later(GRACE / 2)
        self.assertEqual(book.places(), [one])
        self.assertIs(two.phase, Phase.LATE)
        book.back(two)
        book.interrupted(one)
        self.assertEqual(book.places()[0], one)
        self.assertIn(two, book.places())

    def test_no_round_waits_for_a_blamed_worker(self):
        book, (zero, one) = running()
        book.back(zero, blames=1)
        self.assertEqual(book.places(), [zero])
        self.assertIs(one.phase, Phase.LATE)

    def test_a_worker_that_stays_away_is_ended_at_last_and_its_slot_filled(self):
        book, (zero, one) = running(elastic_timeout=100)
        book.back(zero, blames=1)
        book.later(99)
        self.assertEqual(book.ended, [])
        book.later(2)
        self.assertEqual(book.ended, [one])
        book.over(one, 143)
        self.assertEqual(len(book.started), 3)

    def test_rank_0_has_the_newest_state(self):
        # A host's new worker came in, and before it had the state, the old one of that host was lost.
        book, (zero, one) = running()
        book.hosts(a=2, b=1)
        newcomer = book.started[2]
        book.ready(newcomer)
        book.interrupted(zero, one)
        self.assertEqual(book.places(), [zero, one, newcomer])
        book.over(zero, 137)
        book.ready(newcomer, because=protocol.BECAUSE_WORLD_FAILED, synced=0)
        book.ready(one, because=protocol.BECAUSE_WORLD_FAILED, synced=1)
        self.assertEqual(book.places(), [one, newcomer])

    def test_rank_0_is_the_worker_with_the_latest_commit(self):
        book, (zero, one, two) = running(3)
        book.over(zero, 137)
        book.ready(one, because=protocol.BECAUSE_WORLD_FAILED, synced=1, commits=4)
        book.ready(two, because=protocol.BECAUSE_WORLD_FAILED, synced=1, commits=5)
        self.assertEqual(book.places(), [two, one])

    def test_the_loss_of_all_workers_with_the_state_is_reported(self):
        book, (zero,) = running(1)
        book.over(zero, 137)
        book.ready(book.started[1])
        self.assertEqual(book.places(), [book.started[1]])
        self.assertIn("starts from the beginning", book.said[-1])

    def test_below_the_minimum_no_worker_trains(self):
        book, (zero, one) = running(fewest=2)
        book.over(one, 137)
        book.back(zero)
        self.assertEqual(book.rules.round, 1)
        book.ready(book.started[2])
        self.assertEqual(book.places(), [zero, book.started[2]])

    def test_the_limit_of_resets(self):
        book, (zero, one) = running(reset_limit=1)
        book.over(one, 137)
        book.back(zero)
        self.assertEqual(book.rules.round, 2)
        book.over(book.started[2], 1)
        book.back(zero)
        self.assertIn("--reset-limit 1", book.rules.verdict.sentence)

    def test_worlds_that_fail_repeatedly_without_a_loss_end_the_run(self):
        book, workers = running()
        for _ in range(FRUITLESS_ROUNDS):
            self.assertIsNone(book.rules.verdict)
            book.back(*workers)
            if book.rules.verdict is None:
                self.assertEqual(book.places(), workers)
        self.assertIn(f"{FRUITLESS_ROUNDS} times in a row although no worker was lost", book.rules.verdict.sentence)


class Changing(unittest.TestCase):
    def test_training_workers_are_not_interrupted_before_the_new_workers_are_ready(self):
        book, workers = running()
        book.hosts(a=2, b=2)
        third, fourth = book.started[2:]
        book.ready(third)
        self.assertEqual(book.of_kind(protocol.HOSTS), [])
        book.ready(fourth)
        self.assertEqual({each[0] for each in book.of_kind(protocol.HOSTS)}, set(workers))

    def test_a_slow_start_of_a_worker_does_not_delay_other_workers(self):
        book, workers = running()
        book.hosts(a=2, b=2)
        book.ready(book.started[2])
        book.later(GATHERING)
        self.assertEqual(len(book.of_kind(protocol.HOSTS)), len(workers))

    def test_a_host_that_goes_is_left_in_order_and_the_state_need_not_be_sent(self):
        book = Book(first=4)
        book.hosts(a=2, b=2)
        book.ready(*book.started)
        workers = book.places()
        book.hosts(a=2)
        self.assertEqual({fields["result"] for _, _, fields in book.of_kind(protocol.HOSTS)}, {1})
        book.interrupted(*workers)
        self.assertEqual([each[0] for each in book.of_kind(protocol.LEAVE)], workers[2:])
        self.assertEqual(book.places(), workers[:2])
        self.assertTrue(book.told(workers[0], protocol.PLACE)[-1]["may_skip_sync"])
        for each in workers[2:]:
            book.over(each)
        self.assertIsNone(book.rules.verdict)
        self.assertEqual(len(book.started), 4)

    def test_the_state_is_sent_after_a_failure_and_to_new_workers(self):
        book, (zero, one) = running()
        book.hosts(a=2, b=1)
        book.ready(book.started[2])
        book.interrupted(zero)
        book.back(one)
        self.assertEqual({fields["may_skip_sync"] for _, _, fields in book.of_kind(protocol.PLACE)}, {False})

    def test_a_host_that_goes_before_its_worker_is_ready_is_no_loss(self):
        book, _ = running()
        book.hosts(a=2, b=1)
        book.hosts(a=2)
        self.assertEqual(book.ended, [book.started[2]])
        book.over(book.started[2], 143)
        self.assertEqual(book.said, [])
        self.assertEqual(book.of_kind(protocol.HOSTS), [])

    def test_a_host_that_comes_back_in_time_stays(self):
        book, workers = running()
        book.hosts(a=1)
        book.hosts(a=2)
        book.interrupted(*workers)
        self.assertEqual(book.places(), workers)


class Ending(unittest.TestCase):
    def test_all_of_the_last_round_end_well(self):
        book, (zero, one) = running()
        book.over(one)
        self.assertIsNone(book.rules.verdict)
        book.over(zero)
        self.assertEqual(book.rules.verdict.code, 0)

    def test_a_worker_that_fails_after_others_have_finished_gives_the_run_its_code(self):
        book, (zero, one) = running()
        book.over(one)
        book.over(zero, 139)
        self.assertEqual(book.rules.verdict.code, 139)
        self.assertIn("rank 0 failed after others had finished", book.rules.verdict.sentence)

    def test_a_worker_that_is_still_starting_at_the_end_is_ended(self):
        book, (zero, one) = running()
        book.hosts(a=2, b=2)
        book.ready(book.started[2])
        book.over(zero)
        self.assertEqual(book.ended, [book.started[3]])
        self.assertEqual(book.told(book.started[2], protocol.LEAVE), [{"why": "the training is over"}])
        book.over(one)
        self.assertEqual(book.rules.verdict.code, 0)

    def test_an_error_of_the_program_is_the_verdict_once_its_process_is_over(self):
        book, (zero, one) = running()
        book.rules.gave_up(one, "ValueError: x", book.now)
        book.rules.advance(book.now)
        book.back(zero)
        self.assertIsNone(book.rules.verdict)
        book.over(one, 5)
        self.assertEqual(book.rules.verdict, (5, "the program failed on rank 1 on a: ValueError: x"))

    def test_or_after_a_while(self):
        book, (zero, one) = running()
        book.rules.gave_up(one, "ValueError: x", book.now)
        book.later(book.rules.next_deadline(book.now))
        self.assertEqual(book.rules.verdict.code, 1)

    def test_a_program_that_never_joins_may_end_well(self):
        book = Book(first=2)
        book.hosts(a=2)
        book.over(book.started[0])
        self.assertIsNone(book.rules.verdict)
        self.assertEqual(book.ended, [])
        book.over(book.started[1])
        self.assertEqual(book.rules.verdict.code, 0)


class Ranks(unittest.TestCase):
    def workers(self, *described):
        made = []
        for host, slot, rank, synced in described:
            made.append(Worker(str(len(made)), host, slot, 0.0, rank=rank, synced=synced))
        return made

    def test_new_ones_are_by_host_and_slot(self):
        workers = self.workers(("b", 0, None, 0), ("a", 1, None, 0), ("a", 0, None, 0), ("b", 1, None, 0))
        placed = assign(workers, ["a", "b"])
        self.assertEqual([(each.host, each.slot) for each, _ in placed], [("a", 0), ("a", 1), ("b", 0), ("b", 1)])
        self.assertEqual([fields["cross_rank"] for _, fields in placed], [0, 0, 1, 1])

    def test_uneven_hosts(self):
        placed = assign(self.workers(("a", 0, None, 0), ("b", 0, None, 0), ("b", 1, None, 0)), ["a", "b"])
        self.assertEqual([(each["rank"], each["local_rank"], each["local_size"], each["cross_rank"], each["cross_size"])
                          for _, each in placed], [(0, 0, 1, 0, 2), (1, 0, 2, 1, 2), (2, 1, 2, 0, 1)])

    def test_survivors_keep_their_order(self):
        workers = self.workers(("c", 0, None, 0), ("b", 1, 3, 2), ("b", 0, 2, 2), ("a", 1, 1, 2))
        self.assertEqual([(each.host, each.slot) for each, _ in assign(workers, ["a", "b", "c"])],
                         [("a", 1), ("b", 0), ("b", 1), ("c", 0)])

    def test_a_newcomer_on_the_first_host_is_not_rank_0(self):
        workers = self.workers(("a", 0, None, 0), ("a", 1, 0, 4), ("b", 0, 1, 4))
        placed = assign(workers, ["a", "b"])
        self.assertEqual([(each.host, each.slot, fields["local_rank"]) for each, fields in placed],
                         [("a", 1, 1), ("a", 0, 0), ("b", 0, 0)])


class LeftOut(unittest.TestCase):
    def test_a_host_is_left_out_at_once_where_the_others_have_enough_slots(self):
        book = HostBook(fewest=2)
        book.found({"a": 2, "b": 2})
        self.assertIn("host a gets no more workers", book.lost("a", 1000, 0.0))
        self.assertFalse(book.takes_workers("a", 1e9))
        self.assertIsNone(book.lost("b", 1000, 10.0), "the run needs the slots of b")
        self.assertTrue(book.takes_workers("b", 10.0))

    def test_a_host_that_went_and_came_back_is_a_new_one(self):
        book = HostBook()
        book.found({"a": 1, "b": 1})
        book.lost("a", 1000, 0.0)
        book.found({"b": 1})
        book.found({"a": 1, "b": 1})
        self.assertTrue(book.takes_workers("a", 0.0))

    def test_the_slot_of_a_lost_worker_stays_empty_on_such_a_host(self):
        book = Book(first=2)
        book.hosts(a=1, b=1)
        book.ready(*book.started)
        zero, one = book.places()
        book.over(one, 137)
        book.back(zero)
        self.assertEqual(len(book.started), 2)
        self.assertEqual(book.places(), [zero])

    def test_only_losses_in_a_row_soon_after_the_start_count(self):
        book = HostBook()
        for now, lived in enumerate((1, 1, QUICK, 1)):
            self.assertIsNone(book.lost("a", lived, 10.0 * now))
        self.assertIn("3 in a row", book.lost("a", 1, 100.0))
        self.assertFalse(book.takes_workers("a", 1e9))

    def test_the_workers_that_are_lost_at_once_are_one_loss(self):
        book = HostBook()
        for _ in range(8):
            self.assertIsNone(book.lost("a", 1, 10.0))
        self.assertTrue(book.takes_workers("a", 10.0 + ONE_LOSS))

    def test_a_cooldown_doubles_up_to_its_longest(self):
        book = HostBook((10, 35))
        now, times = 0.0, []
        for _ in range(4):
            book.lost("a", 1000, now)
            self.assertFalse(book.takes_workers("a", now))
            times.append(book.next_return(now) - now)
            now = book.next_return(now)
            self.assertTrue(book.takes_workers("a", now))
        self.assertEqual(times, [10, 20, 35, 35])
        now += 1000
        book.lost("a", 1000, now)
        self.assertEqual(book.next_return(now) - now, 10)

    def test_workers_of_a_host_that_is_left_out_stay(self):
        book, (zero, one) = running(cooldown=(10, 20))
        book.over(one, 137)
        self.assertEqual(len(book.started), 2)
        book.back(zero)
        self.assertEqual(book.places(), [zero])
        self.assertEqual(book.rules.next_deadline(book.now), 10)
        book.later(10)
        self.assertEqual(len(book.started), 3)


if __name__ == "__main__":
    unittest.main()
