// What is SQLite's own; conformance_test.cc has what every store keeps to.
#include "store/sqlite_store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/random.h"
#include "base/test_folder.h"
#include "job/fact_json.h"
#include "store/account_document.h"
#include "store/job_document.h"
#include "store/maintenance.h"
#include "store/notification_document.h"
#include "store/project_document.h"
#include "store/sqlite_schema.h"
#include "store/test_values.h"

namespace muster::store {
namespace {

using base::ErrorCode;
using job::Job;

class Sqlite : public testing::Test {
 protected:
  std::filesystem::path file() const { return folder_ / "muster.db"; }

  std::unique_ptr<SqliteStore> open() const {
    auto store = SqliteStore::open(file());
    EXPECT_TRUE(store) << store.error().what;
    return *std::move(store);
  }

  const base::TestFolder folder_;
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

// And version 2.
constexpr const char* kVersion2 = R"sql(
BEGIN;
CREATE TABLE job (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL UNIQUE,
  idempotency_key TEXT UNIQUE,
  document BLOB NOT NULL
) STRICT;
CREATE TABLE project (
  name TEXT PRIMARY KEY,
  sequence INTEGER NOT NULL,
  document BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE node_setting (
  name TEXT PRIMARY KEY,
  cordoned INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
PRAGMA user_version = 2;
COMMIT;
)sql";

std::string hex(const std::string& bytes) {
  const auto* begin = reinterpret_cast<const uint8_t*>(bytes.data());
  return "x'" + base::to_hex({begin, bytes.size()}) + "'";
}

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
  const json job = {
      {"id", id},
      {"spec", spec},
      {"phase", "Running"},
      {"reason", json::binary(json::to_cbor(job::to_json(job::Reason(job::Remark{"runs"}))))},
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
          .reason = job::Remark{"runs"},
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

TEST_F(Sqlite, BringsADatabaseOfVersion2UpToDateWithAllThatIsInIt) {
  nlohmann::json old = nlohmann::json::from_cbor(to_document(full_job("j1", "one")));
  ASSERT_EQ(old.erase("owner") + old["spec"].erase("secrets"), 2U);
  std::string document;
  nlohmann::json::to_cbor(old, document);
  const job::Project project = full_project("team-a", 5);
  {
    Raw raw(file());
    raw.execute(kVersion2);
    raw.execute("INSERT INTO job VALUES (7, 'j1', 'one', 'k1', " + hex(document) + ")");
    raw.execute("INSERT INTO project VALUES ('team-a', 5, " + hex(to_project_document(project)) +
                ")");
    raw.execute("INSERT INTO node_setting VALUES ('n1', 1)");
  }
  Job expected = full_job("j1", "one");
  expected.owner.clear();
  expected.spec.secrets.clear();
  Job same_name = full_job("j2", "one");
  same_name.spec.project = "team-a";

  const auto store = open();

  const auto contents = store->load();
  ASSERT_TRUE(contents) << contents.error().to_string();
  EXPECT_EQ(contents->jobs, std::vector<Job>{expected});
  EXPECT_EQ(contents->projects, std::vector<job::Project>{project});
  EXPECT_EQ(contents->cordoned_nodes, std::vector<std::string>{"n1"});
  EXPECT_EQ(*store->find_by_key("k1"), "j1");
  const Job again = full_job("j3", "one");
  EXPECT_EQ(store->commit({.new_jobs = {{.job = &again}}}).error().code, ErrorCode::kConflict);
  EXPECT_TRUE(store->commit({.new_jobs = {{.job = &same_name}}}));
}

TEST_F(Sqlite, CopiesAnOlderDatabaseBesideItBeforeItIsChanged) {
  {
    Raw raw(file());
    raw.execute(kVersion1);
    raw.insert_old_job("j1", "one", "k1", version_1_document("j1", "one"));
  }
  open();

  const std::filesystem::path copy = file().string() + ".version-1";
  struct stat status{};
  ASSERT_EQ(::stat(copy.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  auto database = SqliteDatabase::open(copy, SqliteDatabase::Mode::kReadOnly);
  ASSERT_TRUE(database);
  EXPECT_EQ(*database->number("PRAGMA user_version"), 1);
  EXPECT_EQ(*database->number("SELECT count(*) FROM job WHERE project = 'default'"), 1);
}

TEST_F(Sqlite, TakesOverADatabaseOfVersionThree) {
  Job job = full_job("j1", "one");
  job.spec.project = "default";
  {
    auto database = SqliteDatabase::open(file(), SqliteDatabase::Mode::kMake);
    ASSERT_TRUE(database && migrate(*database, 3));
    Raw raw(file());
    raw.insert_old_job("j1", "one", "k1", to_document(job));
  }
  const auto store = open();
  ASSERT_TRUE(store->commit(
      {.subscriptions = {full_subscription("s1")}, .deliveries = {full_delivery("d1")}}));

  const auto contents = open()->load();
  EXPECT_EQ(contents->jobs, std::vector<Job>{job});
  EXPECT_EQ(contents->subscriptions, std::vector<job::Subscription>{full_subscription("s1")});
  EXPECT_EQ(contents->deliveries, std::vector<job::Delivery>{full_delivery("d1")});
  EXPECT_TRUE(std::filesystem::exists(file().string() + ".version-3"));
}

TEST_F(Sqlite, CopiesNothingWhereThereIsNothingToLose) {
  open();
  open();
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_EQ(entry.path().string().find(".version"), std::string::npos) << entry.path();
  }
}

TEST_F(Sqlite, ChangesNothingWhereTheCopyCannotBeMade) {
  {
    Raw(file()).execute(kVersion2);
  }
  std::filesystem::create_directory(file().string() + ".version-2");

  EXPECT_FALSE(SqliteStore::open(file()));

  auto database = SqliteDatabase::open(file(), SqliteDatabase::Mode::kReadOnly);
  EXPECT_EQ(*database->number("PRAGMA user_version"), 2);
}

TEST_F(Sqlite, LeavesAnOldDatabaseAsItIsWhereAJobOfItCannotBeRead) {
  {
    Raw raw(file());
    raw.execute(kVersion2);
    raw.execute("INSERT INTO job VALUES (7, 'j1', 'one', 'k1', x'a0')");
  }

  const auto store = SqliteStore::open(file());

  ASSERT_FALSE(store);
  EXPECT_NE(store.error().what.find("the document of a job is not valid: "), std::string::npos);
  auto database = SqliteDatabase::open(file(), SqliteDatabase::Mode::kReadOnly);
  EXPECT_EQ(*database->number("PRAGMA user_version"), 2);
  EXPECT_EQ(*database->number("SELECT count(*) FROM job"), 1);
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
  Raw(file()).execute("PRAGMA user_version = " + std::to_string(kSchemaVersion + 1));

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

TEST_F(Sqlite, GivesTheRowsOfVersionFourTheirChecksums) {
  const auto put = [](SqliteDatabase& database, const std::string& sql, std::string_view document) {
    auto insert = database.prepare(sql);
    EXPECT_TRUE(insert && insert->blob(1, document).run()) << sql;
  };
  {
    auto database = SqliteDatabase::open(file(), SqliteDatabase::Mode::kMake);
    ASSERT_TRUE(database && migrate(*database, 4));
    const access::AuditRecord record = full_record(1);
    put(*database, "INSERT INTO job VALUES (1, 'j1', 'vision', 'one', 'k1', ?1)",
        to_document(full_job("j1", "one")));
    put(*database, "INSERT INTO project VALUES ('lab', 7, ?1)",
        to_project_document(full_project("lab", 7)));
    put(*database, "INSERT INTO account VALUES ('ada', ?1)", to_user_document(full_user("ada")));
    put(*database, "INSERT INTO token VALUES ('t1', ?1)", to_token_document(full_token("t1")));
    put(*database, "INSERT INTO secret VALUES ('lab', 'A', ?1)",
        to_secret_document(full_secret("lab", "A")));
    put(*database, "INSERT INTO subscription VALUES ('s1', ?1)",
        to_subscription_document(full_subscription("s1")));
    put(*database, "INSERT INTO delivery VALUES ('d1', ?1)",
        to_delivery_document(full_delivery("d1")));
    put(*database,
        "INSERT INTO audit VALUES (1, " + std::to_string(record.time.time_since_epoch().count()) +
            ", 'ada', 'lab', 'project.set', ?1)",
        to_audit_document(record));
    ASSERT_TRUE(database->execute("INSERT INTO node_setting VALUES ('n1', 1)"));
  }

  const auto store = open();

  const auto contents = store->load();
  ASSERT_TRUE(contents) << contents.error().to_string();
  EXPECT_TRUE(contents->unreadable.empty());
  EXPECT_EQ(contents->jobs, std::vector<Job>{full_job("j1", "one")});
  EXPECT_EQ(contents->cordoned_nodes, std::vector<std::string>{"n1"});
  EXPECT_EQ(*store->audit({}), std::vector<access::AuditRecord>{full_record(1)});
  EXPECT_EQ(check_store(file().string())->faults, std::vector<std::string>{});
  EXPECT_TRUE(std::filesystem::exists(file().string() + ".version-4"));
  // The audit log still only grows.
  EXPECT_FALSE(SqliteDatabase::open(file(), SqliteDatabase::Mode::kMake)
                   ->execute("UPDATE audit SET actor = 'mallory'"));
}

TEST_F(Sqlite, NamesARecordThatCannotBeReadAndLoadsTheRest) {
  const auto store = open();
  const Job jobs[] = {full_job("j1", "one"), full_job("j2", "two"), full_job("j3", "three")};
  ASSERT_TRUE(store->commit({.new_jobs = {{.job = &jobs[0]}, {.job = &jobs[1]}, {.job = &jobs[2]}},
                             .users = {full_user("ada"), full_user("bob")}}));
  Raw(file()).execute("UPDATE job SET document = x'a0' WHERE id = 'j2'");
  Raw(file()).execute("UPDATE account SET name = 'mallory' WHERE name = 'ada'");

  const auto contents = store->load();

  ASSERT_TRUE(contents) << contents.error().to_string();
  EXPECT_EQ(contents->jobs, (std::vector<Job>{jobs[0], jobs[2]}));
  EXPECT_EQ(contents->users, std::vector<access::User>{full_user("bob")});
  ASSERT_EQ(contents->unreadable.size(), 2U);
  const Unreadable& job = contents->unreadable[0];
  EXPECT_EQ(job.title(), "job 'vision/two' (id j2)");
  EXPECT_EQ(job.command(), "muster store set-aside vision/two");
  EXPECT_EQ(job.jobs_before, 1U);
  EXPECT_EQ(contents->unreadable[1].title(), "user 'mallory'");
  EXPECT_EQ(contents->unreadable[1].command(), "muster store set-aside user:mallory");
}

TEST_F(Sqlite, ShowsOfAnUnreadableAuditRecordWhatItsColumnsSay) {
  const auto store = open();
  ASSERT_TRUE(store->commit({.audit = {full_record(1), full_record(2)}}));
  Raw(file()).execute(
      "DROP TRIGGER audit_keeps_what_it_says; UPDATE audit SET document = x'a0' WHERE number = 1");

  const auto records = store->audit({});

  ASSERT_TRUE(records) << records.error().to_string();
  EXPECT_EQ(*records, (std::vector<access::AuditRecord>{full_record(2),
                                                        {.number = 1,
                                                         .time = full_record(1).time,
                                                         .actor = {.user = "ada"},
                                                         .action = "project.set",
                                                         .target = "(unreadable record 1)",
                                                         .project = "lab"}}));
}

/// What a store holds and what it reports of it, with one bit of the file flipped.
void expect_reported(const std::filesystem::path& damaged, const Contents& whole) {
  const auto store = SqliteStore::open(damaged);
  const auto contents = store ? (*store)->load() : Result<Contents>(store.error());
  if (!contents || !contents->unreadable.empty()) return;
  EXPECT_EQ(contents->jobs, whole.jobs);
  EXPECT_EQ(contents->projects, whole.projects);
  EXPECT_EQ(contents->cordoned_nodes, whole.cordoned_nodes);
  EXPECT_EQ(contents->users, whole.users);
  EXPECT_EQ(contents->tokens, whole.tokens);
  EXPECT_EQ(contents->secrets, whole.secrets);
  EXPECT_EQ(contents->subscriptions, whole.subscriptions);
  EXPECT_EQ(contents->deliveries, whole.deliveries);
}

/// The places of `part` in `bytes`.
std::vector<size_t> places_of(const std::string& bytes, const std::string& part) {
  std::vector<size_t> places;
  for (size_t at = bytes.find(part); at != std::string::npos; at = bytes.find(part, at + 1)) {
    places.push_back(at);
  }
  return places;
}

// Every bit of every row: of the documents and of the columns beside them.
TEST_F(Sqlite, NoFlippedBitOfARowIsReadAsSomethingElse) {
  const std::vector<std::string> documents = {to_document(full_job("j1", "one")),
                                              to_project_document(full_project("lab", 7)),
                                              to_user_document(full_user("ada")),
                                              to_token_document(full_token("t1")),
                                              to_secret_document(full_secret("lab", "A")),
                                              to_subscription_document(full_subscription("s1")),
                                              to_delivery_document(full_delivery("d1"))};
  Contents whole;
  {
    const auto store = open();
    const Job job = full_job("j1", "one");
    ASSERT_TRUE(store->commit({.new_jobs = {{.job = &job}},
                               .projects = {full_project("lab", 7)},
                               .cordoned_nodes = {"n1"},
                               .users = {full_user("ada")},
                               .tokens = {full_token("t1")},
                               .secrets = {full_secret("lab", "A")},
                               .subscriptions = {full_subscription("s1")},
                               .deliveries = {full_delivery("d1")}}));
    whole = *store->load();
  }
  const std::string bytes = *base::read_file(file());
  const std::filesystem::path damaged = folder_ / "damaged.db";
  for (const std::string& document : documents) {
    const std::vector<size_t> places = places_of(bytes, document.substr(0, 300));
    ASSERT_EQ(places.size(), 1U);
    // The columns of the key stand before the document; behind it, in a row of the tables with
    // these columns, the checksum.
    for (size_t at = places[0] - 3; at < places[0] + std::min<size_t>(document.size() + 4, 300);
         at += 3) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ 1 << at % 8);
      for (const char* left : {"", "-wal", "-shm"})
        std::filesystem::remove(damaged.string() + left);
      ASSERT_TRUE(base::write_file(damaged, changed));
      SCOPED_TRACE("byte " + std::to_string(at));
      expect_reported(damaged, whole);
    }
  }
}

// --- bad luck ---

/// The connection that a store opens while this lives, for what a store does not do with it.
class Tapped {
 public:
  Tapped() { sqlite3_auto_extension(reinterpret_cast<void (*)()>(remember)); }
  ~Tapped() { sqlite3_reset_auto_extension(); }
  Tapped(const Tapped&) = delete;
  Tapped& operator=(const Tapped&) = delete;

  static void execute(const char* sql) {
    EXPECT_EQ(sqlite3_exec(database_, sql, nullptr, nullptr, nullptr), SQLITE_OK);
  }

 private:
  static int remember(sqlite3* database, const char** /*error*/, const void* /*routines*/) {
    database_ = database;
    return SQLITE_OK;
  }
  static inline sqlite3* database_ = nullptr;
};

TEST_F(Sqlite, SaysThatThereIsNoRoomLosesNothingAndGoesOnWhenThereIs) {
  const Tapped tapped;
  const auto store = open();
  std::vector<Job> kept;
  Tapped::execute("PRAGMA max_page_count = 40");
  base::Error error;
  for (int number = 0; error.what.empty(); ++number) {
    ASSERT_LT(number, 1'000);
    const Job job = full_job("j" + std::to_string(number), "n" + std::to_string(number));
    const auto done = store->commit({.new_jobs = {{.job = &job}}});
    if (done) kept.push_back(job);
    if (!done) error = done.error();
  }

  EXPECT_EQ(error.code, ErrorCode::kExhausted);
  EXPECT_NE(error.what.find(file().string()), std::string::npos) << error.what;
  EXPECT_NE(error.advice.find("free some space"), std::string::npos);
  EXPECT_EQ(store->load()->jobs, kept);
  EXPECT_EQ(open()->load()->jobs, kept);

  const auto other = open();
  const Job next = full_job("next", "next");
  EXPECT_TRUE(other->commit({.new_jobs = {{.job = &next}}}));
}

TEST_F(Sqlite, SaysThatItIsReadOnly) {
  const Tapped tapped;
  const auto store = open();
  const Job job = full_job("j1", "one");
  ASSERT_TRUE(store->commit({.new_jobs = {{.job = &job}}}));
  Tapped::execute("PRAGMA query_only = ON");

  const Job other = full_job("j2", "two");
  const auto done = store->commit({.new_jobs = {{.job = &other}}});

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kRefused) << done.error().what;
  EXPECT_NE(done.error().advice.find("writable"), std::string::npos);
  EXPECT_EQ(store->load()->jobs, std::vector<Job>{job});
}

/// A process that has the database locked, until this goes.
class Locker {
 public:
  explicit Locker(const std::filesystem::path& file) {
    EXPECT_EQ(::pipe(says_), 0);
    EXPECT_EQ(::pipe(hears_), 0);
    child_ = ::fork();
    if (child_ == 0) {
      sqlite3* database = nullptr;
      sqlite3_open(file.c_str(), &database);
      const int locked = sqlite3_exec(database, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
      char byte = locked == SQLITE_OK ? 'y' : 'n';
      (void)!::write(says_[1], &byte, 1);
      ::close(hears_[1]);
      (void)!::read(hears_[0], &byte, 1);
      ::_exit(0);
    }
    char byte = 0;
    EXPECT_EQ(::read(says_[0], &byte, 1), 1);
    EXPECT_EQ(byte, 'y');
  }
  ~Locker() {
    ::close(hears_[1]);
    ::waitpid(child_, nullptr, 0);
    for (const int fd : {says_[0], says_[1], hears_[0]}) ::close(fd);
  }
  Locker(const Locker&) = delete;
  Locker& operator=(const Locker&) = delete;

  pid_t process() const { return child_; }

 private:
  int says_[2] = {-1, -1};
  int hears_[2] = {-1, -1};
  pid_t child_ = -1;
};

TEST_F(Sqlite, SaysWhichProcessHasItLockedAndGoesOnAfterwards) {
  const auto store = open();
  const Job job = full_job("j1", "one");
  {
    const Locker locker(file());

    const auto done = store->commit({.new_jobs = {{.job = &job}}});

    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(done.error().what.find("process " + std::to_string(locker.process())),
              std::string::npos)
        << done.error().what;
    EXPECT_EQ(store->ping().error().code, ErrorCode::kUnavailable);
    EXPECT_TRUE(store->load()->jobs.empty());  // to read goes on
  }
  EXPECT_TRUE(store->commit({.new_jobs = {{.job = &job}}}));
  EXPECT_TRUE(store->ping());
}

TEST_F(Sqlite, SaysThatItIsDamagedWhicheverPageWasOverwritten) {
  {
    const auto store = open();
    for (int number = 0; number < 50; ++number) {
      const Job job = full_job("j" + std::to_string(number), "n" + std::to_string(number));
      ASSERT_TRUE(store->commit({.new_jobs = {{.job = &job}}, .users = {full_user("ada")}}));
    }
  }
  const std::filesystem::path damaged = folder_ / "damaged.db";
  const auto pages = static_cast<int>(std::filesystem::file_size(file()) / 4096);
  int noticed = 0;
  for (int page = 0; page < pages; ++page) {
    std::filesystem::copy_file(file(), damaged, std::filesystem::copy_options::overwrite_existing);
    std::fstream bytes(damaged, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(std::streamoff{page} * 4096);
    bytes << std::string(4096, '\xEE') << std::flush;

    const auto store = SqliteStore::open(damaged);
    const auto contents = store ? (*store)->load() : Result<Contents>(store.error());

    if (contents) {  // a page of an index, which loading does not read: all is there
      EXPECT_EQ(contents->jobs.size() + contents->unreadable.size(), 50U) << "page " << page;
      continue;
    }
    ++noticed;
    EXPECT_EQ(contents.error().code, ErrorCode::kInternal);
    EXPECT_NE(contents.error().to_string().find("muster store check"), std::string::npos)
        << contents.error().to_string();
  }
  EXPECT_GE(noticed, 12);
}

TEST_F(Sqlite, SaysThatAFileIsNoDatabase) {
  std::ofstream(file()) << std::string(8192, 'x');

  const auto store = SqliteStore::open(file());

  ASSERT_FALSE(store);
  EXPECT_NE(store.error().what.find("not a database"), std::string::npos) << store.error().what;
}

TEST_F(Sqlite, TakesNothingFromTheAuditLog) {
  const auto store = open();
  ASSERT_TRUE(store->commit({.audit = {full_record(1)}}));
  auto database = SqliteDatabase::open(file(), SqliteDatabase::Mode::kMake);

  EXPECT_FALSE(database->execute("DELETE FROM audit"));
  EXPECT_FALSE(database->execute("UPDATE audit SET actor = 'mallory'"));

  EXPECT_EQ(*store->audit({}), std::vector<access::AuditRecord>{full_record(1)});
}

}  // namespace
}  // namespace muster::store
