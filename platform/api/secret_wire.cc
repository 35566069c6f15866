#include "api/account_wire.h"
#include "api/fields.h"

namespace muster::api {

using access::Secret;

namespace {

void write_secret(JsonWriter& json, const Secret& secret) {
  json.open('{');
  json.key("project").text(secret.project);
  json.key("name").text(secret.name);
  json.key("created").time(secret.created);
  json.key("changed").time(secret.changed);
  json.key("changed_by").text(secret.changed_by);
  json.close('}');
}

void read_secret(Fields& fields, Secret& secret) {
  fields.read("project", secret.project, Need::kRequired);
  fields.read("name", secret.name, Need::kRequired);
  fields.read("created", secret.created);
  fields.read("changed", secret.changed);
  fields.read("changed_by", secret.changed_by);
}

}  // namespace

std::string secret_to_json(const Secret& secret) {
  std::string text;
  JsonWriter json(text);
  write_secret(json, secret);
  return text;
}

Result<Secret> secret_from_json(std::string_view text) {
  Secret secret;
  MUSTER_CHECK(read_document(text, "secret", [&](Fields& fields) { read_secret(fields, secret); }));
  return secret;
}

std::string secrets_to_json(const std::vector<Secret>& secrets) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("secrets").open('[');
  for (const Secret& secret : secrets) write_secret(json, secret);
  json.close(']').close('}');
  return text;
}

Result<std::vector<Secret>> secrets_from_json(std::string_view text) {
  std::vector<Secret> secrets;
  MUSTER_CHECK(read_document(text, "list of secrets", [&](Fields& fields) {
    fields.each(
        "secrets", [&](Fields& inner) { read_secret(inner, secrets.emplace_back()); },
        Need::kRequired);
  }));
  return secrets;
}

std::string secret_value_to_json(std::string_view value) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("value").text(value).close('}');
  return text;
}

Result<std::string> secret_value_from_json(std::string_view text) {
  std::string value;
  MUSTER_CHECK(read_document(
      text, "secret", [&](Fields& fields) { fields.read("value", value, Need::kRequired); }));
  return value;
}

}  // namespace muster::api
