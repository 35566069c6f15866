// The users, tokens, members, secrets and audit log of a fake server: kept as they are told. Over
// TLS a request must show one of the tokens.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "access/audit.h"
#include "access/identity.h"
#include "api/account_wire.h"
#include "base/fake_random.h"
#include "http/message.h"

namespace muster::cli {

class FakeAccounts {
 public:
  /// One admin, `root`, with a token that was made for it.
  FakeAccounts();

  /// The token that a test logs in with first.
  const std::string& first_token() const { return tokens_.front().text; }

  /// 401 over TLS, for what shows no token that is known.
  std::optional<http::Response> refuse(const http::Request& request) const;
  /// Nothing where the path is not one of accounts.
  std::optional<http::Response> answer(const http::Request& request);

 private:
  const api::NewToken* shown_by(const http::Request& request) const;
  api::NewToken& issue(const std::string& user, access::TokenKind kind,
                       const api::TokenRequest& request);
  http::Response log_in(const http::Request& request);
  http::Response log_out(const http::Request& request);
  http::Response who_am_i(const http::Request& request) const;
  http::Response answer_user(const http::Request& request, const std::string& name,
                             const std::string& action);
  http::Response create_user(const http::Request& request);
  http::Response answer_token(const http::Request& request, const std::string& id);
  http::Response answer_member(const http::Request& request, const std::string& project,
                               const std::string& user);
  http::Response answer_secret(const http::Request& request, const std::string& project,
                               const std::string& name);
  http::Response audit(const http::Request& request) const;
  void note(const http::Request& request, const std::string& action, const std::string& target);

  base::FakeRandom random_;
  std::map<std::string, access::User> users_;
  std::vector<api::NewToken> tokens_;
  std::map<std::string, std::map<std::string, std::string>> secrets_;  ///< project, name, value
  std::vector<access::AuditRecord> records_;                           ///< oldest first
};

}  // namespace muster::cli
