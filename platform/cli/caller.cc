#include "cli/caller.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/subprocess.h"
#include "cli/project_choice.h"

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
                .environment = environment_of(base::current_environment()),
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

Environment environment_of(const std::vector<std::string>& lines) {
  Environment result;
  for (const std::string& line : lines) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    result[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return result;
}

}  // namespace muster::cli
