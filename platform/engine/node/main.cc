// muster-node [--component N] runs one task of a gang (agent.h). srun starts it; it reads on its
// standard input how to reach the server (brief.h). What it prints is in the output of the Slurm
// job. muster-node --join TASKS PROGRAM... starts a rank (run_join() in slurm_step.h).
//
// The program is linked statically, since it runs on machines about which nothing is known.
#include <fcntl.h>
#include <nss.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "base/files.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "engine/node/agent.h"
#include "engine/node/attempt_folder.h"
#include "engine/node/brief.h"
#include "engine/node/slurm_step.h"

#ifndef MUSTER_VERSION
#define MUSTER_VERSION "unknown"
#endif

using namespace muster;                // NOLINT(google-build-using-namespace): this is its program
using namespace muster::engine::node;  // NOLINT(google-build-using-namespace): the same

namespace {

constexpr int kBadUsage = 2;
constexpr int kFailed = 1;
constexpr size_t kLongestBrief = 64 << 10;

void complain(const std::string& sentence) {
  std::fprintf(stderr, "muster-node: %s\n", sentence.c_str());
}

int fail(const base::Error& error) {
  complain(error.to_string());
  return kFailed;
}

/// srun keeps standard input open for as long as the step runs, so the brief ends with the line.
base::Result<NodeBrief> read_brief() {
  std::string line;
  char byte = '\0';
  while (line.size() < kLongestBrief) {
    const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    if (byte == '\n') return decode_node_brief(line);
    line += byte;
  }
  return base::Error{
      .code = base::ErrorCode::kInvalid,
      .what = "standard input does not hold the address of a server",
      .advice = "Muster's server starts muster-node in the jobs that it submits to Slurm"};
}

/// Uses only services built into glibc: the machine's modules may be built for another version.
void use_own_name_services() {
  ::__nss_configure_lookup("hosts", "files dns");
  for (const char* const database : {"passwd", "group", "services"}) {
    ::__nss_configure_lookup(database, "files");
  }
}

/// Slurm sends signals to each process of a step. Only SIGTERM, the end of the job, concerns this
/// one.
base::UniqueFd watch_signals() {
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGTERM);
  sigprocmask(SIG_BLOCK, &watched, nullptr);
  for (const int meant_for_tasks : {SIGPIPE, SIGHUP, SIGINT, SIGUSR1, SIGUSR2}) {
    ::signal(meant_for_tasks, SIG_IGN);
  }
  return base::UniqueFd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
}

std::optional<int> component_of(int argc, char** argv) {
  if (argc == 1) return -1;
  if (argc != 3 || std::string_view(argv[1]) != "--component") return std::nullopt;
  const auto component = base::number_of<int>(argv[2]);
  return component && *component >= 0 ? component : std::nullopt;
}

int run(int component) {
  const base::UniqueFd signals = watch_signals();
  const Variables variables = variables_of(base::current_environment());
  auto facts = read_step_facts(component, variables);
  if (!facts) return fail(facts.error());
  auto brief = read_brief();
  if (!brief) return fail(brief.error());
  auto shares = shares_folder(*brief);
  if (!shares) {
    base::Error error = std::move(shares).error();
    error.advice += " (--slurm-shared no)";
    return fail(error);
  }

  base::EventLoop loop;
  std::function<void(int)> handle;
  const auto poll_signals = [&signals, &handle] {
    signalfd_siginfo info{};
    while (::read(signals.get(), &info, sizeof info) == sizeof info) {
      handle(static_cast<int>(info.ssi_signo));
    }
  };
  Agent agent(loop, {.brief = *std::move(brief),
                     .facts = *std::move(facts),
                     .shares_folder = *shares,
                     .version = MUSTER_VERSION,
                     .adapt_plan =
                         [&variables](launch::TaskPlan plan, const std::string& attempt_folder) {
                           return plan_srun_launcher(std::move(plan), variables, attempt_folder);
                         },
                     .complain = complain,
                     .poll_signals = poll_signals,
                     // Without destructors: the thread that resolves names may be blocked.
                     .leave = [](int code) { ::_exit(code); }});
  handle = [&agent](int signal) { agent.handle_signal(signal); };
  const auto watching = loop.when_readable(signals.get(), poll_signals);
  agent.begin();
  loop.run();
  return kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  base::set_log_format(base::LogFormat::kPlain);
  if (argc > 1 && std::string_view(argv[1]) == "--join") return run_join({argv + 2, argv + argc});
  // The key is in memory: neither a core dump nor another process of the user may read it.
  ::prctl(PR_SET_DUMPABLE, 0);
  use_own_name_services();
  const auto component = component_of(argc, argv);
  if (component) return run(*component);
  complain("usage: muster-node [--component N], started by Muster's server");
  return kBadUsage;
}
