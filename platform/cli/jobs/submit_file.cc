#include "cli/jobs/submit_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <utility>

#include "base/files.h"
#include "cli/jobs/jobs.h"
#include "cli/spec/send_workspace.h"
#include "cli/spec/spec_file.h"
#include "cli/spec/spec_flags.h"
#include "config/yaml.h"
#include "workspace/sources.h"

namespace muster::cli::jobs {

using base::Error;
using base::ErrorCode;
using base::Fault;
using config::YamlValue;

namespace {

Result<std::string> read_standard_input() {
  std::string text;
  constexpr size_t kStep = 64 << 10;
  while (text.size() <= config::kMaxYamlBytes) {
    const size_t before = text.size();
    text.resize(before + kStep);
    const ssize_t count = ::read(STDIN_FILENO, text.data() + before, kStep);
    text.resize(before + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) break;
    if (count < 0 && errno != EINTR) return base::system_error("cannot read standard input", errno);
  }
  return text;
}

Result<std::string> read_text(const std::string& file) {
  auto text = file == "-" ? read_standard_input() : base::read_file(file, config::kMaxYamlBytes);
  if (text) return text;
  Error error = std::move(text).error();
  error.code = ErrorCode::kInvalid;  // kNotFound would mean that a job is missing
  return error;
}

/// Objects of Kubernetes have an apiVersion, which is no key of a job file.
bool is_foreign(const YamlValue& document) {
  return std::any_of(document.map.begin(), document.map.end(),
                     [](const config::YamlEntry& entry) { return entry.key == "apiVersion"; });
}

/// As far as this command knows: a server that runs already, or elsewhere, may have any engine.
bool is_for_kubernetes(const Hooks& hooks, const Caller& caller) {
  if (!hooks.engine.empty()) return hooks.engine == "kubernetes";
  const auto chosen = caller.environment.find("MUSTER_ENGINE");
  return chosen != caller.environment.end() && chosen->second == "kubernetes";
}

void print_warnings(const std::vector<Fault>& warnings, const std::string& source) {
  for (const Fault& warning : warnings) {
    std::cerr << "muster: warning: " << source << ":" << warning.line << ": "
              << (warning.field.empty() ? "" : warning.field + ": ") << warning.what << "\n";
  }
}

/// The jobs of several documents of Muster.
Result<std::vector<ForeignJob>> read_own(const std::vector<YamlValue>& documents,
                                         const std::string& source, const job::JobSpec& defaults,
                                         const FileWish& wish) {
  std::vector<ForeignJob> jobs;
  std::vector<Fault> faults;
  if (documents.size() > 1 && !wish.name.empty()) {
    faults.push_back({.field = "--name", .what = "is for one job, and the file has several"});
  }
  for (const YamlValue& document : documents) {
    auto spec = spec::parse_spec_document(document, source, defaults,
                                          {.name = wish.name, .settings = wish.settings});
    if (spec) {
      jobs.push_back({.spec = *std::move(spec), .files = {}});
    } else if (documents.size() == 1) {
      return std::move(spec).error();
    } else {
      for (const Fault& fault : spec.error().faults) faults.push_back(fault);
    }
  }
  if (faults.empty()) return jobs;
  const size_t count = faults.size();
  return Error{
      .code = ErrorCode::kInvalid,
      .what = "'" + source + "' has " + std::to_string(count) + (count == 1 ? " fault" : " faults"),
      .faults = std::move(faults)};
}

}  // namespace

Result<std::vector<ForeignJob>> read_job_file(const FileWish& wish, const Hooks& hooks) {
  MUSTER_TRY(const std::string text, read_text(wish.file));
  MUSTER_TRY(const Caller caller, this_caller(hooks.context));
  const std::string source = wish.file == "-" ? "standard input" : wish.file;
  const job::JobSpec defaults = spec::default_spec(caller);
  auto documents = config::parse_yaml_documents(text);
  if (!documents) {
    Error error = std::move(documents).error();
    error.what = "'" + source + "' is not a valid job file";
    return error;
  }
  // An empty file has its own error.
  if (documents->empty()) documents->push_back(YamlValue{.line = 1});
  if (!hooks.read_foreign || std::none_of(documents->begin(), documents->end(), is_foreign)) {
    return read_own(*documents, source, defaults, wish);
  }
  MUSTER_TRY(ForeignJobs jobs,
             hooks.read_foreign(*documents, source,
                                {.defaults = defaults,
                                 .name = wish.name,
                                 .settings = wish.settings,
                                 .on_kubernetes = is_for_kubernetes(hooks, caller)}));
  print_warnings(jobs.warnings, source);
  return std::move(jobs.jobs);
}

Result<void> send_volumes(Connection& connection, ForeignJob& job) {
  for (const auto& [target, files] : job.files) {
    const auto volume =
        std::find_if(job.spec.volumes.begin(), job.spec.volumes.end(),
                     [&, &where = target](const job::Volume& one) { return one.target == where; });
    if (volume == job.spec.volumes.end()) continue;  // --set has replaced the volumes
    MUSTER_TRY(const workspace::Fetched folder, workspace::own_folder());
    for (const auto& [path, content] : files) {
      const std::filesystem::path place = folder.folder / path;
      std::error_code failed;
      std::filesystem::create_directories(place.parent_path(), failed);
      MUSTER_CHECK(base::write_file(place, content));
    }
    spec::WorkspaceOptions options{.source = {.where = folder.folder.string()}};
    options.use_gitignore = false;
    options.what = target;
    MUSTER_TRY(const spec::SentWorkspace sent,
               spec::send_workspace(connection, job.spec.project, options));
    volume->source = sent.tree;
  }
  return {};
}

namespace {

/// Names the job, of which there are several.
Error about_job(Error error, const job::JobSpec& spec, size_t count) {
  if (count > 1) {
    error.what = "job '" + spec.name + "': " + error.what + "; none of the " +
                 std::to_string(count) + " jobs was submitted";
  }
  return error;
}

void take_back(Connection& connection, const std::vector<job::Job>& jobs) {
  for (const job::Job& job : jobs) {
    connection.set_project(job.spec.project);
    if (const auto removed = remove_job(connection, job.spec.name, true); !removed) {
      std::cerr << "muster: warning: job '" << job.spec.name
                << "' could not be taken back: " << removed.error().what << "\n";
    }
  }
}

}  // namespace

Result<std::vector<job::Job>> submit_all(Connection& connection, std::vector<ForeignJob> jobs,
                                         const std::string& key) {
  const size_t count = jobs.size();
  if (count > 1) {
    for (const ForeignJob& job : jobs) {
      const auto checked =
          connection.call([&](api::Client& client) { return client.forecast(job.spec); });
      if (!checked) return about_job(checked.error(), job.spec, count);
    }
  }
  for (ForeignJob& job : jobs) MUSTER_CHECK(send_volumes(connection, job));
  std::vector<job::Job> submitted;
  for (const ForeignJob& job : jobs) {
    const std::string own_key = count == 1 ? key : key + "-" + std::to_string(submitted.size());
    auto answer =
        connection.call([&](api::Client& client) { return client.submit(job.spec, own_key); });
    if (!answer) {
      take_back(connection, submitted);
      return about_job(std::move(answer).error(), job.spec, count);
    }
    submitted.push_back(*std::move(answer));
  }
  return submitted;
}

}  // namespace muster::cli::jobs
