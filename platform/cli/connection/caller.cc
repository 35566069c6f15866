#include "cli/connection/caller.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/files.h"
#include "base/subprocess.h"
#include "cli/connection/contexts.h"
#include "config/paths.h"

namespace muster::cli {

namespace {

/// A trailing '*' stands for any ending.
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
    const bool wanted =
        std::any_of(kInherited.begin(), kInherited.end(),
                    [&](std::string_view pattern) { return matches(name, pattern); });
    if (wanted) result.emplace(name, value);
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
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what =
                           "MUSTER_SERVER chooses the server, so there is no context to keep "
                           "your choice in",
                       .advice = "set MUSTER_PROJECT=" + project + " instead"};
  }
  return change_contexts(folder, [&](Contexts& contexts) -> base::Result<void> {
    // It may have been removed since it was chosen.
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
  // A folder that is closed to this user is not this user's (HOME may be another's under sudo), and
  // one below what is no folder (HOME=/dev/null) is none.
  const bool is_no_choice = text.error().code == base::ErrorCode::kNotFound ||
                            text.error().code == base::ErrorCode::kRefused ||
                            !fs::exists(folder, ignored);
  if (is_no_choice) return std::string();
  base::Error error = std::move(text).error();
  error.code = base::ErrorCode::kInvalid;
  error.advice = "it says which project you submit to: mend or remove it, or set MUSTER_PROJECT";
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
                       .what = "there is no home folder to keep your choice in",
                       .advice = "set MUSTER_PROJECT=" + name + " instead"};
  }
  MUSTER_CHECK(base::make_private_folder(folder));
  return base::write_file(folder / kProjectFile, name + "\n");
}

}  // namespace muster::cli
