#include <unistd.h>

#include <cstdint>
#include <iostream>

#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "cli/logs/follow.h"
#include "dialects/gradient/command_parts.h"
#include "dialects/gradient/commands.h"

namespace muster::dialects::gradient {

namespace {

/// "ID<TAB>line<TAB>", in front of each line.
class LineHead {
 public:
  LineHead(const std::string& id, bool colour)
      : id_(colour ? "\x1b[34m" + id + kPlain : id), colour_(colour) {}

  void operator()(std::string& out) {
    const std::string number = std::to_string(++line_);
    out += id_ + "\t" + (colour_ ? "\x1b[31m" + number + kPlain : number) + "\t";
  }

 private:
  static constexpr const char* kPlain = "\x1b[0m";
  std::string id_;
  bool colour_;
  uint64_t line_ = 0;
};

void show_detached(const std::string& id) {
  // The terminal has just shown "^C".
  if (cli::terminal_of(STDERR_FILENO).is_terminal) std::cerr << '\n';
  note("gradient: detached; experiment '" + id + "' goes on\n" +
       "  to follow it again: gradient experiments logs --id " + id + " --follow true\n" +
       "  to stop it: gradient experiments stop --id " + id);
}

int report(const cli::logs::FollowEnd& end, const std::string& id) {
  if (end.how == cli::logs::FollowEnd::How::kPipeClosed) return cli::kExitBrokenPipe;
  if (end.how == cli::logs::FollowEnd::How::kInterrupted) {
    show_detached(id);
    return cli::kExitInterrupted;
  }
  const std::string text = cli::failure_text(end.job, "gradient");
  std::cerr << (cli::terminal_of(STDERR_FILENO).is_terminal ? cli::safe_lines(text) : text)
            << std::flush;
  return cli::exit_code_of(end.job);
}

}  // namespace

Result<int> follow_logs(cli::Connection& connection, const std::string& id,
                        const std::optional<std::string>& task) {
  MUSTER_TRY(const job::Job job,
             connection.call([&](api::Client& client) { return client.get(id); }));
  cli::Interrupts interrupts;
  MUSTER_CHECK(say("Awaiting logs..."));
  // Of several tasks it matters which one speaks.
  const cli::logs::FollowRequest request{
      .name = job.id,
      .query = {.follow = true, .task = task},
      .look = {.prefix = !task && job.tasks.size() > 1},
      .on_interrupt = cli::logs::OnInterrupt::kDetach,
      .head = LineHead(job.id, cli::terminal_of(STDOUT_FILENO).colour)};
  MUSTER_TRY(const cli::logs::FollowEnd end, cli::logs::follow(connection, interrupts, request));
  return report(end, job.id);
}

}  // namespace muster::dialects::gradient
