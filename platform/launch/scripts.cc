#include "launch/scripts.h"

#include "base/text.h"

namespace muster::launch {

using base::shell_quoted;

std::string export_lines(const std::map<std::string, std::string>& variables) {
  std::string text;
  for (const auto& [name, value] : variables) {
    text += "export " + name + "=" + shell_quoted(value) + "\n";
  }
  return text;
}

std::string session_script(const std::map<std::string, std::string>& environment,
                           const std::string& folder) {
  std::string text = "#!/bin/sh\n" + export_lines(environment);
  // As engine/rank_files.h has it: a launcher has reached this task.
  text += "[ ! -d \"$MUSTER_GENERATED/ranks\" ] || echo 1 > \"$MUSTER_GENERATED/ranks/-1\"\n";
  text += "cd " + shell_quoted(folder) + " || exit 1\n";
  text +=
      "if [ -n \"$SSH_ORIGINAL_COMMAND\" ]; then exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"; fi\n";
  text += "exec \"${SHELL:-/bin/sh}\" -l\n";
  return text;
}

std::string rank_script() {
  return "#!/bin/sh\n"
         "export MUSTER_RANK=\"$OMPI_COMM_WORLD_RANK\" MUSTER_WORLD_SIZE=\"$OMPI_COMM_WORLD_SIZE\" "
         "MUSTER_LOCAL_RANK=\"$OMPI_COMM_WORLD_LOCAL_RANK\"\n"
         "echo \"$OMPI_COMM_WORLD_SIZE\" > \"$MUSTER_GENERATED/ranks/$OMPI_COMM_WORLD_RANK\"\n"
         "[ -r \"$MUSTER_GENERATED/devices\" ] && . \"$MUSTER_GENERATED/devices\"\n"
         "[ -n \"$MUSTER_RANK_AGENT\" ] && exec \"$MUSTER_RANK_AGENT\" --rank \"$@\"\n"
         "exec \"$@\"\n";
}

}  // namespace muster::launch
