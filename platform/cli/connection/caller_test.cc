#include "cli/connection/caller.h"

#include <gtest/gtest.h>

namespace muster::cli {

namespace {

TEST(InheritedEnvironment, IsWhatProgramsNeedAndNoSecret) {
  const Environment all{{"PATH", "p"},       {"LC_ALL", "C"},          {"CONDA_PREFIX", "c"},
                        {"NCCL_DEBUG", "n"}, {"AWS_SECRET", "s"},      {"PATHOLOGY", "x"},
                        {"LC", "x"},         {"OMP_NUM_THREADS", "4"}, {"SSH_AUTH_SOCK", "s"}};

  EXPECT_EQ(inherited_environment(all), (Environment{{"CONDA_PREFIX", "c"},
                                                     {"LC_ALL", "C"},
                                                     {"NCCL_DEBUG", "n"},
                                                     {"OMP_NUM_THREADS", "4"},
                                                     {"PATH", "p"}}));
}

}  // namespace

}  // namespace muster::cli
