#include "access/user.h"

#include <gtest/gtest.h>

#include "base/test_faults.h"

namespace muster::access {
namespace {

std::vector<std::string> faults_of(const User& user) {
  return base::texts_of(validate_user(user));
}

TEST(ValidateUser, TakesNamesAsPeopleAndProgramsHaveThem) {
  for (const char* name : {"a", "ada", "ada.lovelace@example.org", "ci-bot_2", "7of9"}) {
    EXPECT_EQ(faults_of({.name = name}), std::vector<std::string>{}) << name;
  }
  EXPECT_EQ(faults_of({.name = std::string(64, 'a')}), std::vector<std::string>{});
}

TEST(ValidateUser, RefusesNamesThatWouldBeMisread) {
  using Names = std::vector<std::string>;
  const std::string letters = "name may hold only a-z, 0-9, '.', '_', '-' and '@'";
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

TEST(ValidateUser, TellsEveryFaultAtOnce) {
  const User user{.name = "A",
                  .projects = {{"", Role::kViewer}, {"p", Role::kNone}, {"q", Role::kMember}}};

  EXPECT_EQ(faults_of(user),
            (std::vector<std::string>{"name may hold only a-z, 0-9, '.', '_', '-' and '@'",
                                      "projects has a role in a project without a name",
                                      "projects.p no role is told by leaving the project out"}));
}

TEST(Role, IsReadBackByItsName) {
  for (const Role role : {Role::kNone, Role::kViewer, Role::kMember, Role::kAdmin}) {
    EXPECT_EQ(role_of(to_string(role)), role);
  }
  EXPECT_EQ(role_of("owner"), std::nullopt);
  EXPECT_EQ(role_of(""), std::nullopt);
}

TEST(Role, MayDoAllThatTheLesserOnesMay) {
  EXPECT_LT(Role::kNone, Role::kViewer);
  EXPECT_LT(Role::kViewer, Role::kMember);
  EXPECT_LT(Role::kMember, Role::kAdmin);
}

}  // namespace
}  // namespace muster::access
