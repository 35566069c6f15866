// The commands on what jobs share, and on jobs that wait.
#include <array>
#include <utility>

#include "cli/invocation_reading.h"
#include "cli/quota_flags.h"

namespace muster::cli {

namespace {

Invocation read_events(Reading& in) {
  EventsCommand command{.name = in.optional_name(),
                        .project = in.whose_job(),
                        .follow = in.reader.has("--follow"),
                        .output = in.output()};
  if (command.follow && in.reader.has("--output")) {
    in.reader.fault("--output", "does not go with --follow, which prints lines as they come");
  }
  return command;
}

Invocation read_top(Reading& in) {
  constexpr std::chrono::milliseconds kLeast{100};
  TopCommand command{.interval = in.reader.duration("--interval", std::chrono::seconds(1)),
                     .once = in.reader.has("--once")};
  if (command.interval < kLeast) in.reader.fault("--interval", "is below 100ms");
  return command;
}

Invocation read_project_change(Reading& in, ProjectChangeCommand::What what) {
  ProjectChangeCommand command{
      .what = what, .name = in.name("project"), .change = {}, .output = in.output()};
  command.change = read_project_flags(in.reader);
  if (what == ProjectChangeCommand::What::kSet && command.change == api::ProjectChange{} &&
      in.reader.ok()) {
    in.reader.fault("", "say what to change: --gpus, --limit, --weight ...");
  }
  return command;
}

Invocation read_node_change(Reading& in, NodeChangeCommand::What what) {
  return NodeChangeCommand{.what = what, .names = in.names("node"), .output = in.output()};
}

constexpr std::array<InvocationReader, 17> kClusterReaders{{
    {"suspend",
     [](Reading& in) -> Invocation {
       return SuspendCommand{
           .names = in.names("job"), .project = in.whose_job(), .output = in.output()};
     }},
    {"resume",
     [](Reading& in) -> Invocation {
       return ResumeCommand{
           .names = in.names("job"), .project = in.whose_job(), .output = in.output()};
     }},
    {"explain",
     [](Reading& in) -> Invocation {
       return ExplainCommand{
           .name = in.name("job"), .project = in.whose_job(), .output = in.output()};
     }},
    {"events", read_events},
    {"queue", [](Reading& in) -> Invocation { return QueueCommand{in.list_output()}; }},
    {"top", read_top},
    {"project create",
     [](Reading& in) { return read_project_change(in, ProjectChangeCommand::What::kCreate); }},
    {"project set",
     [](Reading& in) { return read_project_change(in, ProjectChangeCommand::What::kSet); }},
    {"project list",
     [](Reading& in) -> Invocation {
       return ProjectListCommand{.in_use = in.caller.project, .output = in.list_output()};
     }},
    {"project get",
     [](Reading& in) -> Invocation {
       return ProjectGetCommand{.name = in.name("project"), .output = in.output()};
     }},
    {"project delete",
     [](Reading& in) -> Invocation {
       return ProjectDeleteCommand{.names = in.names("project"),
                                   .ignore_missing = in.reader.has("--ignore-missing")};
     }},
    {"project use",
     [](Reading& in) -> Invocation {
       return ProjectUseCommand{.name = in.optional_name(), .in_use = in.caller.project};
     }},
    {"node list", [](Reading& in) -> Invocation { return NodeListCommand{in.list_output()}; }},
    {"node get",
     [](Reading& in) -> Invocation {
       return NodeGetCommand{.name = in.name("node"), .output = in.output()};
     }},
    {"node cordon",
     [](Reading& in) { return read_node_change(in, NodeChangeCommand::What::kCordon); }},
    {"node uncordon",
     [](Reading& in) { return read_node_change(in, NodeChangeCommand::What::kUncordon); }},
    {"node drain",
     [](Reading& in) { return read_node_change(in, NodeChangeCommand::What::kDrain); }},
}};

}  // namespace

std::span<const InvocationReader> cluster_readers() {
  return kClusterReaders;
}

}  // namespace muster::cli
