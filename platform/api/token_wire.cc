#include "api/account_parts.h"
#include "api/account_wire.h"
#include "api/wire_parts.h"

namespace muster::api {

using access::Token;
using access::TokenKind;

namespace {

void write_token(JsonWriter& json, const Token& token) {
  json.open('{');
  json.key("id").text(token.id);
  json.key("user").text(token.user);
  json.key("kind").text(to_string(token.kind));
  json.key("description").text(token.description);
  json.key("ceiling").text(to_string(token.ceiling));
  json.key("projects").texts(token.projects);
  json.key("created").time(token.created);
  write_time(json, "expires", token.expires);
  write_time(json, "last_used", token.last_used);
  json.key("last_address").text(token.last_address);
  json.close('}');
}

void read_token(Fields& fields, Token& token) {
  fields.read("id", token.id, Need::kRequired);
  fields.read("user", token.user, Need::kRequired);
  fields.choose("kind", token.kind, {TokenKind::kInvitation, TokenKind::kSession, TokenKind::kApi},
                access::to_string, Need::kRequired);
  fields.read("description", token.description);
  read_role(fields, "ceiling", token.ceiling);
  fields.read("projects", token.projects);
  fields.read("created", token.created);
  fields.read("expires", token.expires);
  fields.read("last_used", token.last_used);
  fields.read("last_address", token.last_address);
}

}  // namespace

void write_new_token(JsonWriter& json, const NewToken& token) {
  json.open('{').key("token");
  write_token(json, token.token);
  json.key("text").text(token.text).close('}');
}

void read_new_token(Fields& fields, NewToken& token) {
  fields.object("token", [&](Fields& inner) { read_token(inner, token.token); }, Need::kRequired);
  fields.read("text", token.text, Need::kRequired);
}

std::string tokens_to_json(const std::vector<Token>& tokens) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("tokens").open('[');
  for (const Token& token : tokens) write_token(json, token);
  json.close(']').close('}');
  return text;
}

Result<std::vector<Token>> tokens_from_json(std::string_view text) {
  std::vector<Token> tokens;
  MUSTER_CHECK(read_document(text, "list of tokens", [&](Fields& fields) {
    fields.each(
        "tokens", [&](Fields& inner) { read_token(inner, tokens.emplace_back()); },
        Need::kRequired);
  }));
  return tokens;
}

std::string token_request_to_json(const TokenRequest& request) {
  std::string text;
  JsonWriter json(text);
  json.open('{');
  if (!request.user.empty()) json.key("user").text(request.user);
  json.key("description").text(request.description);
  json.key("ceiling").text(to_string(request.ceiling));
  json.key("projects").texts(request.projects);
  if (request.lifetime) json.key("lifetime_s").number(request.lifetime->count());
  json.close('}');
  return text;
}

Result<TokenRequest> token_request_from_json(std::string_view text) {
  TokenRequest request;
  MUSTER_CHECK(read_document(text, "request for a token", [&](Fields& fields) {
    fields.read("user", request.user);
    fields.read("description", request.description);
    read_role(fields, "ceiling", request.ceiling);
    fields.read("projects", request.projects);
    std::optional<int64_t> lifetime;
    fields.read("lifetime_s", lifetime);
    if (lifetime) request.lifetime = std::chrono::seconds(*lifetime);
  }));
  return request;
}

std::string new_token_to_json(const NewToken& token) {
  std::string text;
  JsonWriter json(text);
  write_new_token(json, token);
  return text;
}

Result<NewToken> new_token_from_json(std::string_view text) {
  NewToken token;
  MUSTER_CHECK(
      read_document(text, "new token", [&](Fields& fields) { read_new_token(fields, token); }));
  return token;
}

}  // namespace muster::api
