// metrics: what is measured of a job.
#include "cli/command_parts.h"

namespace muster::cli {

std::vector<Command> commands_on_metrics() {
  return {};
}

}  // namespace muster::cli
