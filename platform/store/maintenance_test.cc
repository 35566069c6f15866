#include "store/maintenance.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/random.h"
#include "base/test_folder.h"
#include "store/postgres_store.h"
#include "store/records.h"
#include "store/sqlite_schema.h"
#include "store/sqlite_store.h"
#include "store/test_postgres.h"
#include "store/test_values.h"

namespace muster::store {
namespace {

using base::ErrorCode;

class Maintenance : public testing::Test {
 protected:
  std::string file(const char* name) const { return folder_ / name; }

  const base::TestFolder folder_;
};

std::unique_ptr<Store> open(const std::string& where) {
  if (!is_postgres_url(where)) return *SqliteStore::open(where);
  auto store = *PostgresStore::open(where, "/nonexistent");
  while (!*store->try_to_lead("here")) {  // until the lock of the destroyed store is free
  }
  return store;
}

/// Records of every kind, with gaps where some were removed.
void fill(Store& store) {
  const job::Job one = full_job("j1", "one");
  const job::Job two = full_job("j2", "two");
  const job::Job three = full_job("j3", "three");
  ASSERT_TRUE(store.commit(
      {.new_jobs = {{.job = &one, .idempotency_key = "k\xFF"},
                    {.job = &two},
                    {.job = &three, .idempotency_key = "k3"}},
       .objects = {full_object("array", "a1", "many"), full_object("sweep", "s1", "many")},
       .projects = {full_project("lab", 1), full_project("vision", 2)},
       .cordoned_nodes = {"n1", "n2"},
       .users = {full_user("ada"), full_user("bob"), full_user("eve")},
       .tokens = {full_token("t1"), full_token("t2")},
       .secrets = {full_secret("lab", "A")},
       .subscriptions = {full_subscription("s1")},
       .deliveries = {full_delivery("d1"), full_delivery("d2")},
       .audit = {full_record(1), full_record(2), full_record(3)}}));
  ASSERT_TRUE(store.commit({.removed_jobs = {"j2"}, .audit = {full_record(4)}}));
}

constexpr StoreSummary kFilled{.schema_version = kSchemaVersion,
                               .jobs = 2,
                               .objects = 2,
                               .projects = 2,
                               .users = 3,
                               .tokens = 2,
                               .secrets = 1,
                               .subscriptions = 1,
                               .deliveries = 2,
                               .audit_records = 4};

void expect_filled(const std::string& where) {
  const auto store = open(where);
  const auto contents = store->load();
  ASSERT_TRUE(contents) << contents.error().to_string();
  EXPECT_EQ(contents->jobs,
            (std::vector<job::Job>{full_job("j1", "one"), full_job("j3", "three")}));
  EXPECT_EQ(contents->objects, (std::vector<Object>{full_object("array", "a1", "many"),
                                                    full_object("sweep", "s1", "many")}));
  EXPECT_EQ(contents->projects,
            (std::vector<job::Project>{full_project("lab", 1), full_project("vision", 2)}));
  EXPECT_EQ(contents->cordoned_nodes, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(contents->users,
            (std::vector<access::User>{full_user("ada"), full_user("bob"), full_user("eve")}));
  EXPECT_EQ(contents->tokens, (std::vector<access::Token>{full_token("t1"), full_token("t2")}));
  EXPECT_EQ(contents->secrets, std::vector<access::Secret>{full_secret("lab", "A")});
  EXPECT_EQ(contents->subscriptions, std::vector<job::Subscription>{full_subscription("s1")});
  EXPECT_EQ(contents->deliveries,
            (std::vector<job::Delivery>{full_delivery("d1"), full_delivery("d2")}));
  EXPECT_EQ(*store->audit({}), (std::vector<access::AuditRecord>{full_record(4), full_record(3),
                                                                 full_record(2), full_record(1)}));
  EXPECT_EQ(*store->find_by_key("k\xFF"), "j1");
  // The restored store can be used.
  const job::Job next = full_job("j4", "four");
  ASSERT_TRUE(store->commit({.new_jobs = {{.job = &next}}, .audit = {full_record(5)}}));
  EXPECT_EQ(store->load()->jobs.back().id, "j4");
  EXPECT_EQ(store->audit({})->front(), full_record(5));
}

TEST_F(Maintenance, ABackupRestoredThroughBothDatabasesIsUnchanged) {
  fill(*open(file("muster.db")));

  const std::string postgres = TestPostgres::instance().new_url();
  const auto first = backup_store(file("muster.db"), file("first"));
  ASSERT_TRUE(first) << first.error().to_string();
  EXPECT_EQ(*first, kFilled);
  const auto into_postgres = restore_store(file("first"), postgres);
  ASSERT_TRUE(into_postgres) << into_postgres.error().to_string();
  EXPECT_EQ(*into_postgres, kFilled);
  const auto second = backup_store(postgres, file("second"));
  ASSERT_TRUE(second) << second.error().to_string();
  EXPECT_EQ(*second, kFilled);
  const auto back = restore_store(file("second"), file("again.db"));
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(*back, kFilled);

  expect_filled(postgres);
  expect_filled(file("again.db"));
}

TEST_F(Maintenance, BacksUpAStoreInUse) {
  for (const std::string& where : {file("muster.db"), TestPostgres::instance().new_url()}) {
    const auto store = open(where);
    fill(*store);
    const std::string backup = file(is_postgres_url(where) ? "postgres" : "sqlite");

    const auto done = backup_store(where, backup);

    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(*done, kFilled);
    EXPECT_TRUE(store->commit({.audit = {full_record(5)}}));
    EXPECT_EQ(check_store(backup)->summary, kFilled);
    struct stat status{};
    ASSERT_EQ(::stat(backup.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 4)
      << "muster.db and its spare room, two backups, and nothing half-made";
}

TEST_F(Maintenance, OverwritesNoFile) {
  fill(*open(file("muster.db")));
  ASSERT_TRUE(base::write_file(file("mine"), "precious"));

  EXPECT_EQ(backup_store(file("muster.db"), file("mine")).error().code, ErrorCode::kConflict);

  EXPECT_EQ(*base::read_file(file("mine")), "precious");
}

TEST_F(Maintenance, ABackupGetsItsNameWithoutHardLinks) {
  const NamingCalls system = NamingCalls::of_system();
  int links = 0;
  int renames = 0;
  for (const int no_link : {EPERM, EOPNOTSUPP, ENOSYS, EMLINK}) {
    for (const bool has_rename_if_free : {true, false}) {
      const NamingCalls calls{.link =
                                  [&](const auto&, const auto&) {
                                    ++links;
                                    return no_link;
                                  },
                              .rename_if_free =
                                  [&](const auto& from, const auto& to) {
                                    ++renames;
                                    return has_rename_if_free ? system.rename_if_free(from, to)
                                                              : EINVAL;
                                  }};
      ASSERT_TRUE(base::write_file(file("partial"), "complete"));

      const auto named = name_backup(file("partial"), file("backup"), calls);
      ASSERT_TRUE(named) << named.error().to_string();
      EXPECT_EQ(*base::read_file(file("backup")), "complete");

      // Another file of that name is kept.
      ASSERT_TRUE(base::write_file(file("partial"), "another"));
      const auto refused = name_backup(file("partial"), file("backup"), calls);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
      EXPECT_EQ(*base::read_file(file("backup")), "complete");
      std::filesystem::remove(file("backup"));
    }
  }
  EXPECT_EQ(links, 16);
  EXPECT_EQ(renames, 16);
}

TEST_F(Maintenance, ABackupWithoutAPlaceIsAnError) {
  ASSERT_TRUE(base::write_file(file("partial"), "complete"));
  const NamingCalls full{.link = [](const auto&, const auto&) { return ENOSPC; },
                         .rename_if_free = [](const auto&, const auto&) { return 0; }};

  EXPECT_EQ(name_backup(file("partial"), file("backup"), full).error().code, ErrorCode::kExhausted);
  EXPECT_FALSE(std::filesystem::exists(file("backup")));
}

TEST_F(Maintenance, ABackupIsCompleteInAFolderThatCannotBeRead) {
  ASSERT_TRUE(base::write_file(file("partial"), "complete"));
  NamingCalls calls = NamingCalls::of_system();
  calls.sync_folder = [](const auto&) { return EACCES; };

  const auto named = name_backup(file("partial"), file("backup"), calls);

  EXPECT_TRUE(named) << named.error().to_string();
  EXPECT_EQ(*base::read_file(file("backup")), "complete");
}

TEST_F(Maintenance, ABackupWhoseNameIsNotDurableIsRemoved) {
  ASSERT_TRUE(base::write_file(file("partial"), "complete"));
  NamingCalls calls = NamingCalls::of_system();
  calls.sync_folder = [](const auto&) { return EIO; };

  EXPECT_FALSE(name_backup(file("partial"), file("backup"), calls));

  EXPECT_FALSE(std::filesystem::exists(file("backup")));
}

TEST_F(Maintenance, RefusesToBackUpAFileThatIsNotAStore) {
  EXPECT_EQ(backup_store(file("missing.db"), file("b")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(backup_store(TestPostgres::instance().new_url(), file("b")).error().code,
            ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(file("b")));
  EXPECT_FALSE(std::filesystem::exists(file("b.partial")));
}

TEST_F(Maintenance, RestoresOnlyIntoAnEmptyStore) {
  fill(*open(file("muster.db")));
  ASSERT_TRUE(backup_store(file("muster.db"), file("backup")));
  for (const std::string& where : {file("other.db"), TestPostgres::instance().new_url()}) {
    ASSERT_TRUE(open(where)->commit({.cordoned_nodes = {"mine"}}));

    Result<StoreSummary> done = restore_store(file("backup"), where);

    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kConflict);
    EXPECT_EQ(open(where)->load()->cordoned_nodes, std::vector<std::string>{"mine"});
    EXPECT_TRUE(open(where)->load()->jobs.empty());
  }
}

TEST_F(Maintenance, RefusesToRestoreIntoAStoreInUse) {
  fill(*open(file("muster.db")));
  ASSERT_TRUE(backup_store(file("muster.db"), file("backup")));
  for (const std::string& where : {file("other.db"), TestPostgres::instance().new_url()}) {
    const auto in_use = open(where);

    const auto done = restore_store(file("backup"), where);

    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kConflict);
    EXPECT_NE(done.error().what.find("a server"), std::string::npos) << done.error().what;
    EXPECT_TRUE(in_use->load()->jobs.empty());
  }
}

TEST_F(Maintenance, RefusesToRestoreAFileThatIsNotABackup) {
  ASSERT_TRUE(base::write_file(file("text"), std::string(10'000, 'x')));
  ASSERT_TRUE(base::write_file(file("empty"), ""));

  EXPECT_EQ(restore_store(file("text"), file("a.db")).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(restore_store(file("empty"), file("a.db")).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(restore_store(file("missing"), file("a.db")).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(file("a.db")));
}

/// Flips one bit in the last column but one of a row, without the store's knowledge.
void flip_a_bit(const std::string& where, const std::string& table, const std::string& row) {
  const bool has_document = table != "node_setting";
  if (is_postgres_url(where)) {
    TestPostgres::instance().execute(
        where, "UPDATE " + table + " SET " +
                   (has_document ? "document = set_bit(document, 90, 1 - get_bit(document, 90))"
                                 : "cordoned = 3") +
                   " WHERE " + row);
    return;
  }
  auto database = SqliteDatabase::open(where, SqliteDatabase::Mode::kMake);
  // The documents of these tests never contain 'x' there.
  const auto done = database->execute(
      "UPDATE " + table + " SET " +
      (has_document ? "document = CAST(substr(document, 1, 11) || x'78' || substr(document, 13)"
                      " AS BLOB)"
                    : "cordoned = 3") +
      " WHERE " + row);
  ASSERT_TRUE(done) << done.error().to_string();
}

/// Overwrites a page, but not the first, with invalid content.
void damage_page(const std::string& database, std::streamoff page) {
  std::fstream bytes(database, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(page * 4096);
  bytes << std::string(4096, '\xEE');
}

TEST_F(Maintenance, RefusesToRestoreADamagedBackup) {
  fill(*open(file("muster.db")));
  ASSERT_TRUE(backup_store(file("muster.db"), file("backup")));
  damage_page(file("backup"), 2);

  EXPECT_EQ(restore_store(file("backup"), file("a.db")).error().code, ErrorCode::kInvalid);
}

TEST_F(Maintenance, FindsNoFaultInAnIntactStore) {
  for (const std::string& where : {file("muster.db"), TestPostgres::instance().new_url()}) {
    fill(*open(where));

    const auto check = check_store(where);

    ASSERT_TRUE(check) << check.error().to_string();
    EXPECT_EQ(check->faults, std::vector<std::string>{});
    EXPECT_EQ(check->summary, kFilled);
  }
}

TEST_F(Maintenance, FindsADamagedPage) {
  fill(*open(file("muster.db")));
  ASSERT_TRUE(backup_store(file("muster.db"), file("copy")));
  const auto size = std::filesystem::file_size(file("copy"));
  for (std::streamoff page = 1; page < static_cast<std::streamoff>(size / 4096); ++page) {
    const std::string damaged = file("damaged");
    std::filesystem::copy_file(file("copy"), damaged,
                               std::filesystem::copy_options::overwrite_existing);
    damage_page(damaged, page);

    const auto check = check_store(damaged);

    EXPECT_TRUE(!check || !check->faults.empty()) << "page " << page;
  }
}

TEST_F(Maintenance, NamesTheRowWithAnUnreadableDocument) {
  const std::string url = TestPostgres::instance().new_url();
  fill(*open(url));
  TestPostgres::instance().execute(url,
                                   "UPDATE job SET document = '\\xa0' WHERE id = 'j1';"
                                   "UPDATE account SET name = 'mallory' WHERE name = 'ada'");

  const auto check = check_store(url);

  ASSERT_TRUE(check) << check.error().to_string();
  EXPECT_EQ(check->faults,
            (std::vector<std::string>{
                "job 'vision/one' (id j1): its checksum differs from its content: bits of it have "
                "changed on the disk; `muster store set-aside vision/one` sets it aside",
                "user 'mallory': its checksum differs from its content: bits of it have changed on "
                "the disk; `muster store set-aside user:mallory` sets it aside"}));
}

/// Replaces the job's document, with a valid checksum.
void replace_document(const std::string& file, const job::Job& job, const std::string& document) {
  auto database = SqliteDatabase::open(file, SqliteDatabase::Mode::kWrite);
  ASSERT_TRUE(database) << database.error().to_string();
  const auto* bytes = reinterpret_cast<const uint8_t*>(document.data());
  const auto done =
      database->execute("UPDATE job SET document = x'" + base::to_hex({bytes, document.size()}) +
                        "', checksum = " + std::to_string(checksum_of(job, document)) +
                        " WHERE id = '" + job.id + "'");
  ASSERT_TRUE(done) << done.error().to_string();
}

TEST_F(Maintenance, NamesTheInvalidFieldsOfADocument) {
  fill(*open(file("muster.db")));
  const job::Job job = full_job("j1", "one");
  nlohmann::json document = nlohmann::json::from_cbor(to_document(job));
  document.erase("phase");
  document["spec"]["wrokers"] = 3;
  document["attempt"] = "first";
  std::string cbor;
  nlohmann::json::to_cbor(document, cbor);
  replace_document(file("muster.db"), job, cbor);

  const auto check = check_store(file("muster.db"));

  ASSERT_TRUE(check) << check.error().to_string();
  ASSERT_EQ(check->faults.size(), 1U);
  for (const char* part : {"job 'vision/one' (id j1): ", "phase is missing",
                           "spec.wrokers is not a field; did you mean 'workers'?",
                           "attempt must be a whole number, not text",
                           "`muster store set-aside vision/one` sets it aside"}) {
    EXPECT_NE(check->faults[0].find(part), std::string::npos) << check->faults[0];
  }
  // No other record is lost, and nothing of this one.
  EXPECT_EQ(check->summary.jobs, 2U);
  EXPECT_EQ(open(file("muster.db"))->load()->unreadable.size(), 1U);
}

TEST_F(Maintenance, SetsAnUnreadableRecordAsideUnchanged) {
  for (const std::string& where : {file("muster.db"), TestPostgres::instance().new_url()}) {
    fill(*open(where));
    flip_a_bit(where, "job", "id = 'j1'");

    const auto done = set_aside_record(where, "vision/one", kTime);

    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(done->faults, std::vector<std::string>{});
    EXPECT_EQ(done->set_aside,
              std::vector<std::string>{"job 'vision/one' (id j1), set aside 2023-11-14T22:13:20Z: "
                                       "its checksum differs from its content: bits of it have "
                                       "changed on the disk"});
    EXPECT_EQ(done->summary.jobs, 1U);
    EXPECT_EQ(done->summary.set_aside, 1U);
    const std::string backup = file(is_postgres_url(where) ? "postgres" : "sqlite");
    ASSERT_TRUE(backup_store(where, backup));
    auto kept = SqliteDatabase::open(backup, SqliteDatabase::Mode::kReadOnly);
    EXPECT_EQ(*kept->number("SELECT count(*) FROM set_aside WHERE source = 'job' AND sequence = 1"
                            " AND id = 'j1' AND project = 'vision' AND name = 'one'"
                            " AND length(idempotency_key) > 0 AND length(document) > 500"),
              1);
    flip_a_bit(where, "object", "id = 'a1'");
    EXPECT_EQ(set_aside_record(where, "array:vision/many", kTime)->summary.objects, 1U);
    // The name can be used again.
    const job::Job again = full_job("j5", "one");
    EXPECT_TRUE(open(where)->commit({.new_jobs = {{.job = &again}}}));
    EXPECT_TRUE(open(where)->load()->unreadable.empty());
  }
}

TEST_F(Maintenance, SetsRecordsOfEveryKindAside) {
  constexpr std::pair<const char*, const char*> kRecords[] = {{"project", "project:vision"},
                                                              {"account", "user:ada"},
                                                              {"token", "token:t1"},
                                                              {"secret", "secret:lab/A"},
                                                              {"subscription", "subscription:s1"},
                                                              {"delivery", "delivery:d1"},
                                                              {"node_setting", "node:n1"}};
  for (const std::string& where : {file("muster.db"), TestPostgres::instance().new_url()}) {
    fill(*open(where));
    for (const auto& [table, name] : kRecords) {
      const std::string word = std::string(name).substr(std::string(name).find_first_of(":/") + 1);
      const std::string own = word.substr(word.find('/') + 1);
      const bool has_id = own == "t1" || own == "s1" || own == "d1";
      flip_a_bit(where, table, (has_id ? "id = '" : "name = '") + own + "'");

      const auto done = set_aside_record(where, name, kTime);

      ASSERT_TRUE(done) << name << ": " << done.error().to_string();
      EXPECT_EQ(done->faults, std::vector<std::string>{}) << name;
    }
    EXPECT_EQ(check_store(where)->summary.set_aside, std::size(kRecords));
  }
}

TEST_F(Maintenance, RefusesToSetAReadableRecordAside) {
  for (const std::string& where : {file("muster.db"), TestPostgres::instance().new_url()}) {
    fill(*open(where));

    const auto readable = set_aside_record(where, "one", kTime);

    ASSERT_FALSE(readable);
    EXPECT_EQ(readable.error().to_string(),
              "the store has no unreadable record 'one'\n  every record of the store can be read");
    const auto in_use = open(where);
    const auto refused = set_aside_record(where, "one", kTime);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kConflict) << refused.error().to_string();
  }
  EXPECT_EQ(set_aside_record(file("missing.db"), "one", kTime).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(file("missing.db")));
}

// An index contains the former name of the job; SQLite must cope with that.
TEST_F(Maintenance, SetsAJobAsideWhoseNameChanged) {
  fill(*open(file("muster.db")));
  ASSERT_TRUE(backup_store(file("muster.db"), file("copy.db")));
  std::string bytes = *base::read_file(file("copy.db"));
  const std::string row = "j1visionone";
  size_t changed = 0;
  for (size_t at = bytes.find(row); at != std::string::npos; at = bytes.find(row, at + 1)) {
    bytes[at + row.size() - 1] = 'd';
    ++changed;
  }
  ASSERT_EQ(changed, 1U);
  ASSERT_TRUE(base::write_file(file("copy.db"), bytes));

  const auto done = set_aside_record(file("copy.db"), "ond", kTime);

  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(done->faults, std::vector<std::string>{});
  EXPECT_EQ(open(file("copy.db"))->load()->jobs.size(), 1U);
}

TEST_F(Maintenance, ReportsThatThereIsNothingToCheck) {
  EXPECT_EQ(check_store(file("missing.db")).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(file("missing.db")));
}

}  // namespace
}  // namespace muster::store
