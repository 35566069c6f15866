// Jobs that use secrets, from submission to the task.
#include <gtest/gtest.h>

#include "control/test_with_accounts.h"
#include "words/test_words.h"

namespace muster::control {
namespace {

using job::Phase;

const std::string kValue = "s3cret value";

class SecretJobs : public WithAccounts {
 protected:
  SecretJobs() {
    add(project_of("red", 2));
    EXPECT_TRUE(accounts_->set_secret("red", "KEY", kValue, {}));
    EXPECT_TRUE(accounts_->set_secret("red", "CA", "pem", {}));
  }

  static job::JobSpec with_secrets(job::JobSpec spec) {
    spec.secrets = {{.name = "KEY", .variable = "API_KEY"}, {.name = "CA", .file = "ca.pem"}};
    return spec;
  }

  const launch::TaskPlan& plan(const std::string& name, const std::string& task) {
    return engine_.plans.at({gang(name), task});
  }

  access::SecretBox other_box_{key_of(2)};
};

TEST_F(SecretJobs, EveryTaskGetsThemAndTheJobKeepsTheirNamesAlone) {
  submit(with_secrets(mpi("dist", "red", 1)));
  settle();

  ASSERT_EQ(job("dist").phase, Phase::kRunning) << text_of(job("dist"));
  for (const char* task : {"launcher", "worker-0"}) {
    EXPECT_EQ(plan("dist", task).environment.at("API_KEY"), kValue);
  }
  EXPECT_EQ(text_of(job("dist")).find("s3cret"), std::string::npos);
}

TEST_F(SecretJobs, AJobGetsTheValueOfWhenItStarts) {
  submit(with_secrets(single("first", "red", 2)));
  submit(with_secrets(single("second", "red", 2)));
  ASSERT_EQ(job("second").phase, Phase::kQueued);
  ASSERT_TRUE(accounts_->set_secret("red", "KEY", "changed", {}));

  end("first");

  EXPECT_EQ(plan("first", "main").environment.at("API_KEY"), kValue);
  EXPECT_EQ(plan("second", "main").environment.at("API_KEY"), "changed");
}

TEST_F(SecretJobs, AJobWhoseSecretWasRemovedFailsAndNamesTheSecretAndARemedy) {
  submit(single("first", "red", 2));
  submit(with_secrets(single("second", "red", 2)));
  ASSERT_TRUE(accounts_->remove_secret("red", "CA", {}));

  end("first");

  ASSERT_EQ(job("second").phase, Phase::kFailed);
  EXPECT_EQ(job("second").failure->cause, "there is no secret 'CA' in project 'red'");
  EXPECT_EQ(job("second").failure->advice, "muster secret set CA --project red adds one");
  EXPECT_EQ(text_of(job("second")).find("s3cret"), std::string::npos);
}

TEST_F(SecretJobs, AServerWithAnotherKeyStartsNoJobWhoseSecretsItCannotDecrypt) {
  make_with(other_box_);
  ASSERT_TRUE(controller_->recover());
  settle();

  submit(with_secrets(single("one", "red", 1)));

  ASSERT_EQ(job("one").phase, Phase::kFailed);
  EXPECT_NE(words::sentence(job("one").failure->cause).find("encrypted with another key"),
            std::string::npos);
  EXPECT_TRUE(engine_.plans.empty());
}

TEST_F(SecretJobs, TheSecretsOfAnotherProjectAreNotThere) {
  add(project_of("blue", 1));

  const auto refused = controller_->submit(with_secrets(single("one", "blue", 1)), "");

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kNotFound);
}

TEST_F(SecretJobs, AMissingRegistryPasswordIsReportedWithItsRole) {
  job::JobSpec spec = mpi("dist", "red", 1);
  spec.image = spec.leader.image = "train:3";
  spec.registry = {.server = {}, .username = "ada", .secret = "KEY"};
  spec.leader.registry = {.server = {}, .username = "ada", .secret = "OTHER"};

  const auto refused = controller_->submit(spec, "");

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(refused.error().faults,
            (std::vector<base::Fault>{
                {.field = "leader.registry.secret", .what = "there is no secret 'OTHER'"}}));
}

TEST_F(SecretJobs, AProjectTakesItsSecretsWithIt) {
  ASSERT_TRUE(controller_->projects().remove("red"));
  add(project_of("red", 2));

  EXPECT_FALSE(accounts_->has_secret("red", "KEY"));
  EXPECT_FALSE(controller_->submit(with_secrets(single("one", "red", 1)), ""));
}

TEST_F(SecretJobs, AProjectThatCouldNotBeRemovedKeepsThem) {
  store_.full = true;
  EXPECT_FALSE(controller_->projects().remove("red"));
  store_.full = false;

  EXPECT_TRUE(accounts_->has_secret("red", "KEY"));
  EXPECT_EQ(*accounts_->open_secret("red", "KEY"), kValue);
}

}  // namespace
}  // namespace muster::control
