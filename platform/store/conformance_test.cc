// What every store keeps to.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "store/memory_store.h"
#include "store/sqlite_store.h"
#include "store/test_values.h"

namespace muster::store {
namespace {

using base::ErrorCode;
using job::Job;
using Names = std::vector<std::string>;

/// A store, and the folder it is in if it is in one.
struct Place {
  std::filesystem::path folder;
  std::unique_ptr<Store> store;

  Place() = default;
  Place(Place&&) = default;
  ~Place() {
    if (!folder.empty()) std::filesystem::remove_all(folder);
  }
};

struct Kind {
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

class StoreConformance : public testing::TestWithParam<Kind> {
 protected:
  Result<void> add(const Job& job, const std::string& key = {}) {
    return store().commit({.new_jobs = {{.job = &job, .idempotency_key = key}}});
  }
  Store& store() { return *place_.store; }
  Contents contents() { return *store().load(); }

  Names ids() {
    Names ids;
    for (const Job& job : contents().jobs) ids.push_back(job.id);
    return ids;
  }

 private:
  Place place_ = GetParam().make();
};

TEST_P(StoreConformance, KeepsEveryFieldOfJobsInTheOrderTheyCame) {
  const Job second = full_job("a", "one");
  const Job first = full_job("b", "two");

  ASSERT_TRUE(add(first, "k1"));
  ASSERT_TRUE(add(second));

  EXPECT_EQ(contents().jobs, (std::vector<Job>{first, second}));
}

TEST_P(StoreConformance, IsEmptyAtFirstAndAfterAnEmptyBatch) {
  ASSERT_TRUE(store().commit({}));

  EXPECT_TRUE(contents().jobs.empty());
  EXPECT_TRUE(contents().projects.empty());
  EXPECT_TRUE(contents().cordoned_nodes.empty());
  EXPECT_EQ(*store().find_by_key("k"), std::nullopt);
}

TEST_P(StoreConformance, RefusesAnIdANameAndAKeyThatAreTaken) {
  Job other_project = full_job("j2", "one");
  other_project.spec.project = "team-b";
  ASSERT_TRUE(add(full_job("j1", "one"), "k1"));

  EXPECT_EQ(add(full_job("j1", "two"), "k2").error().code, ErrorCode::kConflict);
  EXPECT_EQ(add(full_job("j2", "one"), "k2").error().code, ErrorCode::kConflict);
  EXPECT_EQ(add(other_project, "k2").error().code, ErrorCode::kConflict);
  EXPECT_EQ(add(full_job("j2", "two"), "k1").error().code, ErrorCode::kConflict);

  EXPECT_EQ(ids(), Names{"j1"});
  EXPECT_EQ(*store().find_by_key("k2"), std::nullopt);
}

TEST_P(StoreConformance, RefusesTwoOfOneNameInOneBatch) {
  const Job one = full_job("j1", "one");
  const Job two = full_job("j2", "one");

  const auto done = store().commit({.new_jobs = {{.job = &one}, {.job = &two}}});

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(ids().empty());
}

TEST_P(StoreConformance, ManyJobsMayComeWithoutAKey) {
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

TEST_P(StoreConformance, AJobMayTakeTheNameOfOneThatGoesInTheSameBatch) {
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

TEST_P(StoreConformance, RefusesAChangeOfWhatIsNotThereWithAllThatCameWithIt) {
  const Job known = full_job("j1", "one");
  const Job other = full_job("j2", "two");
  const Job unknown = full_job("j3", "three");
  ASSERT_TRUE(add(known, "k1"));
  const Contents before = contents();

  const auto done = store().commit({.new_jobs = {{.job = &other, .idempotency_key = "k2"}},
                                    .changed_jobs = {&unknown},
                                    .removed_jobs = {"j1"},
                                    .projects = {full_project("team-a", 1)},
                                    .cordoned_nodes = {"n1"}});

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(contents().jobs, before.jobs);
  EXPECT_TRUE(contents().projects.empty());
  EXPECT_TRUE(contents().cordoned_nodes.empty());
  EXPECT_EQ(*store().find_by_key("k1"), "j1");
  EXPECT_EQ(*store().find_by_key("k2"), std::nullopt);
  EXPECT_TRUE(add(other, "k2"));  // and it goes on
}

TEST_P(StoreConformance, RemovingWhatIsNotThereIsNoError) {
  EXPECT_TRUE(store().commit(
      {.removed_jobs = {"j1"}, .removed_projects = {"team-a"}, .uncordoned_nodes = {"n1"}}));
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

TEST_P(StoreConformance, KeepsWhichNodesAreCordoned) {
  ASSERT_TRUE(store().commit({.cordoned_nodes = {"n2", "n1", "n3"}}));
  ASSERT_TRUE(store().commit({.cordoned_nodes = {"n1"}, .uncordoned_nodes = {"n2"}}));

  EXPECT_EQ(contents().cordoned_nodes, (Names{"n1", "n3"}));
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
                         testing::Values(Kind{"Memory", in_memory}, Kind{"Sqlite", in_sqlite}),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace muster::store
