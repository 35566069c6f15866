#include "access/account_table.h"

#include "record/field.h"

namespace muster::access {

using record::As;
using record::field;
using record::Kept;
using record::Need;
using record::nested_field;
using record::Row;
using record::Sent;
using record::Table;

namespace {

constexpr const char* kUserName = "^[a-z0-9][a-z0-9._@-]{0,63}$";
constexpr const char* kAccountHelp =
    "Unix account under which the process engine of a server that runs as root runs the user's "
    "jobs. Empty: ids of the user's own.";
constexpr const char* kPlainTexts = R"({"items": {"type": "string"}})";

}  // namespace

const Table& table_of(const User*) {
  static const Table table =
      record::table<User>(
          "User",
          {field<&User::name>("name", {.need = Need::kRequired, .pattern = kUserName}),
           field<&User::server_role>("server_role", {.need = Need::kRequired}),
           field<&User::projects>(
               "projects",
               {.help = "Roles in these projects and their subprojects.", .sent = Sent::kAlways}),
           field<&User::disabled>("disabled", {.help = "The server refuses the user's tokens.",
                                               .sent = Sent::kAlways}),
           field<&User::account>("account", {.help = kAccountHelp, .sent = Sent::kIfSet}),
           field<&User::created>("created", {.need = Need::kRequired})})
          .as_answer();
  return table;
}

const Table& user_request_table() {
  static const Table table = record::table<User>(
      "UserRequest",
      {field<&User::name>(
           "name", {.help = "1 to 64 of a-z, 0-9, `.`, `_`, `-` and `@`, a letter or digit first.",
                    .need = Need::kRequired,
                    .pattern = kUserName}),
       field<&User::server_role>(
           "server_role",
           {.help = "In every project. An admin of the server also administers the server itself.",
            .sent = Sent::kAlways}),
       field<&User::projects>("projects",
                              {.help = "Roles in these projects and their subprojects."}),
       field<&User::disabled>("disabled"), field<&User::account>("account", {.help = kAccountHelp}),
       record::ignored("created", {.help = "Ignored: the server sets it."})});
  return table;
}

const Table& table_of(const Token*) {
  static const Table table =
      record::table<Token>(
          "Token",
          {field<&Token::id>(
               "id", {.help = "Identifies the token. It is not secret.", .need = Need::kRequired}),
           field<&Token::user>("user", {.need = Need::kRequired}),
           field<&Token::kind>("kind", {.need = Need::kRequired}),
           field<&Token::description>("description", {.sent = Sent::kAlways}, As::kSentence),
           field<&Token::ceiling>(
               "ceiling",
               {.help = "The highest role that the token gives, even if its user's is higher.",
                .need = Need::kRequired}),
           field<&Token::projects>("projects",
                                   {.help = "The token is valid for these projects and their "
                                            "subprojects. Empty: for all projects of its user.",
                                    .sent = Sent::kAlways,
                                    .schema = kPlainTexts}),
           field<&Token::created>("created", {.need = Need::kRequired}),
           field<&Token::expires>("expires", {.help = "Absent: never."}),
           field<&Token::last_used>(
               "last_used", {.help = "Stored with a delay of up to a minute. Absent: never."}),
           field<&Token::last_address>("last_address", {.sent = Sent::kAlways}),
           field<&Token::hash>("hash", {.need = Need::kRequired, .kept = Kept::kStoreOnly})},
          "A token without its text, which the server does not store.")
          .as_answer();
  return table;
}

const Table& table_of(const Secret*) {
  static const Table table =
      record::table<Secret>(
          "Secret",
          {field<&Secret::project>("project", {.need = Need::kRequired}),
           field<&Secret::name>("name", {.need = Need::kRequired}),
           field<&Secret::sealed>("sealed", {.need = Need::kRequired, .kept = Kept::kStoreOnly}),
           field<&Secret::created>("created", {.need = Need::kRequired}),
           field<&Secret::changed>("changed", {.need = Need::kRequired}),
           field<&Secret::changed_by>("changed_by", {.sent = Sent::kAlways})},
          "A secret without its value, which only tasks of jobs receive.")
          .as_answer();
  return table;
}

const Table& table_of(const FieldChange*) {
  static const Table table =
      record::table<FieldChange>(
          "FieldChange",
          {field<&FieldChange::field>("field", {.need = Need::kRequired}),
           field<&FieldChange::before>(
               "before", {.help = "Empty: the field was not set.", .sent = Sent::kAlways},
               As::kSentence),
           field<&FieldChange::after>(
               "after", {.help = "Empty: the field is no longer set.", .sent = Sent::kAlways},
               As::kSentence)})
          .as_answer();
  return table;
}

const Table& table_of(const AuditRecord*) {
  static const Table table =
      record::table<AuditRecord>(
          "AuditRecord",
          {// A stored document has no number, because the store numbers its rows.
           field<&AuditRecord::number>("number", {.help = "Counts from 1 in the order of commits.",
                                                  .need = Need::kRequired,
                                                  .schema = R"({"minimum": 1})",
                                                  .kept = Kept::kSentOnly}),
           field<&AuditRecord::time>("time", {.need = Need::kRequired}),
           nested_field<&AuditRecord::actor, &Actor::user>("user", {.sent = Sent::kAlways}),
           nested_field<&AuditRecord::actor, &Actor::address>("address", {.sent = Sent::kAlways}),
           nested_field<&AuditRecord::actor, &Actor::token>("token", {.sent = Sent::kAlways}),
           nested_field<&AuditRecord::actor, &Actor::request>("request", {.sent = Sent::kAlways}),
           field<&AuditRecord::action>("action",
                                       {.help = "`job.submit`, `project.set`, `token.revoke`, ...",
                                        .need = Need::kRequired}),
           field<&AuditRecord::target>(
               "target", {.help = "The name of the changed object.", .sent = Sent::kAlways}),
           field<&AuditRecord::project>("project",
                                        {.help = "The project of the changed object. Empty: the "
                                                 "object belongs to the server.",
                                         .sent = Sent::kAlways}),
           field<&AuditRecord::changes>("changes", {.sent = Sent::kAlways})})
          .as_answer();
  return table;
}

}  // namespace muster::access
