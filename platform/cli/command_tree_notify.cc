// notify: who is told when a job begins and ends.
#include "cli/command_parts.h"

namespace muster::cli {

std::vector<Command> commands_on_notifications() {
  return {};
}

}  // namespace muster::cli
