#include "api/account_wire.h"

#include "access/account_table.h"
#include "api/fields.h"
#include "api/schemas.h"
#include "base/units.h"
#include "record/field.h"

namespace muster::api {

using access::AuditQuery;
using access::AuditRecord;
using access::Role;
using access::Secret;
using access::Token;
using access::User;
using base::Fault;
using base::number_of;
using record::As;
using record::field;
using record::Sent;
using record::Table;

// --- documents that only the API has

namespace {

constexpr int64_t kMostLifetime = 3'153'600'000;  // 100 years, in seconds
constexpr const char* kProjectNames =
    R"({"items": {"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"}})";
constexpr const char* kTokenText = "^muster_[a-z2-7]{12}_[a-z2-7]+$";

const Table& login_request_table() {
  static const Table table = record::table<TokenRequest>(
      "LoginRequest",
      {record::ignored("user", {.help = "Ignored."}), record::ignored("ceiling"),
       record::ignored("projects"),
       field<&TokenRequest::description>(
           "description", {.help = "The machine of the session, for `muster token list`."},
           As::kText),
       field<&TokenRequest::lifetime>(
           "lifetime", {.help = "In seconds. Absent, or longer than the server permits (30 days): "
                                "as long as the server permits.",
                        .least = 1})});
  return table;
}

}  // namespace

// Documents with one or two fields that no other file uses.

struct Member {
  std::string user;
  Role role = Role::kNone;
};
struct MemberRole {
  Role role = Role::kNone;
};
struct SecretValue {
  std::string value;
};

const Table& table_of(const Member*) {
  static const Table table =
      record::table<Member>("Member", {field<&Member::user>("user", {.need = Need::kRequired}),
                                       field<&Member::role>("role", {.need = Need::kRequired})})
          .as_answer();
  return table;
}

const Table& table_of(const MemberRole*) {
  static const Table table = record::table<MemberRole>(
      "MemberRole",
      {field<&MemberRole::role>(
          "role", {.need = Need::kRequired,
                   .schema = R"({"type": "string", "enum": ["viewer", "member", "admin"]})"})});
  return table;
}

const Table& table_of(const SecretValue*) {
  static const Table table = record::table<SecretValue>(
      "SecretValue",
      {field<&SecretValue::value>(
          "value", {.help = "1 byte to 64 KiB. Bytes that are not UTF-8 are sent in base64.",
                    .need = Need::kRequired,
                    .schema =
                        R"({"oneOf": [{"type": "string", "minLength": 1, "maxLength": 65536},
                             {"type": "object", "required": ["base64"],
                              "additionalProperties": false,
                              "properties": {"base64": {"type": "string",
                                "contentEncoding": "base64", "minLength": 4, "pattern":
    "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"}}}]})"})});
  return table;
}

const Table& table_of(const WhoAmI*) {
  static const Table table =
      record::table<WhoAmI>(
          "WhoAmI",
          {field<&WhoAmI::user>("user", {.need = Need::kRequired}),
           field<&WhoAmI::server_role>("server_role", {.sent = Sent::kAlways}),
           field<&WhoAmI::projects>("projects",
                                    {.help = "The user's role in each project and its subprojects.",
                                     .sent = Sent::kAlways}),
           field<&WhoAmI::token>("token",
                                 {.help = "The id of the caller's token. Empty: the unix socket.",
                                  .sent = Sent::kAlways}),
           field<&WhoAmI::ceiling>("ceiling", {.help = "The highest role that the token gives.",
                                               .sent = Sent::kAlways}),
           field<&WhoAmI::expires>("expires", {.help = "When the token expires. Absent: never."}),
           field<&WhoAmI::address>(
               "address",
               {.help = "The caller's address; `local`: the unix socket.", .sent = Sent::kAlways})})
          .as_answer();
  return table;
}

const Table& table_of(const UserChange*) {
  static const Table table = record::table<UserChange>(
      "UserChange",
      {field<&UserChange::server_role>("server_role"),
       field<&UserChange::projects>(
           "projects", {.help = "Changed roles. `none` removes the user from the project."}),
       field<&UserChange::disabled>("disabled"),
       field<&UserChange::account>(
           "account", {.help = "Unix account that runs the user's jobs. Empty: no account."})},
      "An absent field is not changed.");
  return table;
}

const Table& table_of(const TokenRequest*) {
  static const Table table = record::table<TokenRequest>(
      "TokenRequest",
      {field<&TokenRequest::user>("user",
                                  {.help = "The token's user. Absent or empty: the caller."}),
       field<&TokenRequest::description>("description", {.sent = Sent::kAlways}, As::kText),
       field<&TokenRequest::ceiling>(
           "ceiling", {.help = "The highest role that the token gives.", .sent = Sent::kAlways}),
       field<&TokenRequest::projects>("projects",
                                      {.help = "The token is valid for these projects and their "
                                               "subprojects. Empty: for all projects of the user.",
                                       .sent = Sent::kAlways,
                                       .schema = kProjectNames}),
       field<&TokenRequest::lifetime>("lifetime",
                                      {.help = "In seconds. Absent: the token does not expire.",
                                       .least = 1,
                                       .most = kMostLifetime})});
  return table;
}

const Table& table_of(const NewToken*) {
  static const Table table =
      record::table<NewToken>(
          "NewToken", {field<&NewToken::token>("token", {.need = Need::kRequired}),
                       field<&NewToken::text>(
                           "text", {.help = "The token itself. The server shows it only once.",
                                    .need = Need::kRequired,
                                    .pattern = kTokenText})})
          .as_answer();
  return table;
}

const Table& table_of(const PageCode*) {
  static const Table table =
      record::table<PageCode>(
          "PageCode",
          {field<&PageCode::code>("code", {.help = "Valid once, for a minute.",
                                           .need = Need::kRequired,
                                           .pattern = kTokenText}),
           field<&PageCode::url>(
               "url", {.help = "The address of the page, with the code behind `#`: browsers do not "
                               "send that part, so it is in no log.",
                       .need = Need::kRequired}),
           field<&PageCode::expires>("expires", {.need = Need::kRequired})})
          .as_answer();
  return table;
}

const Table& table_of(const PageLogin*) {
  static const Table table = record::table<PageLogin>(
      "PageLogin",
      {field<&PageLogin::code>("code", {.help = "A code of `muster ui`, an invitation, or a token.",
                                        .need = Need::kRequired,
                                        .pattern = kTokenText}),
       field<&PageLogin::check>(
           "check", {.help = "Only answer whose session the code would open: no session is opened, "
                             "no cookie is sent, and the code remains valid."})});
  return table;
}

const Table& table_of(const NewUser*) {
  static const Table table =
      record::table<NewUser>("NewUser",
                             {field<&NewUser::user>("user", {.need = Need::kRequired}),
                              field<&NewUser::invitation>("invitation", {.need = Need::kRequired})})
          .as_answer();
  return table;
}

void add_account_schemas(record::Schemas& schemas) {
  schemas.add(record::table_for<WhoAmI>());
  schemas.add_list("Users", "users", record::table_for<User>());
  schemas.add(access::user_request_table());
  schemas.add(record::table_for<UserChange>());
  schemas.add_list("Tokens", "tokens", record::table_for<Token>(), "Newest first.");
  schemas.add(record::table_for<TokenRequest>());
  schemas.add(login_request_table());
  schemas.add(record::table_for<NewUser>());
  schemas.add(record::table_for<PageCode>());
  schemas.add(record::table_for<PageLogin>());
  schemas.add_list("Members", "members", record::table_for<Member>());
  schemas.add(record::table_for<MemberRole>());
  schemas.add_list("Secrets", "secrets", record::table_for<Secret>(), "By name.");
  schemas.add(record::table_for<SecretValue>());
  schemas.add_list("AuditPage", "records", record::table_for<AuditRecord>(), "Newest first.");
}

// --- the web page

std::string page_code_to_json(const PageCode& code) {
  return record::to_json(code);
}
Result<PageCode> page_code_from_json(std::string_view text) {
  return record::from_json<PageCode>(text, "answer");
}
Result<PageLogin> page_login_from_json(std::string_view text) {
  return record::from_json<PageLogin>(text, "login");
}

// --- users

std::string whoami_to_json(const WhoAmI& who) {
  return record::to_json(who);
}
Result<WhoAmI> whoami_from_json(std::string_view text) {
  return record::from_json<WhoAmI>(text, "answer");
}

std::string user_to_json(const User& user) {
  return record::to_json(user);
}
Result<User> user_from_json(std::string_view text) {
  return record::from_json<User>(text, "user");
}
Result<User> user_request_from_json(std::string_view text) {
  User user;
  MUSTER_CHECK(
      record::read_text_into(text, "user", access::user_request_table(), &user,
                             [&](std::vector<Fault>&) { return access::validate_user(user); }));
  return user;
}
std::string users_to_json(const std::vector<User>& users) {
  return record::list_to_json("users", users);
}
Result<std::vector<User>> users_from_json(std::string_view text) {
  return record::list_from_json<User>(text, "users");
}

std::string user_change_to_json(const UserChange& change) {
  return record::to_json(change);
}
Result<UserChange> user_change_from_json(std::string_view text) {
  return record::from_json<UserChange>(text, "change of a user");
}

User changed(User user, const UserChange& change) {
  user.server_role = change.server_role.value_or(user.server_role);
  user.disabled = change.disabled.value_or(user.disabled);
  user.account = change.account.value_or(user.account);
  for (const auto& [project, role] : change.projects) {
    if (role == Role::kNone) {
      user.projects.erase(project);
    } else {
      user.projects[project] = role;
    }
  }
  return user;
}

std::string new_user_to_json(const NewUser& user) {
  return record::to_json(user);
}
Result<NewUser> new_user_from_json(std::string_view text) {
  return record::from_json<NewUser>(text, "new user");
}

std::string members_to_json(const std::map<std::string, Role>& members) {
  std::vector<Member> list;
  for (const auto& [user, role] : members) list.push_back({.user = user, .role = role});
  return record::list_to_json("members", list);
}
Result<std::map<std::string, Role>> members_from_json(std::string_view text) {
  MUSTER_TRY(const std::vector<Member> list, record::list_from_json<Member>(text, "members"));
  std::map<std::string, Role> members;
  for (const Member& member : list) members[member.user] = member.role;
  return members;
}

std::string role_to_json(Role role) {
  return record::to_json(MemberRole{role});
}
Result<Role> role_from_json(std::string_view text) {
  MUSTER_TRY(const MemberRole member, record::from_json<MemberRole>(text, "role"));
  return member.role;
}

// --- tokens

std::string tokens_to_json(const std::vector<Token>& tokens) {
  return record::list_to_json("tokens", tokens);
}
Result<std::vector<Token>> tokens_from_json(std::string_view text) {
  return record::list_from_json<Token>(text, "tokens");
}

std::string token_request_to_json(const TokenRequest& request) {
  return record::to_json(request);
}
Result<TokenRequest> token_request_from_json(
    std::string_view text, const std::function<std::vector<Fault>(const TokenRequest&)>& validate) {
  return record::from_json<TokenRequest>(
      text, "request for a token", [&](const TokenRequest& request, std::vector<Fault>&) {
        return validate ? validate(request) : std::vector<Fault>();
      });
}

Result<TokenRequest> login_request_from_json(std::string_view text) {
  TokenRequest request;
  MUSTER_CHECK(record::read_text_into(text, "request to log in", login_request_table(), &request));
  return request;
}

std::string new_token_to_json(const NewToken& token) {
  return record::to_json(token);
}
Result<NewToken> new_token_from_json(std::string_view text) {
  return record::from_json<NewToken>(text, "new token");
}

// --- secrets

std::string secret_to_json(const Secret& secret) {
  return record::to_json(secret);
}
Result<Secret> secret_from_json(std::string_view text) {
  return record::from_json<Secret>(text, "secret");
}
std::string secrets_to_json(const std::vector<Secret>& secrets) {
  return record::list_to_json("secrets", secrets);
}
Result<std::vector<Secret>> secrets_from_json(std::string_view text) {
  return record::list_from_json<Secret>(text, "secrets");
}

std::string secret_value_to_json(std::string_view value) {
  return record::to_json(SecretValue{std::string(value)});
}
Result<std::string> secret_value_from_json(std::string_view text) {
  MUSTER_TRY(SecretValue secret, record::from_json<SecretValue>(text, "secret"));
  return std::move(secret.value);
}

// --- the audit log

namespace {

constexpr int kMostRecords = 1000;

/// The fault of one parameter; empty if it was stored in `query`.
std::string take_audit_parameter(AuditQuery& query, const std::string& name,
                                 const std::string& value) {
  const auto plain = [&](std::optional<std::string>& into) {
    into = value;
    return std::string();
  };
  if (name == "user") return plain(query.user);
  if (name == "project") return plain(query.project);
  if (name == "action") return plain(query.action);
  if (name == "since") {
    query.since = parse_rfc3339(value);
    return query.since ? "" : in_quotes(value) + " is not a time such as 2026-01-31T12:34:56Z";
  }
  if (name == "before") {
    query.before = number_of<uint64_t>(value);
    return query.before.value_or(0) > 0 ? "" : in_quotes(value) + " is not the number of a record";
  }
  if (name == "limit") {
    query.limit = number_of<int>(value).value_or(0);
    const bool good = query.limit >= 1 && query.limit <= kMostRecords;
    return good ? "" : in_quotes(value) + " is not a number of records; give 1 to 1000";
  }
  return unknown_parameter(name, {"user", "project", "action", "since", "before", "limit"});
}

}  // namespace

std::string audit_to_json(const std::vector<AuditRecord>& records) {
  return record::list_to_json("records", records);
}
Result<std::vector<AuditRecord>> audit_from_json(std::string_view text) {
  return record::list_from_json<AuditRecord>(text, "records");
}

Parameters audit_query_parameters(const AuditQuery& query) {
  Parameters parameters;
  if (query.user) parameters["user"] = *query.user;
  if (query.project) parameters["project"] = *query.project;
  if (query.action) parameters["action"] = *query.action;
  if (query.since) append_rfc3339(parameters["since"], *query.since);
  if (query.before) parameters["before"] = std::to_string(*query.before);
  if (query.limit != AuditQuery().limit) parameters["limit"] = std::to_string(query.limit);
  return parameters;
}

Result<AuditQuery> audit_query_from_parameters(const Parameters& parameters) {
  AuditQuery query;
  std::vector<Fault> faults =
      read_parameters(parameters, [&](const std::string& name, const std::string& value) {
        return take_audit_parameter(query, name, value);
      });
  if (faults.empty()) return query;
  return wrong_query("the query for the audit log is invalid", std::move(faults));
}

}  // namespace muster::api
