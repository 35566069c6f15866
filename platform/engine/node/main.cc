// muster-node [--component N] runs one task of a gang (agent.h). srun starts it; it reads on its
// standard input how to reach the server (brief.h). What it prints is in the output of the Slurm
// job. muster-node --join TASKS PROGRAM... starts a rank (run_join() in slurm_step.h).
//
// In pods of Kubernetes (pod.h):
//
//   muster-node --install FOLDER [BRIEF]   copies Muster's programs, and the brief
//   muster-node --pod [BRIEF]              runs the task as process 1 of its container; without BRIEF,
//                                          the brief is in a variable
//   muster-node --bridge PORT              connects standard input and output to that muster-node
//
// The program is linked statically, since it runs on machines about which nothing is known.
#include <fcntl.h>
#include <nss.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/event_loop.h"
#include "base/files.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "engine/node/agent.h"
#include "engine/node/attempt_folder.h"
#include "engine/node/brief.h"
#include "engine/node/pod.h"
#include "engine/node/pod_port.h"
#include "engine/node/server_calls.h"
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

/// Slurm signals the processes of a step one after the other, and a busy machine runs them in any order.
constexpr std::chrono::seconds kSlurmsSignalLag{5};

/// Runs the agent until it leaves. `port`: the way, if the server connects to this node.
int run_agent(base::EventLoop& loop, ServerWay& way, PodPort* port, AgentOptions options,
              const base::UniqueFd& signals) {
  std::function<void(int)> handle;
  const auto poll_signals = [&signals, &handle] {
    signalfd_siginfo info{};
    while (::read(signals.get(), &info, sizeof info) == sizeof info) {
      handle(static_cast<int>(info.ssi_signo));
    }
  };
  options.version = MUSTER_VERSION;
  options.complain = complain;
  options.poll_signals = poll_signals;
  // Without destructors: the thread that resolves names may be blocked.
  options.leave = [](int code) { ::_exit(code); };
  Agent agent(loop, way, std::move(options));
  handle = [&agent](int signal) { agent.handle_signal(signal); };
  if (port != nullptr) port->on_orders([&agent] { agent.server_connected(); });
  const auto watching = loop.when_readable(signals.get(), poll_signals);
  agent.begin();
  loop.run();
  return kFailed;
}

// --- a step of Slurm

std::optional<int> component_of(int argc, char** argv) {
  if (argc == 1) return -1;
  if (argc != 3 || std::string_view(argv[1]) != "--component") return std::nullopt;
  const auto component = base::number_of<int>(argv[2]);
  return component && *component >= 0 ? component : std::nullopt;
}

int run_step(int component) {
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
  ServerCalls calls(loop, *brief);
  if (*shares) calls.set_shares_folder();
  AgentOptions options{.brief = *brief,
                       .site = {.facts = *std::move(facts)},
                       .shares_folder = *shares,
                       .cluster = "Slurm",
                       .signal_lag = kSlurmsSignalLag};
  options.site.adapt = [&variables](launch::TaskPlan plan, const std::string& attempt_folder) {
    return plan_srun_launcher(std::move(plan), variables, attempt_folder);
  };
  return run_agent(loop, calls, nullptr, std::move(options), signals);
}

// --- a pod

/// Until the kubelet kills the container.
constexpr std::chrono::seconds kBeforeTheKubelet{2};

base::Result<NodeBrief> take_brief_file(const std::string& path) {
  MUSTER_TRY(const std::string text, base::read_file(path, kLongestBrief));
  // The task must not get the key. A mounted Secret cannot be removed.
  if (::unlink(path.c_str()) != 0) {
    complain("the key stays readable for the task in '" + path + "': " + std::strerror(errno));
  }
  return decode_node_brief(text);
}

base::Result<NodeBrief> take_brief(int argc, char** argv) {
  if (argc == 3) return take_brief_file(argv[2]);
  if (const auto text = take_brief_variable()) return decode_node_brief(*text);
  return base::Error{
      .code = base::ErrorCode::kInvalid,
      .what = "the variable " + std::string(kPodBriefText) + " is not set",
      .advice = "muster-node --pod is started in the pods that Muster's server creates"};
}

int run_pod(base::Result<NodeBrief> brief) {
  const base::UniqueFd signals = watch_signals();
  auto pod = read_pod(variables_of(base::current_environment()));
  if (!pod) return fail(pod.error());
  if (!brief) return fail(brief.error());
  if (pod->port != 0) brief->port = pod->port;
  base::EventLoop loop;
  AgentOptions options{.brief = *brief,
                       .site = {.facts = std::move(pod->facts)},
                       .cluster = "Kubernetes",
                       .address = pod->address,
                       .image = std::move(pod->image),
                       .kill_after = std::max(pod->grace - kBeforeTheKubelet, kBeforeTheKubelet)};
  options.site.generated_in_container = kPodGenerated;
  if (!brief->hosts.empty()) {
    ServerCalls calls(loop, *brief);
    return run_agent(loop, calls, nullptr, std::move(options), signals);
  }
  auto port = PodPort::open(loop, *brief);
  if (!port) return fail(port.error());
  return run_agent(loop, **port, port->get(), std::move(options), signals);
}

int run_install(int argc, char** argv) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto installed = install(self.parent_path(), argv[2], argc > 3 ? argv[3] : "");
  return installed ? 0 : fail(installed.error());
}

/// nullopt: not one of the modes for pods.
std::optional<int> run_in_pod(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "--install" && (argc == 3 || argc == 4)) return run_install(argc, argv);
  if (mode == "--pod" && argc <= 3) {
    auto brief = take_brief(argc, argv);  // before there is a second process with its variables
    return hold_as_process_one([&] { return run_pod(std::move(brief)); });
  }
  const auto port = argc == 3 ? base::number_of<uint16_t>(argv[2]) : std::nullopt;
  if (mode == "--bridge" && port) return run_bridge(*port);
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  base::set_log_format(base::LogFormat::kPlain);
  if (argc > 1 && std::string_view(argv[1]) == "--join") return run_join({argv + 2, argv + argc});
  // The key is in memory: neither a core dump nor another process of the user may read it.
  ::prctl(PR_SET_DUMPABLE, 0);
  use_own_name_services();
  if (const auto code = run_in_pod(argc, argv)) return *code;
  const auto component = component_of(argc, argv);
  if (component) return run_step(*component);
  complain("usage: muster-node [--component N], started by Muster's server");
  return kBadUsage;
}
