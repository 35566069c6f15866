#include "service/engine_record.h"

#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "config/paths.h"
#include "store/memory_store.h"

namespace muster::service {
namespace {

class EngineRecord : public ::testing::Test {
 protected:
  void add_job(const std::string& name, job::Phase phase) {
    const job::Job job{.id = name, .spec = {.name = name}, .phase = phase};
    ASSERT_TRUE(store_.commit({.new_jobs = {{&job, ""}}}));
  }

  base::Result<void> keep_to(const std::string& engine) {
    MUSTER_CHECK(check_engine(folder_.path(), engine, store_));
    return note_engine(folder_.path(), engine);
  }

  std::string record() const { return config::recorded_engine(folder_.path()); }

  base::TestFolder folder_;
  store::MemoryStore store_;
};

TEST_F(EngineRecord, AnyEngineWillDoWhereNothingRuns) {
  add_job("ended", job::Phase::kSucceeded);
  add_job("waits", job::Phase::kQueued);
  for (const char* engine : {"process", "slurm", "slurm", "container"}) {
    ASSERT_TRUE(keep_to(engine)) << engine;
    EXPECT_EQ(record(), engine);
  }
}

TEST_F(EngineRecord, NoOtherEngineTakesUpWhatRuns) {
  ASSERT_TRUE(keep_to("slurm"));
  add_job("one", job::Phase::kStarting);

  auto refused = keep_to("process");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kConflict);
  EXPECT_EQ(refused.error().what,
            "job 'one' runs on the engine 'slurm', and a server with the engine 'process' would "
            "lose sight of that");
  EXPECT_NE(refused.error().advice.find("--engine slurm"), std::string::npos);

  add_job("two", job::Phase::kRunning);
  add_job("three", job::Phase::kRunning);
  refused = keep_to("process");
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().what.starts_with("job 'one' and 2 more run on the engine 'slurm'"))
      << refused.error().what;
  EXPECT_EQ(record(), "slurm");
  EXPECT_TRUE(keep_to("slurm"));
}

TEST_F(EngineRecord, IsForgottenOnceNothingRuns) {
  ASSERT_TRUE(keep_to("slurm"));
  forget_engine(folder_.path());
  EXPECT_EQ(record(), "");
  forget_engine(folder_.path());
  add_job("one", job::Phase::kRunning);
  EXPECT_TRUE(keep_to("process"));
}

}  // namespace
}  // namespace muster::service
