// Jobs whose ranks Slurm's srun starts (--launch srun).
#include <gtest/gtest.h>

#include "control/test_cluster.h"

namespace muster::control {
namespace {

using base::ErrorCode;
using job::JobSpec;

JobSpec by_srun(std::vector<std::string> command) {
  JobSpec spec = mpi("dist", "default", 2);
  spec.launch = job::LaunchBy::kSrun;
  spec.command = std::move(command);
  return spec;
}

TEST_F(Allocations, WhereThereIsNoSrunAJobForItIsRefusedWhenItIsSubmitted) {
  const auto refused = controller_->submit(by_srun({"./train"}), "");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_EQ(refused.error().what, "--launch srun requires a server that runs jobs on Slurm");
}

TEST_F(Allocations, AnMpirunBelowSrunIsRefusedWhenItIsSubmittedAndNotWhenItHasWaited) {
  engine_.srun = "/usr/bin/srun";
  const auto refused = controller_->submit(by_srun({"mpirun", "./train"}), "");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);

  submit(by_srun({"./train"}));
  give("dist");
  EXPECT_EQ(job("dist").launch->by, job::LaunchBy::kSrun);
}

}  // namespace
}  // namespace muster::control
