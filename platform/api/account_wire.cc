#include "api/account_wire.h"

#include "api/account_parts.h"
#include "api/utf8.h"
#include "api/wire_parts.h"

namespace muster::api {

using access::Role;
using access::User;

void read_role(Fields& fields, std::string_view name, Role& into, Need need) {
  fields.choose(name, into, {Role::kNone, Role::kViewer, Role::kMember, Role::kAdmin},
                access::to_string, need);
}

void write_roles(JsonWriter& json, std::string_view name,
                 const std::map<std::string, Role>& roles) {
  json.key(name).open('{');
  for (const auto& [project, role] : roles) json.key(project).text(to_string(role));
  json.close('}');
}

void read_roles(Fields& fields, std::string_view name, std::map<std::string, Role>& into) {
  std::map<std::string, std::string> words;
  fields.read(name, words);
  for (const auto& [project, word] : words) {
    if (const auto role = access::role_of(word)) {
      into[project] = *role;
    } else {
      fields.fault(std::string(name) + "." + shortened(project),
                   "'" + shortened(word) + "' is none of none, viewer, member, admin");
    }
  }
}

namespace {

void write_user(JsonWriter& json, const User& user) {
  json.open('{');
  json.key("name").text(user.name);
  json.key("server_role").text(to_string(user.server_role));
  write_roles(json, "projects", user.projects);
  json.key("disabled").flag(user.disabled);
  json.key("created").time(user.created);
  json.close('}');
}

void read_user(Fields& fields, User& user) {
  fields.read("name", user.name, Need::kRequired);
  read_role(fields, "server_role", user.server_role);
  read_roles(fields, "projects", user.projects);
  fields.read("disabled", user.disabled);
  fields.read("created", user.created);
}

}  // namespace

std::string whoami_to_json(const WhoAmI& who) {
  std::string text;
  JsonWriter json(text);
  json.open('{');
  json.key("user").text(who.user);
  json.key("server_role").text(to_string(who.server_role));
  write_roles(json, "projects", who.projects);
  json.key("token").text(who.token);
  json.key("ceiling").text(to_string(who.ceiling));
  write_time(json, "expires", who.expires);
  json.key("address").text(who.address);
  json.close('}');
  return text;
}

Result<WhoAmI> whoami_from_json(std::string_view text) {
  WhoAmI who;
  MUSTER_CHECK(read_document(text, "answer", [&](Fields& fields) {
    fields.read("user", who.user, Need::kRequired);
    read_role(fields, "server_role", who.server_role);
    read_roles(fields, "projects", who.projects);
    fields.read("token", who.token);
    read_role(fields, "ceiling", who.ceiling);
    fields.read("expires", who.expires);
    fields.read("address", who.address);
  }));
  return who;
}

std::string user_to_json(const User& user) {
  std::string text;
  JsonWriter json(text);
  write_user(json, user);
  return text;
}

Result<User> user_from_json(std::string_view text) {
  User user;
  MUSTER_CHECK(read_document(text, "user", [&](Fields& fields) { read_user(fields, user); }));
  return user;
}

std::string users_to_json(const std::vector<User>& users) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("users").open('[');
  for (const User& user : users) write_user(json, user);
  json.close(']').close('}');
  return text;
}

Result<std::vector<User>> users_from_json(std::string_view text) {
  std::vector<User> users;
  MUSTER_CHECK(read_document(text, "list of users", [&](Fields& fields) {
    fields.each(
        "users", [&](Fields& inner) { read_user(inner, users.emplace_back()); }, Need::kRequired);
  }));
  return users;
}

std::string user_change_to_json(const UserChange& change) {
  std::string text;
  JsonWriter json(text);
  json.open('{');
  if (change.server_role) json.key("server_role").text(to_string(*change.server_role));
  if (!change.projects.empty()) write_roles(json, "projects", change.projects);
  if (change.disabled) json.key("disabled").flag(*change.disabled);
  json.close('}');
  return text;
}

Result<UserChange> user_change_from_json(std::string_view text) {
  UserChange change;
  MUSTER_CHECK(read_document(text, "change of a user", [&](Fields& fields) {
    Role role = Role::kNone;
    if (fields.has("server_role")) {
      read_role(fields, "server_role", role);
      change.server_role = role;
    }
    read_roles(fields, "projects", change.projects);
    fields.read("disabled", change.disabled);
  }));
  return change;
}

User changed(User user, const UserChange& change) {
  user.server_role = change.server_role.value_or(user.server_role);
  user.disabled = change.disabled.value_or(user.disabled);
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
  std::string text;
  JsonWriter json(text);
  json.open('{').key("user");
  write_user(json, user.user);
  json.key("invitation");
  write_new_token(json, user.invitation);
  json.close('}');
  return text;
}

Result<NewUser> new_user_from_json(std::string_view text) {
  NewUser user;
  MUSTER_CHECK(read_document(text, "new user", [&](Fields& fields) {
    fields.object("user", [&](Fields& inner) { read_user(inner, user.user); }, Need::kRequired);
    fields.object(
        "invitation", [&](Fields& inner) { read_new_token(inner, user.invitation); },
        Need::kRequired);
  }));
  return user;
}

std::string members_to_json(const std::map<std::string, Role>& members) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("members").open('[');
  for (const auto& [user, role] : members) {
    json.open('{').key("user").text(user).key("role").text(to_string(role)).close('}');
  }
  json.close(']').close('}');
  return text;
}

Result<std::map<std::string, Role>> members_from_json(std::string_view text) {
  std::map<std::string, Role> members;
  MUSTER_CHECK(read_document(text, "list of members", [&](Fields& fields) {
    const auto read = [&](Fields& inner) {
      std::string user;
      Role role = Role::kNone;
      inner.read("user", user, Need::kRequired);
      read_role(inner, "role", role, Need::kRequired);
      members[user] = role;
    };
    fields.each("members", read, Need::kRequired);
  }));
  return members;
}

std::string role_to_json(Role role) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("role").text(to_string(role)).close('}');
  return text;
}

Result<Role> role_from_json(std::string_view text) {
  Role role = Role::kNone;
  MUSTER_CHECK(read_document(
      text, "role", [&](Fields& fields) { read_role(fields, "role", role, Need::kRequired); }));
  return role;
}

}  // namespace muster::api
