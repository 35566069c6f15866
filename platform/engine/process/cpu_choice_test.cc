#include "engine/process/cpu_choice.h"

#include <gtest/gtest.h>

namespace muster::engine {
namespace {

using Numbers = std::vector<int>;

/// Two NUMA nodes of two cores with two threads each. As on many machines, the second threads of
/// all cores come after the first ones: core 0 has the CPUs 0 and 4.
const std::vector<Cpu> kMachine{{0, 0, 0}, {1, 1, 0}, {2, 2, 1}, {3, 3, 1},
                                {4, 0, 0}, {5, 1, 0}, {6, 2, 1}, {7, 3, 1}};

TEST(ChooseCpus, TakesBothThreadsOfACore) {
  EXPECT_EQ(choose_cpus(kMachine, {}, 2), (Numbers{0, 4}));
  EXPECT_EQ(choose_cpus(kMachine, {0, 4}, 2), (Numbers{1, 5}));
}

TEST(ChooseCpus, StaysOnOneNodeIfOneHasRoom) {
  EXPECT_EQ(choose_cpus(kMachine, {0}, 4), (Numbers{2, 3, 6, 7}));
  EXPECT_EQ(choose_cpus(kMachine, {0}, 3), (Numbers{1, 4, 5})) << "the fullest that fits";
}

TEST(ChooseCpus, SpreadsOverNodesFromTheEmptiest) {
  EXPECT_EQ(choose_cpus(kMachine, {0, 4}, 5), (Numbers{1, 2, 3, 6, 7}));
}

TEST(ChooseCpus, CompletesACoreInUseBeforeItCutsAnother) {
  EXPECT_EQ(choose_cpus(kMachine, {1}, 1), (Numbers{5}));
  EXPECT_EQ(choose_cpus(kMachine, {}, 1), (Numbers{0}));
}

TEST(ChooseCpus, TakesAllOrNothing) {
  EXPECT_EQ(choose_cpus(kMachine, {}, 8).size(), 8U);
  EXPECT_EQ(choose_cpus(kMachine, {7}, 8), Numbers{});
  EXPECT_EQ(choose_cpus(kMachine, {}, 9), Numbers{});
  EXPECT_EQ(choose_cpus({}, {}, 1), Numbers{});
  EXPECT_EQ(choose_cpus(kMachine, {}, 0), Numbers{});
}

TEST(CpuList, IsWrittenAsTheKernelWritesIt) {
  EXPECT_EQ(cpu_list({}), "");
  EXPECT_EQ(cpu_list({3}), "3");
  EXPECT_EQ(cpu_list({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(cpu_list({0, 2, 4, 5}), "0,2,4-5");
}

}  // namespace
}  // namespace muster::engine
