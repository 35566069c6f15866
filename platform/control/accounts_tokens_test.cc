#include <gtest/gtest.h>

#include "control/accounts.h"
#include "control/test_accounts.h"

namespace muster::control {
namespace {

using access::Actor;
using access::FieldChange;
using access::Identity;
using access::Role;
using access::Token;
using access::TokenKind;
using base::ErrorCode;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// --- tokens

TEST_F(AccountsTest, ATokenHasTheRequestedRights) {
  add_user("ada");
  const IssuedToken issued = issue({.user = "ada",
                                    .kind = TokenKind::kInvitation,
                                    .description = "first",
                                    .ceiling = Role::kViewer,
                                    .projects = {"team", "other"},
                                    .lifetime = hours(24 * 7)});

  EXPECT_EQ(issued.token.user, "ada");
  EXPECT_EQ(issued.token.kind, TokenKind::kInvitation);
  EXPECT_EQ(issued.token.created, clock_.now());
  EXPECT_EQ(issued.token.expires, clock_.now() + hours(24 * 7));
  EXPECT_EQ(issued.token.last_used, std::nullopt);
  EXPECT_EQ(*accounts_->token(issued.token.id), issued.token);
  EXPECT_EQ(last_record().action, "token.create");
  EXPECT_EQ(last_record().target, issued.token.id);
  EXPECT_EQ(last_record().changes,
            (std::vector<FieldChange>{{.field = "ceiling", .after = "viewer"},
                                      {.field = "description", .after = "first"},
                                      {.field = "expires", .after = "2023-11-21T22:13:20.000Z"},
                                      {.field = "kind", .after = "invitation"},
                                      {.field = "projects", .after = "team,other"},
                                      {.field = "user", .after = "ada"}}));
}

TEST_F(AccountsTest, ATokenWithoutALifetimeNeverExpires) {
  add_user("ada");
  const IssuedToken issued = issue({.user = "ada"});
  clock_.advance(hours(24 * 365 * 50));
  EXPECT_EQ(issued.token.expires, std::nullopt);
  EXPECT_TRUE(accounts_->identify(issued.text, "local"));
}

TEST_F(AccountsTest, EveryFaultOfATokenRequestIsReported) {
  add_user("ada");
  EXPECT_EQ(outcome(accounts_->issue({.user = "adda"}, by_)), "there is no user 'adda'");
  EXPECT_EQ(
      faults_of(accounts_->issue({.user = "ada",
                                  .description = std::string(201, 'x'),
                                  .ceiling = Role::kNone,
                                  .projects = std::vector<std::string>(101, "p"),
                                  .lifetime = seconds(0)},
                                 by_)),
      (std::vector<std::string>{"lifetime give a time between 1 second and 100 years",
                                "description is longer than 200 bytes",
                                "ceiling a token requires a role; give viewer, member or admin",
                                "projects are more than 100"}));
  for (const seconds lifetime :
       {seconds(-1), seconds::max(), seconds::min(), seconds(hours(24 * 365 * 100)) + seconds(1)}) {
    EXPECT_FALSE(accounts_->issue({.user = "ada", .lifetime = lifetime}, by_));
  }
  EXPECT_EQ(records(), 1U);
}

TEST_F(AccountsTest, TokensAreListedNewestFirst) {
  add_user("ada");
  add_user("bob");
  std::vector<std::string> ids;
  for (const char* user : {"ada", "bob", "ada"}) {
    ids.push_back(issue({.user = user}).token.id);
    clock_.advance(seconds(1));
  }
  std::vector<std::string> listed;
  for (const Token& token : accounts_->tokens({})) listed.push_back(token.id);
  EXPECT_EQ(listed, (std::vector<std::string>{ids[2], ids[1], ids[0]}));

  listed.clear();
  for (const Token& token : accounts_->tokens("ada")) listed.push_back(token.id);
  EXPECT_EQ(listed, (std::vector<std::string>{ids[2], ids[0]}));
  EXPECT_TRUE(accounts_->tokens("nobody").empty());
}

TEST_F(AccountsTest, ARevokedTokenIsInvalidFromTheNextRequestOn) {
  add_user("ada");
  const IssuedToken issued = issue({.user = "ada"});

  ASSERT_TRUE(accounts_->revoke(issued.token.id, by_));

  EXPECT_EQ(outcome(accounts_->identify(issued.text, "local")), kNotValid);
  EXPECT_EQ(last_record().action, "token.revoke");
  EXPECT_EQ(last_record().target, issued.token.id);
  const auto again = accounts_->revoke(issued.token.id, by_);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kNotFound);
}

TEST_F(AccountsTest, NoSimilarIdIsSuggestedForAnUnknownToken) {
  add_user("ada");
  std::string near = issue({.user = "ada"}).token.id;
  const std::string known = near;
  near.back() = near.back() == 'a' ? 'b' : 'a';
  const auto token = accounts_->token(near);
  ASSERT_FALSE(token);
  EXPECT_EQ(token.error().to_string().find(known), std::string::npos);
}

// --- logging in

TEST_F(AccountsTest, AnInvitationBecomesASessionOnce) {
  add_user("ada");
  const IssuedToken invitation =
      issue({.user = "ada", .kind = TokenKind::kInvitation, .lifetime = hours(24 * 7)});
  const Identity who = *accounts_->identify(invitation.text, "10.0.0.7");
  const Actor ada{.user = "ada", .address = "10.0.0.7", .token = who.token, .request = "r2"};

  const auto session = accounts_->log_in(who, "laptop", hours(24 * 30), ada);

  ASSERT_TRUE(session);
  EXPECT_EQ(session->token.kind, TokenKind::kSession);
  EXPECT_EQ(session->token.description, "laptop");
  EXPECT_EQ(session->token.expires, clock_.now() + hours(24 * 30));
  EXPECT_EQ(accounts_->identify(session->text, "10.0.0.7")->token_kind, TokenKind::kSession);
  EXPECT_EQ(last_record().action, "token.login");
  EXPECT_EQ(last_record().actor, ada);

  EXPECT_EQ(outcome(accounts_->identify(invitation.text, "10.0.0.7")), kNotValid);
  EXPECT_EQ(outcome(accounts_->log_in(who, "again", hours(1), ada)), kNotValid);
  live_again();
  EXPECT_EQ(outcome(accounts_->identify(invitation.text, "10.0.0.7")), kNotValid);
  EXPECT_TRUE(accounts_->identify(session->text, "10.0.0.7"));
}

TEST_F(AccountsTest, ASessionIsWorthNoMoreThanTheTokenItWasMadeFromAndLivesNoLonger) {
  ASSERT_TRUE(accounts_->create_user({.name = "ada", .server_role = Role::kAdmin}, by_));
  const IssuedToken narrow =
      issue({.user = "ada", .ceiling = Role::kViewer, .projects = {"team"}, .lifetime = hours(1)});
  const Identity who = *accounts_->identify(narrow.text, "local");

  const auto session = accounts_->log_in(who, "", hours(24), by_);

  ASSERT_TRUE(session);
  EXPECT_EQ(session->token.ceiling, Role::kViewer);
  EXPECT_EQ(session->token.projects, std::vector<std::string>{"team"});
  EXPECT_EQ(session->token.expires, narrow.token.expires);
  EXPECT_TRUE(accounts_->identify(narrow.text, "local"));

  const auto shorter = accounts_->log_in(who, "", minutes(1), by_);
  ASSERT_TRUE(shorter);
  EXPECT_EQ(shorter->token.expires, clock_.now() + minutes(1));
}

TEST_F(AccountsTest, AProgramsTokenCreatesOnlyTokensForPrograms) {
  ASSERT_TRUE(accounts_->create_user({.name = "ada"}, by_));
  const IssuedToken program = issue({.user = "ada", .lifetime = hours(1)});

  const auto made =
      accounts_->log_in(*accounts_->identify(program.text, "local"), "", hours(24), by_);

  ASSERT_TRUE(made);
  EXPECT_EQ(made->token.kind, TokenKind::kApi);
}

TEST_F(AccountsTest, AUserHasSoManyTokensAndNoMore) {
  ASSERT_TRUE(accounts_->create_user({.name = "ada"}, by_));
  ASSERT_TRUE(accounts_->create_user({.name = "ben"}, by_));
  const IssuedToken first = issue({.user = "ada", .lifetime = hours(1)});
  for (int i = 1; i < 1000; ++i) issue({.user = "ada"});

  const auto one_more = accounts_->issue({.user = "ada"}, by_);
  ASSERT_FALSE(one_more);
  EXPECT_EQ(one_more.error().code, base::ErrorCode::kExhausted);
  EXPECT_TRUE(accounts_->issue({.user = "ben"}, by_));

  clock_.advance(hours(2));
  EXPECT_TRUE(accounts_->issue({.user = "ada"}, by_)) << "an expired one does not count";
}

TEST_F(AccountsTest, ACallerOnTheUnixSocketNeedsNoSession) {
  EXPECT_EQ(outcome(accounts_->log_in(access::local_identity("root"), "", hours(1), by_)),
            kNotValid);
}

// --- when a token was used

TEST_F(AccountsTest, TheLastUseOfATokenIsShownAtOnceAndKeptWithTheNextChange) {
  add_user("ada");
  const IssuedToken issued = issue({.user = "ada"});
  clock_.advance(seconds(5));

  ASSERT_TRUE(accounts_->identify(issued.text, "10.0.0.7"));

  const Token known = *accounts_->token(issued.token.id);
  EXPECT_EQ(known.last_used, clock_.now());
  EXPECT_EQ(known.last_address, "10.0.0.7");
  EXPECT_EQ(stored_token(issued.token.id).last_used, std::nullopt);

  add_user("bob");
  EXPECT_EQ(stored_token(issued.token.id), known);
}

TEST_F(AccountsTest, TheUsesOfAMinuteAreKeptTogether) {
  live_again({.uses_kept_after = milliseconds(1)});
  add_user("ada");
  const IssuedToken first = issue({.user = "ada"});
  const IssuedToken second = issue({.user = "ada"});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(accounts_->identify(first.text, "a"));
    ASSERT_TRUE(accounts_->identify(second.text, "b"));
  }
  const int before = store_.commits;

  run_until([&] { return store_.commits > before; });

  EXPECT_EQ(store_.commits, before + 1);
  EXPECT_EQ(stored_token(first.token.id).last_address, "a");
  EXPECT_EQ(stored_token(second.token.id).last_address, "b");
}

TEST_F(AccountsTest, AUseThatCouldNotBeKeptIsKeptLater) {
  live_again({.uses_kept_after = milliseconds(1)});
  add_user("ada");
  const IssuedToken issued = issue({.user = "ada"});
  store_.full = true;
  ASSERT_TRUE(accounts_->identify(issued.text, "a"));
  const int before = store_.commits;
  run_until([&] { return store_.commits >= before + 2; });
  store_.full = false;

  run_until([&] { return stored_token(issued.token.id).last_used.has_value(); });

  EXPECT_EQ(stored_token(issued.token.id).last_address, "a");
}

TEST_F(AccountsTest, RecordingTheUseOfARevokedTokenDoesNotRestoreIt) {
  add_user("ada");
  const IssuedToken issued = issue({.user = "ada"});
  ASSERT_TRUE(accounts_->identify(issued.text, "a"));
  ASSERT_TRUE(accounts_->revoke(issued.token.id, by_));

  add_user("bob");
  live_again();

  EXPECT_TRUE(accounts_->tokens({}).empty());
}

// --- expired tokens

TEST_F(AccountsTest, ExpiredTokensAreListedForThirtyDaysAndThenDropped) {
  add_user("ada");
  const IssuedToken brief = issue({.user = "ada", .lifetime = hours(1)});
  const IssuedToken lasting = issue({.user = "ada"});

  clock_.advance(hours(1) + Accounts::kExpiredAreKept - seconds(1));
  live_again();
  EXPECT_EQ(accounts_->tokens({}).size(), 2U);

  clock_.advance(seconds(1));
  live_again();
  ASSERT_EQ(accounts_->tokens({}).size(), 1U);
  EXPECT_EQ(accounts_->tokens({}).front().id, lasting.token.id);
  EXPECT_EQ(stored_token(brief.token.id), Token());
}

TEST_F(AccountsTest, ExpiredTokensAreDroppedWhileTheServerRuns) {
  live_again({.expired_looked_for = milliseconds(1)});
  add_user("ada");
  issue({.user = "ada", .lifetime = hours(1)});
  clock_.advance(hours(1) + Accounts::kExpiredAreKept);

  run_until([&] { return accounts_->tokens({}).empty(); });

  EXPECT_TRUE(store_.load()->tokens.empty());
}

}  // namespace
}  // namespace muster::control
