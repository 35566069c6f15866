#include "control/accounts.h"

#include <gtest/gtest.h>

#include "control/test_accounts.h"

namespace muster::control {
namespace {

using access::AuditRecord;
using access::FieldChange;
using access::Identity;
using access::Role;
using access::Token;
using access::TokenKind;
using access::User;
using base::ErrorCode;
using std::chrono::hours;
using std::chrono::seconds;

// --- identification

TEST_F(AccountsTest, ATokenIsTheIdentityOfItsUser) {
  ASSERT_TRUE(accounts_->create_user(
      {.name = "ada", .server_role = Role::kViewer, .projects = {{"team", Role::kAdmin}}}, by_));
  const IssuedToken issued = issue({.user = "ada", .ceiling = Role::kMember, .projects = {"team"}});

  const auto who = accounts_->identify(issued.text, "10.0.0.7");

  ASSERT_TRUE(who);
  EXPECT_EQ(who->user, "ada");
  EXPECT_EQ(who->token, issued.token.id);
  EXPECT_EQ(who->address, "10.0.0.7");
  EXPECT_EQ(who->in_project({"team"}), Role::kMember);
  EXPECT_EQ(who->over_server(), Role::kNone);
}

TEST_F(AccountsTest, EveryInvalidTokenGetsTheSameSentence) {
  add_user("ada");
  const IssuedToken good = issue({.user = "ada"});
  const IssuedToken revoked = issue({.user = "ada"});
  ASSERT_TRUE(accounts_->revoke(revoked.token.id, by_));
  std::string wrong_secret = good.text;
  wrong_secret.back() = wrong_secret.back() == 'a' ? 'b' : 'a';
  std::string unknown_id = good.text;
  unknown_id[8] = unknown_id[8] == 'a' ? 'b' : 'a';
  const std::string mixed = good.text.substr(0, 20) + revoked.text.substr(20);

  for (const std::string& text : {wrong_secret, unknown_id, mixed, revoked.text, std::string(),
                                  std::string("x"), good.text + "a", " " + good.text}) {
    const auto who = accounts_->identify(text, "10.0.0.7");
    ASSERT_FALSE(who) << text;
    EXPECT_EQ(who.error().code, ErrorCode::kRefused);
    EXPECT_EQ(who.error().to_string(),
              std::string(kNotValid) + "\n  get a new token with muster login");
  }
  EXPECT_TRUE(accounts_->identify(good.text, "10.0.0.7"));
}

TEST_F(AccountsTest, ThatATokenHasExpiredIsReportedOnlyForTheRightSecret) {
  add_user("ada");
  const IssuedToken issued = issue({.user = "ada", .lifetime = hours(1)});
  std::string forged = issued.text;
  forged.back() = forged.back() == 'a' ? 'b' : 'a';

  clock_.advance(hours(1) - seconds(1));
  EXPECT_TRUE(accounts_->identify(issued.text, "local"));
  clock_.advance(seconds(1));

  EXPECT_EQ(outcome(accounts_->identify(issued.text, "local")),
            "the token expired at 2023-11-14T23:13:20Z");
  EXPECT_EQ(outcome(accounts_->identify(forged, "local")), kNotValid);
}

TEST_F(AccountsTest, TokensOfADisabledUserAreRefusedUntilTheUserIsEnabledAgain) {
  User ada = add_user("ada");
  const IssuedToken issued = issue({.user = "ada"});
  std::string forged = issued.text;
  forged.back() = forged.back() == 'a' ? 'b' : 'a';

  ada.disabled = true;
  ASSERT_TRUE(accounts_->set_user(ada, by_));
  EXPECT_EQ(outcome(accounts_->identify(issued.text, "local")), "user 'ada' is disabled");
  EXPECT_EQ(outcome(accounts_->identify(forged, "local")), kNotValid);

  ada.disabled = false;
  ASSERT_TRUE(accounts_->set_user(ada, by_));
  EXPECT_TRUE(accounts_->identify(issued.text, "local"));
}

TEST_F(AccountsTest, TokensOutliveARestart) {
  ASSERT_TRUE(accounts_->create_user({.name = "ada", .projects = {{"team", Role::kMember}}}, by_));
  const IssuedToken issued = issue({.user = "ada", .description = "ci", .lifetime = hours(1)});
  const auto before = everything();

  live_again();

  EXPECT_EQ(everything(), before);
  EXPECT_EQ(accounts_->identify(issued.text, "local")->user, "ada");
}

TEST_F(AccountsTest, NoTextOfATokenIsInTheStore) {
  add_user("ada");
  const IssuedToken issued = issue({.user = "ada"});

  const Token stored = stored_token(issued.token.id);

  EXPECT_EQ(stored.hash.size(), 32U);
  for (const std::string& text : {stored.id, stored.hash, stored.description}) {
    EXPECT_EQ(text.find(issued.text.substr(20)), std::string::npos);
  }
  for (const FieldChange& change : last_record().changes) {
    EXPECT_EQ(change.after.find(issued.text.substr(20)), std::string::npos);
    EXPECT_NE(change.field, "hash");
  }
}

// --- users

TEST_F(AccountsTest, AUserIsCreatedWithItsDateAndARecord) {
  clock_.advance(hours(1));
  const auto user = accounts_->create_user({.name = "ada",
                                            .server_role = Role::kViewer,
                                            .projects = {{"team", Role::kAdmin}},
                                            .created = clock_.now() - hours(9)},
                                           by_);

  ASSERT_TRUE(user);
  EXPECT_EQ(user->created, clock_.now());
  EXPECT_EQ(*accounts_->user("ada"), *user);
  const AuditRecord expected{.number = 1,
                             .time = clock_.now(),
                             .actor = by_,
                             .action = "user.create",
                             .target = "ada",
                             .changes = {{.field = "disabled", .after = "false"},
                                         {.field = "projects.team", .after = "admin"},
                                         {.field = "server_role", .after = "viewer"}}};
  EXPECT_EQ(last_record(), expected);
}

TEST_F(AccountsTest, EveryFaultOfAUserIsReported) {
  const auto user = accounts_->create_user({.name = "A", .projects = {{"p", Role::kNone}}}, by_);

  EXPECT_EQ(
      faults_of(user),
      (std::vector<std::string>{
          "name may contain only a-z, 0-9, '.', '_', '-' and '@'",
          "projects.p is invalid: leave the project out instead of giving it the role none"}));
  EXPECT_EQ(records(), 0U);
}

TEST_F(AccountsTest, ANameCanBeUsedOnce) {
  add_user("ada");
  EXPECT_EQ(outcome(accounts_->create_user({.name = "ada"}, by_)), "user 'ada' exists already");
  EXPECT_EQ(records(), 1U);
}

TEST_F(AccountsTest, TheNearestNameIsSuggestedForAnUnknownUser) {
  add_user("ada");
  const auto user = accounts_->user("adda");
  ASSERT_FALSE(user);
  EXPECT_EQ(user.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(user.error().to_string(), "there is no user 'adda'\n  did you mean 'ada'?");
  EXPECT_EQ(outcome(accounts_->set_user({.name = "adda"}, by_)), "there is no user 'adda'");
  EXPECT_EQ(outcome(accounts_->remove_user("adda", by_)), "there is no user 'adda'");
}

TEST_F(AccountsTest, AChangeOfAUserRecordsTheOldAndTheNewValues) {
  const User before = add_user("ada");
  clock_.advance(hours(1));

  const auto user =
      accounts_->set_user({.name = "ada", .server_role = Role::kAdmin, .disabled = true}, by_);

  ASSERT_TRUE(user);
  EXPECT_EQ(user->created, before.created);
  EXPECT_EQ(*accounts_->user("ada"), *user);
  EXPECT_EQ(last_record().action, "user.set");
  EXPECT_EQ(last_record().project, "");
  EXPECT_EQ(
      last_record().changes,
      (std::vector<FieldChange>{{.field = "disabled", .before = "false", .after = "true"},
                                {.field = "server_role", .before = "none", .after = "admin"}}));
}

TEST_F(AccountsTest, ARoleInOneProjectIsARecordOfThatProject) {
  User ada = add_user("ada");
  ada.projects["team"] = Role::kMember;
  ASSERT_TRUE(accounts_->set_user(ada, by_));

  EXPECT_EQ(last_record().project, "team");
  EXPECT_EQ(last_record().changes,
            (std::vector<FieldChange>{{.field = "projects.team", .after = "member"}}));

  ada.projects = {{"other", Role::kMember}};
  ASSERT_TRUE(accounts_->set_user(ada, by_));
  EXPECT_EQ(last_record().project, "");
}

TEST_F(AccountsTest, NoChangeIsNoRecord) {
  const User ada = add_user("ada");
  EXPECT_TRUE(accounts_->set_user(ada, by_));
  EXPECT_EQ(records(), 1U);
}

TEST_F(AccountsTest, RemovingAUserRemovesItsTokens) {
  add_user("ada");
  add_user("bob");
  const IssuedToken adas = issue({.user = "ada"});
  const IssuedToken bobs = issue({.user = "bob"});

  ASSERT_TRUE(accounts_->remove_user("ada", by_));

  EXPECT_EQ(last_record().action, "user.remove");
  EXPECT_EQ(last_record().target, "ada");
  EXPECT_EQ(outcome(accounts_->identify(adas.text, "local")), kNotValid);
  EXPECT_TRUE(accounts_->identify(bobs.text, "local"));
  live_again();
  EXPECT_EQ(accounts_->users().size(), 1U);
  EXPECT_EQ(accounts_->tokens({}).size(), 1U);
}

TEST_F(AccountsTest, ANewUserDoesNotInheritTokensOfAFormerUserOfItsName) {
  add_user("ada");
  const IssuedToken old = issue({.user = "ada"});
  ASSERT_TRUE(accounts_->remove_user("ada", by_));
  add_user("ada");
  EXPECT_EQ(outcome(accounts_->identify(old.text, "local")), kNotValid);
}

TEST_F(AccountsTest, UsersAreListedByName) {
  for (const char* name : {"cy", "ada", "bob"}) add_user(name);
  std::vector<std::string> names;
  for (const User& user : accounts_->users()) names.push_back(user.name);
  EXPECT_EQ(names, (std::vector<std::string>{"ada", "bob", "cy"}));
}

// --- removed projects

TEST_F(AccountsTest, WithAProjectGoItsSecretsAndTheRolesInIt) {
  ASSERT_TRUE(accounts_->create_user(
      {.name = "ada", .projects = {{"team", Role::kAdmin}, {"other", Role::kMember}}}, by_));
  ASSERT_TRUE(accounts_->create_user({.name = "bob", .projects = {{"team", Role::kMember}}}, by_));
  add_user("cy");
  ASSERT_TRUE(accounts_->set_secret("team", "KEY", "x", by_));
  ASSERT_TRUE(accounts_->set_secret("other", "KEY", "x", by_));
  const auto before = everything();

  store::Batch batch;
  accounts_->forget_project("team", batch);
  EXPECT_EQ(everything(), before);  // nothing is changed before it is committed
  EXPECT_EQ(batch.users.size(), 2U);
  ASSERT_TRUE(store_.commit(batch));
  accounts_->project_is_gone("team");

  for (const bool restarted : {false, true}) {
    if (restarted) live_again();
    EXPECT_EQ(accounts_->user("ada")->projects,
              (std::map<std::string, Role>{{"other", Role::kMember}}));
    EXPECT_TRUE(accounts_->user("bob")->projects.empty());
    EXPECT_FALSE(accounts_->has_secret("team", "KEY"));
    EXPECT_TRUE(accounts_->has_secret("other", "KEY"));
  }
}

// --- a store that fails

TEST_F(AccountsTest, AChangeThatCouldNotBeStoredHasNoEffect) {
  const User ada = add_user("ada");
  const IssuedToken token = issue({.user = "ada"});
  const IssuedToken invitation = issue({.user = "ada", .kind = TokenKind::kInvitation});
  ASSERT_TRUE(accounts_->set_secret("team", "KEY", "x", by_));
  const Identity invited = *accounts_->identify(invitation.text, "local");
  const auto before = everything();
  User changed = ada;
  changed.disabled = true;

  store_.full = true;
  for (const std::string& answer :
       {outcome(accounts_->create_user({.name = "bob"}, by_)),
        outcome(accounts_->set_user(changed, by_)), outcome(accounts_->remove_user("ada", by_)),
        outcome(accounts_->issue({.user = "ada"}, by_)),
        outcome(accounts_->log_in(invited, "", hours(1), by_)),
        outcome(accounts_->revoke(token.token.id, by_)),
        outcome(accounts_->set_secret("team", "NEW", "x", by_)),
        outcome(accounts_->set_secret("team", "KEY", "y", by_)),
        outcome(accounts_->remove_secret("team", "KEY", by_))}) {
    EXPECT_EQ(answer, "the disk is full");
  }
  store_.full = false;

  EXPECT_EQ(everything(), before);
  EXPECT_EQ(*accounts_->open_secret("team", "KEY"), "x");
  EXPECT_TRUE(accounts_->identify(token.text, "local"));
  EXPECT_TRUE(accounts_->identify(invitation.text, "local"));
}

TEST_F(AccountsTest, EveryChangeIsOneCommitWithItsRecord) {
  const int before = store_.commits;
  add_user("ada");
  const IssuedToken token = issue({.user = "ada"});
  ASSERT_TRUE(accounts_->identify(token.text, "local"));
  ASSERT_TRUE(accounts_->set_secret("team", "KEY", "x", by_));
  ASSERT_TRUE(accounts_->remove_secret("team", "KEY", by_));
  ASSERT_TRUE(accounts_->revoke(token.token.id, by_));
  ASSERT_TRUE(accounts_->remove_user("ada", by_));

  EXPECT_EQ(store_.commits, before + 6);
  std::vector<std::string> actions;
  const auto kept = accounts_->audit({});
  for (const AuditRecord& record : *kept) actions.push_back(record.action);
  EXPECT_EQ(actions, (std::vector<std::string>{"user.remove", "token.revoke", "secret.remove",
                                               "secret.set", "token.create", "user.create"}));
  EXPECT_EQ(accounts_->audit({.action = "token"})->size(), 2U);
}

}  // namespace
}  // namespace muster::control
