#include "control/job_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "control/test_parts.h"

namespace muster::control {
namespace {

/// A server that keeps no ended job whole.
class PackedJobs : public Scheduling {
 protected:
  PackedJobs() { begin(); }

  void begin() {
    ASSERT_TRUE(controller_->recover());
    controller_->keep_whole(0);
    settle();
  }
  void restart() {
    live_again();
    begin();
  }
  bool is_packed(const std::string& id) {
    return controller_->jobs().facts_with_id(id)->packed != nullptr;
  }
  /// Runs a job to its end, and returns it as it was before it was packed.
  job::Job ended(const std::string& name, job::ExitStatus status = {}) {
    controller_->keep_whole(1000);
    submit(single(name, "default", 1));
    end(name, std::move(status));
    job::Job whole = job(name);
    controller_->keep_whole(0);
    EXPECT_TRUE(job::is_final(whole.phase));
    EXPECT_TRUE(controller_->set_labels(name, {{"seen", "yes"}}));
    whole.spec.labels["seen"] = "yes";
    settle();
    return whole;
  }
};

TEST_F(PackedJobs, APackedJobEqualsTheJobBefore) {
  const job::Job before = ended("a", {.code = 3});
  EXPECT_TRUE(is_packed(before.id));
  EXPECT_EQ(job("a"), before);
  settle();
  EXPECT_TRUE(is_packed(before.id));
}

TEST_F(PackedJobs, AJobOfAnEarlierServerEqualsTheJobBefore) {
  const job::Job before = ended("a", {.code = 3});
  restart();
  EXPECT_TRUE(is_packed(before.id));
  EXPECT_EQ(job("a"), before);
}

TEST_F(PackedJobs, AChangeOfAPackedJobIsStoredAndPacked) {
  job::Job expected = ended("a");
  const auto changed = controller_->set_labels(expected.id, {{"seen", std::nullopt}, {"k", "v"}});
  ASSERT_TRUE(changed);
  expected.spec.labels = {{"k", "v"}};
  EXPECT_EQ(*changed, expected);
  settle();
  EXPECT_TRUE(is_packed(expected.id));
  EXPECT_EQ(controller_->jobs().facts_with_id(expected.id)->label("k"), "v");
  restart();
  EXPECT_EQ(job("a"), expected);
}

TEST_F(PackedJobs, AJobWhoseChangeIsNotCommittedStaysWhole) {
  const std::string id = ended("a").id;
  store_.full = true;
  EXPECT_FALSE(controller_->set_labels(id, {{"k", "v"}}));
  settle();
  EXPECT_FALSE(is_packed(id));
  EXPECT_EQ(job("a").spec.labels.at("k"), "v");
}

TEST_F(PackedJobs, APackedJobCanBeRemoved) {
  const std::string id = ended("a").id;
  ended("b");
  ASSERT_TRUE(controller_->remove("a"));
  settle();
  EXPECT_FALSE(controller_->jobs().facts_with_id(id));
  EXPECT_EQ(controller_->jobs().with_id(id), nullptr);
  EXPECT_EQ(controller_->jobs().list().size(), 1U);
  submit(single("a", "default", 1));
  restart();
  EXPECT_EQ(controller_->jobs().list().size(), 2U);
}

TEST_F(PackedJobs, TheRulesOfRetentionRemovePackedJobs) {
  const std::string id = ended("a").id;
  ended("b");
  ASSERT_TRUE(is_packed(id));
  controller_->set_retention({.keep_jobs = 1});
  settle();
  EXPECT_FALSE(controller_->jobs().facts_with_id(id));
  EXPECT_EQ(store_.load()->jobs.size(), 1U);
}

TEST_F(PackedJobs, APackedJobShowsWhenItIsRemoved) {
  const job::Job before = ended("a");
  controller_->set_retention({.keep_for = std::chrono::hours(1)});
  settle();
  EXPECT_EQ(job("a").kept_until, *before.ended + std::chrono::hours(1));
}

TEST_F(PackedJobs, AJobWaitsForAPackedJob) {
  ended("first");
  job::JobSpec next = single("next", "default", 1);
  next.after = {{.job = "first"}};
  submit(next);
  EXPECT_EQ(job("next").phase, job::Phase::kRunning);
}

TEST_F(PackedJobs, TheOldestWholeJobsArePackedFirst) {
  controller_->keep_whole(1);
  submit(single("a", "default", 1));
  end("a");
  submit(single("b", "default", 1));
  end("b");
  const std::string a = controller_->jobs().named("a").front()->id;
  settle();
  const auto packed = [&] {
    int count = 0;
    controller_->jobs().each_job(false, std::nullopt, [&](const job::JobFacts& job) {
      if (job.packed != nullptr) ++count;
      return true;
    });
    return count;
  };
  EXPECT_EQ(packed(), 1);
  EXPECT_FALSE(is_packed(a)) << "it was unpacked last";
}

TEST_F(PackedJobs, ListsVisitPackedAndWholeJobsInOrder) {
  for (const char* const name : {"a", "b", "c", "d"}) ended(name);
  ASSERT_NE(controller_->jobs().named("c").front(), nullptr);  // unpacked in this turn
  std::string names;
  const auto visit = [&](const job::JobFacts& job) {
    names += job.name;
    return true;
  };
  controller_->jobs().each_job(false, std::nullopt, visit);
  controller_->jobs().each_job(true, std::nullopt, visit);
  controller_->jobs().each_job_from("b", "", visit);
  EXPECT_EQ(names, "abcddcbabcd");
}

TEST_F(PackedJobs, AJobThatIsVisitedStaysPacked) {
  const job::Job before = ended("a");
  int visits = 0;
  EXPECT_TRUE(controller_->jobs().visit_whole(before.id, [&](const job::Job& visited) {
    ++visits;
    EXPECT_EQ(visited, before);
  }));
  EXPECT_EQ(visits, 1);
  EXPECT_TRUE(is_packed(before.id));
  EXPECT_TRUE(controller_->jobs().entries().empty());
  EXPECT_FALSE(controller_->jobs().visit_whole("missing", [&](const job::Job&) { ++visits; }));
  EXPECT_EQ(visits, 1);
}

class NumberedNames : public PackedJobs {
 protected:
  std::string next(const std::string& pattern = "train-{n}") {
    return controller_->jobs().next_name("default", pattern,
                                         [](const std::string&) { return false; });
  }
  void add(const std::string& name) { submit(single(name, "default", 0)); }
};

TEST_F(NumberedNames, IgnoreNumbersAboveTenToTheEighteenth) {
  add("train-18446744073709551615");
  EXPECT_EQ(next(), "train-1");
  add("train-1");
  EXPECT_EQ(next(), "train-2");
  add("train-1000000000000000000");
  EXPECT_EQ(next(), "train-1000000000000000001");
  add(next());
  EXPECT_EQ(next(), "train-1000000000000000002");
}

TEST_F(NumberedNames, FollowTheNamesThatAreAddedAndRemoved) {
  EXPECT_EQ(next(), "train-1");
  add("train-5");
  EXPECT_EQ(next(), "train-6");
  ended("train-9");
  EXPECT_EQ(next(), "train-10");
  EXPECT_EQ(next("train-{n}-b"), "train-1-b");
  ASSERT_TRUE(controller_->remove("train-9"));
  EXPECT_EQ(next(), "train-6");
  add("train-7");
  EXPECT_EQ(next(), "train-8");
  restart();
  EXPECT_EQ(next(), "train-8");
}

}  // namespace
}  // namespace muster::control
