// Users, tokens, secrets and the audit log as JSON. docs/api.md shows each shape by example.
//
// Pure; thread-safe. Reading as in wire.h. The server never sends a token's hash or a secret's
// value.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/audit.h"
#include "access/identity.h"
#include "access/secret_box.h"
#include "api/query_parameters.h"
#include "base/result.h"
#include "record/table.h"

namespace muster::api {

using base::Result;

/// GET /v1/whoami
struct WhoAmI {
  std::string user;
  access::Role server_role = access::Role::kNone;
  std::map<std::string, access::Role> projects;
  std::string token;  ///< id; empty over the unix socket
  access::Role ceiling = access::Role::kAdmin;
  std::optional<base::Time> expires;
  std::string address;

  bool operator==(const WhoAmI&) const = default;
};
const record::Table& table_of(const WhoAmI*);
std::string whoami_to_json(const WhoAmI& who);
Result<WhoAmI> whoami_from_json(std::string_view text);

std::string user_to_json(const access::User& user);
Result<access::User> user_from_json(std::string_view text);
/// A request to create a user: only the name is required, and `created` is ignored.
Result<access::User> user_request_from_json(std::string_view text);
std::string users_to_json(const std::vector<access::User>& users);  ///< {"users": [...]}
Result<std::vector<access::User>> users_from_json(std::string_view text);

/// PATCH /v1/users/NAME: the changes of a user. kNone removes the role in a project.
struct UserChange {
  std::optional<access::Role> server_role;
  std::map<std::string, access::Role> projects;
  std::optional<bool> disabled;
  std::optional<std::string> account;  ///< empty: no Unix account any more

  bool operator==(const UserChange&) const = default;
};
const record::Table& table_of(const UserChange*);
std::string user_change_to_json(const UserChange& change);
Result<UserChange> user_change_from_json(std::string_view text);
access::User changed(access::User user, const UserChange& change);

std::string tokens_to_json(const std::vector<access::Token>& tokens);  ///< {"tokens": [...]}
Result<std::vector<access::Token>> tokens_from_json(std::string_view text);

/// POST /v1/tokens and POST /v1/login.
struct TokenRequest {
  std::string user;  ///< empty: the caller
  std::string description;
  access::Role ceiling = access::Role::kAdmin;
  std::vector<std::string> projects;
  std::optional<std::chrono::seconds> lifetime;  ///< nothing: no expiry; for a login: 30 days

  bool operator==(const TokenRequest&) const = default;
};
const record::Table& table_of(const TokenRequest*);
std::string token_request_to_json(const TokenRequest& request);
/// A text with faults also has those of `validate` in the fields that could be read.
Result<TokenRequest> token_request_from_json(
    std::string_view text,
    const std::function<std::vector<base::Fault>(const TokenRequest&)>& validate = {});
/// Reads the description and the lifetime, and ignores the rest.
Result<TokenRequest> login_request_from_json(std::string_view text);

/// The answer to both, and to requests for an invitation: the token and, only here, its text.
struct NewToken {
  access::Token token;
  std::string text;

  bool operator==(const NewToken&) const = default;
};
const record::Table& table_of(const NewToken*);
std::string new_token_to_json(const NewToken& token);
Result<NewToken> new_token_from_json(std::string_view text);

/// POST /v1/ui/codes: a code for the web page.
struct PageCode {
  std::string code;
  std::string url;  ///< of the page, with the code behind '#', which browsers do not send
  base::Time expires;

  bool operator==(const PageCode&) const = default;
};
const record::Table& table_of(const PageCode*);
std::string page_code_to_json(const PageCode& code);
Result<PageCode> page_code_from_json(std::string_view text);

/// POST /v1/ui/session
struct PageLogin {
  std::string code;
  bool check = false;  ///< only answers whose session the code would open

  bool operator==(const PageLogin&) const = default;
};
const record::Table& table_of(const PageLogin*);
Result<PageLogin> page_login_from_json(std::string_view text);

/// POST /v1/users: the user, and an invitation to log in with.
struct NewUser {
  access::User user;
  NewToken invitation;

  bool operator==(const NewUser&) const = default;
};
const record::Table& table_of(const NewUser*);
std::string new_user_to_json(const NewUser& user);
Result<NewUser> new_user_from_json(std::string_view text);

/// The roles in a project, by user: {"members": [{"user", "role"}]}.
std::string members_to_json(const std::map<std::string, access::Role>& members);
Result<std::map<std::string, access::Role>> members_from_json(std::string_view text);
/// {"role": "member"}
std::string role_to_json(access::Role role);
Result<access::Role> role_from_json(std::string_view text);

/// Without values.
std::string secret_to_json(const access::Secret& secret);
Result<access::Secret> secret_from_json(std::string_view text);
std::string secrets_to_json(const std::vector<access::Secret>& secrets);  ///< {"secrets": [...]}
Result<std::vector<access::Secret>> secrets_from_json(std::string_view text);
/// {"value": "..."}, or {"value": {"base64": "..."}} for bytes that are not UTF-8.
std::string secret_value_to_json(std::string_view value);
Result<std::string> secret_value_from_json(std::string_view text);

std::string audit_to_json(const std::vector<access::AuditRecord>& records);  ///< {"records": [...]}
Result<std::vector<access::AuditRecord>> audit_from_json(std::string_view text);
/// ?user=&project=&action=&since=&before=&limit=
Parameters audit_query_parameters(const access::AuditQuery& query);
Result<access::AuditQuery> audit_query_from_parameters(const Parameters& parameters);

}  // namespace muster::api
