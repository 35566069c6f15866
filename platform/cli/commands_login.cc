// login, logout, whoami: sessions with servers that others share.
#include <unistd.h>

#include <array>
#include <filesystem>

#include "api/account_wire.h"
#include "cli/account_view.h"
#include "cli/chosen_context.h"
#include "cli/commands.h"
#include "cli/contexts_file.h"
#include "cli/login.h"
#include "cli/report.h"

namespace muster::cli {

namespace {

namespace fs = std::filesystem;

/// Where a session is, for the listing of tokens.
std::string description() {
  std::array<char, 256> name{};
  const bool known = ::gethostname(name.data(), name.size() - 1) == 0 && name.front() != '\0';
  return "muster login" + (known ? " on " + std::string(name.data()) : "");
}

/// Ends a session as far as the server can be asked; there is nothing to be done where it cannot.
Result<void> end_session(const Context& context) {
  MUSTER_TRY(const http::TlsEndpoint endpoint, endpoint_of(context));
  api::Client client(endpoint, context.token);
  auto ended = client.log_out();
  // Expired, revoked, or its user is gone: it is ended already.
  if (!ended && ended.error().code == base::ErrorCode::kRefused) return {};
  return ended;
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

/// Exchanges `token` for a session, and keeps it.
Result<Context> open_session(const fs::path& folder, Context context, const std::string& token) {
  MUSTER_TRY(const http::TlsEndpoint endpoint, endpoint_of(context));
  api::Client client(endpoint, token);
  // An invitation is good once: whether its session can be kept is found out before it is used up.
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

std::string login_text(const Context& context) {
  return "logged in to " + context.server + " as " + context.user + " until " +
         until(context.expires) + "\ncommands go to context '" + context.name + "' from now on\n";
}

}  // namespace

Result<int> execute(const LoginCommand& command, const Hooks&) {
  const fs::path folder = config_folder_here();
  MUSTER_TRY(const Contexts contexts, read_contexts(folder));
  MUSTER_TRY(Context context, context_to_log_in(command, contexts));
  Interrupts interrupts;
  MUSTER_TRY(const bool trusted, settle_trust(context, interrupts));
  if (!trusted) return kExitInterrupted;
  MUSTER_TRY(const auto token, token_to_log_in(command, interrupts));
  if (!token) return kExitInterrupted;

  const Context* const before = contexts.find(context.name);
  MUSTER_TRY(context, open_session(folder, context, *token));
  // The session that this one takes the place of. Where it cannot be ended, it expires by itself.
  if (before != nullptr) static_cast<void>(end_session(*before));
  MUSTER_CHECK(show(login_text(context)));
  note_what_goes_before();
  return kExitDone;
}

Result<int> execute(const LogoutCommand& command, const Hooks& hooks) {
  const fs::path folder = config_folder_here();
  MUSTER_TRY(const Context chosen, chosen_context(command.context.value_or(hooks.context)));
  if (chosen.is_local() || chosen.name == kEnvironmentContext) {
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what = chosen.is_local() ? "the local server knows no sessions"
                                                 : "MUSTER_TOKEN is no session of 'muster login'",
                       .advice = "name the context to log out of: muster logout CONTEXT"};
  }
  const auto ended = end_session(chosen);
  MUSTER_CHECK(forget_context(folder, chosen.name));
  MUSTER_CHECK(show("logged out of " + chosen.server + "\n"));
  if (ended) return kExitDone;
  base::Error error = ended.error();
  error.what = "the session is forgotten here, but could not be ended there: " + error.what;
  error.advice = "it is good until " + until(chosen.expires) +
                 "; on the server: muster token list --user " + chosen.user +
                 ", muster token revoke ID";
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

}  // namespace muster::cli
