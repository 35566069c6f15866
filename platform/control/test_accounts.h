// For the tests of accounts: a server with a store that may be full.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "base/fake_random.h"
#include "base/test_faults.h"
#include "control/accounts.h"
#include "control/test_parts.h"

namespace muster::control {

inline constexpr std::string_view kNotValid = "the token is not valid";

inline access::SecretBox::Key key_of(uint8_t byte) {
  access::SecretBox::Key key{};
  key.fill(byte);
  return key;
}

/// The message of the error, or "ok".
template <class T>
std::string outcome(const Result<T>& result) {
  return result ? "ok" : result.error().what;
}

class AccountsTest : public testing::Test {
 protected:
  AccountsTest() { live_again(); }

  /// A server with the content of the store, as after a restart.
  void live_again(Accounts::Options options = {}) {
    accounts_ = std::make_unique<Accounts>(
        Accounts::Dependencies{
            .loop = loop_, .store = store_, .clock = clock_, .random = random_, .box = box_},
        options);
    auto stored = store_.load();
    ASSERT_TRUE(stored);
    accounts_->load(stored->users, stored->tokens, stored->secrets);
  }

  access::User add_user(const std::string& name) {
    const auto user = accounts_->create_user({.name = name}, by_);
    EXPECT_TRUE(user);
    return *user;
  }

  IssuedToken issue(TokenRequest request) {
    auto issued = accounts_->issue(request, by_);
    EXPECT_TRUE(issued) << outcome(issued);
    return *std::move(issued);
  }

  access::AuditRecord last_record() {
    const auto records = accounts_->audit({});
    EXPECT_TRUE(records && !records->empty());
    return records->front();
  }
  size_t records() { return accounts_->audit({})->size(); }

  access::Token stored_token(const std::string& id) {
    const auto stored = store_.load();
    const auto found = std::find_if(stored->tokens.begin(), stored->tokens.end(),
                                    [&](const access::Token& token) { return token.id == id; });
    return found == stored->tokens.end() ? access::Token() : *found;
  }

  /// Runs the loop until `happened`, which a timer of the accounts causes.
  void run_until(const std::function<bool()>& happened) {
    while (!happened()) {
      const auto wake = loop_.after(std::chrono::milliseconds(1), [this] { loop_.stop(); });
      loop_.run();
    }
  }

  /// The state in memory.
  auto everything() {
    return std::tuple(accounts_->users(), accounts_->tokens({}), accounts_->secrets("team"),
                      records());
  }

  base::EventLoop loop_;
  MortalStore store_;
  base::FakeClock clock_;
  base::FakeRandom random_;
  access::SecretBox box_{key_of(1)};
  const access::Actor by_{.user = "root", .address = "10.0.0.1", .token = "roots", .request = "r1"};
  std::unique_ptr<Accounts> accounts_;
};

}  // namespace muster::control
