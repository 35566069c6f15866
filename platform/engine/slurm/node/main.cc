// muster-node [--component N]: started by srun for each task of a gang that runs on Slurm; reads on
// its standard input whom to call (engine/slurm/node_brief.h). See engine/slurm/node/agent.h.
// muster-node --join TASKS PROGRAM...: engine/slurm/node/join.h.
//
// What it prints lands in the output of the Slurm job. The program is linked to no library, as the
// others that run where nothing is known of the machine.
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
#include "engine/slurm/node/agent.h"
#include "engine/slurm/node/join.h"
#include "engine/slurm/node/shared_folder.h"
#include "engine/slurm/node/step_facts.h"
#include "engine/slurm/node_brief.h"

#ifndef MUSTER_VERSION
#define MUSTER_VERSION "unknown"
#endif

using namespace muster;                 // NOLINT(google-build-using-namespace): this is its program
using namespace muster::engine::slurm;  // NOLINT(google-build-using-namespace): the same

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

/// srun keeps it open for as long as the step runs: the brief ends with its line.
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
      .what = "nothing says on standard input whom to call",
      .advice = "muster-node is started by the server, in jobs that it gives to Slurm"};
}

/// Only what glibc has in itself: a module of the machine's may be built for another one.
void use_own_name_services() {
  ::__nss_configure_lookup("hosts", "files dns");
  for (const char* const database : {"passwd", "group", "services"}) {
    ::__nss_configure_lookup(database, "files");
  }
}

/// Slurm sends some to each process of a step; only the end of the job is this one's business.
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
  auto facts = read_step_facts(component, variables_of(base::current_environment()));
  if (!facts) return fail(facts.error());
  auto brief = read_brief();
  if (!brief) return fail(brief.error());
  const auto shares = shares_folder(*brief);
  if (!shares) return fail(shares.error());

  base::EventLoop loop;
  std::function<void(int)> heed;
  const auto look_for_signals = [&signals, &heed] {
    signalfd_siginfo info{};
    while (::read(signals.get(), &info, sizeof info) == sizeof info) {
      heed(static_cast<int>(info.ssi_signo));
    }
  };
  Agent agent(loop, {.brief = *std::move(brief),
                     .facts = *std::move(facts),
                     .shares_folder = *shares,
                     .version = MUSTER_VERSION,
                     .complain = complain,
                     .look_for_signals = look_for_signals,
                     // At once: a look-up of a name may hold its thread up.
                     .leave = [](int code) { ::_exit(code); }});
  heed = [&agent](int signal) { agent.heed_signal(signal); };
  const auto heeding = loop.when_readable(signals.get(), look_for_signals);
  agent.begin();
  loop.run();
  return kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  base::set_log_format(base::LogFormat::kPlain);
  if (argc > 1 && std::string_view(argv[1]) == "--join") return run_join({argv + 2, argv + argc});
  // The key is in its memory: neither a core dump nor another process of the user is to have it.
  ::prctl(PR_SET_DUMPABLE, 0);
  use_own_name_services();
  const auto component = component_of(argc, argv);
  if (component) return run(*component);
  complain("is started by the server, as muster-node [--component N]");
  return kBadUsage;
}
