// artifacts list and get.
#include <array>
#include <string>

#include "cli/artifact_commands.h"
#include "cli/invocation_reading.h"

namespace muster::cli {

namespace {

Invocation read_list(Reading& in) {
  return ArtifactListCommand{.name = in.name("job"),
                             .project = in.whose_job(),
                             .checksums = in.reader.has("--checksums"),
                             .output = in.output()};
}

Invocation read_get(Reading& in) {
  ArtifactGetCommand command{
      .name = in.name("job"), .project = in.whose_job(), .paths = {}, .folder = {}};
  const std::vector<std::string>& words = in.arguments.names;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i].empty()) in.reader.fault("", "an empty word names no file");
    command.paths.push_back(words[i]);
  }
  if (in.reader.has("--to")) {
    const std::string folder = in.reader.text("--to");
    if (folder.empty()) in.reader.fault("--to", "names no folder");
    command.folder = folder;
  } else if (!command.name.empty()) {
    command.folder = command.name + "-artifacts";
  }
  return command;
}

constexpr std::array kArtifactReaders{InvocationReader{"artifacts list", read_list},
                                      InvocationReader{"artifacts get", read_get}};

}  // namespace

std::span<const InvocationReader> artifact_readers() {
  return kArtifactReaders;
}

}  // namespace muster::cli
