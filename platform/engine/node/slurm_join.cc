// muster-node --join: run_join() of slurm_step.h.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/unique_fd.h"
#include "engine/node/slurm_step.h"
#include "engine/rank_files.h"
#include "engine/shim/exec.h"
#include "engine/shim/plan.h"
#include "engine/shim/process_tree.h"
#include "launch/srun_command.h"

namespace muster::engine::node {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;
constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;

/// Signals that Slurm sends to all processes of a step, the program among them.
constexpr std::array kMeantForTheProgram{SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

void complain(const Error& error) {
  std::fprintf(stderr, "muster-node --join: %s\n", error.to_string().c_str());
}

struct Place {
  JoiningRank rank;
  UniqueFd inner;  ///< a pidfd of the task's inner half
  InnerPlan plan;  ///< of the task itself
};

Error not_there(const JoiningRank& rank, const Variables& step) {
  const auto node = step.find("SLURMD_NODENAME");
  return Error{.code = ErrorCode::kConflict,
               .what = "task " + rank.task + " of rank " + std::to_string(rank.rank) +
                       " does not run on node " +
                       (node == step.end() ? std::string("?") : node->second)};
}

Result<Place> find_place(const std::string& tasks, const Variables& step) {
  Place place;
  MUSTER_TRY(place.rank, joining_rank(tasks, step));
  const auto attempt = step.find(launch::kAttemptFolder);
  if (attempt == step.end()) return not_there(place.rank, step);
  const TaskFolder folder{std::filesystem::path(attempt->second) / place.rank.task};
  const auto text = base::read_file(folder.running(), 4096);
  const auto running = text ? decode_running(*text) : Result<RunningRecord>(text.error());
  if (!running || start_ticks_of(running->pid) != running->start_ticks) {
    return not_there(place.rank, step);
  }
  const auto inner = inner_half_of(running->pid);
  if (!inner) return not_there(place.rank, step);
  MUSTER_TRY(place.inner, base::open_pidfd(*inner));
  MUSTER_TRY(const std::string written, base::read_file(folder.plan()));
  MUSTER_TRY(ShimPlan shim, decode_shim_plan(written));
  place.plan = std::move(shim.inner);
  MUSTER_CHECK(sign_in(folder.generated() / "ranks",
                       {.rank = place.rank.rank, .world_size = place.rank.world_size}));
  return place;
}

std::string variable_in(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& each : environment) {
    if (each.starts_with(name) && each.size() > name.size() && each[name.size()] == '=') {
      return each.substr(name.size() + 1);
    }
  }
  return {};
}

/// PMIx passes data by mapped files. A rank that cannot write them must get the data by messages.
void fit_pmix(std::vector<std::string>& environment) {
  for (const char* const name : {"PMIX_DSTORE_21_BASE_PATH", "PMIX_DSTORE_ESH_BASE_PATH"}) {
    const std::string path = variable_in(environment, name);
    if (path.empty() || ::access(path.c_str(), W_OK) == 0) continue;
    environment = merged(environment, std::vector<std::string>{"PMIX_GDS_MODULE=hash"});
    return;
  }
}

/// Runs the program through the agent that writes its output to its task's log, if there is one.
std::vector<std::string> command_of(const std::vector<std::string>& program,
                                    const std::vector<std::string>& environment) {
  const std::string agent = variable_in(environment, "MUSTER_RANK_AGENT");
  if (agent.empty()) return program;
  std::vector<std::string> command{agent, "--rank"};
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

/// Arguments for exec(3), valid as long as `words`.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// The child: never returns.
[[noreturn]] void become(const std::vector<std::string>& program,
                         std::vector<std::string> environment, const std::string& folder) {
  // The rank must end when its parent is killed.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::chdir(folder.c_str()) != 0) {
    complain(base::system_error("cannot enter the working folder '" + folder + "'", errno));
    ::_exit(kNotExecutable);
  }
  fit_pmix(environment);
  // Check the program itself first: an error must name it, not the agent.
  if (const auto found = base::find_program(program.front(), environment); !found) {
    complain(found.error());
    ::_exit(found.error().code == ErrorCode::kNotFound ? kNotFound : kNotExecutable);
  }
  std::vector<std::string> command = command_of(program, environment);
  const auto path = base::find_program(command.front(), environment);
  if (!path) {
    complain(path.error());
    ::_exit(kNotFound);
  }
  ::execve(path->c_str(), pointers_to(command).data(), pointers_to(environment).data());
  complain(base::system_error("cannot run '" + *path + "'", errno));
  ::_exit(kNotExecutable);
}

/// Ends the way the program did.
int end_as(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  const int signal = WTERMSIG(status);
  constexpr rlimit kNoCore{0, 0};  // the program has dumped its own
  ::setrlimit(RLIMIT_CORE, &kNoCore);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
  return 128 + signal;
}

int wait_for(pid_t child) {
  for (const int signal : kMeantForTheProgram) ::signal(signal, SIG_IGN);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return kFailed;
  }
  return end_as(status);
}

}  // namespace

int run_join(const std::vector<std::string>& arguments) {
  if (arguments.size() < 2) {
    complain({.code = ErrorCode::kInvalid, .what = "expected TASKS and a program"});
    return kBadUsage;
  }
  const Variables step = variables_of(base::current_environment());
  auto place = find_place(arguments.front(), step);
  if (!place) {
    complain(place.error());
    return kFailed;
  }
  const std::vector<std::string> program(arguments.begin() + 1, arguments.end());
  std::vector<std::string> environment =
      environment_of_rank(place->plan.environment, step, place->rank);
  if (place->plan.own_process_tree) {
    if (const auto entered = enter_task(place->inner.get()); !entered) {
      complain(entered.error());
      return kFailed;
    }
  }
  const pid_t child = ::fork();
  if (child < 0) {
    complain(base::system_error("cannot start a process", errno));
    return kFailed;
  }
  if (child == 0) become(program, std::move(environment), place->plan.folder);
  return wait_for(child);
}

}  // namespace muster::engine::node
