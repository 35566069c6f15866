// Maps the path of a command to its function.

#include "dialects/runai/commands.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "dialects/runai/command_tree.h"
#include "dialects/runai/job_views.h"
#include "job/obstacle.h"
#include "job/project.h"
#include "words/sentence.h"

namespace muster::dialects::runai {

namespace {

struct Entry {
  std::string_view path;
  Result<int> (*command)(Invocation&);
};

constexpr std::array kCommands{
    Entry{"list", list_jobs_command},
    Entry{"list jobs", list_jobs_command},
    Entry{"list nodes", list_nodes_command},
    Entry{"list projects", list_projects_command},
    Entry{"list clusters", list_clusters_command},
    Entry{"list templates", templates_command},
    Entry{"describe job", describe_job_command},
    Entry{"describe node", describe_node_command},
    Entry{"describe template", templates_command},
    Entry{"get", describe_job_command},
    Entry{"logs", logs_command},
    Entry{"delete", delete_command},
    Entry{"suspend", suspend_command},
    Entry{"resume", resume_command},
    Entry{"bash", bash_command},
    Entry{"exec", exec_command},
    Entry{"attach", attach_command},
    Entry{"port-forward", port_forward_command},
    Entry{"top node", top_nodes_command},
    Entry{"top job", top_jobs_command},
    Entry{"config project", use_project_command},
    Entry{"config cluster", use_cluster_command},
    Entry{"project set", use_project_command},
    Entry{"project list", list_projects_command},
    Entry{"cluster set", use_cluster_command},
    Entry{"cluster list", list_clusters_command},
    Entry{"login", login_command},
    Entry{"logout", logout_command},
    Entry{"whoami", whoami_command},
    Entry{"version", version_command},
    Entry{"completion", completion_command},
    Entry{"template", templates_command},
    Entry{"update", update_command},
};

/// "give one of: runai top node, runai top job"
std::string ways_on(const std::string& path) {
  std::string text;
  for (const Entry& entry : kCommands) {
    if (!entry.path.starts_with(path + " ")) continue;
    text += (text.empty() ? "" : ", ") + ("runai " + std::string(entry.path));
  }
  return "a subcommand is missing; the commands are: " + text;
}

}  // namespace

std::string Invocation::project() const {
  const std::string given = reader.text("--project");
  return given.empty() ? caller.project : given;
}

Result<int> run_command(Invocation& invocation) {
  for (const cli::Flag& flag : common_flags()) {
    if (!flag.choices.empty() && invocation.reader.has(flag.name)) {
      invocation.reader.choice(flag.name, flag.choices);
    }
  }
  const std::string path = base::joined(invocation.arguments.path, " ");
  const auto found = std::find_if(kCommands.begin(), kCommands.end(),
                                  [&](const Entry& entry) { return entry.path == path; });
  if (found != kCommands.end()) return found->command(invocation);
  if (invocation.reader.ok()) invocation.reader.fault("", ways_on(path));
  return usage_error_of(invocation);
}

std::string project_of(const Invocation& invocation) {
  const std::string project = invocation.project();
  return project.empty() ? std::string(job::kDefaultProject) : project;
}

std::string the_name(Invocation& invocation, const std::string& of) {
  if (invocation.arguments.names.empty()) {
    if (invocation.reader.ok()) invocation.reader.fault("", "the name of a " + of + " is missing");
    return {};
  }
  return invocation.arguments.names.front();
}

cli::Output output_of(Invocation& invocation, const std::vector<std::string>& formats) {
  const std::string format = invocation.reader.choice("--output", formats);
  if (format == "json") return cli::Output::kJson;
  if (format == "yaml") return cli::Output::kYaml;
  return format == "names" ? cli::Output::kNames : cli::Output::kTable;
}

Result<cli::Connection> connect(const Invocation& invocation) {
  return cli::connect(invocation.hooks, project_of(invocation));
}

Result<job::Job> find_job(cli::Connection& connection, const std::string& name,
                          const std::string& project) {
  auto job = connection.call([&](api::Client& client) { return client.get(name); });
  if (!job && job.error().code == base::ErrorCode::kNotFound) return no_such_job(name, project);
  return job;
}

Result<std::vector<job::Job>> list_jobs(cli::Connection& connection,
                                        const std::optional<std::string>& project) {
  const api::JobQuery query{.project = project};
  auto jobs = connection.call([&](api::Client& client) { return client.list_all(query); });
  if (!jobs) {
    const bool is_missing = jobs.error().code == base::ErrorCode::kNotFound;
    return is_missing && project ? no_such_project(*project) : std::move(jobs).error();
  }
  std::sort(jobs->begin(), jobs->end(), [](const job::Job& left, const job::Job& right) {
    return std::tie(left.spec.project, left.spec.name) <
           std::tie(right.spec.project, right.spec.name);
  });
  return jobs;
}

Result<job::Task> find_pod(const job::Job& job, const std::string& pod) {
  if (pod.empty() && !job.tasks.empty()) return job::deciding_task(job);
  const auto found = std::find_if(job.tasks.begin(), job.tasks.end(), [&](const job::Task& task) {
    return task.hostname == pod || task.name == pod;
  });
  if (found == job.tasks.end()) return no_such_pod(pod, job);
  return *found;
}

void note(const std::string& line) {
  const bool is_terminal = cli::terminal_of(STDERR_FILENO).is_terminal;
  std::cerr << (is_terminal ? cli::safe_lines(line) : line) << std::endl;
}

using base::Error;
using base::ErrorCode;

namespace {

Error missing(const std::string& job, const std::string& project, const std::string& placeholder) {
  return {.code = ErrorCode::kNotFound,
          .what = job + " does not exist in project " + project +
                  ". If the job exists in a different project, use -p " + placeholder + "."};
}

}  // namespace

Error for_runai(Error error) {
  const auto* const obstacle = base::detail_of<job::Obstacle>(error);
  if (obstacle == nullptr) return error;
  using Kind = job::Obstacle::Kind;
  if (obstacle->kind == Kind::kEnded) error.advice = "'runai list jobs' shows what runs and waits";
  if (obstacle->kind == Kind::kSeveralProjects) error.advice = "choose one: -p PROJECT";
  return error;
}

job::Job for_runai(job::Job job) {
  if (!job.failure) return job;
  const auto* const astray = std::get_if<job::RanksAstray>(&job.failure->cause);
  if (astray != nullptr && astray->fault == job::RanksAstray::Fault::kNoneInAWorker) {
    job.failure->advice = "start the program by mpirun (mpirun -np " +
                          std::to_string(job.spec.workers * job.spec.slots_per_worker) +
                          " PROGRAM), or submit it with 'runai submit'";
  }
  return job;
}

Error usage_error_of(const Invocation& invocation) {
  return cli::usage_error(invocation.arguments.path, invocation.reader.faults(), "runai");
}

Error no_such_project(const std::string& project) {
  return {.code = ErrorCode::kNotFound,
          .what = "project " + project +
                  " was not found. Please run 'runai list project' to view all avaliable projects",
          .advice = "create it: muster project create " + base::shell_joined({project})};
}

Error no_such_job(const std::string& job, const std::string& project) {
  return missing("The job " + job, project, "<project name>");
}

Error no_such_job_to_delete(const std::string& job, const std::string& project) {
  return missing("Job " + job, project, "<project-name>");
}

Error job_not_found(const std::string& job) {
  // Run:AI's message has the trailing blank, too.
  return {.code = ErrorCode::kNotFound, .what = "Job " + job + " not found "};
}

Error no_such_pod(const std::string& pod, const job::Job& job) {
  std::string pods;
  for (const job::Task& task : job.tasks) pods += (pods.empty() ? "" : ", ") + task.hostname;
  return {.code = ErrorCode::kNotFound,
          .what = "there is no pod '" + pod + "' in job '" + job.spec.name + "'",
          .advice = pods.empty() ? "it has none" : "its pods: " + pods};
}

Error pod_not_running(const job::Job& job, const job::Task& task) {
  return {.code = ErrorCode::kConflict,
          .what = "Unable to run command in a pod that is not running",
          .advice = "pod " + task.hostname + " is " + status_of(job, task) +
                    "; see: runai describe job " + job.spec.name + " -p " + job.spec.project};
}

Error nothing_printed_yet(const job::Job& job) {
  return {.code = ErrorCode::kConflict,
          .what = "job " + job.spec.name + " is " + status_of(job) +
                  ", and none of its pods has printed anything",
          .advice = "please use \"runai describe job\" to get more information."};
}

Error start_timed_out(const job::Job& job) {
  return {
      .code = ErrorCode::kTimeout,
      .what = "Timeout waiting for job to start running",
      .advice = "it is " + status_of(job) + words::after_colon(job.reason, kWords) +
                "; it keeps waiting: " + command_for("attach", job.spec.name, job.spec.project)};
}

std::string command_for(const std::string& verb, const std::string& job,
                        const std::string& project) {
  return "runai " + verb + " " + job + " -p " + project;
}

Error not_here(const std::string& what, const std::string& advice) {
  return {.code = ErrorCode::kRefused, .what = what, .advice = advice};
}

std::string no_terminal(const std::string& pod) {
  return "Unable to use a TTY - container " + pod + " did not allocate one";
}

}  // namespace muster::dialects::runai
