"""Environment variables of launchers and users, and the settings that result."""

import unittest

from muster.common import environment, knobs, subsets
from muster.common.environment import Place
from muster.common.exceptions import ConfigurationError

HOROVODRUN = {"HOROVOD_RANK": "1", "HOROVOD_SIZE": "2", "HOROVOD_LOCAL_RANK": "1", "HOROVOD_LOCAL_SIZE": "2",
              "HOROVOD_CROSS_RANK": "0", "HOROVOD_CROSS_SIZE": "1", "HOROVOD_GLOO_RENDEZVOUS_ADDR": "127.0.0.1",
              "HOROVOD_GLOO_RENDEZVOUS_PORT": "12345", "HOROVOD_CONTROLLER": "gloo", "HOROVOD_HOSTNAME": "n1"}


class Places(unittest.TestCase):
    def test_without_a_launcher_the_library_decides(self):
        self.assertEqual(environment.find_place({}), Place())

    def test_launchers_that_the_library_knows_are_left_to_it(self):
        for variables in ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, {"PMI_RANK": "1", "PMI_SIZE": "2"},
                          {"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, {"RANK": "1", "WORLD_SIZE": "2"}):
            self.assertEqual(environment.find_place(variables), Place())

    def test_our_own_variables(self):
        place = environment.find_place({"MUSTER_RANK": "2", "MUSTER_WORLD_SIZE": "3", "MUSTER_RENDEZVOUS": "n1:5",
                                        "MUSTER_RENDEZVOUS_KEY": "00ff"})
        self.assertEqual((place.rank, place.size, place.rendezvous, place.key, place.rendezvous_file, place.local_rank),
                         (2, 3, "n1:5", "00ff", None, None))

    def test_the_key_is_not_shown(self):
        self.assertNotIn("5ec", repr(Place(key="5ec4e7")))

    def test_ours_go_before_horovods_and_those_before_mpis(self):
        mpi = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}
        both = {**HOROVODRUN, **mpi, "MUSTER_RANK": "1", "MUSTER_WORLD_SIZE": "2", "MUSTER_RENDEZVOUS_FILE": "/x/world"}
        self.assertEqual(environment.find_place(both).told_by, "MUSTER_RANK")
        self.assertEqual(environment.find_place({**HOROVODRUN, **mpi}).told_by, "HOROVOD_RANK")

    def test_launchers_that_contradict_each_other_are_refused(self):
        alone = {"MUSTER_RANK": "0", "MUSTER_WORLD_SIZE": "1"}
        mpi = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
        torchrun = {"RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none"}
        for variables, words in (
                ({**alone, **mpi}, "MUSTER_WORLD_SIZE set rank 0 of 1, but OMPI_COMM_WORLD_RANK and .* rank 0 of 2"),
                ({**HOROVODRUN, **mpi}, "HOROVOD_SIZE set rank 1 of 2, but OMPI_COMM_WORLD_RANK and .* rank 0 of 2"),
                ({**HOROVODRUN, **alone}, "MUSTER_WORLD_SIZE set rank 0 of 1, but HOROVOD_RANK and .* rank 1 of 2"),
                ({**alone, "PMI_RANK": "0", "PMI_SIZE": "2"}, "but PMI_RANK and PMI_SIZE rank 0 of 2: one launcher"),
                ({**alone, **torchrun}, "but RANK and WORLD_SIZE rank 0 of 2: one launcher .* unset the variables"),
                ({**mpi, "OMPI_COMM_WORLD_SIZE": "1", **torchrun}, "OMPI_COMM_WORLD_SIZE set rank 0 of 1, but RANK")):
            with self.subTest(words), self.assertRaisesRegex(ConfigurationError, words):
                environment.find_place(variables)

    def test_what_stands_around_a_launcher_contradicts_nothing(self):
        alone = {"MUSTER_RANK": "0", "MUSTER_WORLD_SIZE": "1"}
        mpi = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
        for variables in ({**alone, "SLURM_PROCID": "0", "SLURM_NTASKS": "2"},
                          {**alone, "RANK": "1", "WORLD_SIZE": "2"}, {**mpi, "PMI_RANK": "0", "PMI_SIZE": "1"}):
            environment.find_place(variables)

    def test_ranks_of_a_list_may_be_any_whole_numbers(self):
        class Number:
            """A whole number that is not an int, like numpy's."""

            def __init__(self, value):
                self.value = value

            def __index__(self):
                return self.value

        place = Place(rank=1, size=2, rendezvous_file="/x/world")
        self.assertIs(subsets.place_within(place, [Number(0), Number(1)]), place)
        self.assertEqual(subsets.place_within(place, [Number(1)]).size, 1)
        for wrong in (1.0, "1", None):
            with self.assertRaisesRegex(ValueError, "not in a world of 2"):
                subsets.place_within(place, [0, wrong])

    def test_half_of_the_variables_of_an_mpi_launcher_do_not_make_a_world_of_one(self):
        for name, other in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_SIZE", "PMI_RANK")):
            with self.assertRaisesRegex(ConfigurationError, f"{name} is '1', but {other} is not set"):
                environment.find_place({name: "1"})
        environment.find_place({"PMI_RANK": "1", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"})

    def test_horovods_own_launcher_on_one_host(self):
        place = environment.find_place(HOROVODRUN)
        self.assertEqual((place.rank, place.size, place.local_rank, place.local_size, place.cross_rank,
                          place.cross_size, place.host), (1, 2, 1, 2, 0, 1, "n1"))
        self.assertEqual(environment.find_place({**HOROVODRUN, "HOROVOD_RANK": "0"}).rendezvous_file,
                         place.rendezvous_file)
        self.assertNotEqual(environment.find_place({**HOROVODRUN, "HOROVOD_GLOO_RENDEZVOUS_PORT": "1"}).rendezvous_file,
                            place.rendezvous_file)
        self.assertRegex(place.rendezvous_file, "muster-collective")

    def test_horovods_own_launcher_on_two_hosts_needs_an_address_where_the_ranks_meet(self):
        spread = {**HOROVODRUN, "HOROVOD_LOCAL_RANK": "0", "HOROVOD_LOCAL_SIZE": "1", "HOROVOD_CROSS_RANK": "1",
                  "HOROVOD_CROSS_SIZE": "2"}
        with self.assertRaisesRegex(ConfigurationError, "HOROVOD_SIZE is 2, but the address where the ranks meet"):
            environment.find_place(spread)
        place = environment.find_place({**spread, "MUSTER_RENDEZVOUS": "n1:5", "MUSTER_RENDEZVOUS_KEY": "00"})
        self.assertEqual((place.rendezvous, place.rendezvous_file), ("n1:5", None))

    def test_a_world_of_one_needs_nowhere_to_meet(self):
        place = environment.find_place({"HOROVOD_RANK": "0", "HOROVOD_SIZE": "1"})
        self.assertEqual((place.rank, place.size, place.rendezvous_file), (0, 1, None))

    def test_all_faults_are_reported_together(self):
        for variables, words in (
                ({"MUSTER_RANK": "1"}, ["MUSTER_RANK is set, but MUSTER_WORLD_SIZE is not"]),
                ({"HOROVOD_SIZE": "1"}, ["HOROVOD_SIZE is set, but HOROVOD_RANK is not"]),
                ({**HOROVODRUN, "HOROVOD_RANK": "2"}, ["HOROVOD_RANK is 2 and HOROVOD_SIZE is 2"]),
                ({**HOROVODRUN, "HOROVOD_RANK": "-1", "HOROVOD_SIZE": "two", "HOROVOD_CROSS_SIZE": "1.5",
                  "HOROVOD_LOCAL_RANK": "\u0661"},
                 ["HOROVOD_RANK is '-1'", "HOROVOD_SIZE is 'two'", "HOROVOD_CROSS_SIZE is '1.5'", "HOROVOD_LOCAL_RANK is"]),
                ({**HOROVODRUN, "HOROVOD_LOCAL_RANK": "3"}, ["HOROVOD_LOCAL_RANK is 3 and HOROVOD_LOCAL_SIZE is 2"])):
            with self.assertRaises(ConfigurationError) as caught:
                environment.find_place(variables)
            for each in words:
                self.assertIn(each, str(caught.exception))


class Knobs(unittest.TestCase):
    def read(self, **variables):
        faults = []
        found = knobs.read(faults, {f"HOROVOD_{name}": value for name, value in variables.items()})
        self.assertEqual(faults, [])
        return found

    def test_each_variable_that_means_something(self):
        for variables, wanted in (
                ({}, {}),
                ({"TIMELINE": "/tmp/t.json"}, {"timeline": "/tmp/t.json"}),
                ({"TIMELINE": "DYNAMIC"}, {"timeline_is_dynamic": True}),
                ({"FUSION_THRESHOLD": "0"}, {"fusion_bytes": 0}),
                ({"FUSION_THRESHOLD": " 1048576 "}, {"fusion_bytes": 1048576}),
                ({"AUTOTUNE": "1", "AUTOTUNE_LOG": "/tmp/log"}, {"autotune": True, "autotune_log": "/tmp/log"}),
                ({"STALL_CHECK_TIME_SECONDS": "2.5"}, {"stall_warning_ms": 2500}),
                ({"STALL_CHECK_DISABLE": "1", "STALL_SHUTDOWN_TIME_SECONDS": "9"},
                 {"stall_warning_ms": 0, "stall_limit_ms": 0}),
                ({"STALL_SHUTDOWN_TIME_SECONDS": "9"}, {"stall_limit_ms": 9000}),
                ({"GLOO_TIMEOUT_SECONDS": "30"}, {"connect_timeout_ms": 30_000}),
                ({"GLOO_IFACE": "eth0"}, {"interface": "eth0"}),
                ({"DYNAMIC_PROCESS_SETS": "0"}, {"allows_process_sets": False}),
                ({"DYNAMIC_PROCESS_SETS": "1"}, {}),
                ({"LOG_LEVEL": "DEBUG", "LOG_HIDE_TIME": "true"}, {"log_level": "debug", "log_hides_time": True}),
                ({"CYCLE_TIME": "3.5", "CACHE_CAPACITY": "0", "ELASTIC": "1"}, {}),
                ({"TIMELINE_MARK_CYCLES": "1"}, {"marks_cycles": True})):
            with self.subTest(variables):
                self.assertEqual(self.read(**variables), knobs.Knobs(**wanted))

    def test_all_invalid_values_are_named(self):
        faults = []
        knobs.read(faults, {"HOROVOD_FUSION_THRESHOLD": "64MB", "HOROVOD_AUTOTUNE": "maybe",
                            "HOROVOD_STALL_CHECK_TIME_SECONDS": "nan", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "-1",
                            "HOROVOD_GLOO_TIMEOUT_SECONDS": "0", "HOROVOD_LOG_LEVEL": "loud"})
        self.assertIn("HOROVOD_FUSION_THRESHOLD is '64MB', not a whole number of 0 or more", faults)
        self.assertIn("HOROVOD_STALL_CHECK_TIME_SECONDS is 'nan', not a number of seconds", faults)
        self.assertEqual({each.split(" is ")[0] for each in faults},
                         {"HOROVOD_FUSION_THRESHOLD", "HOROVOD_AUTOTUNE", "HOROVOD_STALL_CHECK_TIME_SECONDS",
                          "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "HOROVOD_GLOO_TIMEOUT_SECONDS", "HOROVOD_LOG_LEVEL"})

    def test_no_variable_is_both_meaningful_and_not(self):
        self.assertFalse(set(knobs.MEANINGS) & set(knobs.MEANINGLESS))
        for why in (*knobs.MEANINGS.values(), *knobs.MEANINGLESS.values()):
            self.assertTrue(why)

    def test_only_the_first_rank_of_a_set_writes_files_and_each_set_its_own(self):
        found = self.read(TIMELINE="/t", AUTOTUNE="1", AUTOTUNE_LOG="/l")
        first, other, later = (found.session_options(*each) for each in ((0, 0), (0, 1), (2, 0)))
        self.assertEqual((first.timeline, first.autotune_log, first.autotune), (b"/t", b"/l", 1))
        self.assertEqual((other.timeline, other.autotune_log, other.autotune), (None, None, 1))
        self.assertEqual((later.timeline, later.autotune_log), (b"/t.set2", b"/l.set2"))

    def test_no_fusion_is_not_the_librarys_own_choice(self):
        self.assertEqual(self.read().session_options(0, 0).fusion_bytes, 0)
        self.assertEqual(self.read(FUSION_THRESHOLD="0").session_options(0, 0).fusion_bytes, 1)


if __name__ == "__main__":
    unittest.main()
