// A server for several people: the record of who did what, and jobs of several projects.
#include <gtest/gtest.h>

#include "control/test_parts.h"

namespace muster::control {
namespace {

using access::Actor;
using access::AuditRecord;
using base::ErrorCode;

const Actor kAda{.user = "ada", .address = "10.0.0.7", .token = "t1", .request = "r1"};

class Team : public Scheduling {
 protected:
  Team() {
    add(project_of("red", 1));
    add(project_of("blue", 1));
  }

  job::Job submit_as(const Actor& by, const job::JobSpec& spec) {
    const auto job = controller_->submit(spec, "", by);
    EXPECT_TRUE(job) << job.error().to_string();
    settle();
    return *job;
  }

  std::vector<AuditRecord> audit(const access::AuditQuery& query = {}) {
    return *store_.audit(query);
  }
  std::vector<std::string> actions() {
    std::vector<std::string> result;
    for (const AuditRecord& record : audit()) result.push_back(record.action);
    return result;
  }
};

TEST_F(Team, AJobsNameIsOneOfItsProject) {
  const job::Job red = submit_as(kAda, single("train", "red", 1));
  const job::Job blue = submit_as(kAda, single("train", "blue", 1));

  const auto again = controller_->submit(single("train", "red", 1), "");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
  EXPECT_EQ((*controller_->jobs().find(red.id))->spec.project, "red");
  EXPECT_EQ((*controller_->jobs().find(blue.id))->spec.project, "blue");
  const auto ambiguous = controller_->jobs().find("train");
  ASSERT_FALSE(ambiguous);
  EXPECT_EQ(ambiguous.error().code, ErrorCode::kConflict);
  EXPECT_EQ(controller_->jobs().named("train").size(), 2U);
}

TEST_F(Team, AnIdIsNotMistakenForAJobOfThatName) {
  const job::Job real = submit_as(kAda, single("real", "red", 1));
  const job::Job impostor = submit_as(kAda, single(real.id, "blue", 1));

  EXPECT_EQ((*controller_->jobs().find(real.id))->spec.name, "real");
  EXPECT_EQ((*controller_->jobs().find(impostor.id))->spec.name, real.id);
}

TEST_F(Team, EqualNamesInTwoProjectsAreDistinguishedAfterARestartAndFreedWithTheirJobs) {
  submit_as(kAda, single("train", "red", 1));
  const job::Job blue = submit_as(kAda, single("train", "blue", 1));
  live_again();
  ASSERT_TRUE(controller_->recover());
  settle();
  ASSERT_EQ(controller_->jobs().named("train").size(), 2U);

  ASSERT_TRUE(controller_->stop(blue.id, true));
  engine_.end_for_good({blue.id, 1}, "main", {.signal = 9, .stopped = true});
  settle();
  ASSERT_TRUE(controller_->remove(blue.id));

  EXPECT_EQ((*controller_->jobs().find("train"))->spec.project, "red");
  EXPECT_TRUE(controller_->submit(single("train", "blue", 1), ""));
}

TEST_F(Team, AnAuditRecordIsCommittedTogetherWithItsChange) {
  const int before = store_.commits;
  const auto job = controller_->submit(single("train", "red", 1), "", kAda);
  ASSERT_TRUE(job);

  EXPECT_EQ(store_.commits, before + 1);
  ASSERT_EQ(audit().size(), 1U);
  const AuditRecord record = audit().front();
  EXPECT_EQ(record.action, "job.submit");
  EXPECT_EQ(record.target, "train");
  EXPECT_EQ(record.project, "red");
  EXPECT_EQ(record.actor, kAda);
  EXPECT_EQ(job->owner, "ada");
}

TEST_F(Team, AChangeThatCannotBeStoredLeavesNoAuditRecord) {
  store_.full = true;
  EXPECT_FALSE(controller_->submit(single("train", "red", 1), "", kAda));
  EXPECT_FALSE(controller_->projects().create(project_of("green", 1), kAda));
  EXPECT_FALSE(controller_->nodes().cordon("n1", kAda));
  store_.full = false;
  settle();

  EXPECT_TRUE(audit().empty());
}

TEST_F(Team, EveryKindOfChangeIsRecordedWithItsFieldsBeforeAndAfter) {
  const job::Job job = submit_as(kAda, single("train", "red", 1));
  ASSERT_TRUE(controller_->suspend(job.id, kAda));
  engine_.end_for_good({job.id, 1}, "main", {.signal = 15, .stopped = true});
  settle();
  ASSERT_TRUE(controller_->resume(job.id, kAda));
  settle();
  ASSERT_TRUE(controller_->stop(job.id, true, kAda));
  engine_.end_for_good({job.id, 2}, "main", {.signal = 9, .stopped = true});
  settle();
  ASSERT_TRUE(controller_->remove(job.id, kAda));
  ASSERT_TRUE(controller_->projects().create(project_of("green", 1), kAda));
  ASSERT_TRUE(controller_->projects().set(project_of("green", 2), kAda));
  ASSERT_TRUE(controller_->projects().remove("green", kAda));
  ASSERT_TRUE(controller_->nodes().cordon("n1", kAda));
  ASSERT_TRUE(controller_->nodes().uncordon("n1", kAda));
  ASSERT_TRUE(controller_->nodes().drain("n1", kAda));

  EXPECT_EQ(actions(), (std::vector<std::string>{"node.drain", "node.uncordon", "node.cordon",
                                                 "project.delete", "project.set", "project.create",
                                                 "job.delete", "job.stop", "job.resume",
                                                 "job.suspend", "job.submit"}));
  const auto set = audit({.action = "project.set"});
  ASSERT_EQ(set.size(), 1U);
  EXPECT_EQ(set.front().changes,
            (std::vector<access::FieldChange>{
                {.field = "quota.deserved.gpus", .before = "1", .after = "2"}}));
}

TEST_F(Team, AChangeThatChangesNothingIsNotRecorded) {
  const job::Job job = submit_as(kAda, single("train", "red", 1));
  ASSERT_TRUE(controller_->stop(job.id, false, kAda));
  ASSERT_TRUE(controller_->stop(job.id, false, kAda));
  ASSERT_TRUE(controller_->projects().set(project_of("red", 1), kAda));

  EXPECT_EQ(actions(), (std::vector<std::string>{"job.stop", "job.submit"}));
}

TEST_F(Team, NoTwoEventsHaveTheSameTimeNotEvenAfterARestartWithTheClockSetBack) {
  submit_as(kAda, single("one", "red", 1));
  clock_.advance(-std::chrono::hours(1));
  live_again();
  ASSERT_TRUE(controller_->recover());
  submit_as(kAda, single("two", "blue", 1));

  std::set<base::Time> times;
  size_t count = 0;
  controller_->jobs().each_job(false, std::nullopt, [&](const job::JobFacts& facts) {
    const job::Job& job = *controller_->jobs().with_id(std::string(facts.id));
    for (const job::Event& event : job.events) times.insert(event.time);
    count += job.events.size();
    return true;
  });
  EXPECT_GE(count, 4U);
  EXPECT_EQ(times.size(), count);
}

TEST_F(Team, JobsAreWalkedInBothOrdersFromAnyOfThem) {
  for (const char* name : {"a", "b", "c"}) submit_as(kAda, single(name, "red", 0));
  const auto walk = [&](bool newest_first, std::optional<base::Time> after) {
    std::string names;
    controller_->jobs().each_job(newest_first, after, [&](const job::JobFacts& job) {
      names += job.name;
      return true;
    });
    return names;
  };
  const base::Time middle = job("b").submitted;

  EXPECT_EQ(walk(false, std::nullopt), "abc");
  EXPECT_EQ(walk(true, std::nullopt), "cba");
  EXPECT_EQ(walk(false, middle), "c");
  EXPECT_EQ(walk(true, middle), "a");
}

TEST_F(Team, ANewProjectDoesNotInheritTheJobsOfADeletedProjectOfItsName) {
  const job::Job old = submit_as(kAda, single("one", "red", 1));
  EXPECT_TRUE(controller_->projects().has_project_of(job::facts_of(old)));
  end("one");
  ASSERT_TRUE(controller_->projects().remove("red"));
  EXPECT_FALSE(controller_->projects().has_project_of(job::facts_of(old)));
  clock_.advance(std::chrono::seconds(1));

  add(project_of("red", 1));

  EXPECT_FALSE(controller_->projects().has_project_of(job::facts_of(old)));
  EXPECT_TRUE(controller_->projects().has_project_of(
      job::facts_of(submit_as(kAda, single("two", "red", 1)))));
}

TEST_F(Team, TheFeedReportsChangesOnceTheyAreStored) {
  const FeedPosition start = controller_->feed().now();
  int calls = 0;
  const auto watch = controller_->feed().watch([&] { ++calls; });
  const job::Job job = submit_as(kAda, single("one", "red", 1));

  EXPECT_GT(calls, 0);
  const auto changes = controller_->feed().after(start, 10);
  ASSERT_TRUE(changes);
  ASSERT_EQ(changes->size(), 1U);
  EXPECT_EQ(changes->front().job, job.id);
}

TEST_F(Team, AJobWithSecretsThatItsProjectHasNotIsRefusedWithAllOfThem) {
  job::JobSpec spec = single("one", "red", 1);
  spec.secrets = {{.name = "KEY", .variable = "KEY"}, {.name = "CA", .file = "ca.pem"}};

  const auto refused = controller_->submit(spec, "");

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(refused.error().faults.size(), 2U);
}

TEST_F(Team, NoProgramCanBeRunInATaskThatDoesNotRun) {
  const job::Job job = submit_as(kAda, single("one", "red", 1));
  const auto enter = [&](const std::string& task) {
    return controller_->exec(job.id, task, {.argv = {"sh"}}, {}, kAda);
  };

  EXPECT_EQ(enter("worker-0").error().code, ErrorCode::kNotFound);
  end("one");
  EXPECT_EQ(enter("").error().code, ErrorCode::kConflict);
  EXPECT_EQ(actions(), (std::vector<std::string>{"job.submit"}));
}

}  // namespace
}  // namespace muster::control
