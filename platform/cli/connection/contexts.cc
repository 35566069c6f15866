#include "cli/connection/contexts.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "api/fields.h"
#include "api/server_url.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "config/paths.h"
#include "http/tls.h"
#include "record/input.h"

namespace muster::cli {

namespace {

using base::Error;
using base::ErrorCode;
using nlohmann::ordered_json;

constexpr int kVersion = 1;

bool may_stand_in_name(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '.' || letter == '_' || letter == '-';
}

/// The text fields of a context and their names in the file.
struct TextField {
  const char* key;
  std::string Context::* text;
};
constexpr TextField kTexts[] = {{"name", &Context::name},
                                {"server", &Context::server},
                                {"fingerprint", &Context::fingerprint},
                                {"ca_file", &Context::ca_file},
                                {"user", &Context::user},
                                {"token", &Context::token},
                                {"project", &Context::project}};

ordered_json context_json(const Context& context) {
  ordered_json json = ordered_json::object();
  for (const auto& [key, text] : kTexts) {
    if (!(context.*text).empty()) json[key] = context.*text;
  }
  if (context.expires) json["expires"] = base::to_rfc3339(*context.expires, 9);
  return json;
}

Error damaged(std::string where) {
  return {.code = ErrorCode::kInvalid, .what = std::move(where)};
}

Result<std::string> text_of_key(const ordered_json& object, const std::string& key,
                                const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end()) return std::string();
  if (!found->is_string()) return damaged(where + "." + key + " is not a text");
  return found->get<std::string>();
}

Result<Context> context_from(const ordered_json& json, const std::string& where) {
  if (!json.is_object()) return damaged(where + " is not an object");
  Context context;
  for (const auto& [key, text] : kTexts) {
    MUSTER_TRY(context.*text, text_of_key(json, key, where));
  }
  if (!check_context_name(context.name)) return damaged(where + ".name is not a valid name");
  if (!api::parse_server_url(context.server)) return damaged(where + ".server is not an address");
  MUSTER_TRY(const std::string expires, text_of_key(json, "expires", where));
  if (expires.empty()) return context;
  context.expires = api::parse_rfc3339(expires);
  if (!context.expires) return damaged(where + ".expires is not a time");
  return context;
}

Result<void> read_known(const ordered_json& list, Contexts& contexts) {
  if (!list.is_array()) return damaged("'contexts' is not a list");
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string where = "contexts[" + std::to_string(i) + "]";
    MUSTER_TRY(Context context, context_from(list[i], where));
    if (contexts.find(context.name) != nullptr) return damaged(where + ".name is used twice");
    contexts.known.push_back(std::move(context));
  }
  return {};
}

}  // namespace

const Context* Contexts::find(std::string_view name) const {
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const Context& context) { return context.name == name; });
  return found == known.end() ? nullptr : &*found;
}

Context* Contexts::find(std::string_view name) {
  return const_cast<Context*>(std::as_const(*this).find(name));
}

std::vector<std::string> Contexts::names() const {
  std::vector<std::string> result{kLocalContext};
  for (const Context& context : known) result.push_back(context.name);
  return result;
}

Result<Context> context_of(const Contexts& contexts, const std::string& name) {
  if (name == kLocalContext) return Context{};
  if (const Context* const found = contexts.find(name)) return *found;
  return Error{
      .code = ErrorCode::kNotFound,
      .what = "there is no context '" + name + "'" + record::did_you_mean(name, contexts.names()),
      .advice = "list the contexts: muster context list; add one: muster login https://HOST"};
}

Result<void> check_context_name(const std::string& name) {
  constexpr size_t kLongest = 64;
  const bool has_meaning = name == kLocalContext || name == kEnvironmentContext;
  const bool well_formed = !name.empty() && name.size() <= kLongest && name.front() != '-' &&
                           std::all_of(name.begin(), name.end(), may_stand_in_name);
  if (well_formed && !has_meaning) return {};
  return Error{.code = ErrorCode::kInvalid,
               .what = "'" + name + "' cannot be the name of a context",
               .advice = has_meaning ? "the name is reserved; choose another"
                                     : "a name consists of letters, digits, '.', '_' and '-'"};
}

std::string context_name_for(const std::string& host, int port) {
  std::string name = host;
  if (port != api::kDefaultPort) name += "-" + std::to_string(port);
  std::replace_if(name.begin(), name.end(), [](char c) { return !may_stand_in_name(c); }, '-');
  // An IPv6 address may begin with a colon, and a host may have a reserved name.
  return check_context_name(name) ? name : "at-" + name;
}

std::string contexts_to_json(const Contexts& contexts) {
  ordered_json json{
      {"version", kVersion}, {"in_use", contexts.in_use}, {"contexts", ordered_json::array()}};
  for (const Context& context : contexts.known) json["contexts"].push_back(context_json(context));
  return base::indented_json_text(json) + "\n";
}

Result<Contexts> contexts_from_json(std::string_view text) {
  const ordered_json json = base::parse_ordered_json(text);
  if (json.is_discarded() || !json.is_object()) return damaged("it is not a JSON object");
  if (!json.contains("version") || json["version"] != kVersion) {
    return damaged("its 'version' is not " + std::to_string(kVersion));
  }
  Contexts contexts;
  MUSTER_TRY(contexts.in_use, text_of_key(json, "in_use", "it"));
  if (contexts.in_use.empty()) contexts.in_use = kLocalContext;
  if (json.contains("contexts")) MUSTER_CHECK(read_known(json["contexts"], contexts));
  return contexts;
}

namespace fs = std::filesystem;

namespace {

constexpr const char* kContextsFile = "contexts.json";
constexpr const char* kLock = "contexts.lock";
constexpr size_t kMostContextsBytes = 4 << 20;

enum class There { kNo, kYes };

/// root may read the file of the user for whom it acts, but by writing the file it would become its
/// owner.
Result<There> look_at(const fs::path& path, bool to_change) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    const bool is_none = errno == ENOENT || errno == ENOTDIR || (errno == EACCES && !to_change);
    if (is_none) return There::kNo;
    return base::system_error("cannot look at '" + path.string() + "'", errno);
  }
  const bool is_own = status.st_uid == ::geteuid();
  if (!is_own && (to_change || ::geteuid() != 0)) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "'" + path.string() + "' belongs to another user",
                 .advice = "set XDG_CONFIG_HOME to another folder"};
  }
  constexpr mode_t kOthers = 077;
  if ((status.st_mode & kOthers) != 0) {
    return Error{
        .code = ErrorCode::kRefused,
        .what = "'" + path.string() + "' contains your tokens, but other users can read it",
        .advice = "chmod 600 " + base::shell_quoted(path.string()) +
                  "; if others may have read it, log in again: muster logout, muster login"};
  }
  return There::kYes;
}

Result<Contexts> read_contexts_file(const fs::path& path, bool to_change) {
  MUSTER_TRY(const There there, look_at(path, to_change));
  if (there == There::kNo) return Contexts{};
  auto text = base::read_file(path, kMostContextsBytes);
  auto contexts = text ? contexts_from_json(*text) : Result<Contexts>(text.error());
  if (contexts) return contexts;
  return Error{.code = ErrorCode::kInvalid,
               .what = "'" + path.string() + "' is damaged: " + contexts.error().what,
               .advice = "repair it, or move it away and log in again: muster login https://HOST"};
}

}  // namespace

Result<Contexts> read_contexts(const fs::path& folder) {
  if (folder.empty()) return Contexts{};
  return read_contexts_file(folder / kContextsFile, false);
}

Result<void> change_contexts(const fs::path& folder,
                             const std::function<Result<void>(Contexts&)>& change) {
  if (folder.empty()) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "cannot store contexts: there is no home folder",
                 .advice = "set XDG_CONFIG_HOME, or MUSTER_SERVER and MUSTER_TOKEN instead"};
  }
  MUSTER_CHECK(base::make_private_folder(folder));
  MUSTER_TRY(const base::UniqueFd lock, base::await_lock(folder / kLock));
  MUSTER_TRY(Contexts contexts, read_contexts_file(folder / kContextsFile, true));
  MUSTER_CHECK(change(contexts));
  return base::write_file(folder / kContextsFile, contexts_to_json(contexts));
}

Result<void> forget_context(const fs::path& folder, const std::string& name) {
  return change_contexts(folder, [&](Contexts& contexts) -> Result<void> {
    MUSTER_TRY(const Context context, context_of(contexts, name));
    if (context.is_local()) {
      return Error{.code = ErrorCode::kInvalid, .what = "the local context cannot be removed"};
    }
    std::erase_if(contexts.known, [&](const Context& each) { return each.name == name; });
    if (contexts.in_use == name) contexts.in_use = kLocalContext;
    return {};
  });
}

namespace {

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
  // The local server is always reachable by its name, whatever the state of the file.
  if (name == kLocalContext) return Context{};
  MUSTER_TRY(const Contexts contexts, read());
  auto context = context_of(contexts, name.empty() ? contexts.in_use : name);
  if (context || !flag.empty()) return context;
  return with_origin(std::move(context).error(),
                     name.empty() ? "'muster context use'" : std::string(kContext));
}

Result<Context> chosen_context(const std::string& flag) {
  return choose_context(flag, config::environment_of(base::current_environment()),
                        [] { return read_contexts(config::config_folder_here()); });
}

std::string overriding_variable(const Environment& environment) {
  for (const char* const name : {kServer, kContext}) {
    if (!variable_or_empty(environment, name).empty()) return name;
  }
  return "";
}

namespace {

/// A trailing '*' matches any ending.
constexpr std::array<std::string_view, 12> kInherited{"PATH",
                                                      "HOME",
                                                      "USER",
                                                      "LANG",
                                                      "LC_*",
                                                      "LD_LIBRARY_PATH",
                                                      "PYTHONPATH",
                                                      "VIRTUAL_ENV",
                                                      "CONDA_*",
                                                      "OMP_*",
                                                      "CUDA_VISIBLE_DEVICES",
                                                      "NCCL_*"};

bool matches(std::string_view name, std::string_view pattern) {
  if (!pattern.ends_with('*')) return name == pattern;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

base::Result<Caller> this_caller(const std::string& context) {
  std::error_code error;
  Caller caller{.folder = std::filesystem::current_path(error).string(),
                .environment = config::environment_of(base::current_environment()),
                .is_root = ::geteuid() == 0,
                .now = base::SystemClock().now(),
                .user = ::geteuid(),
                .group = ::getegid()};
  MUSTER_TRY(caller.project, project_in_use(caller.environment, context));
  return caller;
}

Environment inherited_environment(const Environment& all) {
  Environment result;
  for (const auto& [name, value] : all) {
    const bool is_inherited =
        std::any_of(kInherited.begin(), kInherited.end(),
                    [&](std::string_view pattern) { return matches(name, pattern); });
    if (is_inherited) result.emplace(name, value);
  }
  return result;
}

namespace fs = std::filesystem;

namespace {

constexpr const char* kProjectVariable = "MUSTER_PROJECT";
constexpr const char* kProjectFile = "project";

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

base::Result<void> keep_in_context(const fs::path& folder, const std::string& context,
                                   const std::string& project) {
  if (context == kEnvironmentContext) {
    return base::Error{
        .code = base::ErrorCode::kInvalid,
        .what = "cannot store the project: MUSTER_SERVER is set, so no context is in use",
        .advice = "set MUSTER_PROJECT=" + project + " instead"};
  }
  return change_contexts(folder, [&](Contexts& contexts) -> base::Result<void> {
    // The context may have been removed since it was chosen.
    if (Context* const found = contexts.find(context)) found->project = project;
    return {};
  });
}

base::Result<std::string> local_project() {
  const fs::path folder = config::config_folder_here();
  if (folder.empty()) return std::string();
  std::error_code ignored;
  constexpr size_t kMostBytes = 4096;
  auto text = base::read_file(folder / kProjectFile, kMostBytes);
  if (text) return first_line(*text);
  // A folder that this user cannot read belongs to another user (under sudo, HOME may be another
  // user's), and a folder below a file (HOME=/dev/null) does not exist: in both cases no project is
  // chosen.
  const bool is_no_choice = text.error().code == base::ErrorCode::kNotFound ||
                            text.error().code == base::ErrorCode::kRefused ||
                            !fs::exists(folder, ignored);
  if (is_no_choice) return std::string();
  base::Error error = std::move(text).error();
  error.code = base::ErrorCode::kInvalid;
  error.advice = "this file names the project in use: repair or remove it, or set MUSTER_PROJECT";
  return error;
}

}  // namespace

base::Result<std::string> project_in_use(const Environment& environment,
                                         const std::string& context) {
  const auto variable = environment.find(kProjectVariable);
  if (variable != environment.end() && !variable->second.empty()) return variable->second;
  const auto chosen = chosen_context(context);
  if (!chosen) return std::string();
  return chosen->is_local() ? local_project() : chosen->project;
}

base::Result<void> use_project(const std::string& name, const std::string& context) {
  MUSTER_TRY(const Context chosen, chosen_context(context));
  const fs::path folder = config::config_folder_here();
  if (!chosen.is_local()) return keep_in_context(folder, chosen.name, name);
  if (folder.empty()) {
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what = "cannot store the project: there is no home folder",
                       .advice = "set MUSTER_PROJECT=" + name + " instead"};
  }
  MUSTER_CHECK(base::make_private_folder(folder));
  return base::write_file(folder / kProjectFile, name + "\n");
}

}  // namespace muster::cli
