#include "engine/process/exec_program.h"

#include <map>
#include <string>
#include <vector>

namespace muster::engine {

namespace {

using Words = std::vector<std::string>;

/// NAME=value; of a name that is in both, the second's value.
Words merged(const Words& environment, const std::map<std::string, std::string>& more) {
  Words all;
  for (const std::string& entry : environment) {
    if (more.count(entry.substr(0, entry.find('='))) == 0) all.push_back(entry);
  }
  for (const auto& [name, value] : more) all.push_back(name + "=" + value);
  return all;
}

std::string word_of(Helper helper) {
  switch (helper) {
    case Helper::kPack:
      return "pack";
    case Helper::kUnpack:
      return "unpack";
    case Helper::kConnect:
      return "connect";
    case Helper::kNone:
      break;
  }
  return "";
}

}  // namespace

InnerPlan exec_program(const ExecPlan& plan, const InnerPlan& task,
                       const std::filesystem::path& shim) {
  InnerPlan program{.argv = plan.argv,
                    .environment = {},
                    .folder = task.folder,
                    .own_process_tree = task.own_process_tree};
  if (plan.helper == Helper::kNone) {
    program.environment = merged(task.environment, plan.environment);
    return program;
  }
  const std::string helper = (shim.parent_path() / "muster-helper").string();
  program.argv.insert(program.argv.begin(), {helper, word_of(plan.helper)});
  return program;
}

}  // namespace muster::engine
