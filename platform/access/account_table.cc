#include "access/account_table.h"

#include "record/field.h"

namespace muster::access {

using record::As;
using record::field;
using record::Kept;
using record::Need;
using record::nested_field;
using record::Table;
using record::Told;

const Table& table_of(const User*) {
  static const Table table = record::table<User>(
      "User", {field<&User::name>("name", {.need = Need::kRequired}),
               field<&User::server_role>("server_role", {.need = Need::kRequired}),
               field<&User::projects>("projects", {.told = Told::kAlways}),
               field<&User::disabled>("disabled", {.told = Told::kAlways}),
               field<&User::created>("created", {.need = Need::kRequired})});
  return table;
}

const Table& table_of(const Token*) {
  static const Table table = record::table<Token>(
      "Token", {field<&Token::id>("id", {.need = Need::kRequired}),
                field<&Token::user>("user", {.need = Need::kRequired}),
                field<&Token::kind>("kind", {.need = Need::kRequired}),
                field<&Token::description>("description", {.told = Told::kAlways}),
                field<&Token::ceiling>("ceiling", {.need = Need::kRequired}),
                field<&Token::projects>("projects", {.told = Told::kAlways}),
                field<&Token::created>("created", {.need = Need::kRequired}),
                field<&Token::expires>("expires"), field<&Token::last_used>("last_used"),
                field<&Token::last_address>("last_address", {.told = Told::kAlways}),
                field<&Token::hash>("hash", {.need = Need::kRequired, .kept = Kept::kStoreOnly})});
  return table;
}

const Table& table_of(const Secret*) {
  static const Table table = record::table<Secret>(
      "Secret",
      {field<&Secret::project>("project", {.need = Need::kRequired}),
       field<&Secret::name>("name", {.need = Need::kRequired}),
       field<&Secret::sealed>("sealed", {.need = Need::kRequired, .kept = Kept::kStoreOnly}),
       field<&Secret::created>("created", {.need = Need::kRequired}),
       field<&Secret::changed>("changed", {.need = Need::kRequired}),
       field<&Secret::changed_by>("changed_by", {.told = Told::kAlways})});
  return table;
}

const Table& table_of(const FieldChange*) {
  static const Table table =
      record::table<FieldChange>(
          "FieldChange",
          {field<&FieldChange::field>("field", {.need = Need::kRequired}),
           field<&FieldChange::before>("before", {.told = Told::kAlways}, As::kSentence),
           field<&FieldChange::after>("after", {.told = Told::kAlways}, As::kSentence)},
          "Empty: it was not there before, or is gone.")
          .as_answer();
  return table;
}

const Table& table_of(const AuditRecord*) {
  static const Table table =
      record::table<AuditRecord>(
          "AuditRecord",
          {// The store numbers its rows, so a document need not.
           field<&AuditRecord::number>("number", {.help = "Counts from 1 in the order of commits.",
                                                  .need = Need::kRequired,
                                                  .schema = R"({"minimum": 1})",
                                                  .kept = Kept::kToldOnly}),
           field<&AuditRecord::time>("time", {.need = Need::kRequired}),
           nested_field<&AuditRecord::actor, &Actor::user>("user", {.told = Told::kAlways}),
           nested_field<&AuditRecord::actor, &Actor::address>("address", {.told = Told::kAlways}),
           nested_field<&AuditRecord::actor, &Actor::token>("token", {.told = Told::kAlways}),
           nested_field<&AuditRecord::actor, &Actor::request>("request", {.told = Told::kAlways}),
           field<&AuditRecord::action>("action",
                                       {.help = "`job.submit`, `project.set`, `token.revoke`, ...",
                                        .need = Need::kRequired}),
           field<&AuditRecord::target>(
               "target", {.help = "The name of what was changed.", .told = Told::kAlways}),
           field<&AuditRecord::project>(
               "project",
               {.help = "The one it belongs to; empty: the server.", .told = Told::kAlways}),
           field<&AuditRecord::changes>("changes", {.told = Told::kAlways})})
          .as_answer();
  return table;
}

}  // namespace muster::access
