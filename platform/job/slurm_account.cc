#include "job/slurm_account.h"

#include <string_view>

namespace muster::job {

std::string slurm_account_of(const std::string& project,
                             const std::map<std::string, std::string>& accounts,
                             const std::string& fallback) {
  const auto named = accounts.find(project);
  if (named != accounts.end()) return named->second;
  std::string account = fallback;
  constexpr std::string_view kProject = "%p";
  for (size_t at = account.find(kProject); at != std::string::npos;
       at = account.find(kProject, at + project.size())) {
    account.replace(at, kProject.size(), project);
  }
  return account;
}

}  // namespace muster::job
