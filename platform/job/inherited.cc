#include "job/inherited.h"

#include "base/text.h"
#include "job/role_specs.h"

namespace muster::job {

namespace {

constexpr const char* kVariables = "muster/inherited-variables";
constexpr const char* kFolder = "muster/inherited-folder";

}  // namespace

void note_inherited(const std::set<std::string>& variables, bool folder, JobSpec& spec) {
  if (!names_an_image(spec)) return;
  const std::string names = base::joined(variables, " ");
  if (!names.empty()) spec.annotations[kVariables] = names;
  if (folder) spec.annotations[kFolder] = spec.folder;
}

void forget_inherited_folder(JobSpec& spec) {
  spec.annotations.erase(kFolder);
}

std::set<std::string> inherited_variables(const JobSpec& spec) {
  const auto found = spec.annotations.find(kVariables);
  if (found == spec.annotations.end()) return {};
  const auto names = base::split(found->second, ' ');
  return {names.begin(), names.end()};
}

bool inherits_folder(const JobSpec& spec) {
  const auto found = spec.annotations.find(kFolder);
  // Of a spec that was taken over and changed, the note speaks of another folder.
  return found != spec.annotations.end() && found->second == spec.folder;
}

}  // namespace muster::job
