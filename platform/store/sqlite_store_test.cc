// Behaviour specific to SQLite; conformance_test.cc has the behaviour of every store.
#include "store/sqlite_store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/files.h"
#include "base/test_folder.h"
#include "store/records.h"
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

/// The database through SQLite's own interface, for operations that a store does not have.
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

 private:
  sqlite3* database_ = nullptr;
};

/// The present tables, and those of a future version.
std::vector<const char*> with_next_sqlite_version() {
  std::vector<const char*> all(kSqliteMigrations.begin(), kSqliteMigrations.end());
  all.push_back("ALTER TABLE job ADD COLUMN next TEXT; CREATE TABLE later (name TEXT) STRICT;");
  return all;
}

TEST_F(Sqlite, HandsOutTheDocumentsOfChangedJobsThatHaveEnded) {
  Job running = full_job("j1", "one");
  Job ended = full_job("j2", "two");
  running.phase = ended.phase = job::Phase::kRunning;
  const auto store = open();
  std::vector<std::pair<std::string, std::string>> seen;
  const Batch::Ended see = [&](const Job& job, std::string_view document) {
    seen.emplace_back(job.id, document);
  };
  ASSERT_TRUE(store->commit({.new_jobs = {{.job = &running}, {.job = &ended}}, .ended = see}));
  ended.phase = job::Phase::kSucceeded;

  ASSERT_TRUE(store->commit({.changed_jobs = {&running, &ended}, .ended = see}));

  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0], std::pair(ended.id, to_document(ended)));
  EXPECT_EQ(*from_document<Job>(seen[0].second), ended);
}

TEST_F(Sqlite, KeepsEverythingWhenItIsOpenedAgain) {
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

class SqliteMigration : public Sqlite {
 protected:
  SqliteMigration() {
    const Job job = full_job("j1", "one");
    EXPECT_TRUE(open()->commit({.new_jobs = {{.job = &job, .idempotency_key = "k1"}}}));
  }

  Result<void> migrate_to_next() const {
    auto database = SqliteDatabase::open(file(), SqliteDatabase::Mode::kWrite);
    if (!database) return database.error();
    return migrate_with_backup(*database, with_next_sqlite_version());
  }

  /// The result of a query for a number, in the database or in a copy of it.
  int64_t number(const std::filesystem::path& database, const std::string& query) const {
    auto opened = SqliteDatabase::open(database, SqliteDatabase::Mode::kReadOnly);
    EXPECT_TRUE(opened);
    const auto answer = opened->number(query);
    EXPECT_TRUE(answer) << answer.error().what;
    return answer ? *answer : -1;
  }

  std::filesystem::path backup() const {
    return file().string() + ".version-" + std::to_string(kSchemaVersion);
  }
};

TEST_F(SqliteMigration, RunsTheMissingStepsAndKeepsTheRecords) {
  ASSERT_TRUE(migrate_to_next());

  EXPECT_EQ(number(file(), "PRAGMA user_version"), kSchemaVersion + 1);
  EXPECT_EQ(number(file(), "SELECT count(*) FROM job WHERE id = 'j1' AND next IS NULL"), 1);
  EXPECT_EQ(number(file(), "SELECT count(*) FROM later"), 0);
  EXPECT_TRUE(migrate_to_next());  // the second time there is nothing to do
}

TEST_F(Sqlite, AddsTheTableOfObjectsToAStoreOfVersion1) {
  {
    auto old = SqliteDatabase::open(file(), SqliteDatabase::Mode::kMake);
    ASSERT_TRUE(old && migrate(*old, kSqliteMigrations.first(1)));
  }
  const Object object = full_object("array", "a1", "many");

  ASSERT_TRUE(open()->commit({.objects = {object}}));

  EXPECT_EQ(open()->load()->objects, std::vector<Object>{object});
  EXPECT_TRUE(std::filesystem::exists(file().string() + ".version-1"));
}

TEST_F(SqliteMigration, CopiesTheDatabaseBeforeChangingIt) {
  ASSERT_TRUE(migrate_to_next());

  struct stat status{};
  ASSERT_EQ(::stat(backup().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_EQ(number(backup(), "PRAGMA user_version"), kSchemaVersion);
  EXPECT_EQ((*SqliteStore::open(backup()))->load()->jobs, std::vector<Job>{full_job("j1", "one")});
}

TEST_F(SqliteMigration, ChangesNothingIfTheCopyFails) {
  std::filesystem::create_directory(backup());

  EXPECT_FALSE(migrate_to_next());

  EXPECT_EQ(number(file(), "PRAGMA user_version"), kSchemaVersion);
}

TEST_F(SqliteMigration, ChangesNothingIfAStepFails) {
  Raw(file()).execute("CREATE TABLE later (in_the_way)");

  EXPECT_FALSE(migrate_to_next());

  EXPECT_EQ(number(file(), "PRAGMA user_version"), kSchemaVersion);
  EXPECT_EQ(number(file(), "SELECT count(*) FROM pragma_table_info('job') WHERE name = 'next'"), 0);
  Raw(file()).execute("DROP TABLE later");  // and when the obstacle is gone:
  EXPECT_TRUE(migrate_to_next());
}

TEST_F(Sqlite, CopiesNothingIfTheDatabaseIsEmpty) {
  open();
  open();
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_EQ(entry.path().string().find(".version"), std::string::npos) << entry.path();
  }
}

TEST_F(Sqlite, RefusesADatabaseOfAnUnknownVersion) {
  open();
  for (const int version : {kSchemaVersion + 1, 5, -1}) {
    Raw(file()).execute("PRAGMA user_version = " + std::to_string(version));

    const auto store = SqliteStore::open(file());

    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, ErrorCode::kConflict);
    EXPECT_EQ(store.error().what,
              "the database '" + file().string() + "' has version " + std::to_string(version) +
                  ", and this release reads versions up to " + std::to_string(kSchemaVersion));
    EXPECT_EQ(store.error().advice, "use the release that wrote it, or another database");
  }
}

TEST_F(Sqlite, HasEachCommitInItsFilesWhenItReturns) {
  const auto store = open();
  const Job job = full_job("j1", "one");
  ASSERT_TRUE(store->commit({.new_jobs = {{.job = &job}}}));

  // The files as they would be after a power cut, without SQLite's regular closing.
  const std::filesystem::path copy = folder_ / "copy.db";
  std::filesystem::copy_file(file(), copy);
  std::filesystem::copy_file(folder_ / "muster.db-wal", folder_ / "copy.db-wal");

  EXPECT_EQ((*SqliteStore::open(copy))->load()->jobs, std::vector<Job>{job});
}

TEST_F(Sqlite, IsReadableOnlyByItsOwner) {
  open();
  struct stat status{};
  ASSERT_EQ(::stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(Sqlite, ReportsAMissingFolder) {
  const auto store = SqliteStore::open(folder_ / "no" / "muster.db");
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kNotFound);
}

TEST_F(Sqlite, KeepsTheAuditLogFromBeingChanged) {
  ASSERT_TRUE(open()->commit({.audit = {full_record(1)}}));
  auto database = SqliteDatabase::open(file(), SqliteDatabase::Mode::kWrite);
  ASSERT_TRUE(database);

  EXPECT_FALSE(database->execute("UPDATE audit SET actor = 'mallory'"));
  EXPECT_FALSE(database->execute("DELETE FROM audit"));

  EXPECT_EQ(*open()->audit({}), std::vector<access::AuditRecord>{full_record(1)});
}

TEST_F(Sqlite, NamesAnUnreadableRecordAndLoadsTheRest) {
  const auto store = open();
  const Job jobs[] = {full_job("j1", "one"), full_job("j2", "two"), full_job("j3", "three")};
  ASSERT_TRUE(store->commit(
      {.new_jobs = {{.job = &jobs[0]}, {.job = &jobs[1]}, {.job = &jobs[2]}},
       .objects = {full_object("array", "a1", "many"), full_object("sweep", "s1", "lr")},
       .users = {full_user("ada"), full_user("bob")}}));
  Raw(file()).execute("UPDATE object SET document = x'a0' WHERE id = 'a1'");
  Raw(file()).execute("UPDATE job SET document = x'a0' WHERE id = 'j2'");
  Raw(file()).execute("UPDATE account SET name = 'mallory' WHERE name = 'ada'");

  const auto contents = store->load();

  ASSERT_TRUE(contents) << contents.error().to_string();
  EXPECT_EQ(contents->jobs, (std::vector<Job>{jobs[0], jobs[2]}));
  EXPECT_EQ(contents->objects, std::vector<Object>{full_object("sweep", "s1", "lr")});
  EXPECT_EQ(contents->users, std::vector<access::User>{full_user("bob")});
  const auto packed = store->load_packed();
  ASSERT_TRUE(packed);
  EXPECT_EQ(packed->stored.size(), 2U);
  ASSERT_EQ(packed->unreadable.size(), 3U);
  EXPECT_EQ(packed->unreadable[0].title(), contents->unreadable[0].title());
  EXPECT_EQ(packed->unreadable[0].fault, contents->unreadable[0].fault);
  EXPECT_EQ(packed->unreadable[0].jobs_before, contents->unreadable[0].jobs_before);
  ASSERT_EQ(contents->unreadable.size(), 3U);
  const Unreadable& job = contents->unreadable[0];
  EXPECT_EQ(job.title(), "job 'vision/two' (id j2)");
  EXPECT_EQ(job.command(), "muster store set-aside vision/two");
  EXPECT_EQ(job.jobs_before, 1U);
  EXPECT_EQ(contents->unreadable[1].title(), "array 'vision/many' (id a1)");
  EXPECT_EQ(contents->unreadable[1].command(), "muster store set-aside array:vision/many");
  EXPECT_EQ(contents->unreadable[2].title(), "user 'mallory'");
  EXPECT_EQ(contents->unreadable[2].command(), "muster store set-aside user:mallory");
}

TEST_F(Sqlite, ShowsTheColumnsOfAnUnreadableAuditRecord) {
  const auto store = open();
  ASSERT_TRUE(store->commit({.audit = {full_record(1), full_record(2)}}));
  Raw(file()).execute(
      "DROP TRIGGER audit_rows_never_change; UPDATE audit SET document = x'a0' WHERE number = 1");

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

/// Checks the content and the reports of a store with one flipped bit of its file.
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

/// The offsets of `part` in `bytes`.
std::vector<size_t> places_of(const std::string& bytes, const std::string& part) {
  std::vector<size_t> places;
  for (size_t at = bytes.find(part); at != std::string::npos; at = bytes.find(part, at + 1)) {
    places.push_back(at);
  }
  return places;
}

// Every bit of every row: of the documents and of the other columns.
TEST_F(Sqlite, DetectsAnyFlippedBitOfARow) {
  const std::vector<std::string> documents = {
      to_document(full_job("j1", "one")),   to_document(full_project("lab", 7)),
      to_document(full_user("ada")),        to_document(full_token("t1")),
      to_document(full_secret("lab", "A")), to_document(full_subscription("s1")),
      to_document(full_delivery("d1"))};
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
    // The columns of the key precede the document; in tables with these columns, the checksum
    // follows it.
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

// --- errors ---

/// The connection of a store, for operations that the store does not have.
class Tapped {
 public:
  Tapped() { sqlite3_auto_extension(reinterpret_cast<void (*)()>(remember)); }
  ~Tapped() { sqlite3_reset_auto_extension(); }
  Tapped(const Tapped&) = delete;
  Tapped& operator=(const Tapped&) = delete;

  static void execute(const char* sql) {
    EXPECT_EQ(sqlite3_exec(database_, sql, nullptr, nullptr, nullptr), SQLITE_OK);
  }

  /// The plans of the statements that `call` runs, one line for each step.
  static std::vector<std::string> plans_of(const std::function<void()>& call) {
    std::vector<std::string> statements;
    sqlite3_trace_v2(database_, SQLITE_TRACE_STMT, note_statement, &statements);
    call();
    sqlite3_trace_v2(database_, 0, nullptr, nullptr);
    std::vector<std::string> steps;
    for (const std::string& statement : statements) {
      const std::string explain = "EXPLAIN QUERY PLAN " + statement;
      EXPECT_EQ(sqlite3_exec(database_, explain.c_str(), note_step, &steps, nullptr), SQLITE_OK);
    }
    return steps;
  }

  /// How many instructions SQLite's machine runs for `call`.
  static int64_t effort_of(const std::function<void()>& call) {
    int64_t effort = 0;
    sqlite3_trace_v2(database_, SQLITE_TRACE_PROFILE, note_effort, &effort);
    call();
    sqlite3_trace_v2(database_, 0, nullptr, nullptr);
    return effort;
  }

 private:
  static int note_effort(unsigned /*event*/, void* effort, void* statement, void* /*duration*/) {
    *static_cast<int64_t*>(effort) +=
        sqlite3_stmt_status(static_cast<sqlite3_stmt*>(statement), SQLITE_STMTSTATUS_VM_STEP, 1);
    return 0;
  }
  static int note_statement(unsigned /*event*/, void* statements, void* statement, void* /*text*/) {
    char* const text = sqlite3_expanded_sql(static_cast<sqlite3_stmt*>(statement));
    static_cast<std::vector<std::string>*>(statements)->emplace_back(text);
    sqlite3_free(text);
    return 0;
  }
  static int note_step(void* steps, int columns, char** values, char** /*names*/) {
    static_cast<std::vector<std::string>*>(steps)->emplace_back(values[columns - 1]);
    return 0;
  }

  static int remember(sqlite3* database, const char** /*error*/, const void* /*routines*/) {
    database_ = database;
    return SQLITE_OK;
  }
  static inline sqlite3* database_ = nullptr;
};

TEST_F(Sqlite, KeepsRoomForDeletionsOnADiskThatHasMuchMore) {
  const SpareRoom room(folder_ / "room");
  room.reserve();
  struct stat status{};
  ASSERT_EQ(::stat((folder_ / "room").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, SpareRoom::kBytes);
  EXPECT_GE(status.st_blocks * 512, SpareRoom::kBytes);
  EXPECT_EQ(status.st_mode & 0777, 0600U);

  room.reserve();
  EXPECT_TRUE(room.release());
  EXPECT_FALSE(room.release());
}

TEST_F(Sqlite, UsesTheRoomForDeletionsAlsoToTakeRightsAway) {
  const Tapped tapped;
  const std::filesystem::path room = folder_ / "muster.db-spare";
  access::AuditRecord large = full_record(1);
  large.target = std::string(1 << 20, 'x');
  // Whether the room is still reserved after a commit for which the disk is full.
  const auto keeps_room = [&](Batch batch) {
    const auto store = open();
    EXPECT_TRUE(std::filesystem::exists(room));
    Tapped::execute("PRAGMA max_page_count = 1");  // no more than there are
    batch.audit = {large};
    const auto done = store->commit(batch);
    EXPECT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kExhausted);
    return std::filesystem::exists(room);
  };

  EXPECT_TRUE(keeps_room({.tokens = {full_token("t1")}}));
  EXPECT_TRUE(keeps_room({.secrets = {full_secret("lab", "A")}}));
  EXPECT_FALSE(keeps_room({.removed_jobs = {"j1"}}));
  EXPECT_FALSE(keeps_room({.removed_tokens = {"t1"}}));
  EXPECT_FALSE(keeps_room({.removed_users = {"ada"}}));
  EXPECT_FALSE(keeps_room({.removed_secrets = {{"lab", "A"}}}));
  EXPECT_FALSE(keeps_room({.users = {full_user("ada")}}));  // who may be disabled now
}

TEST_F(Sqlite, ReportsAFullDiskLosesNothingAndContinuesAfterwards) {
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
  EXPECT_NE(error.advice.find("free disk space"), std::string::npos);
  EXPECT_EQ(store->load()->jobs, kept);
  EXPECT_EQ(open()->load()->jobs, kept);

  const auto other = open();
  const Job next = full_job("next", "next");
  EXPECT_TRUE(other->commit({.new_jobs = {{.job = &next}}}));
}

// As with ulimit -f. The server ignores SIGXFSZ.
TEST_F(Sqlite, ReportsALimitOfFileSizesAsAFullDisk) {
  const auto store = open();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit low = before;
  low.rlim_cur = rlim_t{1} << 20U;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  base::Error error;
  for (int number = 0; number < 1'000 && error.what.empty(); ++number) {
    Job job = full_job("j" + std::to_string(number), "n" + std::to_string(number));
    const auto done = store->commit({.new_jobs = {{.job = &job}}});
    if (!done) error = done.error();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);

  EXPECT_EQ(error.code, ErrorCode::kExhausted) << error.to_string();
  EXPECT_NE(error.what.find("has no room to grow"), std::string::npos) << error.to_string();
  const Job next = full_job("next", "next");
  EXPECT_TRUE(store->commit({.new_jobs = {{.job = &next}}}));
}

TEST_F(Sqlite, ReportsThatItIsReadOnly) {
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

/// A process that locks the database while this object exists.
class Locker {
 public:
  explicit Locker(const std::filesystem::path& file) {
    EXPECT_EQ(::pipe(locked_pipe_), 0);
    EXPECT_EQ(::pipe(release_pipe_), 0);
    child_ = ::fork();
    if (child_ == 0) {
      sqlite3* database = nullptr;
      sqlite3_open(file.c_str(), &database);
      const int locked = sqlite3_exec(database, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
      char byte = locked == SQLITE_OK ? 'y' : 'n';
      (void)!::write(locked_pipe_[1], &byte, 1);
      ::close(release_pipe_[1]);
      (void)!::read(release_pipe_[0], &byte, 1);
      ::_exit(0);
    }
    char byte = 0;
    EXPECT_EQ(::read(locked_pipe_[0], &byte, 1), 1);
    EXPECT_EQ(byte, 'y');
  }
  ~Locker() {
    ::close(release_pipe_[1]);
    ::waitpid(child_, nullptr, 0);
    for (const int fd : {locked_pipe_[0], locked_pipe_[1], release_pipe_[0]}) ::close(fd);
  }
  Locker(const Locker&) = delete;
  Locker& operator=(const Locker&) = delete;

  pid_t process() const { return child_; }

 private:
  int locked_pipe_[2] = {-1, -1};
  int release_pipe_[2] = {-1, -1};
  pid_t child_ = -1;
};

TEST_F(Sqlite, NamesTheProcessThatLocksItAndContinuesAfterwards) {
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
    EXPECT_TRUE(store->load()->jobs.empty());  // reading is still possible
  }
  EXPECT_TRUE(store->commit({.new_jobs = {{.job = &job}}}));
  EXPECT_TRUE(store->ping());
}

TEST_F(Sqlite, ReportsADamagedPageWhicheverItIs) {
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

    if (contents) {  // a page of an index, which loading does not read: all records are intact
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

TEST_F(Sqlite, ReportsAFileThatIsNotADatabase) {
  std::ofstream(file()) << std::string(8192, 'x');

  const auto store = SqliteStore::open(file());

  ASSERT_FALSE(store);
  EXPECT_NE(store.error().what.find("not a database"), std::string::npos) << store.error().what;
}

TEST_F(Sqlite, SearchesTheAuditLogByIndexes) {
  const Tapped tapped;
  const auto store = open();
  ASSERT_TRUE(store->commit({.audit = {full_record(1), full_record(2)}}));
  for (const auto& [query, index] :
       {std::pair(access::AuditQuery{.since = full_record(1).time}, "audit_of_time"),
        {access::AuditQuery{.action = "project"}, "audit_of_action"},
        {access::AuditQuery{.action = "project.set", .since = full_record(1).time},
         "audit_of_action"},
        {access::AuditQuery{.user = "ada"}, "audit_of_actor"},
        {access::AuditQuery{.project = "lab"}, "audit_of_project"}}) {
    const std::vector<std::string> steps =
        Tapped::plans_of([&] { EXPECT_EQ(store->audit(query)->size(), 2U); });

    bool uses_index = false;
    for (const std::string& step : steps) {
      uses_index = uses_index || step.find(index) != std::string::npos;
      EXPECT_EQ(step.find("SCAN audit"), std::string::npos) << step;
    }
    EXPECT_TRUE(uses_index) << index;
  }
}

TEST_F(Sqlite, SearchesByTimeWithTheSameEffortHoweverManyRecordsAreNewer) {
  const Tapped tapped;
  const auto store = open();
  uint64_t count = 0;
  const auto record_more = [&](uint64_t more) {
    Batch batch;
    while (more-- > 0) batch.audit.push_back(full_record(++count));
    ASSERT_TRUE(store->commit(batch));
  };
  // The effort to find the 100 newest records since record 3.
  const auto effort = [&](access::AuditQuery query) {
    query.since = full_record(3).time;
    query.limit = 100;
    return Tapped::effort_of([&] {
      const auto found = store->audit(query);
      ASSERT_EQ(found->size(), 100U);
      EXPECT_EQ(found->front(), full_record(count));
    });
  };
  record_more(10'100);
  const int64_t plain = effort({});
  const int64_t of_action = effort({.action = "project"});

  record_more(1'000);

  EXPECT_EQ(effort({}), plain);
  EXPECT_EQ(effort({.action = "project"}), of_action);
  EXPECT_EQ(store->audit({.since = full_record(3).time, .before = 200, .limit = 500})->size(),
            197U);
}

TEST_F(Sqlite, FindsAuditRecordsThatAreOlderThanAnEarlierOne) {
  const auto store = open();
  std::vector<access::AuditRecord> records = {full_record(1), full_record(2), full_record(3),
                                              full_record(4)};
  const base::Time start = full_record(1).time;
  records[1].time = start + std::chrono::hours(2);
  records[2].time = start + std::chrono::hours(1);  // the clock was set back
  records[3].time = start + std::chrono::hours(3);
  ASSERT_TRUE(store->commit({.audit = records}));

  const auto found = store->audit({.since = start + std::chrono::minutes(90)});

  EXPECT_EQ(*found, (std::vector<access::AuditRecord>{records[3], records[1]}));
}

TEST_F(Sqlite, RemovesNothingFromTheAuditLog) {
  const auto store = open();
  ASSERT_TRUE(store->commit({.audit = {full_record(1)}}));
  auto database = SqliteDatabase::open(file(), SqliteDatabase::Mode::kMake);

  EXPECT_FALSE(database->execute("DELETE FROM audit"));
  EXPECT_FALSE(database->execute("UPDATE audit SET actor = 'mallory'"));

  EXPECT_EQ(*store->audit({}), std::vector<access::AuditRecord>{full_record(1)});
}

}  // namespace
}  // namespace muster::store
