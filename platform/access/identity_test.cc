#include "access/identity.h"

#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <set>

#include "base/fake_random.h"
#include "base/test_faults.h"

namespace muster::access {
namespace {

/// "run" is a subproject of "team", which is a subproject of "all"; "other" is unrelated.
const std::vector<std::string> kRun{"run", "team", "all"};
const std::vector<std::string> kTeam{"team", "all"};
const std::vector<std::string> kAll{"all"};
const std::vector<std::string> kOther{"other"};

TEST(InProject, ARoleAppliesToTheProjectAndItsSubprojectsOnly) {
  const Identity ada{.projects = {{"team", Role::kMember}}};

  EXPECT_EQ(ada.in_project(kTeam), Role::kMember);
  EXPECT_EQ(ada.in_project(kRun), Role::kMember);
  EXPECT_EQ(ada.in_project(kAll), Role::kNone);
  EXPECT_EQ(ada.in_project(kOther), Role::kNone);
  EXPECT_EQ(ada.in_project({}), Role::kNone);
}

TEST(InProject, TheHighestRoleOnThePathCounts) {
  const Identity above{.projects = {{"all", Role::kAdmin}, {"team", Role::kViewer}}};
  EXPECT_EQ(above.in_project(kRun), Role::kAdmin);
  EXPECT_EQ(above.in_project(kTeam), Role::kAdmin);

  const Identity below{.projects = {{"all", Role::kViewer}, {"run", Role::kMember}}};
  EXPECT_EQ(below.in_project(kRun), Role::kMember);
  EXPECT_EQ(below.in_project(kTeam), Role::kViewer);
}

TEST(InProject, ARoleOverTheServerAppliesToEveryProject) {
  const Identity ada{.server_role = Role::kViewer, .projects = {{"team", Role::kAdmin}}};

  EXPECT_EQ(ada.in_project(kOther), Role::kViewer);
  EXPECT_EQ(ada.in_project(kRun), Role::kAdmin);
  EXPECT_TRUE(ada.sees_everything());
}

TEST(OverServer, ProjectRolesGiveNoRole) {
  const Identity ada{.projects = {{"all", Role::kAdmin}}};

  EXPECT_EQ(ada.over_server(), Role::kNone);
  EXPECT_FALSE(ada.sees_everything());
}

TEST(Identity, ATokenGivesNoMoreThanItsCeiling) {
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

TEST(Identity, ATokenForSomeProjectsIsValidThereAndInSubprojects) {
  const Identity ada{.projects = {{"all", Role::kMember}, {"other", Role::kAdmin}},
                     .token_projects = {"team"}};

  EXPECT_EQ(ada.in_project(kTeam), Role::kMember);
  EXPECT_EQ(ada.in_project(kRun), Role::kMember);
  EXPECT_EQ(ada.in_project(kAll), Role::kNone);
  EXPECT_EQ(ada.in_project(kOther), Role::kNone);
}

TEST(Identity, ATokenForSomeProjectsGivesAServerAdminNoRoleOverTheServer) {
  const Identity admin{.server_role = Role::kAdmin, .token_projects = {"team"}};

  EXPECT_EQ(admin.in_project(kRun), Role::kAdmin);
  EXPECT_EQ(admin.in_project(kOther), Role::kNone);
  EXPECT_EQ(admin.in_project({}), Role::kNone);
  EXPECT_EQ(admin.over_server(), Role::kNone);
  EXPECT_FALSE(admin.sees_everything());
}

TEST(Identity, ATokenForAProjectGivesNoRoleThatItsUserLacks) {
  const Identity ada{.projects = {{"other", Role::kAdmin}}, .token_projects = {"team"}};

  EXPECT_EQ(ada.in_project(kTeam), Role::kNone);
  EXPECT_EQ(ada.in_project(kRun), Role::kNone);
}

TEST(Identity, AnInvitationGivesNoRole) {
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

TEST(IdentityOf, HasTheRolesOfTheUserWithinTheLimitsOfTheToken) {
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
namespace {

std::vector<std::string> faults_of(const User& user) {
  return base::texts_of(validate_user(user));
}

TEST(ValidateUser, AcceptsNamesOfPeopleAndPrograms) {
  for (const char* name : {"a", "ada", "ada.lovelace@example.org", "ci-bot_2", "7of9"}) {
    EXPECT_EQ(faults_of({.name = name}), std::vector<std::string>{}) << name;
  }
  EXPECT_EQ(faults_of({.name = std::string(64, 'a')}), std::vector<std::string>{});
}

TEST(ValidateUser, RefusesAmbiguousNames) {
  using Names = std::vector<std::string>;
  const std::string letters = "name may contain only a-z, 0-9, '.', '_', '-' and '@'";
  const std::string first = "name must begin with a letter or digit";
  const std::vector<std::pair<std::string, Names>> cases{
      {"", {"name is missing"}},
      {"Ada", {letters}},
      {"ada lovelace", {letters}},
      {"ada/..", {letters}},
      {std::string("a\0b", 3), {letters}},
      {"\xc3\xa4", {letters}},
      {"..", {first}},
      {"-ada", {first}},
      {"@ada", {first}},
      {"-Ada", {letters, first}},
      {std::string(65, 'a'), {"name is 65 characters long; at most 64 are allowed"}},
  };
  for (const auto& [name, faults] : cases) EXPECT_EQ(faults_of({.name = name}), faults) << name;
}

TEST(ValidateUser, ReportsEveryFaultAtOnce) {
  const User user{.name = "A",
                  .projects = {{"", Role::kViewer}, {"p", Role::kNone}, {"q", Role::kMember}}};

  EXPECT_EQ(
      faults_of(user),
      (std::vector<std::string>{
          "name may contain only a-z, 0-9, '.', '_', '-' and '@'",
          "projects has a role in a project without a name",
          "projects.p is invalid: leave the project out instead of giving it the role none"}));
}

TEST(ValidateUser, TakesTheNamesOfUnixAccounts) {
  using Names = std::vector<std::string>;
  for (const char* account : {"", "ada", "_ada", "Ada.L-2"}) {
    EXPECT_EQ(faults_of({.name = "ada", .account = account}), Names{}) << account;
  }
  const std::vector<std::pair<std::string, Names>> cases{
      {"root", {"account is root, and jobs may not run as root"}},
      {"-ada", {"account '-ada' is not the name of a Unix account"}},
      {"a:b", {"account 'a:b' is not the name of a Unix account"}},
      {"1000", {"account '1000' is not the name of a Unix account"}},
      {std::string(33, 'a'), {"account is 33 characters long; at most 32 are allowed"}},
  };
  for (const auto& [account, faults] : cases) {
    EXPECT_EQ(faults_of({.name = "ada", .account = account}), faults) << account;
  }
}

TEST(Role, IsReadBackByItsName) {
  for (const Role role : {Role::kNone, Role::kViewer, Role::kMember, Role::kAdmin}) {
    EXPECT_EQ(role_of(to_string(role)), role);
  }
  EXPECT_EQ(role_of("owner"), std::nullopt);
  EXPECT_EQ(role_of(""), std::nullopt);
}

TEST(Role, IncludesTheLowerRoles) {
  EXPECT_LT(Role::kNone, Role::kViewer);
  EXPECT_LT(Role::kViewer, Role::kMember);
  EXPECT_LT(Role::kMember, Role::kAdmin);
}

}  // namespace
namespace {

using std::chrono::seconds;

TEST(MakeToken, ConsistsOfPrefixIdAndSecret) {
  base::FakeRandom random;

  const NewToken token = make_token(random);

  EXPECT_EQ(token.text.size(), 7u + 12 + 1 + 52);
  EXPECT_EQ(token.text.substr(0, 20), "muster_" + token.id + "_");
  EXPECT_EQ(token.text.find_first_not_of("abcdefghijklmnopqrstuvwxyz234567_"), std::string::npos);
}

TEST(MakeToken, StoresOnlyTheHashOfTheSecret) {
  base::FakeRandom random;

  const NewToken token = make_token(random);

  const std::string secret = token.text.substr(20);
  std::string expected(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(secret.data()), secret.size(),
         reinterpret_cast<unsigned char*>(expected.data()));
  EXPECT_EQ(token.hash, expected);
}

TEST(MakeToken, NeverRepeatsAToken) {
  base::FakeRandom random(7);
  std::set<std::string> ids;
  std::set<std::string> hashes;
  for (int i = 0; i < 1000; ++i) {
    const NewToken token = make_token(random);
    ids.insert(token.id);
    hashes.insert(token.hash);
  }
  EXPECT_EQ(ids.size(), 1000u);
  EXPECT_EQ(hashes.size(), 1000u);
}

TEST(ParseToken, FindsThePartsOfATokenText) {
  base::FakeRandom random;
  const NewToken token = make_token(random);

  const auto parts = parse_token(token.text);

  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->id, token.id);
  EXPECT_TRUE(matches(Token{.hash = token.hash}, parts->secret));
}

TEST(ParseToken, RefusesOtherTexts) {
  const std::string id(12, 'a');
  const std::string secret(52, 'b');
  ASSERT_TRUE(parse_token("muster_" + id + "_" + secret));
  const std::vector<std::string> others{
      "",
      "muster",
      "muster_",
      "muster__",
      id,
      "muster_" + id,
      "muster_" + id + "_",
      "muster_" + id + "_" + secret + "b",
      "muster_" + id + "_" + secret.substr(1),
      "muster_a" + id + "_" + secret,
      "muster_" + id + secret + "b",
      "muster-" + id + "_" + secret,
      "Muster_" + id + "_" + secret,
      " muster_" + id + "_" + secret,
      "muster_" + id + "_" + secret + "\n",
      "muster_" + std::string(12, 'A') + "_" + secret,
      "muster_" + std::string(12, '_') + "_" + secret,
      "muster_" + id + "_" + std::string(52, 'B'),
      "muster_" + id + "_" + std::string(52, '1'),
      "muster_" + id + "_" + std::string(52, '8'),
      "muster_" + id + "_" + std::string(52, '\0'),
      "muster_" + id + "_" + std::string(51, 'b') + "=",
      std::string(1 << 20, 'a'),
  };
  for (const std::string& text : others) EXPECT_FALSE(parse_token(text)) << text.substr(0, 100);
}

TEST(Matches, AcceptsOnlyTheTokensSecret) {
  base::FakeRandom random;
  const NewToken made = make_token(random);
  const Token token{.hash = made.hash};
  const std::string secret = made.text.substr(20);

  EXPECT_TRUE(matches(token, secret));
  for (size_t i = 0; i < secret.size(); ++i) {
    std::string other = secret;
    other[i] = other[i] == 'a' ? 'b' : 'a';
    EXPECT_FALSE(matches(token, other)) << i;
  }
  EXPECT_FALSE(matches(token, ""));
}

TEST(Matches, ATokenWithoutAHashMatchesNothing) {
  EXPECT_FALSE(matches(Token{}, ""));
  EXPECT_FALSE(matches(Token{.hash = std::string(32, '\0')}, ""));
}

TEST(IsExpired, FromTheMomentOfExpiryOn) {
  const base::Time expires{seconds(100)};
  EXPECT_FALSE(is_expired({.expires = expires}, expires - seconds(1)));
  EXPECT_TRUE(is_expired({.expires = expires}, expires));
  EXPECT_TRUE(is_expired({.expires = expires}, expires + seconds(1)));
  EXPECT_FALSE(is_expired({}, expires));
}

TEST(ServerRoleText, NamesTheRoleOfTheToken) {
  EXPECT_EQ(server_role_text({.user = "ben"}), "this token of 'ben' has no server role");
  EXPECT_EQ(server_role_text({.user = "vic", .server_role = Role::kViewer}),
            "this token of 'vic' has the server role 'viewer'");
}

TEST(TokenKind, IsReadBackByItsName) {
  for (const TokenKind kind : {TokenKind::kInvitation, TokenKind::kSession, TokenKind::kApi}) {
    EXPECT_EQ(token_kind_of(to_string(kind)), kind);
  }
  EXPECT_EQ(token_kind_of("password"), std::nullopt);
}

}  // namespace
}  // namespace muster::access
