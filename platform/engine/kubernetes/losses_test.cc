#include "engine/kubernetes/losses.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <variant>

#include "base/files.h"
#include "base/test_folder.h"
#include "base/test_loop.h"
#include "engine/shim/plan.h"

namespace muster::engine::kubernetes {
namespace {

lent::LentOptions options_in(const std::filesystem::path& jobs) {
  lent::LentOptions options;
  options.folder = jobs;
  options.has_own_folders = true;
  return options;
}

/// A gang of one task, which was started and has artifacts. There is no connection to its muster-node.
class LostPods : public testing::Test, protected base::TestLoop {
 protected:
  LostPods() {
    tasks_.lender = {.cluster = "Kubernetes",
                     .gang_of = nullptr,
                     .has_allocation = [](const lent::GangPointer&) { return true; },
                     .on_ready = nullptr,
                     .on_lost = nullptr,
                     .on_silence = [](const auto&, const auto&) { return true; },
                     .connect_stream = nullptr,
                     .on_change = [] {},
                     .look_soon = [] {},
                     .looks = [] { return uint64_t{0}; },
                     .may_explain = [](const auto&, const auto&) { return false; }};
    tasks_.reports.listen([this](const TaskReport& report) {
      if (const auto* const end = std::get_if<TaskEnded>(&report.what)) end_ = end->status;
      look();
    });
    table_.add_task(gang_, "main");
    gang_->record.given = true;
    gang_->record.seats[0].started = gang_->record.seats[0].has_artifacts = true;
    pod().facts = PodFacts{.name = "job-1-main", .uid = "u", .node = "n1", .phase = "Running"};
  }

  lent::HeldTask& task() { return *gang_->tasks.at("main"); }
  HeldPod& pod() { return gang_->pods.at("main"); }

  /// The task has exited with 0, and its artifacts are being fetched.
  void end_and_fetch() {
    task().up = true;
    task().end = TaskEnded{.status = {}, .time = {}};
    task().fetch.is_under_way = true;
    task().fetch.stream = 1;
  }
  /// Leaves the record of an exit with 0, as an earlier server has stored it.
  void leave_exit_record() {
    const TaskFolder folder = tasks_.gangs.folder_of(gang_->gang, "main");
    ASSERT_TRUE(base::make_private_folder(folder.path));
    ASSERT_TRUE(base::write_file(folder.exit(), encode(ExitRecord{.status = {}})));
  }
  void lose_pod() {
    pod().is_gone = true;
    losses_.examine(gang_, "main");
  }
  bool reports_end() {
    return run_until([&] { return end_.has_value(); });
  }
  /// Runs the timers that are due now.
  void run_due_timers() {
    bool has_passed = false;
    const auto timer = loop().after(std::chrono::milliseconds(1), [&] {
      has_passed = true;
      look();
    });
    ASSERT_TRUE(run_until([&] { return has_passed; }));
  }

  base::TestFolder folder_;
  lent::LentTasks tasks_{loop(), options_in(folder_ / "jobs"), pod_table_options(folder_ / "jobs")};
  PodGangTable table_{tasks_.gangs, "owner"};
  const PodGangPointer gang_ = table_.add({.job_id = "job", .attempt = 1}, rsh::Key{});
  int preempted_ = 0;
  PodLosses losses_{loop(), table_, tasks_,
                    [this](const PodGangPointer&, const job::PodEnd&) { ++preempted_; },
                    std::chrono::milliseconds(0)};
  std::optional<job::ExitStatus> end_;
};

TEST_F(LostPods, ATaskThatRanIsLost) {
  task().up = true;
  lose_pod();

  ASSERT_TRUE(reports_end());
  EXPECT_TRUE(end_->lost);
}

TEST_F(LostPods, AnEndedTaskIsReportedIfItsArtifactsCannotBeFetched) {
  end_and_fetch();
  lose_pod();

  ASSERT_TRUE(reports_end());
  EXPECT_TRUE(end_->succeeded());
  EXPECT_EQ(end_->error, "cannot fetch its artifacts: its pod is gone");
}

TEST_F(LostPods, ATaskWhoseArtifactsHaveAllArrivedIsNotReportedBeforeTheyAreUnpacked) {
  end_and_fetch();
  task().fetch.is_complete = true;
  lose_pod();
  run_due_timers();
  EXPECT_FALSE(end_);

  task().fetch.stream = 0;  // unpacking has failed

  ASSERT_TRUE(reports_end());
  EXPECT_EQ(end_->error, "cannot fetch its artifacts: its pod is gone");
}

TEST_F(LostPods, AnExitThatAnEarlierServerHasRecordedIsNotLost) {
  leave_exit_record();
  ASSERT_EQ(tasks_.adopt(gang_->gang, "main"), AdoptionResult::kEnded);
  lose_pod();

  ASSERT_TRUE(reports_end());
  EXPECT_TRUE(end_->succeeded());
  EXPECT_EQ(end_->error, "cannot fetch its artifacts: its pod is gone");
}

/// Otherwise the whole gang would wait again, and run twice.
TEST_F(LostPods, ATaskThatHasEndedIsNotPreempted) {
  leave_exit_record();
  ASSERT_EQ(tasks_.adopt(gang_->gang, "main"), AdoptionResult::kEnded);
  pod().facts->disruption = "PreemptionByScheduler";
  lose_pod();

  ASSERT_TRUE(reports_end());
  EXPECT_TRUE(end_->succeeded());
  EXPECT_EQ(preempted_, 0);
}

TEST_F(LostPods, ATaskThatRanIsPreemptedWithItsGang) {
  task().up = true;
  pod().facts->disruption = "PreemptionByScheduler";
  lose_pod();

  ASSERT_TRUE(reports_end());
  EXPECT_TRUE(end_->lost);
  EXPECT_EQ(preempted_, 1);
}

}  // namespace
}  // namespace muster::engine::kubernetes
