#include "cli/project_choice.h"

#include <filesystem>
#include <system_error>

#include "base/files.h"
#include "cli/chosen_context.h"
#include "cli/contexts_file.h"
#include "cli/paths.h"

namespace muster::cli {

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
  const fs::path folder = config_folder_here();
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
  const fs::path folder = config_folder_here();
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
