// cp and port-forward.
#include <array>
#include <string>
#include <utility>

#include "cli/invocation_reading.h"
#include "cli/transfer_commands.h"

namespace muster::cli {

namespace {

/// --task is for each place that names none itself.
CopyPlace read_place(Reading& in, const std::string& word) {
  CopyPlace place = copy_place_of(word);
  if (place.path.empty()) in.reader.fault("", "an empty word names no file");
  if (!place.is_here() && place.task.empty()) place.task = in.reader.text("--task");
  return place;
}

void check_sides(Reading& in, const CopyCommand& command) {
  size_t here = 0;
  for (const CopyPlace& place : command.from) here += place.is_here() ? 1 : 0;
  const bool to_here = command.to.is_here();
  if (to_here && here == 0) return;
  if (!to_here && here == command.from.size()) return;
  if (to_here && here == command.from.size()) {
    in.reader.fault("", "no place in a job is named: write it as JOB:PATH");
  } else if (!to_here && here == 0) {
    in.reader.fault("",
                    "from job to job nothing is copied directly: copy it here first, then there");
  } else {
    in.reader.fault("",
                    "some of what is to be copied is here and some in a job: copy it in two goes");
  }
}

Invocation read_copy(Reading& in) {
  CopyCommand command{.from = {}, .to = {}, .project = in.whose_job()};
  const std::vector<std::string>& words = in.arguments.names;
  if (words.size() < 2) {
    if (in.reader.ok()) {
      in.reader.fault("",
                      "say what to copy, and where: muster cp JOB:PATH LOCAL, or the other way");
    }
    return command;
  }
  for (const std::string& word : words) command.from.push_back(read_place(in, word));
  command.to = std::move(command.from.back());
  command.from.pop_back();
  check_sides(in, command);
  return command;
}

Invocation read_port_forward(Reading& in) {
  PortForwardCommand command{.name = in.name("job"),
                             .project = in.whose_job(),
                             .task = in.reader.text("--task"),
                             .address = in.reader.text("--address", "127.0.0.1"),
                             .ports = {}};
  const std::vector<std::string>& words = in.arguments.names;
  for (size_t i = 1; i < words.size(); ++i) {
    const auto ports = forwarded_port_of(words[i]);
    if (ports) command.ports.push_back(*ports);
    if (!ports) in.reader.fault("", ports.error().what);
  }
  if (words.size() == 1) in.reader.fault("", "say which port of it, as in: " + words[0] + " 8888");
  return command;
}

constexpr std::array kTransferReaders{InvocationReader{"cp", read_copy},
                                      InvocationReader{"port-forward", read_port_forward}};

}  // namespace

std::span<const InvocationReader> transfer_readers() {
  return kTransferReaders;
}

}  // namespace muster::cli
