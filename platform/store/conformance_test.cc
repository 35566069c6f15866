// The behaviour that every store must have.
#include <gtest/gtest.h>

#include <filesystem>

#include "store/memory_store.h"
#include "store/postgres_store.h"
#include "store/sqlite_store.h"
#include "store/test_postgres.h"
#include "store/test_values.h"

namespace muster::store {
namespace {

using base::ErrorCode;
using job::Job;
using Numbers = std::vector<uint64_t>;

/// A store, and its folder if it has one.
struct Place {
  std::filesystem::path folder;
  std::unique_ptr<Store> store;

  Place() = default;
  Place(Place&&) = default;
  ~Place() {
    if (!folder.empty()) std::filesystem::remove_all(folder);
  }
};

struct StoreKind {
  const char* name;
  Place (*make)();
};

Place in_memory() {
  Place place;
  place.store = std::make_unique<MemoryStore>();
  return place;
}

Place in_sqlite() {
  Place place;
  std::string pattern = testing::TempDir() + "storeXXXXXX";
  place.folder = ::mkdtemp(pattern.data());
  auto store = SqliteStore::open(place.folder / "muster.db");
  EXPECT_TRUE(store) << store.error().what;
  place.store = *std::move(store);
  return place;
}

Place in_postgres() {
  Place place;
  auto store = PostgresStore::open(TestPostgres::instance().new_url(), "/nonexistent");
  EXPECT_TRUE(store) << store.error().to_string();
  EXPECT_TRUE(*(*store)->try_to_lead("here"));
  place.store = *std::move(store);
  return place;
}

class StoreConformance : public testing::TestWithParam<StoreKind> {
 protected:
  Result<void> add(const Job& job, const std::string& key = {}) {
    return store().commit({.new_jobs = {{.job = &job, .idempotency_key = key}}});
  }
  Store& store() { return *place_.store; }
  Contents contents() { return *store().load(); }

  /// The numbers of the audit records that match a query.
  Numbers audit(const access::AuditQuery& query) {
    const auto found = store().audit(query);
    EXPECT_TRUE(found) << found.error().to_string();
    Numbers numbers;
    for (const access::AuditRecord& record : *found) numbers.push_back(record.number);
    return numbers;
  }

  Names ids() {
    Names ids;
    for (const Job& job : contents().jobs) ids.push_back(job.id);
    return ids;
  }

 private:
  Place place_ = GetParam().make();
};

TEST_P(StoreConformance, KeepsEveryFieldOfJobsInTheirOrder) {
  const Job second = full_job("a", "one");
  const Job first = full_job("b", "two");

  ASSERT_TRUE(add(first, "k1"));
  ASSERT_TRUE(add(second));

  EXPECT_EQ(contents().jobs, (std::vector<Job>{first, second}));
}

TEST_P(StoreConformance, PacksTheEndedJobsAndReadsTheRestAsBefore) {
  std::vector<Job> jobs;
  for (int i = 0; i < 20; ++i) {
    jobs.push_back(full_job("j" + std::to_string(i), "job-" + std::to_string(i)));
    jobs.back().phase = static_cast<job::Phase>(i % 6);
    ASSERT_TRUE(add(jobs.back()));
  }
  ASSERT_TRUE(store().commit({.objects = {full_object("array", "a1", "many")},
                              .projects = {full_project("lab", 1)},
                              .users = {full_user("ada")}}));

  auto packed = store().load_packed();

  ASSERT_TRUE(packed) << packed.error().to_string();
  EXPECT_TRUE(packed->jobs.empty());
  std::vector<Job> unpacked;
  for (StoredJob& stored : packed->stored) {
    unpacked.push_back(stored.open ? *stored.open : *stored.ended.job());
    EXPECT_EQ(stored.open == nullptr, job::is_final(unpacked.back().phase));
  }
  EXPECT_EQ(unpacked, jobs);
  EXPECT_EQ(packed->objects, contents().objects);
  EXPECT_EQ(packed->projects, contents().projects);
  EXPECT_EQ(packed->users, contents().users);
}

TEST_P(StoreConformance, IsEmptyAtFirstAndAfterAnEmptyBatch) {
  ASSERT_TRUE(store().commit({}));

  EXPECT_TRUE(contents().jobs.empty());
  EXPECT_TRUE(contents().objects.empty());
  EXPECT_TRUE(contents().projects.empty());
  EXPECT_TRUE(contents().cordoned_nodes.empty());
  EXPECT_TRUE(contents().users.empty());
  EXPECT_TRUE(contents().tokens.empty());
  EXPECT_TRUE(contents().secrets.empty());
  EXPECT_TRUE(contents().subscriptions.empty());
  EXPECT_TRUE(contents().deliveries.empty());
  EXPECT_TRUE(audit({}).empty());
  EXPECT_EQ(*store().find_by_key("k"), std::nullopt);
  EXPECT_TRUE(store().ping());
}

TEST_P(StoreConformance, RefusesAnIdANameAndAKeyInUse) {
  ASSERT_TRUE(add(full_job("j1", "one"), "k1"));

  EXPECT_EQ(add(full_job("j1", "two"), "k2").error().code, ErrorCode::kConflict);
  EXPECT_EQ(add(full_job("j2", "one"), "k2").error().code, ErrorCode::kConflict);
  EXPECT_EQ(add(full_job("j2", "two"), "k1").error().code, ErrorCode::kConflict);

  EXPECT_EQ(ids(), Names{"j1"});
  EXPECT_EQ(*store().find_by_key("k2"), std::nullopt);
}

TEST_P(StoreConformance, NamesTheJobWhoseNameIsInUse) {
  const Job fresh = full_job("j2", "two");
  const Job taken = full_job("j3", "one");
  ASSERT_TRUE(add(full_job("j1", "one")));

  const auto done = store().commit({.new_jobs = {{.job = &fresh}, {.job = &taken}}});

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().what,
            "the id, the name or the key of job 'one' is in use in project 'vision'");
}

TEST_P(StoreConformance, NamesTheJobThatIsTakenAmongManyNewOnes) {
  constexpr size_t kJobs = 600;  // several statements of PostgreSQL
  constexpr size_t kTaken = 400;
  std::vector<Job> jobs;
  for (size_t i = 0; i < kJobs; ++i) {
    jobs.push_back({.id = "j" + std::to_string(i), .spec = {.name = "n" + std::to_string(i)}});
  }
  Batch batch;
  for (const Job& job : jobs) {
    batch.new_jobs.push_back({.job = &job, .idempotency_key = job.id});
    batch.audit.push_back(full_record(batch.audit.size() + 1));
  }
  ASSERT_TRUE(add(full_job("other", "other"), "j400"));

  const auto refused = store().commit(batch);

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_NE(refused.error().what.find("'n400'"), std::string::npos) << refused.error().what;
  EXPECT_EQ(ids(), Names{"other"});
  EXPECT_TRUE(audit({}).empty());

  batch.new_jobs[kTaken].idempotency_key.clear();
  ASSERT_TRUE(store().commit(batch));

  Names expected{"other"};
  for (const Job& job : jobs) expected.push_back(job.id);
  EXPECT_EQ(ids(), expected);
  EXPECT_EQ(audit({.limit = 1}), Numbers{kJobs});
  EXPECT_EQ(*store().find_by_key("j599"), "j599");
  EXPECT_EQ(*store().find_by_key("j400"), "other");
}

TEST_P(StoreConformance, AJobOfAnotherProjectMayHaveTheSameName) {
  Job other_project = full_job("j2", "one");
  other_project.spec.project = "team-b";
  ASSERT_TRUE(add(full_job("j1", "one"), "k1"));

  EXPECT_TRUE(add(other_project, "k2"));

  EXPECT_EQ(ids(), (Names{"j1", "j2"}));
}

TEST_P(StoreConformance, RefusesTwoJobsOfTheSameNameInOneBatch) {
  const Job one = full_job("j1", "one");
  const Job two = full_job("j2", "one");

  const auto done = store().commit({.new_jobs = {{.job = &one}, {.job = &two}}});

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(ids().empty());
}

TEST_P(StoreConformance, AcceptsManyJobsWithoutAKey) {
  ASSERT_TRUE(add(full_job("j1", "one")));
  ASSERT_TRUE(add(full_job("j2", "two")));

  EXPECT_EQ(*store().find_by_key(""), std::nullopt);
}

TEST_P(StoreConformance, FindsAJobByItsKeyUntilItIsRemoved) {
  const Job again = full_job("j2", "one");
  ASSERT_TRUE(add(full_job("j1", "one"), "k1"));
  EXPECT_EQ(*store().find_by_key("k1"), "j1");

  ASSERT_TRUE(store().commit({.removed_jobs = {"j1"}}));

  EXPECT_EQ(*store().find_by_key("k1"), std::nullopt);
  EXPECT_TRUE(add(again, "k1"));
}

TEST_P(StoreConformance, AJobMayReuseTheNameOfAJobRemovedInTheSameBatch) {
  const Job next = full_job("j2", "one");
  ASSERT_TRUE(add(full_job("j1", "one"), "k1"));

  ASSERT_TRUE(store().commit(
      {.new_jobs = {{.job = &next, .idempotency_key = "k1"}}, .removed_jobs = {"j1"}}));

  EXPECT_EQ(ids(), Names{"j2"});
  EXPECT_EQ(*store().find_by_key("k1"), "j2");
}

TEST_P(StoreConformance, AChangedJobKeepsItsPlaceAndKey) {
  Job job = full_job("j1", "one");
  ASSERT_TRUE(add(job, "k1"));
  ASSERT_TRUE(add(full_job("j2", "two")));

  job.phase = job::Phase::kSucceeded;
  job.events.clear();
  ASSERT_TRUE(store().commit({.changed_jobs = {&job}}));

  EXPECT_EQ(contents().jobs, (std::vector<Job>{job, full_job("j2", "two")}));
  EXPECT_EQ(*store().find_by_key("k1"), "j1");
}

TEST_P(StoreConformance, AJobMayBeNewAndChangedInOneBatch) {
  const Job job = full_job("j1", "one");
  Job later = job;
  later.attempt = 9;

  ASSERT_TRUE(store().commit({.new_jobs = {{.job = &job}}, .changed_jobs = {&later}}));

  EXPECT_EQ(contents().jobs, std::vector<Job>{later});
}

TEST_P(StoreConformance, RefusesAChangeOfAMissingJobWithItsWholeBatch) {
  const Job known = full_job("j1", "one");
  const Job other = full_job("j2", "two");
  const Job unknown = full_job("j3", "three");
  ASSERT_TRUE(add(known, "k1"));
  const Contents before = contents();

  const auto done = store().commit({.new_jobs = {{.job = &other, .idempotency_key = "k2"}},
                                    .changed_jobs = {&unknown},
                                    .removed_jobs = {"j1"},
                                    .objects = {full_object("array", "a1", "many")},
                                    .projects = {full_project("team-a", 1)},
                                    .cordoned_nodes = {"n1"},
                                    .users = {full_user("ada")},
                                    .tokens = {full_token("t1")},
                                    .secrets = {full_secret("lab", "A")},
                                    .subscriptions = {full_subscription("s1")},
                                    .deliveries = {full_delivery("d1")},
                                    .audit = {full_record(1)}});

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(contents().jobs, before.jobs);
  EXPECT_TRUE(contents().objects.empty());
  EXPECT_TRUE(contents().projects.empty());
  EXPECT_TRUE(contents().cordoned_nodes.empty());
  EXPECT_TRUE(contents().users.empty());
  EXPECT_TRUE(contents().tokens.empty());
  EXPECT_TRUE(contents().secrets.empty());
  EXPECT_TRUE(contents().subscriptions.empty());
  EXPECT_TRUE(contents().deliveries.empty());
  EXPECT_TRUE(audit({}).empty());
  EXPECT_EQ(*store().find_by_key("k1"), "j1");
  EXPECT_EQ(*store().find_by_key("k2"), std::nullopt);
  EXPECT_TRUE(add(other, "k2"));  // and the store continues
}

TEST_P(StoreConformance, RemovingAMissingRecordIsNotAnError) {
  EXPECT_TRUE(store().commit({.removed_jobs = {"j1"},
                              .removed_objects = {{.kind = "array", .id = "a1"}},
                              .removed_projects = {"team-a"},
                              .uncordoned_nodes = {"n1"},
                              .removed_users = {"ada"},
                              .removed_tokens = {"t1"},
                              .removed_secrets = {{.project = "lab", .name = "A"}},
                              .removed_subscriptions = {"s1"},
                              .removed_deliveries = {"d1"}}));
}

TEST_P(StoreConformance, KeepsObjectsByKindAndId) {
  Object changed = full_object("array", "o1", "one");
  ASSERT_TRUE(store().commit({.objects = {full_object("sweep", "o1", "one"), changed,
                                          full_object("array", "o2", "two")}}));

  changed.document.clear();
  ASSERT_TRUE(
      store().commit({.objects = {changed}, .removed_objects = {{.kind = "array", .id = "o2"}}}));

  EXPECT_EQ(contents().objects, (std::vector<Object>{changed, full_object("sweep", "o1", "one")}));
}

TEST_P(StoreConformance, RefusesAnObjectWhoseNameIsInUseWithItsWholeBatch) {
  const Job job = full_job("j1", "one");
  ASSERT_TRUE(store().commit({.objects = {full_object("array", "o1", "many")}}));

  const auto done = store().commit(
      {.new_jobs = {{.job = &job}}, .objects = {full_object("array", "o2", "many")}});

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kConflict);
  EXPECT_EQ(done.error().what, "the name of array 'many' is in use in project 'vision'");
  EXPECT_TRUE(contents().jobs.empty());
  EXPECT_EQ(contents().objects, (std::vector<Object>{full_object("array", "o1", "many")}));
  // A removal in the same batch frees the name.
  ASSERT_TRUE(store().commit({.objects = {full_object("array", "o2", "many")},
                              .removed_objects = {{.kind = "array", .id = "o1"}}}));
  EXPECT_EQ(contents().objects, (std::vector<Object>{full_object("array", "o2", "many")}));
}

TEST_P(StoreConformance, CommitsAJobTogetherWithTheObjectThatMadeIt) {
  const Job job = full_job("j1", "many-0");
  const Object object = full_object("array", "o1", "many");

  ASSERT_TRUE(store().commit({.new_jobs = {{.job = &job}}, .objects = {object}}));

  EXPECT_EQ(contents().jobs, std::vector<Job>{job});
  EXPECT_EQ(contents().objects, std::vector<Object>{object});
}

TEST_P(StoreConformance, KeepsProjectsInTheOrderOfTheirSequence) {
  const job::Project older = full_project("z", 1);
  job::Project newer = full_project("a", 1'000);
  ASSERT_TRUE(store().commit({.projects = {newer}}));
  ASSERT_TRUE(store().commit({.projects = {older}}));
  EXPECT_EQ(contents().projects, (std::vector<job::Project>{older, newer}));

  newer.quota = {};
  newer.pools.clear();
  ASSERT_TRUE(store().commit({.projects = {newer}, .removed_projects = {"z"}}));

  EXPECT_EQ(contents().projects, std::vector<job::Project>{newer});
}

TEST_P(StoreConformance, KeepsTheCordonedNodes) {
  ASSERT_TRUE(store().commit({.cordoned_nodes = {"n2", "n1", "n3"}}));
  ASSERT_TRUE(store().commit({.cordoned_nodes = {"n1"}, .uncordoned_nodes = {"n2"}}));

  EXPECT_EQ(contents().cordoned_nodes, (Names{"n1", "n3"}));
}

TEST_P(StoreConformance, KeepsUsersByName) {
  access::User ada = full_user("ada");
  const access::User bob = full_user("bob");
  ASSERT_TRUE(store().commit({.users = {bob, full_user("eve"), ada}}));
  EXPECT_EQ(contents().users, (std::vector<access::User>{ada, bob, full_user("eve")}));

  ada.projects.clear();
  ada.disabled = false;
  ASSERT_TRUE(store().commit({.users = {ada}, .removed_users = {"eve"}}));

  EXPECT_EQ(contents().users, (std::vector<access::User>{ada, bob}));
}

TEST_P(StoreConformance, KeepsTokensById) {
  access::Token one = full_token("t1");
  ASSERT_TRUE(store().commit({.tokens = {full_token("t3"), one, full_token("t2")}}));

  one.last_used.reset();
  one.expires.reset();
  ASSERT_TRUE(store().commit({.tokens = {one}, .removed_tokens = {"t2"}}));

  EXPECT_EQ(contents().tokens, (std::vector<access::Token>{one, full_token("t3")}));
}

TEST_P(StoreConformance, KeepsSecretsByProjectAndName) {
  access::Secret changed = full_secret("lab", "B");
  ASSERT_TRUE(
      store().commit({.secrets = {full_secret("vision", "A"), changed, full_secret("lab", "A")}}));

  changed.sealed = "other";
  ASSERT_TRUE(
      store().commit({.secrets = {changed}, .removed_secrets = {{.project = "lab", .name = "A"}}}));

  EXPECT_EQ(contents().secrets, (std::vector<access::Secret>{changed, full_secret("vision", "A")}));
}

TEST_P(StoreConformance, KeepsSubscriptionsById) {
  job::Subscription changed = full_subscription("s1");
  ASSERT_TRUE(store().commit({.subscriptions = {full_subscription("s2"), changed}}));

  changed.gone.reset();
  ASSERT_TRUE(store().commit({.subscriptions = {changed}, .removed_subscriptions = {"s2"}}));

  EXPECT_EQ(contents().subscriptions, std::vector<job::Subscription>{changed});
}

TEST_P(StoreConformance, KeepsDeliveriesUntilTheyAreRemoved) {
  job::Delivery failed = full_delivery("d1");
  failed.dead.reset();
  ASSERT_TRUE(store().commit({.deliveries = {full_delivery("d2"), failed, full_delivery("d3")}}));

  failed.attempts = 4;
  ASSERT_TRUE(store().commit({.deliveries = {failed}, .removed_deliveries = {"d2"}}));

  EXPECT_EQ(contents().deliveries, (std::vector<job::Delivery>{failed, full_delivery("d3")}));
}

TEST_P(StoreConformance, NumbersAuditRecordsInTheOrderOfTheirCommits) {
  ASSERT_TRUE(store().commit({.audit = {full_record(1), full_record(2)}}));
  ASSERT_TRUE(store().commit({.audit = {full_record(3)}}));

  EXPECT_EQ(*store().audit({}),
            (std::vector<access::AuditRecord>{full_record(3), full_record(2), full_record(1)}));
}

TEST_P(StoreConformance, GivesNoNumberToAnUncommittedRecord) {
  const Job unknown = full_job("j1", "one");
  ASSERT_TRUE(store().commit({.audit = {full_record(1)}}));
  ASSERT_FALSE(store().commit({.changed_jobs = {&unknown}, .audit = {full_record(2)}}));
  ASSERT_TRUE(store().commit({.audit = {full_record(2)}}));

  EXPECT_EQ(audit({}), (Numbers{2, 1}));
}

TEST_P(StoreConformance, FindsAuditRecordsByTheirFields) {
  std::vector<access::AuditRecord> records;
  const auto add = [&](const char* user, const char* project, const char* action) {
    records.push_back(full_record(records.size() + 1));
    records.back().actor.user = user;
    records.back().project = project;
    records.back().action = action;
  };
  add("ada", "lab", "job.submit");        // 1
  add("bob", "lab", "job.stop");          // 2
  add("ada", "vision", "jobs.submit");    // 3
  add("ada", "", "token.revoke");         // 4
  add("ada", "lab", "job");               // 5
  add("ada", "lab", "job/submit");        // 6
  add("ada", "lab", "job.submit.again");  // 7
  ASSERT_TRUE(store().commit({.audit = records}));

  EXPECT_EQ(audit({.user = "bob"}), Numbers{2});
  EXPECT_EQ(audit({.project = "vision"}), Numbers{3});
  EXPECT_EQ(audit({.project = ""}), Numbers{4});
  EXPECT_EQ(audit({.action = "job"}), (Numbers{7, 5, 2, 1}));
  EXPECT_EQ(audit({.action = "job.submit"}), (Numbers{7, 1}));
  EXPECT_EQ(audit({.since = records[5].time}), (Numbers{7, 6}));
  EXPECT_EQ(audit({.user = "ada", .project = "lab", .action = "job"}), (Numbers{7, 5, 1}));
  EXPECT_TRUE(audit({.user = "eve"}).empty());
}

TEST_P(StoreConformance, ReturnsTheAuditLogPageByPage) {
  std::vector<access::AuditRecord> records;
  for (uint64_t number = 1; number <= 150; ++number) records.push_back(full_record(number));
  ASSERT_TRUE(store().commit({.audit = records}));

  EXPECT_EQ(audit({}).size(), 100U);
  EXPECT_EQ(audit({.limit = 2}), (Numbers{150, 149}));
  EXPECT_EQ(audit({.before = 149, .limit = 2}), (Numbers{148, 147}));
  EXPECT_EQ(audit({.before = 2}), Numbers{1});
  EXPECT_TRUE(audit({.before = 1}).empty());
  EXPECT_TRUE(audit({.before = 0}).empty());
  EXPECT_EQ(audit({.before = UINT64_MAX, .limit = 1}), Numbers{150});
  EXPECT_TRUE(audit({.limit = 0}).empty());
  EXPECT_TRUE(audit({.limit = -1}).empty());
}

TEST_P(StoreConformance, AcceptsAnyBytesAsAKey) {
  const std::string key = "ada\n" + job::kBinary;
  ASSERT_TRUE(add(full_job("j1", "one"), key));

  EXPECT_EQ(*store().find_by_key(key), "j1");
}

TEST_P(StoreConformance, KeepsAThousandJobsOfOneBatch) {
  std::vector<Job> jobs;
  Batch batch;
  for (int i = 0; i < 1'000; ++i) {
    jobs.push_back(full_job("j" + std::to_string(i), "n" + std::to_string(i)));
  }
  for (const Job& job : jobs) batch.new_jobs.push_back({.job = &job, .idempotency_key = job.id});

  ASSERT_TRUE(store().commit(batch));

  EXPECT_EQ(contents().jobs, jobs);
}

INSTANTIATE_TEST_SUITE_P(All, StoreConformance,
                         testing::Values(StoreKind{"Memory", in_memory},
                                         StoreKind{"Sqlite", in_sqlite},
                                         StoreKind{"Postgres", in_postgres}),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace muster::store
