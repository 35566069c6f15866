#include <gtest/gtest.h>

#include "control/accounts.h"
#include "control/test_accounts.h"

namespace muster::control {
namespace {

using access::AuditRecord;
using base::ErrorCode;
using std::chrono::hours;

TEST_F(AccountsTest, ASecretIsSealedInTheStoreAndOpenedForAJob) {
  const auto secret = accounts_->set_secret("team", "KEY", "s3cret value", by_);

  ASSERT_TRUE(secret);
  EXPECT_EQ(secret->sealed.find("s3cret"), std::string::npos);
  EXPECT_EQ(secret->changed_by, "root");
  EXPECT_EQ(*accounts_->open_secret("team", "KEY"), "s3cret value");
  live_again();
  EXPECT_EQ(*accounts_->open_secret("team", "KEY"), "s3cret value");
  EXPECT_EQ(accounts_->secrets("team"), std::vector{*secret});
}

TEST_F(AccountsTest, AKeyThatDoesNotOpenTheStoredSecretsIsReportedAtTheStart) {
  ASSERT_TRUE(accounts_->set_secret("team", "KEY", "s3cret value", by_));
  testing::internal::CaptureStderr();
  live_again();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");

  const access::SecretBox other(key_of(99));
  const auto stored = store_.load();
  ASSERT_TRUE(stored);
  Accounts later(
      {.loop = loop_, .store = store_, .clock = clock_, .random = random_, .box = other});
  testing::internal::CaptureStderr();
  later.load(stored->users, stored->tokens, stored->secrets);
  EXPECT_NE(testing::internal::GetCapturedStderr().find(
                "secret.key does not fit the stored secrets: secret 'KEY' of project 'team' cannot "
                "be opened: it was encrypted with another key"),
            std::string::npos);
}

TEST_F(AccountsTest, OfASecretTheRecordHoldsTheNameAlone) {
  ASSERT_TRUE(accounts_->set_secret("team", "KEY", "s3cret", by_));
  const AuditRecord set{.number = 1,
                        .time = clock_.now(),
                        .actor = by_,
                        .action = "secret.set",
                        .target = "KEY",
                        .project = "team"};
  EXPECT_EQ(last_record(), set);

  ASSERT_TRUE(accounts_->remove_secret("team", "KEY", by_));
  EXPECT_EQ(last_record().action, "secret.remove");
  EXPECT_EQ(last_record().target, "KEY");
  EXPECT_EQ(last_record().project, "team");
  EXPECT_TRUE(last_record().changes.empty());
}

TEST_F(AccountsTest, AChangedSecretKeepsTheDayItWasMade) {
  const auto first = accounts_->set_secret("team", "KEY", "one", by_);
  clock_.advance(hours(1));
  const auto second = accounts_->set_secret("team", "KEY", "two", {.user = "ada"});

  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->created, first->created);
  EXPECT_EQ(second->changed, clock_.now());
  EXPECT_EQ(second->changed_by, "ada");
  EXPECT_EQ(*accounts_->open_secret("team", "KEY"), "two");
}

TEST_F(AccountsTest, SecretsAreThoseOfOneProjectByName) {
  for (const char* name : {"B", "A"}) {
    ASSERT_TRUE(accounts_->set_secret("team", name, std::string("team's ") + name, by_));
  }
  ASSERT_TRUE(accounts_->set_secret("other", "A", "other's", by_));
  ASSERT_TRUE(accounts_->set_secret("teams", "C", "x", by_));

  std::vector<std::string> names;
  for (const access::Secret& secret : accounts_->secrets("team")) names.push_back(secret.name);
  EXPECT_EQ(names, (std::vector<std::string>{"A", "B"}));
  EXPECT_EQ(*accounts_->open_secret("team", "A"), "team's A");
  EXPECT_EQ(*accounts_->open_secret("other", "A"), "other's");
  EXPECT_FALSE(accounts_->has_secret("other", "B"));
  EXPECT_TRUE(accounts_->secrets("").empty());
}

TEST_F(AccountsTest, TheNearestSecretOfTheProjectIsSuggestedForAMissingSecret) {
  ASSERT_TRUE(accounts_->set_secret("team", "API_KEY", "x", by_));
  const auto value = accounts_->open_secret("team", "API_KEYS");
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(value.error().to_string(),
            "there is no secret 'API_KEYS' in project 'team'\n  did you mean 'API_KEY'?");
  EXPECT_EQ(accounts_->open_secret("other", "API_KEY").error().advice,
            "muster secret set API_KEY --project other adds one");
  EXPECT_EQ(outcome(accounts_->remove_secret("other", "API_KEY", by_)),
            "there is no secret 'API_KEY' in project 'other'");
}

TEST_F(AccountsTest, ASecretOfAnotherKeyIsRefused) {
  ASSERT_TRUE(accounts_->set_secret("team", "KEY", "s3cret", by_));
  const access::SecretBox other(key_of(2));
  Accounts later(
      {.loop = loop_, .store = store_, .clock = clock_, .random = random_, .box = other});
  later.load({}, {}, store_.load()->secrets);

  const auto value = later.open_secret("team", "KEY");

  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, ErrorCode::kRefused);
}

TEST_F(AccountsTest, ASecretThatIsMovedToAnotherProjectInTheDatabaseDoesNotOpen) {
  ASSERT_TRUE(accounts_->set_secret("team", "KEY", "s3cret", by_));
  std::vector<access::Secret> moved = store_.load()->secrets;
  moved.front().project = "other";
  Accounts later({.loop = loop_, .store = store_, .clock = clock_, .random = random_, .box = box_});
  later.load({}, {}, moved);

  EXPECT_FALSE(later.open_secret("other", "KEY"));
}

TEST_F(AccountsTest, EveryFaultOfASecretIsReportedWithoutItsValue) {
  const auto secret = accounts_->set_secret("team", "1-KEY", "", by_);
  EXPECT_EQ(faults_of(secret),
            (std::vector<std::string>{"name is not the name of a secret; use at most 128 letters, "
                                      "digits and '_', and no digit first",
                                      "value is empty"}));
  EXPECT_EQ(faults_of(accounts_->set_secret("team", "KEY", std::string(65'537, 's'), by_)),
            std::vector<std::string>{"value is larger than 64 KiB"});
  EXPECT_TRUE(accounts_->set_secret("team", "KEY", std::string(65'536, 's'), by_));
  EXPECT_TRUE(accounts_->set_secret("team", "BYTES", std::string("\0\xff", 2), by_));
  EXPECT_EQ(*accounts_->open_secret("team", "BYTES"), std::string("\0\xff", 2));
}

TEST_F(AccountsTest, AValueSealedForOnePlaceDoesNotOpenForAnother) {
  const std::string sealed = accounts_->seal("keys", "team", "gang j1/1");
  EXPECT_EQ(sealed.find("keys"), std::string::npos);

  EXPECT_EQ(*accounts_->open(sealed, "team", "gang j1/1"), "keys");
  EXPECT_EQ(accounts_->open(sealed, "team", "gang j1/2").error().code, ErrorCode::kRefused);
  EXPECT_EQ(accounts_->open(sealed, "other", "gang j1/1").error().code, ErrorCode::kRefused);
}

}  // namespace
}  // namespace muster::control
