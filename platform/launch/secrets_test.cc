#include "launch/secrets.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/fake_random.h"
#include "launch/test_plan.h"

namespace muster::launch {
namespace {

const std::string kValue = "s3cret 'quoted'\nsecond line";

job::JobSpec spec_with_secrets(job::Kind kind) {
  return {.name = "dist",
          .kind = kind,
          .command = {"train"},
          .workers = kind == job::Kind::kMpi ? 2 : 0,
          .secrets = {{.name = "KEY", .variable = "API_KEY"},
                      {.name = "CA", .file = "tls/ca.pem"},
                      {.name = "KEY", .file = "tls/deep/key"}},
          .folder = "/"};
}

base::Result<GangPlan> plan_with_secrets(const job::JobSpec& spec, Texts secrets) {
  job::Job job{.id = "j1", .spec = spec, .attempt = 1};
  job.tasks = job::tasks_of(spec);
  for (job::Task& task : job.tasks) task.node = "n1";
  base::FakeRandom random;
  return plan_gang(job, make_seed(random),
                   {.user = "ada",
                    .generated_folder = [](std::string_view) { return std::string("/generated"); },
                    .secrets = std::move(secrets)});
}

std::vector<TaskPlan> tasks_of(const GangPlan& plan) {
  std::vector<TaskPlan> tasks = plan.first;
  tasks.insert(tasks.end(), plan.then.begin(), plan.then.end());
  return tasks;
}

TEST(SecretsOfAGang, AreVariablesAndFilesOfEveryTask) {
  const auto plan =
      plan_with_secrets(spec_with_secrets(job::Kind::kMpi), {{"KEY", kValue}, {"CA", "pem"}});

  ASSERT_TRUE(plan);
  ASSERT_EQ(tasks_of(*plan).size(), 3U);
  for (const TaskPlan& task : tasks_of(*plan)) {
    EXPECT_EQ(task.environment.at("API_KEY"), kValue) << task.task;
    EXPECT_FALSE(task.environment.contains("KEY")) << task.task;
    const PlannedFile expected{
        .path = "secrets/tls/ca.pem", .content = "pem", .mode = 0600, .secret = true};
    ASSERT_NE(find_file(task, expected.path), nullptr) << task.task;
    EXPECT_EQ(*find_file(task, expected.path), expected) << task.task;
    ASSERT_NE(find_file(task, "secrets/tls/deep/key"), nullptr) << task.task;
    EXPECT_EQ(find_file(task, "secrets/tls/deep/key")->content, kValue);
  }
}

TEST(SecretsOfAGang, FoldersPrecedeTheirContent) {
  const auto plan =
      plan_with_secrets(spec_with_secrets(job::Kind::kSingle), {{"KEY", kValue}, {"CA", "pem"}});

  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->then[0].folders, (std::vector<std::string>{"tmp", "bash", "secrets",
                                                             "secrets/tls", "secrets/tls/deep"}));
}

TEST(SecretsOfAGang, ReachSshSessions) {
  const auto plan =
      plan_with_secrets(spec_with_secrets(job::Kind::kMpi), {{"KEY", kValue}, {"CA", "pem"}});

  ASSERT_TRUE(plan);
  const PlannedFile* const session = find_file(plan->first[0], "session");
  ASSERT_NE(session, nullptr);
  EXPECT_NE(session->content.find("export API_KEY='s3cret '\\''quoted'\\''\nsecond line'\n"),
            std::string::npos);
}

TEST(SecretsOfAGang, AppearInNoCommandAndOnlyInPrivateFilesThatAreRemovedWithTheGang) {
  const auto plan =
      plan_with_secrets(spec_with_secrets(job::Kind::kMpi), {{"KEY", kValue}, {"CA", "pem"}});

  ASSERT_TRUE(plan);
  for (const TaskPlan& task : tasks_of(*plan)) {
    for (const std::string& word : task.argv) EXPECT_EQ(word.find("s3cret"), std::string::npos);
    if (task.ssh) {
      for (const std::string& word : task.ssh->command) {
        EXPECT_EQ(word.find("s3cret"), std::string::npos);
      }
    }
    for (const PlannedFile& file : task.files) {
      if (file.content.find("s3cret") == std::string::npos) continue;
      EXPECT_TRUE(file.secret) << file.path;
      EXPECT_EQ(file.mode & 0077, 0U) << file.path;
    }
  }
}

TEST(SecretsOfAGang, AMissingSecretPreventsTheStart) {
  const auto plan = plan_with_secrets(spec_with_secrets(job::Kind::kSingle), {{"KEY", kValue}});

  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().to_string(),
            "there is no secret 'CA'\n"
            "  muster secret set CA creates it");
}

TEST(SecretsOfAGang, BinarySecretsCanOnlyBeFiles) {
  const std::string bytes("a\0b", 3);
  const auto plan =
      plan_with_secrets(spec_with_secrets(job::Kind::kSingle), {{"KEY", "x"}, {"CA", bytes}});
  ASSERT_TRUE(plan);
  EXPECT_EQ(find_file(plan->then[0], "secrets/tls/ca.pem")->content, bytes);

  const auto refused =
      plan_with_secrets(spec_with_secrets(job::Kind::kSingle), {{"KEY", bytes}, {"CA", "pem"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().to_string(),
            "secret 'KEY' contains a NUL byte, which a variable cannot contain\n"
            "  pass it as a file: --secret-file KEY");
}

TEST(SecretsOfAGang, AJobWithoutSecretsHasNoFolderForThem) {
  job::JobSpec spec = spec_with_secrets(job::Kind::kSingle);
  spec.secrets.clear();

  const auto plan = plan_with_secrets(spec, {{"KEY", kValue}});

  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->then[0].folders, (std::vector<std::string>{"tmp", "bash"}));
  for (const auto& [name, value] : plan->then[0].environment) EXPECT_NE(value, kValue) << name;
}

}  // namespace
}  // namespace muster::launch
