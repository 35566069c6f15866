#include "cli/chosen_context.h"

#include "api/server_url.h"
#include "base/subprocess.h"
#include "cli/contexts_file.h"
#include "cli/paths.h"
#include "http/tls.h"

namespace muster::cli {

namespace {

using base::Error;
using base::ErrorCode;

constexpr const char* kServer = "MUSTER_SERVER";
constexpr const char* kToken = "MUSTER_TOKEN";
constexpr const char* kFingerprint = "MUSTER_FINGERPRINT";
constexpr const char* kContext = "MUSTER_CONTEXT";

std::string variable_or_empty(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

Error with_origin(Error error, const std::string& origin) {
  error.what = origin + ": " + error.what;
  return error;
}

Result<Context> context_of_environment(const Environment& environment) {
  const auto address = api::parse_server_url(variable_or_empty(environment, kServer));
  if (!address) return with_origin(address.error(), kServer);
  Context context{.name = kEnvironmentContext,
                  .server = api::server_url(address->host, address->port)};
  context.token = variable_or_empty(environment, kToken);
  if (context.token.empty()) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = std::string(kServer) + " is set, but " + kToken + " is not",
                 .advice =
                     "set it to a token from 'muster token create', or choose a context that "
                     "you are logged in to: --context NAME"};
  }
  const std::string fingerprint = variable_or_empty(environment, kFingerprint);
  if (fingerprint.empty()) return context;
  auto parsed = http::parse_fingerprint(fingerprint);
  if (!parsed) return with_origin(std::move(parsed).error(), kFingerprint);
  context.fingerprint = *std::move(parsed);
  return context;
}

}  // namespace

Result<Context> choose_context(const std::string& flag, const Environment& environment,
                               const std::function<Result<Contexts>()>& read) {
  if (flag.empty() && !variable_or_empty(environment, kServer).empty()) {
    return context_of_environment(environment);
  }
  const std::string from_variable = variable_or_empty(environment, kContext);
  const std::string& name = flag.empty() ? from_variable : flag;
  // Whoever says so gets at the local server, whatever state the file is in.
  if (name == kLocalContext) return Context{};
  MUSTER_TRY(const Contexts contexts, read());
  auto context = context_of(contexts, name.empty() ? contexts.in_use : name);
  if (context || !flag.empty()) return context;
  return with_origin(std::move(context).error(),
                     name.empty() ? "'muster context use'" : std::string(kContext));
}

Result<Context> chosen_context(const std::string& flag) {
  return choose_context(flag, environment_of(base::current_environment()),
                        [] { return read_contexts(config_folder_here()); });
}

std::string overriding_variable(const Environment& environment) {
  for (const char* const name : {kServer, kContext}) {
    if (!variable_or_empty(environment, name).empty()) return name;
  }
  return "";
}

}  // namespace muster::cli
