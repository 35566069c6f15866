#include "dialects/runai/parts.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <tuple>

#include "cli/common/terminal.h"
#include "cli/connection/commands.h"
#include "dialects/runai/sentences.h"
#include "job/project.h"

namespace muster::dialects::runai {

std::string project_of(const Asked& asked) {
  const std::string project = asked.project();
  return project.empty() ? std::string(job::kDefaultProject) : project;
}

std::string the_name(Asked& asked, const std::string& of) {
  if (asked.arguments.names.empty()) {
    if (asked.reader.ok()) asked.reader.fault("", "the name of a " + of + " is missing");
    return {};
  }
  return asked.arguments.names.front();
}

cli::Output output_of(Asked& asked, const std::vector<std::string>& formats) {
  const std::string format = asked.reader.choice("--output", formats);
  if (format == "json") return cli::Output::kJson;
  if (format == "yaml") return cli::Output::kYaml;
  return format == "names" ? cli::Output::kNames : cli::Output::kTable;
}

Result<cli::Connection> connect(const Asked& asked) {
  return cli::connect(asked.hooks, project_of(asked));
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

void say(const std::string& line) {
  const bool is_terminal = cli::terminal_of(STDERR_FILENO).is_terminal;
  std::cerr << (is_terminal ? cli::safe_lines(line) : line) << std::endl;
}

}  // namespace muster::dialects::runai
