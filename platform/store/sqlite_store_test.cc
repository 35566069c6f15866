// What is SQLite's own; conformance_test.cc has what every store keeps to.
#include "store/sqlite_store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "store/job_document.h"
#include "store/test_values.h"

namespace muster::store {
namespace {

using base::ErrorCode;
using job::Job;

class Sqlite : public testing::Test {
 protected:
  Sqlite() {
    std::string pattern = testing::TempDir() + "storeXXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Sqlite() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path file() const { return folder_ / "muster.db"; }

  std::unique_ptr<SqliteStore> open() const {
    auto store = SqliteStore::open(file());
    EXPECT_TRUE(store) << store.error().what;
    return *std::move(store);
  }

  std::filesystem::path folder_;
};

/// The database by SQLite's own means, for what a store does not do.
class Raw {
 public:
  explicit Raw(const std::filesystem::path& file) {
    EXPECT_EQ(sqlite3_open(file.c_str(), &database_), SQLITE_OK);
  }
  ~Raw() { sqlite3_close(database_); }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;

  void execute(const std::string& sql) {
    EXPECT_EQ(sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database_);
  }

  void insert_old_job(const std::string& id, const std::string& name, const std::string& key,
                      const std::string& document) {
    sqlite3_stmt* insert = nullptr;
    ASSERT_EQ(sqlite3_prepare_v2(database_,
                                 "INSERT INTO job (id, project, name, idempotency_key, document) "
                                 "VALUES (?1, 'default', ?2, nullif(?3, ''), ?4)",
                                 -1, &insert, nullptr),
              SQLITE_OK);
    sqlite3_bind_text(insert, 1, id.c_str(), -1, SQLITE_STATIC);
    sqlite3_bind_text(insert, 2, name.c_str(), -1, SQLITE_STATIC);
    sqlite3_bind_text(insert, 3, key.c_str(), -1, SQLITE_STATIC);
    sqlite3_bind_blob(insert, 4, document.data(), static_cast<int>(document.size()), SQLITE_STATIC);
    EXPECT_EQ(sqlite3_step(insert), SQLITE_DONE) << sqlite3_errmsg(database_);
    sqlite3_finalize(insert);
  }

 private:
  sqlite3* database_ = nullptr;
};

// As version 1 of the schema had it, word for word.
constexpr const char* kVersion1 = R"sql(
BEGIN;
CREATE TABLE job (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  project TEXT NOT NULL,
  name TEXT NOT NULL,
  idempotency_key TEXT UNIQUE,
  document BLOB NOT NULL,
  UNIQUE (project, name)
) STRICT;
PRAGMA user_version = 1;
COMMIT;
)sql";

/// A document with the keys that it had at the time of version 1, and no others.
std::string version_1_document(const std::string& id, const std::string& name) {
  using nlohmann::json;
  const auto bytes = [](const std::string& text) {
    return json::binary_t({text.begin(), text.end()});
  };
  const json spec = {{"name", name},
                     {"project", "default"},
                     {"kind", "single"},
                     {"command", json::array({json(bytes("true"))})},
                     {"workers", 0},
                     {"slots_per_worker", 1},
                     {"gpus", 1},
                     {"cpus", 2},
                     {"memory_bytes", 3},
                     {"environment", json::array({json::array({"A", json(bytes("\xff"))})})},
                     {"folder", json(bytes("/home/ada"))},
                     {"sandbox", "none"},
                     {"start_timeout_ms", 30'000},
                     {"grace_ms", 10'000}};
  const json task = {{"name", "main"}, {"role", "single"},   {"hostname", name + "-main"},
                     {"node", "n1"},   {"phase", "Running"}, {"exit", nullptr},
                     {"started", 17},  {"ended", nullptr}};
  const json job = {{"id", id},
                    {"spec", spec},
                    {"phase", "Running"},
                    {"reason", json(bytes("runs"))},
                    {"attempt", 1},
                    {"stop_requested", false},
                    {"submitted", 16},
                    {"started", 17},
                    {"ended", nullptr},
                    {"exit_code", nullptr},
                    {"failure", nullptr},
                    {"tasks", json::array({task})},
                    {"events", json::array()}};
  std::string document;
  json::to_cbor(job, document);
  return document;
}

Job version_1_job(const std::string& id, const std::string& name) {
  const auto at = [](int64_t count) { return base::Time(std::chrono::nanoseconds(count)); };
  Job job{.id = id,
          .spec = {.name = name,
                   .command = {"true"},
                   .resources = {.gpus = 1, .cpu_milli = 2000, .memory_bytes = 3},
                   .environment = {{"A", "\xff"}},
                   .folder = "/home/ada",
                   .sandbox = job::Sandbox::kNone},
          .phase = job::Phase::kRunning,
          .reason = "runs",
          .attempt = 1,
          .submitted = at(16),
          .started = at(17)};
  job.tasks = job::tasks_of(job.spec);
  job.tasks[0].node = "n1";
  job.tasks[0].phase = job::TaskPhase::kRunning;
  job.tasks[0].started = at(17);
  return job;
}

TEST_F(Sqlite, GivesBackEverythingAfterItWasOpenedAgain) {
  const Job first = full_job("j1", "one");
  const Job second = full_job("j2", "two");
  const job::Project project = full_project("team-a", 1);
  ASSERT_TRUE(
      open()->commit({.new_jobs = {{.job = &first, .idempotency_key = "k1"}, {.job = &second}},
                      .projects = {project},
                      .cordoned_nodes = {"n1"}}));

  const auto contents = open()->load();

  ASSERT_TRUE(contents);
  EXPECT_EQ(contents->jobs, (std::vector<Job>{first, second}));
  EXPECT_EQ(contents->projects, std::vector<job::Project>{project});
  EXPECT_EQ(contents->cordoned_nodes, std::vector<std::string>{"n1"});
  EXPECT_EQ(*open()->find_by_key("k1"), "j1");
}

TEST_F(Sqlite, BringsADatabaseOfVersion1UpToDateWithAllItsJobs) {
  {
    Raw raw(file());
    raw.execute(kVersion1);
    raw.insert_old_job("j1", "one", "k1", version_1_document("j1", "one"));
    raw.insert_old_job("j0", "two", "", version_1_document("j0", "two"));
  }
  const Job third = full_job("j3", "three");

  {
    const auto store = open();
    EXPECT_EQ(store->load()->jobs,
              (std::vector<Job>{version_1_job("j1", "one"), version_1_job("j0", "two")}));
    EXPECT_EQ(*store->find_by_key("k1"), "j1");
    EXPECT_TRUE(store->commit({.new_jobs = {{.job = &third}}, .projects = {{.name = "team-a"}}}));
  }

  const auto again = open()->load();  // the second time it is up to date
  ASSERT_TRUE(again);
  ASSERT_EQ(again->jobs.size(), 3U);
  EXPECT_EQ(again->jobs[2], third);
  EXPECT_EQ(again->projects.size(), 1U);
}

TEST_F(Sqlite, LeavesADatabaseThatCannotBeBroughtUpToDateAsItIs) {
  {
    Raw raw(file());
    raw.execute(kVersion1);
    raw.execute("CREATE TABLE project (in_the_way)");
  }
  EXPECT_FALSE(SqliteStore::open(file()));

  Raw(file()).execute("DROP TABLE project");  // and once the obstacle is gone:
  EXPECT_TRUE(open()->load()->jobs.empty());
}

TEST_F(Sqlite, RefusesADatabaseOfANewerMuster) {
  open();
  Raw(file()).execute("PRAGMA user_version = 3");

  const auto store = SqliteStore::open(file());

  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kConflict);
}

TEST_F(Sqlite, HasEachCommitInItsFilesWhenItReturns) {
  const auto store = open();
  const Job job = full_job("j1", "one");
  ASSERT_TRUE(store->commit({.new_jobs = {{.job = &job}}}));

  // What a power cut would leave: the files as they are, without SQLite's leave-taking.
  const std::filesystem::path copy = folder_ / "copy.db";
  std::filesystem::copy_file(file(), copy);
  std::filesystem::copy_file(folder_ / "muster.db-wal", folder_ / "copy.db-wal");

  EXPECT_EQ((*SqliteStore::open(copy))->load()->jobs, std::vector<Job>{job});
}

TEST_F(Sqlite, IsReadableByItsOwnerAlone) {
  open();
  struct stat status{};
  ASSERT_EQ(::stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(Sqlite, SaysWhyAFolderThatIsMissingCannotBeUsed) {
  const auto store = SqliteStore::open(folder_ / "no" / "muster.db");
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kNotFound);
}

TEST_F(Sqlite, SaysThatAJobOfItCannotBeRead) {
  const auto store = open();
  const Job job = full_job("j1", "one");
  ASSERT_TRUE(store->commit({.new_jobs = {{.job = &job}}}));
  Raw(file()).execute("UPDATE job SET document = x'a0'");

  const auto contents = store->load();

  ASSERT_FALSE(contents);
  EXPECT_EQ(contents.error().code, ErrorCode::kInternal);
}

}  // namespace
}  // namespace muster::store
