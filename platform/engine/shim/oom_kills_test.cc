#include "engine/shim/oom_kills.h"

#include <gtest/gtest.h>

#include "engine/fake_machine.h"

namespace muster::engine {
namespace {

constexpr const char* kVmstat = "nr_free_pages 7\noom_kill 12\nworkingset 1\n";

TEST(OomKills, OfTheMachineStandInItsStatistics) {
  EXPECT_EQ(kills_on_machine(FakeMachine(FakeMachine::Files{{"proc/vmstat", kVmstat}}).root()),
            12U);
  EXPECT_EQ(kills_on_machine(FakeMachine({}).root()), 0U);
}

TEST(OomKills, OfAGroupOfVersionTwoStandAmongItsEvents) {
  const FakeMachine machine(
      {{"proc/self/cgroup", "0::/jobs/one\n"},
       {"sys/fs/cgroup/jobs/one/memory.events", "low 0\nmax 9\noom 3\noom_kill 2\n"}});

  EXPECT_EQ(kills_in_group(machine.root()), 2U);
}

TEST(OomKills, OfAGroupOfVersionOneStandInItsControl) {
  const FakeMachine machine({{"proc/self/cgroup", "5:cpu,memory:/a\n0::/\n"},
                             {"sys/fs/cgroup/memory/a/memory.oom_control",
                              "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n"}});

  EXPECT_EQ(kills_in_group(machine.root()), 4U);
}

TEST(OomKills, OfAContainerThatSeesItsGroupAtTheTopAreFoundThere) {
  const FakeMachine machine(
      {{"proc/self/cgroup", "9:memory:/docker/0123\n"},
       {"sys/fs/cgroup/memory/memory.oom_control", "under_oom 0\noom_kill 1\n"},
       {"proc/vmstat", kVmstat}});

  EXPECT_EQ(kills_in_container(machine.root()), 1U);
}

TEST(OomKills, WhereNoGroupCountsThemTheMachineDoes) {
  const FakeMachine machine({{"proc/self/cgroup", "0::/\n"}, {"proc/vmstat", kVmstat}});

  EXPECT_EQ(kills_in_group(machine.root()), std::nullopt);
  EXPECT_EQ(kills_in_container(machine.root()), 12U);
}

}  // namespace
}  // namespace muster::engine
