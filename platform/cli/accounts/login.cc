#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <utility>

#include "access/identity.h"
#include "api/account_wire.h"
#include "api/routes.h"
#include "api/server_url.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "cli/accounts/accounts.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/common/typed_input.h"
#include "cli/connection/connection.h"
#include "cli/connection/contexts.h"
#include "http/client.h"
#include "http/tls.h"

namespace muster::cli::accounts {

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

Error cannot_verify(const Context& context, const std::string& fingerprint, const Error& why) {
  const std::string readable = http::readable_fingerprint(fingerprint);
  return {.code = ErrorCode::kRefused,
          .what = "cannot verify " + context.server + ": " + why.what,
          .advice = "the SHA-256 fingerprint of its certificate is\n    " + readable +
                    "\n  Compare it with the output of 'muster server --fingerprint' on the "
                    "server. If both are the same, add --fingerprint " +
                    fingerprint};
}

Result<bool> ask_whether_to_trust(Context& context, const std::string& fingerprint,
                                  const Error& why, Interrupts& interrupts) {
  const std::string question = "cannot verify " + context.server + ": " + why.what +
                               "\nthe SHA-256 fingerprint of its certificate is\n  " +
                               http::readable_fingerprint(fingerprint) +
                               "\nCompare it with the output of 'muster server --fingerprint' on "
                               "the server. Are both the same? (yes/no) ";
  MUSTER_TRY(const auto answer, ask(STDIN_FILENO, question, Echo::kOn, interrupts));
  if (!answer) return false;
  if (!is_yes(*answer)) {
    return Error{.code = ErrorCode::kRefused,
                 .what = context.server + " is not trusted; no token was sent"};
  }
  context.fingerprint = fingerprint;
  return true;
}

Result<std::string> read_token_file(const std::string& file) {
  auto text = base::read_file(file, kMostTokenBytes);
  if (text) return text;
  Error error = std::move(text).error();
  error.code = ErrorCode::kInvalid;  // kNotFound would mean that an object of the server is missing
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
               .what = "cannot prompt for the token: standard input is not a terminal",
               .advice = "give --token-file FILE or --token-stdin"};
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
        .what = "context '" + named->name + "' already belongs to " + named->server,
        .advice = "choose another name with --name, or: muster context remove " + named->name};
  }
  if (named != nullptr) context.project = named->project;
  context.fingerprint = command.fingerprint;
  context.ca_file = command.ca_file;
  const bool flags_verify = !command.fingerprint.empty() || !command.ca_file.empty();
  if (flags_verify || same == nullptr) return context;
  context.fingerprint = same->fingerprint;
  context.ca_file = same->ca_file;
  return context;
}

Result<bool> settle_trust(Context& context, Interrupts& interrupts) {
  if (!context.fingerprint.empty() || !context.ca_file.empty()) return true;
  MUSTER_TRY(http::TlsEndpoint endpoint, endpoint_of(context));
  http::BlockingClient client(endpoint);
  client.set_wake(ended_by_signals(interrupts.fd()));
  const auto answer = client.send({.method = "GET", .path = std::string(api::kHealthPath)});
  if (answer) return true;
  if (base::detail_of<http::RequestLeft>(answer.error()) != nullptr) return answer.error();
  // If the server can be reached without verification, its certificate is the problem, and the user
  // can be asked about it. Otherwise the error has another cause.
  bool is_interrupted = false;
  const http::Wake wake{.fd = interrupts.fd(), .on_wake = [&] {
                          is_interrupted = true;
                          return false;
                        }};
  const auto found = http::fingerprint_at(endpoint.host, endpoint.port, wake);
  if (is_interrupted) return false;
  MUSTER_TRY(const std::string fingerprint, found);
  if (::isatty(STDIN_FILENO) != 1) return cannot_verify(context, fingerprint, answer.error());
  return ask_whether_to_trust(context, fingerprint, answer.error(), interrupts);
}

Result<std::optional<std::string>> token_to_log_in(const LoginCommand& command,
                                                   Interrupts& interrupts) {
  MUSTER_TRY(const auto raw, raw_token(command, interrupts));
  if (!raw) return std::optional<std::string>();
  std::string token = without_blanks(*raw);
  if (access::parse_token(token)) return std::optional(std::move(token));
  return Error{
      .code = ErrorCode::kInvalid,
      .what = "invalid token: a token begins with muster_ and has 72 characters",
      .advice = "copy the whole token that 'muster user invite' or 'muster token create' printed"};
}

std::optional<std::string> project_after_login(const std::string& in_use,
                                               const std::vector<std::string>& projects) {
  if (!in_use.empty()) return in_use;
  if (projects.size() == 1) return projects.front();
  return std::nullopt;
}

namespace {

/// The commands after the current context was removed.
std::string without_context_text(const std::string& server) {
  return "commands go to context '" + std::string(kLocalContext) +
         "' now, a server on this machine; log in again: muster login " + server + "\n";
}

std::string read_server_url(Reading& in) {
  if (in.arguments.names.empty()) {
    in.reader.fault("https://HOST[:PORT]", "is missing; name the server");
    return "";
  }
  const auto address = api::parse_server_url(in.arguments.names.front());
  if (address) return api::server_url(address->host, address->port);
  in.reader.fault("", address.error().what + "; " + address.error().advice);
  return "";
}

std::string read_fingerprint(Reading& in) {
  if (!in.reader.has("--fingerprint")) return "";
  const auto fingerprint = http::parse_fingerprint(in.reader.text("--fingerprint"));
  if (fingerprint) return *fingerprint;
  in.reader.fault("--fingerprint", "is invalid: " + fingerprint.error().what);
  return "";
}

Call read_login(Reading& in) {
  LoginCommand command{.server = read_server_url(in),
                       .name = in.reader.text("--name"),
                       .ca_file = in.absolute_path("--ca"),
                       .fingerprint = read_fingerprint(in),
                       .token_file = in.absolute_path("--token-file"),
                       .token_stdin = in.reader.has("--token-stdin")};
  if (const auto valid = check_context_name(command.name); in.reader.has("--name") && !valid) {
    in.reader.fault("--name", valid.error().what + ": " + valid.error().advice);
  }
  if (in.reader.has("--ca") && in.reader.has("--fingerprint")) {
    in.reader.fault("--ca", "cannot be used with --fingerprint, which trusts one certificate");
  }
  if (command.token_stdin && in.reader.has("--token-file")) {
    in.reader.fault("--token-stdin", "cannot be used with --token-file");
  }
  return command;
}

Call read_logout(Reading& in) {
  return LogoutCommand{.context = in.optional_name()};
}

Call read_whoami(Reading& in) {
  return WhoAmICommand{in.output()};
}

Call read_context_show(Reading&) {
  return ContextShowCommand{};
}

Call read_context_list(Reading& in) {
  return ContextListCommand{in.list_output()};
}

Call read_context_use(Reading& in) {
  return ContextUseCommand{in.name("context")};
}

Call read_context_remove(Reading& in) {
  return ContextRemoveCommand{in.names("context")};
}

}  // namespace

Command login_command() {
  return {
      .name = "login",
      .help = "log in to a shared server and make it the current context",
      .read = read_login,
      .positionals = {.name = "https://HOST[:PORT]", .least = 1, .most = 1},
      .flags = {{.name = "--name",
                 .value = "CONTEXT",
                 .help = "name of the new context (default: the server's host)"},
                {.name = "--fingerprint",
                 .value = "SHA256",
                 .help = "SHA-256 fingerprint of the server's certificate, from its administrator"},
                {.name = "--ca",
                 .value = "FILE",
                 .help = "trust certificates signed by these authorities (PEM file)",
                 .offer = Offer::kFiles},
                {.name = "--token-file",
                 .value = "FILE",
                 .help = "read the token from this file (default: prompt for it)",
                 .offer = Offer::kFiles},
                {.name = "--token-stdin", .help = "read the token from standard input"}},
      .example = "muster login https://lab.example.org",
      .see_also = "muster context, muster whoami"};
}

Command logout_command() {
  return {.name = "logout",
          .help = "end the session with a server and remove its context",
          .read = read_logout,
          .positionals = {.name = "CONTEXT", .least = 0, .most = 1, .offer = Offer::kContexts},
          .example = "muster logout lab"};
}

Command whoami_command() {
  return {.name = "whoami",
          .help = "show your user name and roles on the server",
          .read = read_whoami,
          .flags = output_flag(),
          .example = "muster whoami"};
}

Command context_command() {
  return {
      .name = "context",
      .help = "manage contexts (servers): list, use, remove; alone: show the current one",
      .read = read_context_show,
      .commands = {{.name = "list",
                    .alias = "ls",
                    .help = "list contexts and when their logins expire",
                    .read = read_context_list,
                    .flags = list_output_flag(),
                    .example = "muster context list"},
                   {.name = "use",
                    .help = "make a context the current one",
                    .read = read_context_use,
                    .positionals = one_of(Offer::kContexts),
                    .example = "muster context use local"},
                   {.name = "remove",
                    .alias = "rm",
                    .help = "remove contexts; 'muster logout' also ends the session on the server",
                    .read = read_context_remove,
                    .positionals = some_of(Offer::kContexts),
                    .example = "muster context remove lab"}},
      .example = "muster context use lab"};
}

namespace {

namespace fs = std::filesystem;

/// The machine of a session, for the list of tokens.
std::string description() {
  std::array<char, 256> name{};
  const bool known = ::gethostname(name.data(), name.size() - 1) == 0 && name.front() != '\0';
  return "muster login" + (known ? " on " + std::string(name.data()) : "");
}

/// Whether the server answered that the token has expired, was revoked, or its user was deleted.
/// Other refusals, such as that of a disabled user or of another certificate, leave it valid.
bool is_invalid_token(const Error& error) {
  return base::detail_of<access::NotLoggedIn>(error) != nullptr;
}

/// Ends a session on the server. A session that has already ended is not an error.
///
/// Errors: the session is still valid, and expires by itself.
Result<void> end_session(const Context& context, const Interrupts* interrupts = nullptr) {
  MUSTER_TRY(const http::TlsEndpoint endpoint, endpoint_of(context));
  api::Client client(endpoint, context.token);
  if (interrupts != nullptr) client.set_wake(ended_by_signals(interrupts->fd()));
  auto ended = client.log_out();
  if (!ended && is_invalid_token(ended.error())) return {};
  return ended;
}

std::string how_to_end_session(const Context& context) {
  return "it is valid until " + until(context.expires) +
         "; end it on the server with: muster token list --user " + context.user +
         ", muster token revoke ID";
}

/// Ends the session that a new one replaces. Both are of the same server, whose certificate may be
/// a new one: it is verified as for the new session.
void end_replaced_session(Context replaced, const Context& context, const Interrupts& interrupts) {
  replaced.fingerprint = context.fingerprint;
  replaced.ca_file = context.ca_file;
  const auto ended = end_session(replaced, &interrupts);
  if (ended) return;
  std::cerr << "muster: warning: the earlier session could not be ended on the server: "
            << ended.error().what << "\n  " << how_to_end_session(replaced) << "\n"
            << std::flush;
}

Result<void> keep(const fs::path& folder, const Context& context) {
  return change_contexts(folder, [&](Contexts& contexts) -> Result<void> {
    if (Context* const known = contexts.find(context.name)) {
      *known = context;
    } else {
      contexts.known.push_back(context);
    }
    contexts.in_use = context.name;
    return {};
  });
}

/// Exchanges `token` for a session, and stores the session.
Result<Context> open_session(const fs::path& folder, Context context, const std::string& token,
                             const Interrupts& interrupts) {
  MUSTER_TRY(const http::TlsEndpoint endpoint, endpoint_of(context));
  api::Client client(endpoint, token);
  client.set_wake(ended_by_signals(interrupts.fd()));
  // An invitation can be used once, so check first that the session can be stored.
  MUSTER_CHECK(change_contexts(folder, [](Contexts&) { return Result<void>(); }));
  api::TokenRequest request;
  request.description = description();
  MUSTER_TRY(const api::NewToken session, client.log_in(request));
  context.user = session.token.user;
  context.token = session.text;
  context.expires = session.token.expires;
  MUSTER_CHECK(keep(folder, context));
  return context;
}

/// Whether only the verification of the server's certificate changes: the command brings no token,
/// and the server, verified as `context` requires, accepts the session that the context has.
Result<bool> continues_session(const LoginCommand& command, const Context& context,
                               const Context* before, const Interrupts& interrupts) {
  const bool brings_token = !command.token_file.empty() || command.token_stdin;
  if (before == nullptr || brings_token) return false;
  const bool is_verified_alike =
      context.fingerprint == before->fingerprint && context.ca_file == before->ca_file;
  if (is_verified_alike) return false;
  MUSTER_TRY(const http::TlsEndpoint endpoint, endpoint_of(context));
  api::Client client(endpoint, before->token);
  client.set_wake(ended_by_signals(interrupts.fd()));
  const auto who = client.who_am_i();
  if (who) return true;
  if (is_invalid_token(who.error())) return false;
  return who.error();
}

Result<Context> continue_session(const fs::path& folder, Context context, const Context& before) {
  context.user = before.user;
  context.token = before.token;
  context.expires = before.expires;
  MUSTER_CHECK(keep(folder, context));
  MUSTER_CHECK(show("kept the session; the certificate of the server is verified anew\n"));
  return context;
}

/// The projects of the user of a new session; empty if the server does not answer.
std::vector<std::string> projects_of(const Context& context, const Interrupts& interrupts) {
  const auto endpoint = endpoint_of(context);
  if (!endpoint) return {};
  api::Client client(*endpoint, context.token);
  client.set_wake(ended_by_signals(interrupts.fd()));
  const auto who = client.who_am_i();
  std::vector<std::string> names;
  if (!who) return names;
  for (const auto& [project, role] : who->projects) {
    if (role > access::Role::kNone) names.push_back(project);
  }
  return names;
}

std::string login_text(const Context& context, const std::vector<std::string>& projects) {
  std::string text = "logged in to " + context.server + " as " + context.user + " until " +
                     until(context.expires) + "\ncommands go to context '" + context.name +
                     "' by default\n";
  if (!context.project.empty()) return text + "the project in use is " + context.project + "\n";
  if (projects.size() < 2) return text;
  return text + "you are a member of " + base::listed(projects) +
         "; choose the project in use: muster project use NAME\n";
}

}  // namespace

Result<int> execute(const LoginCommand& command, const Hooks&) {
  const fs::path folder = config::config_folder_here();
  MUSTER_TRY(const Contexts contexts, read_contexts(folder));
  MUSTER_TRY(Context context, context_to_log_in(command, contexts));
  Interrupts interrupts;
  MUSTER_TRY(const bool trusted, settle_trust(context, interrupts));
  if (!trusted) return kExitInterrupted;
  const Context* const before = contexts.find(context.name);
  MUSTER_TRY(const bool continues, continues_session(command, context, before, interrupts));
  if (continues) {
    MUSTER_TRY(context, continue_session(folder, context, *before));
  } else {
    MUSTER_TRY(const auto token, token_to_log_in(command, interrupts));
    if (!token) return kExitInterrupted;
    MUSTER_TRY(context, open_session(folder, context, *token, interrupts));
    if (before != nullptr) end_replaced_session(*before, context, interrupts);
  }
  const std::vector<std::string> projects = projects_of(context, interrupts);
  const std::optional<std::string> chosen = project_after_login(context.project, projects);
  if (chosen && *chosen != context.project) {
    context.project = *chosen;
    MUSTER_CHECK(keep(folder, context));
  }
  MUSTER_CHECK(show(login_text(context, projects)));
  note_context_override();
  return kExitDone;
}

Result<int> execute(const LogoutCommand& command, const Hooks& hooks) {
  const fs::path folder = config::config_folder_here();
  MUSTER_TRY(const Context chosen, chosen_context(command.context.value_or(hooks.context)));
  if (chosen.is_local() || chosen.name == kEnvironmentContext) {
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what = chosen.is_local()
                                   ? "the local server has no sessions"
                                   : "MUSTER_TOKEN is not a session of 'muster login'",
                       .advice = "name the context to log out of: muster logout CONTEXT"};
  }
  MUSTER_TRY(const Contexts contexts, read_contexts(folder));
  const auto ended = end_session(chosen);
  MUSTER_CHECK(forget_context(folder, chosen.name));
  const bool was_in_use = contexts.in_use == chosen.name;
  MUSTER_CHECK(show((ended ? "logged out of " + chosen.server : "removed " + chosen.name) + "\n" +
                    (was_in_use ? without_context_text(chosen.server) : "")));
  if (ended) return kExitDone;
  base::Error error = ended.error();
  error.what = "the session was removed here, but could not be ended on the server: " + error.what;
  error.advice = how_to_end_session(chosen);
  return error;
}

Result<int> execute(const WhoAmICommand& command, const Hooks& hooks) {
  MUSTER_TRY(const Context context, chosen_context(hooks.context));
  MUSTER_TRY(Connection connection, Connection::open(context, hooks.version));
  MUSTER_TRY(const api::WhoAmI who,
             connection.call([](api::Client& client) { return client.who_am_i(); }));
  MUSTER_CHECK(show(command.output, whoami_page(who, context), api::whoami_to_json(who)));
  return kExitDone;
}

void note_context_override() {
  const std::string variable =
      overriding_variable(config::environment_of(base::current_environment()));
  if (variable.empty()) return;
  std::cerr << "muster: note: " << variable << " is set and overrides the current context\n"
            << std::flush;
}

Result<int> execute(const ContextShowCommand&, const Hooks& hooks) {
  MUSTER_TRY(const Context context, chosen_context(hooks.context));
  MUSTER_CHECK(show(context.name + "\n"));
  return kExitDone;
}

Result<int> execute(const ContextListCommand& command, const Hooks&) {
  MUSTER_TRY(const Contexts contexts, read_contexts(config::config_folder_here()));
  std::string names;
  for (const std::string& name : contexts.names()) names += name + "\n";
  const base::Time now = base::SystemClock().now();
  MUSTER_CHECK(show(command.output,
                    command.output == Output::kNames ? names : context_table(contexts, now),
                    context_list_json(contexts)));
  return kExitDone;
}

Result<int> execute(const ContextUseCommand& command, const Hooks&) {
  MUSTER_CHECK(
      change_contexts(config::config_folder_here(), [&](Contexts& contexts) -> Result<void> {
        MUSTER_TRY(const Context chosen, context_of(contexts, command.name));
        contexts.in_use = chosen.name;
        return {};
      }));
  MUSTER_CHECK(show("commands go to context '" + command.name + "' by default\n"));
  note_context_override();
  return kExitDone;
}

Result<int> execute(const ContextRemoveCommand& command, const Hooks&) {
  const std::filesystem::path folder = config::config_folder_here();
  return for_each_name(command.names, [&](const std::string& name) -> Result<void> {
    MUSTER_TRY(const Contexts contexts, read_contexts(folder));
    MUSTER_CHECK(forget_context(folder, name));
    const bool was_in_use = contexts.in_use == name && contexts.find(name) != nullptr;
    return show("removed " + name + "\n" +
                (was_in_use ? without_context_text(contexts.find(name)->server) : ""));
  });
}

}  // namespace muster::cli::accounts
