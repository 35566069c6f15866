#include "engine/slurm/slurm_words.h"

#include <gtest/gtest.h>

namespace muster::engine::slurm {
namespace {

TEST(JobStateOf, TranslatesTheStatesOfSlurm) {
  struct Row {
    const char* words;
    JobState state;
    bool is_over;
  };
  const std::vector<Row> rows{
      {"PENDING", JobState::kPending, false},
      {"RUNNING", JobState::kRunning, false},
      {"CONFIGURING", JobState::kConfiguring, false},
      {"POWER_UP_NODE", JobState::kConfiguring, false},
      {"SUSPENDED", JobState::kSuspended, false},
      {"STOPPED", JobState::kSuspended, false},
      {"COMPLETING", JobState::kCompleting, false},
      {"COMPLETED", JobState::kCompleted, true},
      {"FAILED", JobState::kFailed, true},
      {"CANCELLED", JobState::kCancelled, true},
      {"CANCELLED by 1000", JobState::kCancelled, true},
      {"TIMEOUT", JobState::kTimeout, true},
      {"DEADLINE", JobState::kDeadline, true},
      {"NODE_FAIL", JobState::kNodeFailed, true},
      {"BOOT_FAIL", JobState::kBootFailed, true},
      {"PREEMPTED", JobState::kPreempted, true},
      {"OUT_OF_MEMORY", JobState::kOutOfMemory, true},
      {"REQUEUE_HOLD", JobState::kPending, false},
      {"SPECIAL_EXIT", JobState::kPending, false},
      {"RESV_DEL_HOLD", JobState::kPending, false},
      {"PENDING+RESV_DEL_HOLD", JobState::kPending, false},
      {"REVOKED", JobState::kCancelled, true},
      // Several words, as slurmrestd and scontrol print them.
      {"RUNNING+CONFIGURING", JobState::kConfiguring, false},
      {"RUNNING+CONFIGURING+POWER_UP_NODE", JobState::kConfiguring, false},
      {"CANCELLED+CONFIGURING", JobState::kCancelled, true},
      {"RUNNING,COMPLETING", JobState::kCompleting, false},
      {"CANCELLED+COMPLETING", JobState::kCancelled, true},
      {"PENDING+COMPLETING", JobState::kPending, false},
      {"RUNNING+STOPPED", JobState::kSuspended, false},
      {"PREEMPTED+REQUEUED", JobState::kPending, false},
      {"TIMEOUT+RESIZING", JobState::kTimeout, true},
      {"running", JobState::kRunning, false},
      {"HIBERNATING", JobState::kUnknown, false},
      {"", JobState::kUnknown, false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(job_state_of(row.words), row.state) << row.words;
    EXPECT_EQ(is_over(job_state_of(row.words)), row.is_over) << row.words;
  }
}

TEST(TakesJobs, RejectsNodesThatAreDownDrainedOrSilent) {
  for (const char* state : {"idle", "MIXED", "allocated", "completing", "PLANNED", "idle~",
                            "MIXED+CLOUD", "IDLE+POWERED_DOWN", "RESERVED"}) {
    EXPECT_TRUE(takes_jobs(state)) << state;
  }
  for (const char* state :
       {"down", "DOWN*", "idle*", "idle+drain", "IDLE*+DRAIN", "DOWN*+DRAIN", "allocated+drain",
        "drained", "unk", "UNKNOWN+DRAIN+INVALID_REG", "inval", "fail", "MAINT", "IDLE+MAINT",
        "future", "ERROR", "IDLE+NOT_RESPONDING", ""}) {
    EXPECT_FALSE(takes_jobs(state)) << state;
  }
}

TEST(Answers, RejectsNodesThatAreDownOrSilent) {
  for (const char* state : {"idle", "DRAINED", "ALLOCATED+DRAIN", "IDLE+POWERED_DOWN", "MAINT"}) {
    EXPECT_TRUE(answers(state)) << state;
  }
  for (const char* state : {"DOWN", "IDLE*", "IDLE*+DRAIN", "IDLE+NOT_RESPONDING", "down*", ""}) {
    EXPECT_FALSE(answers(state)) << state;
  }
}

TEST(ExplainReason, ExplainsAReasonAndGivesAdvice) {
  EXPECT_EQ(explain_reason("Resources").what, "the resources that it needs are in use");
  EXPECT_EQ(explain_reason("(Priority)").what, "jobs with a higher priority come first");
  EXPECT_EQ(
      explain_reason("Nodes required for job are DOWN, DRAINED or reserved for jobs in higher "
                     "priority partitions"),
      explain_reason("ReqNodeNotAvail"));
  EXPECT_EQ(explain_reason("PartitionTimeLimit").advice,
            "set a shorter --time-limit, or choose another --slurm-partition");
  EXPECT_EQ(explain_reason("launch failed requeued held"),
            explain_reason("launch_failed_requeued_held"));
  EXPECT_EQ(explain_reason("launch_failed_requeued_held").what,
            "a node failed to start it, and Slurm has held it");
}

TEST(ExplainReason, ALimitNamesItsOwnerItsAmountAndItsScope) {
  struct Row {
    const char* reason;
    const char* what;
  };
  const std::vector<Row> rows{
      {"QOSMaxGRESPerUser", "the limit of its QOS on GPUs (GRES) for one user is reached"},
      {"QOSMaxCpuPerUserLimit", "the limit of its QOS on CPUs for one user is reached"},
      {"QOSMaxJobsPerUserLimit", "the limit of its QOS on running jobs for one user is reached"},
      {"QOSGrpNodeLimit", "the limit of its QOS on nodes for all jobs together is reached"},
      {"QOSMaxWallDurationPerJobLimit", "QOSMaxWallDurationPerJobLimit"},
      {"AssocGrpGRES", "the limit of its account on GPUs (GRES) for all jobs together is reached"},
      {"AssocGrpCPURunMinutesLimit",
       "the limit of its account on the CPU minutes of running jobs for all jobs together is "
       "reached"},
      {"AssocMaxJobsLimit", "the limit of its account on running jobs is reached"},
      {"AssocMaxCpuMinutesPerJobLimit",
       "the limit of its account on CPU minutes for one job is reached"},
      {"MaxGRESPerAccount", "the limit of the cluster on GPUs (GRES) for one account is reached"},
      {"QOSMinGRES", "its QOS requires each job to request more GPUs (GRES)"},
  };
  for (const Row& row : rows) EXPECT_EQ(explain_reason(row.reason).what, row.what) << row.reason;
  EXPECT_EQ(explain_reason("QOSMaxGRESPerJob").advice,
            "request less, or choose another --slurm-qos");
  EXPECT_EQ(explain_reason("AssocGrpGRES").advice,
            "wait until other jobs have ended, or choose another --slurm-account");
}

TEST(ExplainReason, KeepsTheTextAfterTheWord) {
  EXPECT_EQ(explain_reason("ReqNodeNotAvail, UnavailableNodes:n[1-3]").what,
            "nodes that it needs are down, drained or reserved (UnavailableNodes:n[1-3])");
  EXPECT_EQ(
      explain_reason("Job's account not known, so it can't use this partition (p allows q)").what,
      "its account does not exist in Slurm (so it can't use this partition (p allows q))");
  EXPECT_EQ(explain_reason("ReqNodeNotAvail, UnavailableNodes:").what,
            "nodes that it needs are down, drained or reserved");
}

TEST(ExplainReason, UnknownReasonsAreUnchanged) {
  for (const char* reason :
       {"SolarFlare", "QOSMaxHappinessPerUser", "QOSGrp", "Max",
        "Job's account not permitted to use this partition (closed allows nobody)"}) {
    EXPECT_EQ(explain_reason(reason).what, reason);
    EXPECT_EQ(explain_reason(reason).advice, "");
  }
  EXPECT_EQ(explain_reason("None"), ReasonWords{});
  EXPECT_EQ(explain_reason(""), ReasonWords{});
}

}  // namespace
}  // namespace muster::engine::slurm
