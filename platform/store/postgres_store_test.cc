// Behaviour specific to PostgreSQL; conformance_test.cc has the behaviour of every store.
#include "store/postgres_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/test_folder.h"
#include "store/maintenance.h"
#include "store/postgres_connection.h"
#include "store/postgres_schema.h"
#include "store/postgres_writes.h"
#include "store/records.h"
#include "store/sqlite_schema.h"
#include "store/test_postgres_store.h"
#include "store/test_proxy.h"
#include "store/test_values.h"

namespace muster::store {
namespace {

using base::ErrorCode;
using job::Job;

TEST_F(Postgres, KeepsEverythingWhenItIsOpenedAgain) {
  const Job job = full_job("j1", "one");
  ASSERT_TRUE(leading(url_)->commit({.new_jobs = {{.job = &job, .idempotency_key = "k1"}},
                                     .projects = {full_project("team-a", 1)},
                                     .cordoned_nodes = {"n1"},
                                     .users = {full_user("ada")},
                                     .tokens = {full_token("t1")},
                                     .secrets = {full_secret("lab", "A")},
                                     .subscriptions = {full_subscription("s1")},
                                     .deliveries = {full_delivery("d1")},
                                     .audit = {full_record(1)}}));

  const auto again = open(url_);
  const auto contents = again->load();

  ASSERT_TRUE(contents);
  EXPECT_EQ(contents->jobs, std::vector<Job>{job});
  EXPECT_EQ(contents->projects, std::vector<job::Project>{full_project("team-a", 1)});
  EXPECT_EQ(contents->cordoned_nodes, Names{"n1"});
  EXPECT_EQ(contents->users, std::vector<access::User>{full_user("ada")});
  EXPECT_EQ(contents->tokens, std::vector<access::Token>{full_token("t1")});
  EXPECT_EQ(contents->secrets, std::vector<access::Secret>{full_secret("lab", "A")});
  EXPECT_EQ(contents->subscriptions, std::vector<job::Subscription>{full_subscription("s1")});
  EXPECT_EQ(contents->deliveries, std::vector<job::Delivery>{full_delivery("d1")});
  EXPECT_EQ(*again->audit({}), std::vector<access::AuditRecord>{full_record(1)});
  EXPECT_EQ(*again->find_by_key("k1"), "j1");
}

// --- leadership ---

TEST_F(Postgres, OneServerLeadsAndTheOthersGetItsAddress) {
  const auto first = open(url_);
  const auto second = open(url_);
  EXPECT_EQ(*first->leader(), std::nullopt);

  EXPECT_TRUE(*first->try_to_lead("https://first"));
  EXPECT_TRUE(*first->try_to_lead("https://first"));
  EXPECT_FALSE(*second->try_to_lead("https://second"));

  EXPECT_EQ(*second->leader(), (LeadHolder{.address = "https://first", .is_self = false}));
  EXPECT_EQ(*first->leader(), (LeadHolder{.address = "https://first", .is_self = true}));
}

// As of a load balancer that both servers name.
TEST_F(Postgres, ServersOfOneAddressAreDistinguishedByTheirSessions) {
  const auto first = open(url_);
  const auto second = open(url_);
  ASSERT_TRUE(*first->try_to_lead("https://both"));
  ASSERT_TRUE((*first->leader())->is_self);
  server_.stop_at_once();
  server_.start();

  ASSERT_TRUE(*once_available([&] { return second->try_to_lead("https://both"); }));

  EXPECT_EQ(*second->leader(), (LeadHolder{.address = "https://both", .is_self = true}));
  const auto seen = once_available([&] { return first->leader(); });
  ASSERT_TRUE(seen) << seen.error().to_string();
  EXPECT_EQ(*seen, (LeadHolder{.address = "https://both", .is_self = false}));
}

TEST_F(Postgres, ServersOfOtherSchemasLeadIndependently) {
  const auto first = leading(url_);
  EXPECT_TRUE(*open(server_.new_url())->try_to_lead("there"));
}

TEST_F(Postgres, AServerThatDoesNotLeadCanReadButNotCommit) {
  const Job job = full_job("j1", "one");
  const auto first = leading(url_);
  const auto second = open(url_);
  ASSERT_TRUE(add(*first, job));

  const auto refused = add(*second, full_job("j2", "two"));

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_EQ(ids(*second), Names{"j1"});
  EXPECT_TRUE(second->ping());
}

TEST_F(Postgres, AnotherServerTakesOverAfterTheLeader) {
  auto first = leading(url_);
  const auto second = open(url_);
  ASSERT_TRUE(add(*first, full_job("j1", "one")));

  first.reset();

  // The server releases the lock when it notices the closed connection.
  while (!*second->try_to_lead("https://second")) {
  }
  EXPECT_TRUE(add(*second, full_job("j2", "two")));
  EXPECT_EQ(ids(*second), (Names{"j1", "j2"}));
}

TEST_F(Postgres, ALeaderThatLostItsConnectionStillLeadsIfNoOtherServerHasLed) {
  const auto store = leading(url_);
  ASSERT_TRUE(add(*store, full_job("j1", "one")));
  server_.stop_at_once();
  server_.start();

  EXPECT_TRUE(add(*store, full_job("j2", "two")));
  EXPECT_EQ(ids(*store), (Names{"j1", "j2"}));
}

TEST_F(Postgres, ALeaderThatLostItsConnectionIsRefusedIfAnotherServerHasLed) {
  TestProxy proxy(folder_, server_.socket());
  const auto first = leading(server_.through(url_, folder_));
  const auto second = open(url_);
  ASSERT_TRUE(add(*first, full_job("j1", "one")));
  server_.stop_at_once();
  server_.start();
  ASSERT_TRUE(*second->try_to_lead("https://second"));
  const auto added = once_available([&] { return add(*second, full_job("j2", "two")); });
  ASSERT_TRUE(added) << added.error().to_string();

  const auto refused = add(*first, full_job("j3", "three"));
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_NE(refused.error().what.find("another server leads"), std::string::npos);
  EXPECT_EQ(ids(*first), (Names{"j1", "j2"}));
  EXPECT_FALSE(*first->try_to_lead("https://first"));
}

TEST_F(Postgres, ALeaderThatLostItsConnectionIsRefusedIfTheDatabaseHasLostCommits) {
  const auto store = leading(url_);
  ASSERT_TRUE(add(*store, full_job("j1", "one")));
  ASSERT_TRUE(add(*store, full_job("j2", "two")));
  // What a failover to a standby without the last commit leaves.
  server_.execute(url_,
                  "DELETE FROM job WHERE id = 'j2';"
                  "UPDATE leader SET commit_number = commit_number - 1");
  server_.stop_at_once();
  server_.start();

  const auto refused = once_available([&] { return add(*store, full_job("j3", "three")); });

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_NE(refused.error().what.find("has lost changes"), std::string::npos);
  EXPECT_EQ(*store->leader(), std::nullopt);
  EXPECT_EQ(ids(*store), Names{"j1"});
  // The next leader continues with what there is.
  EXPECT_TRUE(*store->try_to_lead("here"));
  EXPECT_TRUE(add(*store, full_job("j3", "three")));
}

TEST_F(Postgres, ALeaderThatLostItsConnectionIsRefusedIfTheDatabaseHasLostItsGeneration) {
  const auto store = leading(url_);
  ASSERT_TRUE(add(*store, full_job("j1", "one")));
  server_.execute(
      url_,
      "DELETE FROM job WHERE id = 'j1';"
      "UPDATE leader SET commit_number = commit_number - 1, generation = generation - 1");
  server_.stop_at_once();
  server_.start();

  const auto refused = once_available([&] { return add(*store, full_job("j2", "two")); });

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_NE(refused.error().what.find("has lost changes"), std::string::npos)
      << refused.error().what;
}

TEST_F(Postgres, TheDatabaseRefusesACommitOfAnEarlierGeneration) {
  const auto store = leading(url_);
  server_.execute(url_, "UPDATE leader SET generation = generation + 1");

  EXPECT_EQ(add(*store, full_job("j1", "one")).error().code, ErrorCode::kRefused);
  EXPECT_TRUE(ids(*store).empty());
  EXPECT_FALSE((*store->leader())->is_self);
}

TEST_F(Postgres, EndsItsOwnFormerSessionThatTheServerStillConsidersAlive) {
  TestProxy proxy(folder_, server_.socket());
  const auto store = leading(server_.through(url_, folder_));
  // Its session on the server waits within a statement, so it does not notice the closed
  // connection.
  server_.execute(url_,
                  "CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF "
                  "nextval(''turn'') = 1 THEN PERFORM pg_sleep(600); END IF; RETURN NULL; "
                  "END';CREATE SEQUENCE turn;CREATE CONSTRAINT TRIGGER hangs AFTER INSERT ON "
                  "project DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hang()");
  std::jthread cutter([&] {
    const auto url = PostgresUrl::parse(url_);
    const auto connection = PostgresConnection::open(*url, "test");
    while ((*connection)
               ->query("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
               ->number(0, 0) == 0) {
    }
    proxy.drop_all();
  });

  const auto done = store->commit({.projects = {full_project("team-a", 1)}});

  // The first attempt was ended, so that it could not succeed later; the second succeeded.
  EXPECT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(store->load()->projects, std::vector<job::Project>{full_project("team-a", 1)});
}

// --- idempotency keys ---

TEST_F(Postgres, RecognisesANewKeyWithoutTheDatabase) {
  ASSERT_TRUE(add(*leading(url_), full_job("j1", "one")));
  auto store = open(url_);
  while (!*store->try_to_lead("here")) {  // until the lock of the destroyed store is free
  }
  ASSERT_TRUE(store->load_packed());
  ASSERT_TRUE(add(*store, full_job("j2", "two")));
  ASSERT_TRUE(store->commit({.removed_jobs = {"j1"}}));

  EXPECT_EQ(*store->find_by_key("j1"), std::nullopt);
  EXPECT_EQ(*store->find_by_key("j2"), "j2");

  server_.stop_at_once();
  const auto fresh = store->find_by_key("j3");
  const auto stored = store->find_by_key("j2");
  server_.start();
  ASSERT_TRUE(fresh) << fresh.error().to_string();
  EXPECT_EQ(*fresh, std::nullopt);
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, ErrorCode::kUnavailable);
}

TEST_F(Postgres, AServerThatDoesNotLeadAsksTheDatabaseForAKey) {
  const auto leader = leading(url_);
  const auto waiting = open(url_);
  ASSERT_TRUE(waiting->load_packed());
  ASSERT_TRUE(add(*leader, full_job("j1", "one")));

  EXPECT_EQ(*waiting->find_by_key("j1"), "j1");
}

// --- plans ---

/// What `statement` would do, in one text.
std::string plan_of(PostgresConnection& connection, const std::string& statement) {
  const auto rows = connection.query("EXPLAIN " + statement);
  EXPECT_TRUE(rows) << rows.error().to_string();
  std::string plan;
  for (int row = 0; rows && row < rows->size(); ++row) {
    plan += std::string(rows->bytes(row, 0)) + "\n";
  }
  return plan;
}

TEST_F(Postgres, FindsJobsByAnIndexEvenInATableThatWasSmall) {
  ASSERT_TRUE(add(*leading(url_), full_job("j1", "one")));
  server_.execute(url_, "VACUUM ANALYZE job");
  const auto connection = PostgresConnection::open(*PostgresUrl::parse(url_), "test");
  ASSERT_TRUE((*connection)->prepare(postgres_statements()));

  for (const std::string& statement :
       {packed_jobs_query(), std::string("EXECUTE update_job('j1', '', 0, '')"),
        std::string("EXECUTE remove_job('j1')"), std::string("EXECUTE read_jobs('{j1,j2}')"),
        std::string("EXECUTE insert_jobs('{j2}', '{lab}', '{two}', '{}', '{}', '{0}', '{}')")}) {
    const std::string plan = plan_of(**connection, statement);
    EXPECT_EQ(plan.find("Seq Scan"), std::string::npos) << plan;
    EXPECT_EQ(plan.find("Sort"), std::string::npos) << plan;
    EXPECT_NE(plan.find("Index"), std::string::npos) << plan;
  }
}

// --- servers that do not answer ---

TEST_F(Postgres, GivesUpOnASilentServer) {
  PostgresConnection::Timeouts timeouts;
  timeouts.silence = std::chrono::seconds(3);  // also of each statement that opens it
  timeouts.statement = std::chrono::milliseconds(600'000);
  const auto connection = PostgresConnection::open(*PostgresUrl::parse(url_), "test", timeouts);
  ASSERT_TRUE(connection);

  const auto silent = (*connection)->execute("SELECT pg_sleep(600)");

  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE((*connection)->is_broken());
  EXPECT_FALSE((*connection)->execute("SELECT 1"));
}

TEST_F(Postgres, GivesUpOnASlowStatement) {
  PostgresConnection::Timeouts timeouts;
  timeouts.statement = std::chrono::seconds(1);  // also of "SELECT 1"
  const auto connection = PostgresConnection::open(*PostgresUrl::parse(url_), "test", timeouts);

  EXPECT_EQ((*connection)->execute("SELECT pg_sleep(600)").error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE((*connection)->execute("SELECT 1"));
}

// --- faults of the database ---

TEST_F(Postgres, ReportsAnUnreachableServerWithoutThePassword) {
  const auto store = PostgresStore::open(
      "postgres://ada:hunter2@/muster?host=" + folder_.path().string(), folder_);

  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(store.error().what.find("postgres://ada@"), std::string::npos);
  EXPECT_EQ(store.error().to_string().find("hunter2"), std::string::npos);
}

TEST_F(Postgres, AdvisesOnAWrongPassword) {
  server_.execute(url_, "CREATE ROLE guarded LOGIN PASSWORD 'sesame'");
  const std::string url =
      "postgres://guarded:hunter2@/postgres?host=" + server_.socket().parent_path().string();

  const auto store = PostgresStore::open(url, folder_);

  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kRefused);
  EXPECT_NE(store.error().what.find("refuses the login"), std::string::npos) << store.error().what;
  EXPECT_NE(store.error().advice.find("check the user and the password"), std::string::npos);
  EXPECT_EQ(store.error().to_string().find("hunter2"), std::string::npos);
}

TEST_F(Postgres, ReadsThePasswordFileForEachConnection) {
  server_.execute(url_, "CREATE ROLE rotated SUPERUSER LOGIN PASSWORD 'sesame'");
  Result<std::string> password = std::string("sesame");
  const PasswordSource file{.file = "/etc/pw", .read = [&] { return password; }};
  std::string url = url_;
  url.replace(url.find("muster@"), std::string("muster@").size(), "rotated:outdated@");
  const auto opened = PostgresStore::open(url, folder_, file);
  ASSERT_TRUE(opened) << opened.error().to_string();
  PostgresStore& store = **opened;
  ASSERT_TRUE(*store.try_to_lead("here"));

  server_.execute(url_,
                  "ALTER ROLE rotated PASSWORD 'mellon';"
                  "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
                  " WHERE usename = 'rotated'");
  const auto refused = store.ping();
  password = base::Error{.code = ErrorCode::kNotFound, .what = "no file '/etc/pw'"};
  const auto without_file = store.ping();
  password = std::string("mellon");
  const auto stored = add(store, full_job("j1", "one"));

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused) << refused.error().to_string();
  EXPECT_NE(refused.error().advice.find("the password in '/etc/pw' (store_password_file"),
            std::string::npos)
      << refused.error().advice;
  EXPECT_EQ(refused.error().to_string().find("sesame"), std::string::npos);
  ASSERT_FALSE(without_file);
  EXPECT_EQ(without_file.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(without_file.error().what.find("no file '/etc/pw'"), std::string::npos);
  EXPECT_TRUE(stored) << stored.error().to_string();
}

TEST_F(Postgres, DoesNotPrintAnInvalidUrl) {
  const auto store = PostgresStore::open("postgres://ada:hunter2%zz@host/muster", folder_);

  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(store.error().to_string().find("hunter"), std::string::npos);
}

TEST(PostgresUrlTest, ShowsNoPasswordAndNoOptions) {
  const auto url = PostgresUrl::parse("postgres://ada:hunter2@db:6000/muster?options=-cx%3Dy");

  ASSERT_TRUE(url);
  EXPECT_EQ(url->shown, "postgres://ada@db:6000/muster");
  EXPECT_EQ(url->without_password("no hunter2, hunter2"), "no (password), (password)");
}

TEST(PostgresUrlTest, IsDistinguishedFromAFile) {
  EXPECT_TRUE(is_postgres_url("postgres://h/d"));
  EXPECT_TRUE(is_postgres_url("postgresql://h/d"));
  EXPECT_FALSE(is_postgres_url("/var/lib/muster/muster.db"));
  EXPECT_FALSE(is_postgres_url("postgres"));
}

TEST_F(Postgres, ReportsAMissingDatabase) {
  std::string url = url_;
  url.replace(url.find("/postgres?"), 10, "/nothing?");

  const auto store = PostgresStore::open(url, folder_);

  ASSERT_FALSE(store);
  EXPECT_NE(store.error().what.find("\"nothing\" does not exist"), std::string::npos);
}

TEST_F(Postgres, RefusesToWriteToAReadOnlyDatabase) {
  open(url_);
  const auto read_only = open(url_ + "%20-cdefault_transaction_read_only%3Don");

  EXPECT_EQ(read_only->ping().error().code, ErrorCode::kRefused);
  EXPECT_EQ(read_only->try_to_lead("here").error().code, ErrorCode::kRefused);
  EXPECT_TRUE(read_only->load());
}

TEST(PostgresErrorTest, TranslatesTheStatesOfTheServer) {
  EXPECT_EQ(postgres_error("d", "23505", "m").code, ErrorCode::kConflict);
  EXPECT_EQ(postgres_error("d", "25006", "m").code, ErrorCode::kRefused);
  EXPECT_EQ(postgres_error("d", "53100", "m").code, ErrorCode::kExhausted);
  EXPECT_EQ(postgres_error("d", "53300", "m").code, ErrorCode::kUnavailable);
  EXPECT_EQ(postgres_error("d", "57P01", "m").code, ErrorCode::kUnavailable);
  EXPECT_EQ(postgres_error("d", "XX001", "m").code, ErrorCode::kInternal);
  EXPECT_EQ(postgres_error("d", "", "m").code, ErrorCode::kInternal);
}

// --- versions of the tables ---

TEST_F(Postgres, RefusesTablesOfANewerRelease) {
  open(url_);
  server_.execute(url_, "UPDATE schema_version SET version = 99");

  const auto store = PostgresStore::open(url_, folder_);

  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kConflict);
  EXPECT_NE(store.error().what.find("version 99"), std::string::npos);
}

TEST_F(Postgres, DoesNotLeadOnTablesThatALaterReleaseChangedWhileItWaited) {
  const auto waiting = open(url_);
  server_.execute(url_, "UPDATE schema_version SET version = 99");

  const auto led = waiting->try_to_lead("here");

  ASSERT_FALSE(led);
  EXPECT_EQ(led.error().code, ErrorCode::kConflict);
  EXPECT_NE(led.error().what.find("version 99"), std::string::npos) << led.error().what;
  EXPECT_EQ(waiting->try_to_lead("here").error().code, ErrorCode::kConflict);
}

TEST_F(Postgres, LeavesForeignTablesAlone) {
  server_.execute(url_, "CREATE TABLE token (theirs text); INSERT INTO token VALUES ('x')");

  const auto store = PostgresStore::open(url_, folder_);

  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kConflict);
  server_.execute(url_, "SELECT theirs FROM token");
  server_.execute(url_, "DROP TABLE token");
  EXPECT_TRUE(PostgresStore::open(url_, folder_));  // no incomplete schema remains
}

/// The present tables, and those of a future version.
std::vector<const char*> with_next_version() {
  std::vector<const char*> all(kPostgresMigrations.begin(), kPostgresMigrations.end());
  all.push_back("ALTER TABLE job ADD COLUMN next text");
  return all;
}

TEST_F(Postgres, IsBackedUpBeforeItsTablesChange) {
  ASSERT_TRUE(add(*leading(url_), full_job("j1", "one")));
  const auto connection = PostgresConnection::open(*PostgresUrl::parse(url_), "test");

  Result<void> done;
  do {  // until the lock of the destroyed store is free
    done = migrate(**connection, with_next_version(), folder_);
  } while (!done && done.error().code == ErrorCode::kConflict);

  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(*schema_version(**connection), kSchemaVersion + 1);
  auto backup =
      SqliteDatabase::open(folder_ / ("postgres.version-" + std::to_string(kSchemaVersion)),
                           SqliteDatabase::Mode::kReadOnly);
  ASSERT_TRUE(backup);
  EXPECT_EQ(*backup->number("SELECT count(*) FROM job WHERE id = 'j1'"), 1);
}

TEST_F(Postgres, WaitsForAMigrationHoweverLongItTakes) {
  open(url_);
  PostgresConnection::Timeouts timeouts;
  timeouts.silence = std::chrono::seconds(3);  // also of each statement that opens it
  timeouts.statement = std::chrono::seconds(3);
  const auto connection = PostgresConnection::open(*PostgresUrl::parse(url_), "test", timeouts);
  std::vector<const char*> migrations = with_next_version();
  migrations.back() = "SELECT pg_sleep(4)";

  const auto done = migrate(**connection, migrations, folder_);

  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(*schema_version(**connection), kSchemaVersion + 1);
  EXPECT_EQ((*connection)->set_silence(timeouts.silence), timeouts.silence);
}

TEST_F(Postgres, ChangesNoTablesWhileAServerLeads) {
  const auto leader = leading(url_);
  const auto connection = PostgresConnection::open(*PostgresUrl::parse(url_), "test");

  EXPECT_EQ(migrate(**connection, with_next_version(), folder_).error().code, ErrorCode::kConflict);
  EXPECT_FALSE(*migrate_unless_led(**connection, with_next_version(), folder_));
  EXPECT_EQ(*schema_version(**connection), kSchemaVersion);
}

TEST_F(Postgres, WaitsBesideALeaderOfAnEarlierReleaseAndChangesTheTablesAfterIt) {
  auto earlier = *PostgresConnection::open(*PostgresUrl::parse(url_), "test");
  ASSERT_TRUE(migrate(*earlier, kPostgresMigrations.first(1), folder_));
  ASSERT_TRUE(earlier->query(std::string("SELECT pg_advisory_lock(") + kLeaderLock + ")"));
  ASSERT_TRUE(earlier->query("UPDATE leader SET address = 'https://earlier'"));

  const auto store = open(url_);

  EXPECT_FALSE(*store->try_to_lead("here"));
  EXPECT_EQ(*store->leader(), (LeadHolder{.address = "https://earlier", .is_self = false}));
  EXPECT_EQ(add(*store, full_job("j1", "one")).error().code, ErrorCode::kRefused);
  EXPECT_EQ(*schema_version(*earlier), 1);

  earlier.reset();
  while (!*store->try_to_lead("here")) {  // until the lock of the closed connection is free
  }
  EXPECT_TRUE(add(*store, full_job("j1", "one")));
  EXPECT_EQ(ids(*store), Names{"j1"});
  const auto connection = PostgresConnection::open(*PostgresUrl::parse(url_), "test");
  EXPECT_EQ(*schema_version(**connection), kSchemaVersion);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "postgres.version-1"));
}

TEST_F(Postgres, ChangesNoTablesIfTheBackupFails) {
  open(url_);
  const auto connection = PostgresConnection::open(*PostgresUrl::parse(url_), "test");

  EXPECT_FALSE(migrate(**connection, with_next_version(), folder_ / "missing"));
  EXPECT_EQ(*schema_version(**connection), kSchemaVersion);
}

TEST_F(Postgres, ManyServersMayCreateTheTablesAtOnce) {
  std::vector<std::string> errors(4);
  std::vector<std::jthread> threads;
  for (std::string& error : errors) {
    threads.emplace_back([&] {
      const auto store = PostgresStore::open(url_, folder_);
      if (!store) error = store.error().to_string();
    });
  }
  threads.clear();

  EXPECT_EQ(errors, std::vector<std::string>(4));
}

}  // namespace
}  // namespace muster::store
