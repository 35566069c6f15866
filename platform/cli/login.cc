#include "cli/login.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "access/token.h"
#include "api/routes.h"
#include "api/server_url.h"
#include "base/files.h"
#include "cli/connection.h"
#include "cli/typed_input.h"
#include "http/client.h"

namespace muster::cli {

namespace {

using base::Error;
using base::ErrorCode;

constexpr size_t kMostTokenBytes = 4096;

const Context* find_server(const Contexts& contexts, const std::string& server) {
  const auto found = std::find_if(contexts.known.begin(), contexts.known.end(),
                                  [&](const Context& each) { return each.server == server; });
  return found == contexts.known.end() ? nullptr : &*found;
}

bool is_yes(const std::string& answer) {
  return answer == "yes" || answer == "y" || answer == "Yes" || answer == "Y";
}

Error not_to_be_known(const Context& context, const std::string& fingerprint, const Error& why) {
  const std::string readable = http::readable_fingerprint(fingerprint);
  return {.code = ErrorCode::kRefused,
          .what = "whether " + context.server + " is who it says cannot be known: " + why.what,
          .advice = "the SHA-256 fingerprint of its certificate is\n    " + readable +
                    "\n  and 'muster server --fingerprint' shows it on the server: if they are the "
                    "same, add --fingerprint " +
                    fingerprint};
}

Result<bool> ask_whether_to_trust(Context& context, const std::string& fingerprint,
                                  const Error& why, Interrupts& interrupts) {
  const std::string question =
      "whether " + context.server + " is who it says cannot be known: " + why.what +
      "\nthe SHA-256 fingerprint of its certificate is\n  " +
      http::readable_fingerprint(fingerprint) +
      "\n'muster server --fingerprint' shows it on the server. Are they the same? (yes/no) ";
  MUSTER_TRY(const auto answer, ask(STDIN_FILENO, question, Echo::kOn, interrupts));
  if (!answer) return false;
  if (!is_yes(*answer)) {
    return Error{.code = ErrorCode::kRefused,
                 .what = context.server + " was not trusted, and no token was sent"};
  }
  context.fingerprint = fingerprint;
  return true;
}

Result<std::string> read_token_file(const std::string& file) {
  auto text = base::read_file(file, kMostTokenBytes);
  if (text) return text;
  Error error = std::move(text).error();
  error.code = ErrorCode::kInvalid;  // kNotFound would say that something of the server is missing
  return error;
}

Result<std::optional<std::string>> raw_token(const LoginCommand& command, Interrupts& interrupts) {
  if (!command.token_file.empty()) {
    MUSTER_TRY(std::string text, read_token_file(command.token_file));
    return std::optional(std::move(text));
  }
  if (command.token_stdin) {
    MUSTER_TRY(std::string text, read_to_end(STDIN_FILENO, kMostTokenBytes));
    return std::optional(std::move(text));
  }
  if (::isatty(STDIN_FILENO) == 1) {
    return ask(STDIN_FILENO,
               "token (your invitation, or one from 'muster token create'): ", Echo::kOff,
               interrupts);
  }
  return Error{.code = ErrorCode::kInvalid,
               .what = "there is no terminal to ask for the token on",
               .advice = "say where it comes from: --token-file FILE or --token-stdin"};
}

std::string without_blanks(const std::string& text) {
  constexpr const char* kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

}  // namespace

Result<Context> context_to_log_in(const LoginCommand& command, const Contexts& contexts) {
  MUSTER_TRY(const api::ServerAddress address, api::parse_server_url(command.server));
  const Context* const same = find_server(contexts, command.server);
  Context context{.name = command.name, .server = command.server};
  if (context.name.empty()) {
    context.name = same != nullptr ? same->name : context_name_for(address.host, address.port);
  }
  const Context* const named = contexts.find(context.name);
  if (named != nullptr && named->server != command.server) {
    return Error{
        .code = ErrorCode::kConflict,
        .what = "context '" + named->name + "' is that of " + named->server,
        .advice = "choose another name with --name, or: muster context remove " + named->name};
  }
  if (named != nullptr) context.project = named->project;
  context.fingerprint = command.fingerprint;
  context.ca_file = command.ca_file;
  const bool flags_say_how = !command.fingerprint.empty() || !command.ca_file.empty();
  if (flags_say_how || same == nullptr) return context;
  context.fingerprint = same->fingerprint;
  context.ca_file = same->ca_file;
  return context;
}

Result<bool> settle_trust(Context& context, Interrupts& interrupts) {
  if (!context.fingerprint.empty() || !context.ca_file.empty()) return true;
  MUSTER_TRY(http::TlsEndpoint endpoint, endpoint_of(context));
  const auto answer =
      http::Client(endpoint).send({.method = "GET", .path = std::string(api::kHealthPath)});
  if (answer) return true;
  // Whoever can be reached without being known is one to ask about; else the reason is another.
  MUSTER_TRY(const std::string fingerprint, http::fingerprint_at(endpoint.host, endpoint.port));
  if (::isatty(STDIN_FILENO) != 1) return not_to_be_known(context, fingerprint, answer.error());
  return ask_whether_to_trust(context, fingerprint, answer.error(), interrupts);
}

Result<std::optional<std::string>> token_to_log_in(const LoginCommand& command,
                                                   Interrupts& interrupts) {
  MUSTER_TRY(const auto raw, raw_token(command, interrupts));
  if (!raw) return std::optional<std::string>();
  std::string token = without_blanks(*raw);
  if (access::parse_token(token)) return std::optional(std::move(token));
  return Error{.code = ErrorCode::kInvalid,
               .what = "what was given is no token: one begins with muster_ and has 72 characters",
               .advice = "copy all of it, from 'invitation' or 'token create'"};
}

}  // namespace muster::cli
