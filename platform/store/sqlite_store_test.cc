#include "store/sqlite_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "store/job_document.h"

namespace muster::store {
namespace {

using base::ErrorCode;
using job::Job;

/// A job with every field set, bytes that are no UTF-8 among them.
Job full_job(std::string id, std::string name) {
  const base::Time time{std::chrono::nanoseconds(1'700'000'000'123'456'789)};
  Job job{.id = std::move(id),
          .spec = {.name = std::move(name),
                   .kind = job::Kind::kMpi,
                   .command = {"mpirun", "\xff\xfe"},
                   .workers = 1,
                   .slots_per_worker = 4,
                   .resources = {.gpus = 1, .cpus = 2, .memory_bytes = 3},
                   .environment = {{"A", "b\nc\xff"}},
                   .folder = "/tmp",
                   .sandbox = job::Sandbox::kNone},
          .phase = job::Phase::kFailed,
          .reason = "why",
          .attempt = 2,
          .stop_requested = true,
          .submitted = time,
          .started = time,
          .ended = time,
          .exit_code = 137,
          .failure = job::Failure{.task = "worker-0",
                                  .cause = "was killed",
                                  .advice = "try again",
                                  .last_lines = {"a", "\xff"}},
          .events = {{.time = time, .text = "submitted"}}};
  job.tasks = job::tasks_of(job.spec);
  job.tasks[1].exit = job::ExitStatus{.signal = 9, .out_of_memory = true, .error = "e"};
  job.tasks[1].phase = job::TaskPhase::kEnded;
  job.tasks[1].started = time;
  return job;
}

class Sqlite : public testing::Test {
 protected:
  Sqlite() {
    std::string pattern = testing::TempDir() + "storeXXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Sqlite() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<SqliteStore> open() {
    auto store = SqliteStore::open(folder_ / "muster.db");
    EXPECT_TRUE(store) << store.error().what;
    return *std::move(store);
  }

  std::filesystem::path folder_;
};

TEST_F(Sqlite, GivesBackEveryFieldAfterItWasOpenedAgain) {
  const Job first = full_job("j1", "one");
  const Job second = full_job("j2", "two");
  {
    const auto store = open();
    ASSERT_TRUE(store->insert(first, "k1"));
    ASSERT_TRUE(store->insert(second, ""));
  }

  const auto jobs = open()->load();

  ASSERT_TRUE(jobs);
  EXPECT_EQ(*jobs, (std::vector<Job>{first, second}));
}

TEST_F(Sqlite, RefusesANameAKeyAndAnIdThatAreTaken) {
  const auto store = open();
  ASSERT_TRUE(store->insert(full_job("j1", "one"), "k1"));

  EXPECT_EQ(store->insert(full_job("j1", "two"), "k2").error().code, ErrorCode::kConflict);
  EXPECT_EQ(store->insert(full_job("j2", "one"), "k2").error().code, ErrorCode::kConflict);
  EXPECT_EQ(store->insert(full_job("j2", "two"), "k1").error().code, ErrorCode::kConflict);
  EXPECT_EQ(store->load()->size(), 1U);
}

TEST_F(Sqlite, FindsAJobByItsKeyUntilItIsRemoved) {
  const auto store = open();
  ASSERT_TRUE(store->insert(full_job("j1", "one"), "k1"));

  EXPECT_EQ(*store->find_by_key("k1"), "j1");
  EXPECT_EQ(*store->find_by_key("k2"), std::nullopt);
  ASSERT_TRUE(store->remove("j1"));
  EXPECT_EQ(*store->find_by_key("k1"), std::nullopt);
}

TEST_F(Sqlite, UpdatesOnlyWhatIsThere) {
  const auto store = open();
  Job job = full_job("j1", "one");
  EXPECT_EQ(store->update(job).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(store->insert(job, ""));

  job.phase = job::Phase::kSucceeded;
  ASSERT_TRUE(store->update(job));

  EXPECT_EQ(store->load()->front().phase, job::Phase::kSucceeded);
}

TEST_F(Sqlite, IsReadableByItsOwnerAlone) {
  open();
  struct stat status{};
  ASSERT_EQ(::stat((folder_ / "muster.db").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(Sqlite, SaysWhyAFolderThatIsMissingCannotBeUsed) {
  const auto store = SqliteStore::open(folder_ / "no" / "muster.db");
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kNotFound);
}

TEST(JobDocument, RefusesWhatItCannotRead) {
  EXPECT_FALSE(from_document(""));
  EXPECT_FALSE(from_document("\xff\x00\x01"));
  std::string cut = to_document(full_job("j1", "one"));
  for (size_t length = 0; length < cut.size(); length += 7) {
    EXPECT_FALSE(from_document(std::string_view(cut).substr(0, length)));
  }
}

}  // namespace
}  // namespace muster::store
