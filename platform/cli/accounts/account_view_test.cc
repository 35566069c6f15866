#include <gtest/gtest.h>

#include "cli/accounts/accounts.h"
#include "cli/test_call.h"

namespace muster::cli::accounts {

namespace {

using access::Role;

TEST(ContextTable, MarksTheCurrentContextAndExpiredTokens) {
  const Contexts contexts{.in_use = "lab",
                          .known = {{.name = "lab",
                                     .server = "https://lab:7443",
                                     .user = "ada",
                                     .token = "sesame",
                                     .expires = kNow + std::chrono::hours(1)},
                                    {.name = "old",
                                     .server = "https://old:7443",
                                     .user = "ada",
                                     .token = "sesame",
                                     .expires = kNow}}};

  EXPECT_EQ(context_table(contexts, kNow),
            "NAME   SERVER            USER  UNTIL\n"
            "local  on this machine   -     -\n"
            "lab *  https://lab:7443  ada   2023-11-14T23:13:20Z\n"
            "old    https://old:7443  ada   expired\n");
  EXPECT_EQ(context_list_json(contexts).find("sesame"), std::string::npos);
}

TEST(TokenTable, ShowsTheRoleAndTheLastUseOfAToken) {
  const std::vector<access::Token> tokens{{.id = "aaa",
                                           .user = "ada",
                                           .kind = access::TokenKind::kApi,
                                           .description = "nightly",
                                           .ceiling = Role::kViewer,
                                           .projects = {"a", "b"},
                                           .last_used = kNow - std::chrono::minutes(5),
                                           .last_address = "10.0.0.7"},
                                          {.id = "bbb", .user = "ada", .expires = kNow}};

  EXPECT_EQ(token_table(tokens, kNow),
            "ID   USER  KIND  CEILING  PROJECTS  UNTIL    LAST USED  FROM      DESCRIPTION\n"
            "aaa  ada   api   viewer   a, b      never    5m ago     10.0.0.7  nightly\n"
            "bbb  ada   api   -        -         expired  never      -\n");
}

TEST(AuditTable, ShowsEachChangeBeforeAndAfter) {
  const std::vector<access::AuditRecord> records{
      {.number = 1,
       .time = kNow,
       .actor = {.user = "ada", .address = "10.0.0.7"},
       .action = "project.set",
       .target = "team-a",
       .project = "team-a",
       .changes = {{"quota.deserved.gpus", "2", "4"}, {"parent", "", "research"}}}};

  EXPECT_EQ(audit_table(records),
            "TIME                  USER  FROM      ACTION       PROJECT  TARGET  CHANGE\n"
            "2023-11-14T22:13:20Z  ada   10.0.0.7  project.set  team-a   team-a  "
            "quota.deserved.gpus: 2 -> 4; parent: - -> research\n");
}

TEST(Login, UsesTheOnlyProjectOfTheUser) {
  EXPECT_EQ(project_after_login("", {"team-a"}), "team-a");
  EXPECT_EQ(project_after_login("team-b", {"team-a"}), "team-b") << "chosen before";
  EXPECT_EQ(project_after_login("", {"team-a", "team-b"}), std::nullopt);
  EXPECT_EQ(project_after_login("", {}), std::nullopt);
}

TEST(WhoAmIPage, ShowsTheUserTheServerAndTheExpiry) {
  const api::WhoAmI who{.user = "ada",
                        .projects = {{"team-a", Role::kMember}},
                        .token = "aaa",
                        .ceiling = Role::kViewer,
                        .expires = kNow,
                        .address = "10.0.0.7"};

  EXPECT_EQ(whoami_page(who, {.name = "lab", .server = "https://lab:7443"}),
            "USER     ada\n"
            "CONTEXT  lab\n"
            "SERVER   https://lab:7443\n"
            "FROM     10.0.0.7\n"
            "ROLE     -\n"
            "CEILING  viewer\n"
            "TOKEN    aaa\n"
            "UNTIL    2023-11-14T22:13:20Z\n"
            "\nPROJECTS\n"
            "  NAME    ROLE\n"
            "  team-a  member\n");
}

TEST(InvitationText, ExplainsHowToUseIt) {
  const api::NewToken invitation{.token = {.user = "ada", .expires = kNow}, .text = "muster_x"};

  EXPECT_EQ(invitation_text(invitation, "https://lab:7443"),
            "invitation  muster_x\n  It is shown only once, and is valid for one login until "
            "2023-11-14T22:13:20Z.\n  ada logs in with it:  muster login https://lab:7443\n");
  EXPECT_NE(invitation_text(invitation, "").find("muster login https://HOST:PORT\n"),
            std::string::npos);
}

}  // namespace

}  // namespace muster::cli::accounts
