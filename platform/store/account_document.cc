#include "store/account_document.h"

#include "store/document.h"

namespace muster::store {

using access::Actor;
using access::AuditRecord;
using access::FieldChange;
using access::Secret;
using access::Token;
using access::User;

namespace {

User read_user(const CborValue& value) {
  User user{.name = value.at("name").text(),
            .server_role = value_of(value.at("server_role"), access::role_of),
            .created = time_of(value.at("created"))};
  for (const CborValue& entry : value.at("projects").list()) {
    user.projects[entry.list().at(0).text()] = value_of(entry.list().at(1), access::role_of);
  }
  read_if_there(value, "disabled", user.disabled, flag_of);
  return user;
}

Token read_token(const CborValue& value) {
  Token token{.id = value.at("id").text(),
              .user = value.at("user").text(),
              .kind = value_of(value.at("kind"), access::token_kind_of),
              .description = bytes_of(value.at("description")),
              .ceiling = value_of(value.at("ceiling"), access::role_of),
              .projects = bytes_list_of(value.at("projects")),
              .created = time_of(value.at("created")),
              .hash = bytes_of(value.at("hash"))};
  read_if_there(value, "expires", token.expires, time_of);
  read_if_there(value, "last_used", token.last_used, time_of);
  read_if_there(value, "last_address", token.last_address, bytes_of);
  return token;
}

Secret read_secret(const CborValue& value) {
  return {.project = value.at("project").text(),
          .name = value.at("name").text(),
          .sealed = bytes_of(value.at("sealed")),
          .created = time_of(value.at("created")),
          .changed = time_of(value.at("changed")),
          .changed_by = value.at("changed_by").text()};
}

void write_actor(CborWriter& out, const Actor& actor) {
  out.map(4);
  out.key("user").text(actor.user);
  out.key("address").bytes(actor.address);
  out.key("token").text(actor.token);
  out.key("request").bytes(actor.request);
}

Actor read_actor(const CborValue& value) {
  return {.user = value.at("user").text(),
          .address = bytes_of(value.at("address")),
          .token = value.at("token").text(),
          .request = bytes_of(value.at("request"))};
}

// Before and after may be a job's command or a path, which may hold any byte.
void write_change(CborWriter& out, const FieldChange& change) {
  out.list(3).bytes(change.field).bytes(change.before).bytes(change.after);
}

FieldChange read_change(const CborValue& value) {
  const std::vector<CborValue>& parts = value.list();
  return {.field = bytes_of(parts.at(0)),
          .before = bytes_of(parts.at(1)),
          .after = bytes_of(parts.at(2))};
}

AuditRecord audit_record_of(const CborValue& value) {
  return {.time = time_of(value.at("time")),
          .actor = read_actor(value.at("actor")),
          .action = value.at("action").text(),
          .target = bytes_of(value.at("target")),
          .project = value.at("project").text(),
          .changes = list_of<FieldChange>(value.at("changes"), read_change)};
}

}  // namespace

std::string to_user_document(const User& user) {
  std::string document;
  CborWriter out(document);
  out.map(5);
  out.key("name").text(user.name);
  out.key("server_role").text(access::to_string(user.server_role));
  out.key("projects").list(user.projects.size());
  for (const auto& [project, role] : user.projects) {
    out.list(2).text(project).text(access::to_string(role));
  }
  out.key("disabled").flag(user.disabled);
  out.key("created");
  write_time(out, user.created);
  return document;
}

std::string to_token_document(const Token& token) {
  std::string document;
  CborWriter out(document);
  out.map(11);
  out.key("id").text(token.id);
  out.key("user").text(token.user);
  out.key("kind").text(access::to_string(token.kind));
  out.key("description").bytes(token.description);
  out.key("ceiling").text(access::to_string(token.ceiling));
  out.key("projects");
  write_bytes_list(out, token.projects);
  out.key("created");
  write_time(out, token.created);
  out.key("expires");
  write_optional(out, token.expires, [&](base::Time time) { write_time(out, time); });
  out.key("last_used");
  write_optional(out, token.last_used, [&](base::Time time) { write_time(out, time); });
  out.key("last_address").bytes(token.last_address);
  out.key("hash").bytes(token.hash);
  return document;
}

std::string to_secret_document(const Secret& secret) {
  std::string document;
  CborWriter out(document);
  out.map(6);
  out.key("project").text(secret.project);
  out.key("name").text(secret.name);
  out.key("sealed").bytes(secret.sealed);
  out.key("created");
  write_time(out, secret.created);
  out.key("changed");
  write_time(out, secret.changed);
  out.key("changed_by").text(secret.changed_by);
  return document;
}

std::string to_audit_document(const AuditRecord& record) {
  std::string document;
  CborWriter out(document);
  out.map(6);
  out.key("time");
  write_time(out, record.time);
  out.key("actor");
  write_actor(out, record.actor);
  out.key("action").text(record.action);
  out.key("target").bytes(record.target);
  out.key("project").text(record.project);
  out.key("changes").list(record.changes.size());
  for (const FieldChange& change : record.changes) write_change(out, change);
  return document;
}

base::Result<User> from_user_document(std::string_view document) {
  return read_document(document, "user", read_user);
}

base::Result<Token> from_token_document(std::string_view document) {
  return read_document(document, "token", read_token);
}

base::Result<Secret> from_secret_document(std::string_view document) {
  return read_document(document, "secret", read_secret);
}

base::Result<AuditRecord> from_audit_document(std::string_view document) {
  return read_document(document, "record of the audit log", audit_record_of);
}

}  // namespace muster::store
