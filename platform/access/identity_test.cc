#include "access/identity.h"

#include <gtest/gtest.h>

namespace muster::access {
namespace {

/// A project "run" below "team" below "all"; "other" stands alone.
const std::vector<std::string> kRun{"run", "team", "all"};
const std::vector<std::string> kTeam{"team", "all"};
const std::vector<std::string> kAll{"all"};
const std::vector<std::string> kOther{"other"};

TEST(InProject, ARoleHoldsThereAndBelowAndNowhereElse) {
  const Identity ada{.projects = {{"team", Role::kMember}}};

  EXPECT_EQ(ada.in_project(kTeam), Role::kMember);
  EXPECT_EQ(ada.in_project(kRun), Role::kMember);
  EXPECT_EQ(ada.in_project(kAll), Role::kNone);
  EXPECT_EQ(ada.in_project(kOther), Role::kNone);
  EXPECT_EQ(ada.in_project({}), Role::kNone);
}

TEST(InProject, TheBestRoleAlongTheLineCounts) {
  const Identity above{.projects = {{"all", Role::kAdmin}, {"team", Role::kViewer}}};
  EXPECT_EQ(above.in_project(kRun), Role::kAdmin);
  EXPECT_EQ(above.in_project(kTeam), Role::kAdmin);

  const Identity below{.projects = {{"all", Role::kViewer}, {"run", Role::kMember}}};
  EXPECT_EQ(below.in_project(kRun), Role::kMember);
  EXPECT_EQ(below.in_project(kTeam), Role::kViewer);
}

TEST(InProject, ARoleOverTheServerIsOneInEveryProject) {
  const Identity ada{.server_role = Role::kViewer, .projects = {{"team", Role::kAdmin}}};

  EXPECT_EQ(ada.in_project(kOther), Role::kViewer);
  EXPECT_EQ(ada.in_project(kRun), Role::kAdmin);
  EXPECT_TRUE(ada.sees_everything());
}

TEST(OverServer, ProjectsGiveNoPartOfIt) {
  const Identity ada{.projects = {{"all", Role::kAdmin}}};

  EXPECT_EQ(ada.over_server(), Role::kNone);
  EXPECT_FALSE(ada.sees_everything());
}

TEST(Identity, ATokenDoesNoMoreThanItsCeiling) {
  const Identity admin{.server_role = Role::kAdmin, .ceiling = Role::kViewer};
  EXPECT_EQ(admin.over_server(), Role::kViewer);
  EXPECT_EQ(admin.in_project(kRun), Role::kViewer);

  const Identity member{.projects = {{"team", Role::kMember}}, .ceiling = Role::kAdmin};
  EXPECT_EQ(member.in_project(kRun), Role::kMember);

  const Identity nothing{.server_role = Role::kAdmin, .ceiling = Role::kNone};
  EXPECT_EQ(nothing.over_server(), Role::kNone);
  EXPECT_EQ(nothing.in_project(kRun), Role::kNone);
  EXPECT_FALSE(nothing.sees_everything());
}

TEST(Identity, ATokenForSomeProjectsIsGoodThereAndBelow) {
  const Identity ada{.projects = {{"all", Role::kMember}, {"other", Role::kAdmin}},
                     .token_projects = {"team"}};

  EXPECT_EQ(ada.in_project(kTeam), Role::kMember);
  EXPECT_EQ(ada.in_project(kRun), Role::kMember);
  EXPECT_EQ(ada.in_project(kAll), Role::kNone);
  EXPECT_EQ(ada.in_project(kOther), Role::kNone);
}

TEST(Identity, ATokenForSomeProjectsOfAServerAdminIsNoneOfTheServer) {
  const Identity admin{.server_role = Role::kAdmin, .token_projects = {"team"}};

  EXPECT_EQ(admin.in_project(kRun), Role::kAdmin);
  EXPECT_EQ(admin.in_project(kOther), Role::kNone);
  EXPECT_EQ(admin.in_project({}), Role::kNone);
  EXPECT_EQ(admin.over_server(), Role::kNone);
  EXPECT_FALSE(admin.sees_everything());
}

TEST(Identity, ATokenForAProjectGivesNoRoleThatItsUserHasNot) {
  const Identity ada{.projects = {{"other", Role::kAdmin}}, .token_projects = {"team"}};

  EXPECT_EQ(ada.in_project(kTeam), Role::kNone);
  EXPECT_EQ(ada.in_project(kRun), Role::kNone);
}

TEST(Identity, AnInvitationIsGoodForNothing) {
  const Identity invited{.server_role = Role::kAdmin,
                         .projects = {{"team", Role::kAdmin}},
                         .token_kind = TokenKind::kInvitation};

  EXPECT_EQ(invited.over_server(), Role::kNone);
  EXPECT_EQ(invited.in_project(kTeam), Role::kNone);
  EXPECT_FALSE(invited.sees_everything());
}

TEST(LocalIdentity, MayDoEverything) {
  const Identity local = local_identity("root");

  EXPECT_EQ(local.over_server(), Role::kAdmin);
  EXPECT_EQ(local.in_project(kOther), Role::kAdmin);
  EXPECT_EQ(local.address, "local");
  EXPECT_EQ(local.token, "");
}

TEST(IdentityOf, IsTheUserAsFarAsTheTokenGoes) {
  const User user{
      .name = "ada", .server_role = Role::kViewer, .projects = {{"team", Role::kAdmin}}};
  const Token token{.id = "abc",
                    .user = "ada",
                    .kind = TokenKind::kApi,
                    .ceiling = Role::kMember,
                    .projects = {"run"}};

  const Identity identity = identity_of(user, token, "10.0.0.7");

  EXPECT_EQ(identity.user, "ada");
  EXPECT_EQ(identity.token, "abc");
  EXPECT_EQ(identity.token_kind, TokenKind::kApi);
  EXPECT_EQ(identity.address, "10.0.0.7");
  EXPECT_EQ(identity.in_project(kRun), Role::kMember);
  EXPECT_EQ(identity.in_project(kTeam), Role::kNone);
  EXPECT_EQ(identity.over_server(), Role::kNone);
}

}  // namespace
}  // namespace muster::access
