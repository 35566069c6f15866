// The readers of bash, attach and convert.
#include <array>

#include "cli/detach_keys.h"
#include "cli/invocation_reading.h"

namespace muster::cli {

namespace {

std::chrono::milliseconds wait_of(Reading& in) {
  return in.reader.duration("--wait", kUsualWait);
}

Invocation read_bash(Reading& in) {
  return BashCommand{.name = in.name("job"),
                     .project = in.whose_job(),
                     .task = in.reader.text("--task"),
                     .wait = wait_of(in)};
}

Invocation read_attach(Reading& in) {
  AttachCommand command{.name = in.name("job"),
                        .project = in.whose_job(),
                        .task = in.reader.text("--task"),
                        .wait = wait_of(in),
                        .no_stdin = in.reader.has("--no-stdin"),
                        .from_start = in.reader.has("--from-start")};
  if (!in.reader.has("--detach-keys")) return command;
  const auto keys = parse_detach_keys(in.reader.text("--detach-keys"));
  if (keys) {
    command.detach_keys = *keys;
  } else {
    in.reader.fault("--detach-keys", keys.error().what);
  }
  return command;
}

void check_convert(const ConvertCommand& command, Reading& in) {
  const int choices = (command.line ? 1 : 0) + (command.command ? 1 : 0) + (command.list ? 1 : 0);
  if (choices > 1) in.reader.fault("", "give one of --list, --line and --command");
  if (command.keep && command.end_first) in.reader.fault("--end-first", "contradicts --keep");
  if (command.line && *command.line < 1) in.reader.fault("--line", "counts from 1");
  if (command.command && command.command->empty()) in.reader.fault("--command", "is empty");
}

Invocation read_convert(Reading& in) {
  ConvertCommand command{.name = in.name("job"),
                         .project = in.whose_job(),
                         .task = in.reader.text("--task"),
                         .new_name = in.reader.text("--name"),
                         .idempotency_key = in.idempotency_key(),
                         .list = in.reader.has("--list"),
                         .yes = in.reader.has("--yes"),
                         .keep = in.reader.has("--keep"),
                         .end_first = in.reader.has("--end-first"),
                         .wait = wait_of(in)};
  if (in.reader.has("--line")) command.line = in.reader.number("--line", 1);
  if (in.reader.has("--command")) command.command = in.reader.text("--command");
  check_convert(command, in);
  return command;
}

constexpr std::array<InvocationReader, 3> kSessionReaders{
    {{"bash", read_bash}, {"attach", read_attach}, {"convert", read_convert}}};

}  // namespace

std::span<const InvocationReader> session_readers() {
  return kSessionReaders;
}

}  // namespace muster::cli
