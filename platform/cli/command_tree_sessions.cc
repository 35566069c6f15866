// bash, attach, convert: sitting before a job that runs.
#include "cli/command_parts.h"

namespace muster::cli {

std::vector<Command> commands_on_sessions() {
  return {};
}

}  // namespace muster::cli
