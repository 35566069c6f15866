// cp, port-forward, artifacts: what goes into tasks and comes out of them.
#include "cli/command_parts.h"

namespace muster::cli {

std::vector<Command> commands_on_files() {
  return {};
}

}  // namespace muster::cli
