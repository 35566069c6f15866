#include "engine/process/exec_program.h"

#include <string>

#include "engine/engine_errors.h"
#include "engine/shim/environment.h"

namespace muster::engine {

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
