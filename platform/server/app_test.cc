#include "server/app.h"

#include <gtest/gtest.h>

#include <string>

#include "base/fake_random.h"
#include "control/test_accounts.h"
#include "server/page.h"

namespace muster::server {
namespace {

std::string id_given(const std::string& given) {
  base::FakeRandom random;
  return request_id({.headers = {{"x-request-id", given}}}, random);
}

TEST(RequestId, IsTheClientsIfItIsValid) {
  EXPECT_EQ(id_given("a"), "a");
  EXPECT_EQ(id_given("run-7.Z_9"), "run-7.Z_9");
  EXPECT_EQ(id_given(std::string(64, 'x')), std::string(64, 'x'));
}

TEST(RequestId, IsNewIfTheClientsIsInvalid) {
  for (const std::string& given :
       {std::string(), std::string(65, 'x'), std::string("a b"), std::string("a\nb"),
        std::string("\xc3\xa4"), std::string("a\0b", 3), std::string("<script>")}) {
    EXPECT_NE(id_given(given), given);
    EXPECT_EQ(id_given(given).size(), 20U) << given;
  }
}

TEST(RequestId, IsDifferentForEachRequestWithoutOne) {
  base::FakeRandom random;
  EXPECT_NE(request_id({}, random), request_id({}, random));
}

using OwnersPage = control::AccountsTest;

TEST_F(OwnersPage, OpensForEveryNameOfAUnixAccount) {
  const std::pair<std::string, std::string> names[] = {
      {"ada", "ada"},          {"Ben", "ben"},        {"CORP\\eve", "corp-eve"},
      {"_apt", "apt"},         {"\xc3\xa4", "owner"}, {std::string(70, 'X'), std::string(64, 'x')},
      {"machine$", "machine-"}};
  for (const auto& [account, user] : names) {
    const auto opened = open_page_session(*accounts_, access::local_identity(account),
                                          std::chrono::hours(1), {.user = account});

    ASSERT_TRUE(opened) << account << ": " << opened.error().to_string();
    EXPECT_EQ(opened->token.user, user);
    EXPECT_EQ(accounts_->user(user)->server_role, access::Role::kAdmin);
  }
}

class RequestLimits : public control::AccountsTest {
 protected:
  RequestLimits()
      : authenticator_({*accounts_, clock_, "root"}, {.request_rate = 1, .request_burst = 3}) {
    add_user("ada");
    add_user("ben");
  }

  /// The answers' statuses of `count` requests; 200: the caller is identified.
  std::vector<int> statuses(int count, const std::string& token, const std::string& address) {
    http::Request request{.path = "/v1/jobs", .peer = {.address = address}};
    if (!token.empty()) request.headers["authorization"] = "Bearer " + token;
    std::vector<int> statuses;
    for (int i = 0; i < count; ++i) {
      const auto who = authenticator_.identify(request, Permission::kSignedIn);
      statuses.push_back(who ? 200 : who.error().status);
    }
    return statuses;
  }

  std::string token_of_user(const std::string& user) { return issue({.user = user}).text; }

  Authenticator authenticator_;
};

using Statuses = std::vector<int>;

TEST_F(RequestLimits, HoldForEachTokenAndForAllTokensOfAUser) {
  const std::string first = token_of_user("ada");

  EXPECT_EQ(statuses(4, first, "a"), (Statuses{200, 200, 200, 429}));
  EXPECT_EQ(statuses(4, token_of_user("ada"), "a"), (Statuses{200, 200, 200, 429}));
  EXPECT_EQ(statuses(2, token_of_user("ada"), "b"), (Statuses{429, 429}));
  EXPECT_EQ(statuses(3, token_of_user("ben"), "a"), (Statuses{200, 200, 200}));

  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(statuses(2, first, "a"), (Statuses{200, 429}));
}

TEST_F(RequestLimits, HoldForTheRequestsOfAnAddressWithoutAValidToken) {
  EXPECT_EQ(statuses(4, "", "a"), (Statuses{401, 401, 401, 429}));
  EXPECT_EQ(statuses(1, "wrong", "a"), (Statuses{429}));
  EXPECT_EQ(statuses(1, "", "b"), (Statuses{401}));
  EXPECT_EQ(statuses(1, token_of_user("ada"), "a"), (Statuses{200}));

  const http::Request login{.path = "/v1/login", .peer = {.address = "a"}};
  EXPECT_TRUE(authenticator_.identify(login, Permission::kAnybody));

  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(statuses(2, "", "a"), (Statuses{401, 429}));
}

TEST_F(RequestLimits, OfThePageAreApartFromThoseOfOtherRequestsOfTheAddress) {
  const http::Request page{.path = "/ui/", .peer = {.address = "a"}};
  for (int i = 0; i < 400; ++i) ASSERT_FALSE(authenticator_.refusal_of_page(page)) << i;

  const auto refusal = authenticator_.refusal_of_page(page);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, 429);
  EXPECT_FALSE(authenticator_.refusal_of_page({.path = "/ui/", .peer = {.address = "b"}}));
  const http::Request login{.path = "/v1/login", .peer = {.address = "a"}};
  EXPECT_TRUE(authenticator_.identify(login, Permission::kAnybody));
  EXPECT_EQ(statuses(1, "", "a"), (Statuses{401}));

  clock_.advance(std::chrono::seconds(1));
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(authenticator_.refusal_of_page(page)) << i;
  EXPECT_TRUE(authenticator_.refusal_of_page(page));
}

TEST_F(RequestLimits, HoldForBodiesWithoutAValidToken) {
  const http::Request head{.method = "POST", .path = "/v1/jobs", .peer = {.address = "a"}};
  Statuses statuses;
  for (int i = 0; i < 4; ++i) statuses.push_back(authenticator_.refusal_of_body(head)->status);

  EXPECT_EQ(statuses, (Statuses{401, 401, 401, 429}));
}

}  // namespace
}  // namespace muster::server
