#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/text.h"
#include "cli/accounts/accounts.h"
#include "cli/common/format.h"
#include "cli/common/output.h"

namespace muster::cli::accounts {

namespace {

std::string or_dash(std::string text) {
  return text.empty() ? "-" : text;
}

/// "team-a=member, team-b=viewer"
std::string roles_words(const std::map<std::string, access::Role>& roles) {
  std::string text;
  for (const auto& [project, role] : roles) {
    text += (text.empty() ? "" : ", ") + project + "=" + std::string(to_string(role));
  }
  return text;
}

std::string role_words(access::Role role) {
  return role == access::Role::kNone ? "-" : std::string(to_string(role));
}

std::string project_roles_table(const std::map<std::string, access::Role>& roles) {
  Table table({{"NAME"}, {"ROLE"}});
  for (const auto& [project, role] : roles) table.add({project, std::string(to_string(role))});
  return "\nPROJECTS\n" + table.to_string("  ");
}

std::string expiry_words(const std::optional<base::Time>& expires, base::Time now) {
  return expires && now >= *expires ? "expired" : until(expires);
}

/// "quota.deserved.gpus: 2 -> 4"; a missing value is a dash.
std::string change_words(const std::vector<access::FieldChange>& changes) {
  std::string text;
  for (const access::FieldChange& change : changes) {
    text += text.empty() ? "" : "; ";
    text += change.field + ": " + or_dash(change.before) + " -> " + or_dash(change.after);
  }
  return text;
}

}  // namespace

std::string until(const std::optional<base::Time>& time) {
  return time ? moment_words(*time) : "never";
}

std::string context_table(const Contexts& contexts, base::Time now) {
  const auto marked = [&](const std::string& name) {
    return name + (name == contexts.in_use ? " *" : "");
  };
  Table table({{"NAME"}, {"SERVER"}, {"USER"}, {"UNTIL"}});
  table.add({marked(kLocalContext), "on this machine", "-", "-"});
  for (const Context& context : contexts.known) {
    table.add(
        {marked(context.name), context.server, context.user, expiry_words(context.expires, now)});
  }
  return table.to_string();
}

std::string context_list_json(const Contexts& contexts) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array({{{"name", kLocalContext}}});
  for (const Context& context : contexts.known) {
    Json json{{"name", context.name}, {"server", context.server}, {"user", context.user}};
    if (!context.fingerprint.empty()) json["fingerprint"] = context.fingerprint;
    if (!context.ca_file.empty()) json["ca_file"] = context.ca_file;
    if (!context.project.empty()) json["project"] = context.project;
    if (context.expires) json["expires"] = moment_words(*context.expires);
    list.push_back(std::move(json));
  }
  return base::json_text(Json{{"in_use", contexts.in_use}, {"contexts", std::move(list)}});
}

std::string whoami_page(const api::WhoAmI& who, const Context& context) {
  const bool is_bounded = who.ceiling < access::Role::kAdmin;
  std::string text = fields({
      {"USER", who.user},
      {"CONTEXT", context.name},
      {"SERVER", context.is_local() ? "on this machine" : context.server},
      {"FROM", who.address},
      {"ROLE", role_words(who.server_role)},
      {"CEILING", is_bounded ? std::string(to_string(who.ceiling)) : ""},
      {"TOKEN", who.token},
      {"UNTIL", who.token.empty() ? "" : until(who.expires)},
  });
  if (!who.projects.empty()) text += project_roles_table(who.projects);
  return text;
}

std::string user_table(const std::vector<access::User>& users) {
  Table table({{"NAME"}, {"ROLE"}, {"STATE"}, {"PROJECTS"}});
  for (const access::User& user : users) {
    table.add({user.name, role_words(user.server_role), user.disabled ? "disabled" : "active",
               or_dash(roles_words(user.projects))});
  }
  return table.to_string();
}

std::string user_page(const access::User& user) {
  std::string text = fields({
      {"NAME", user.name},
      {"ROLE", role_words(user.server_role)},
      {"STATE", user.disabled ? "disabled" : "active"},
      {"ACCOUNT", user.account},
      {"CREATED", moment_words(user.created)},
  });
  if (!user.projects.empty()) text += project_roles_table(user.projects);
  return text;
}

std::string invitation_text(const api::NewToken& invitation, const std::string& server) {
  return "invitation  " + invitation.text + "\n" +
         "  It is shown only once, and is valid for one login until " +
         until(invitation.token.expires) + ".\n" + "  " + invitation.token.user +
         " logs in with it:  muster login " + (server.empty() ? "https://HOST:PORT" : server) +
         "\n";
}

std::string member_table(const std::map<std::string, access::Role>& members) {
  Table table({{"USER"}, {"ROLE"}});
  for (const auto& [user, role] : members) table.add({user, std::string(to_string(role))});
  return table.to_string();
}

std::string token_table(const std::vector<access::Token>& tokens, base::Time now) {
  Table table({{"ID"},
               {"USER"},
               {"KIND"},
               {"CEILING"},
               {"PROJECTS"},
               {"UNTIL"},
               {"LAST USED"},
               {"FROM"},
               {"DESCRIPTION"}});
  for (const access::Token& token : tokens) {
    table.add({token.id, token.user, std::string(to_string(token.kind)),
               token.ceiling < access::Role::kAdmin ? std::string(to_string(token.ceiling)) : "-",
               or_dash(base::joined(token.projects)), expiry_words(token.expires, now),
               token.last_used ? age(*token.last_used, now) + " ago" : "never",
               or_dash(token.last_address), token.description});
  }
  return table.to_string();
}

std::string secret_table(const std::vector<access::Secret>& secrets) {
  Table table({{"NAME"}, {"CHANGED"}, {"BY"}});
  for (const access::Secret& secret : secrets) {
    table.add({secret.name, moment_words(secret.changed), secret.changed_by});
  }
  return table.to_string();
}

std::string audit_table(const std::vector<access::AuditRecord>& records) {
  Table table({{"TIME"}, {"USER"}, {"FROM"}, {"ACTION"}, {"PROJECT"}, {"TARGET"}, {"CHANGE"}});
  for (const access::AuditRecord& record : records) {
    table.add({moment_words(record.time), record.actor.user, record.actor.address, record.action,
               or_dash(record.project), record.target, change_words(record.changes)});
  }
  return table.to_string();
}

}  // namespace muster::cli::accounts
