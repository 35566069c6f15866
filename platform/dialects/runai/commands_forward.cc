// port-forward: ports of a pod, as if they were of this machine.
#include <string>

#include "cli/common/interrupts.h"
#include "cli/common/report.h"
#include "cli/connection/commands.h"
#include "cli/connection/job_watch.h"
#include "cli/sessions/sessions.h"
#include "dialects/runai/others.h"
#include "dialects/runai/parts.h"
#include "dialects/runai/sentences.h"

namespace muster::dialects::runai {

namespace {

using job::TaskPhase;

bool has_begun(const job::Task& pod) {
  return pod.phase == TaskPhase::kRunning || pod.phase == TaskPhase::kEnded;
}

/// The job once its pod has begun, or as it is when the time is up; nothing: at Ctrl-C.
Result<std::optional<job::Job>> await_pod(cli::Connection& connection, job::Job job,
                                          const std::string& pod,
                                          std::chrono::milliseconds patience) {
  cli::Interrupts interrupts;
  const auto waits = [&](const std::string&, const job::Job* now) {
    if (now == nullptr) return false;
    job = *now;
    const auto found = find_pod(job, pod);
    return !job::is_final(job.phase) && !(found && has_begun(*found));
  };
  MUSTER_TRY(const cli::WatchEnd end, cli::watch_jobs(connection, {.project = job.spec.project,
                                                                   .names = {job.spec.name},
                                                                   .on_job = waits,
                                                                   .bound = patience,
                                                                   .interrupts = &interrupts}));
  if (end == cli::WatchEnd::kInterrupted) return std::optional<job::Job>();
  return std::optional(std::move(job));
}

std::vector<cli::sessions::ForwardedPort> read_ports(Asked& asked) {
  std::vector<cli::sessions::ForwardedPort> ports;
  for (const std::string& text : asked.reader.texts("--port")) {
    const auto read = cli::sessions::forwarded_port_of(text);
    if (read) ports.push_back(*read);
    if (!read) asked.reader.fault("--port", read.error().what);
  }
  if (ports.empty() && asked.reader.ok()) {
    asked.reader.fault("--port", "is missing; say which, as in: --port 8080:8888");
  }
  return ports;
}

}  // namespace

Result<int> port_forward_command(Asked& asked) {
  const std::string name = the_name(asked, "job");
  cli::sessions::PortForwardCommand command{.name = name,
                                            .project = project_of(asked),
                                            .address = asked.reader.text("--address", "localhost"),
                                            .ports = read_ports(asked),
                                            .program = "runai"};
  const auto patience = asked.reader.duration("--pod-running-timeout", {});
  if (!asked.reader.ok()) return usage_error_of(asked);
  {
    const std::string wanted = asked.reader.text("--pod");
    MUSTER_TRY(cli::Connection connection, connect(asked));
    MUSTER_TRY(job::Job job, find_job(connection, name, command.project));
    MUSTER_TRY(job::Task pod, find_pod(job, wanted));
    if (patience.count() > 0 && !has_begun(pod)) {
      MUSTER_TRY(auto waited, await_pod(connection, std::move(job), wanted, patience));
      if (!waited) return cli::kExitInterrupted;
      job = *std::move(waited);
      MUSTER_TRY(pod, find_pod(job, wanted));
    }
    if (pod.phase != TaskPhase::kRunning) return pod_not_running(job, pod);
    command.task = pod.name;
  }
  return execute(command, asked.hooks);
}

}  // namespace muster::dialects::runai
