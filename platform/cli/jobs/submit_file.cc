#include "cli/jobs/submit_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "cli/jobs/arrays.h"
#include "cli/jobs/jobs.h"
#include "cli/spec/send_workspace.h"
#include "cli/spec/spec_file.h"
#include "cli/spec/spec_flags.h"
#include "cli/spec/submit_order.h"
#include "config/yaml.h"
#include "job/validate.h"
#include "record/input.h"
#include "workspace/sources.h"

namespace muster::cli::jobs {

using base::Error;
using base::ErrorCode;
using base::Fault;
using config::YamlValue;

namespace {

constexpr const char* kCommitAnnotation = "muster/commit";

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

/// Objects of Kubernetes have an apiVersion, which is not a key of a job file.
bool is_foreign(const YamlValue& document) {
  return std::any_of(document.map.begin(), document.map.end(),
                     [](const config::YamlEntry& entry) { return entry.key == "apiVersion"; });
}

/// As far as this command can determine: a server that runs already, or elsewhere, may have any
/// engine.
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

const YamlValue* name_value_in(const YamlValue& document) {
  for (const config::YamlEntry& entry : document.map) {
    if (entry.key == "name") return &entry.value;
  }
  return nullptr;
}

std::string name_in(const YamlValue& document) {
  const YamlValue* const name = name_value_in(document);
  return name == nullptr ? "" : name->scalar;
}

/// The jobs of a file by project and name, each with the line where it begins.
using NamedLines = std::map<std::pair<std::string, std::string>, int>;

/// A fault, if an earlier job of the file has the same name.
std::optional<Fault> repeated_name(const YamlValue& document, const job::JobSpec& spec,
                                   NamedLines& known) {
  const auto [first, is_new] = known.emplace(std::pair(spec.project, spec.name), document.line);
  if (is_new) return std::nullopt;
  const YamlValue* const name = name_value_in(document);
  return Fault{.field = "name",
               .what = "'" + spec.name + "' is also the name of the job at line " +
                       std::to_string(first->second),
               .line = name == nullptr ? document.line : name->line};
}

Error no_such_document(const std::string& only, const std::vector<std::string>& names,
                       const std::string& source) {
  return {.code = ErrorCode::kInvalid,
          .what = "'" + source + "' has no job '" + only + "'" + record::did_you_mean(only, names),
          .advice = names.empty() ? "" : "its jobs are " + base::joined(names, ", ")};
}

Error is_schedule(const std::string& name, const std::string& file) {
  return {.code = ErrorCode::kInvalid,
          .what = "'" + name + "' is a CronJob, which runs its job again and again",
          .advice = "create a schedule: muster schedule create -f " + base::shell_joined({file})};
}

/// Keeps the documents that --only chooses.
Result<void> choose(std::vector<YamlValue>& documents, const std::string& only,
                    const std::string& source) {
  if (only.empty()) return {};
  std::vector<std::string> names;
  for (const YamlValue& document : documents) names.push_back(name_in(document));
  std::erase_if(documents, [&](const YamlValue& document) { return name_in(document) != only; });
  if (documents.empty()) return no_such_document(only, names, source);
  return {};
}

/// "train-1", which stands for "train-{n}" until the server chooses the number; any other name is
/// unchanged.
std::string example_of(const std::string& name) {
  std::string example = name;
  if (job::is_name_template(name)) {
    example.replace(name.find(job::kNumberPlace), job::kNumberPlace.size(), "1");
  }
  return example;
}

/// Of the example of a template, which the file's own name only seems to change.
bool is_about_name(const spec::ChangedValue& change) {
  return change.value.path == "name";
}

/// The jobs of several documents of Muster.
Result<std::vector<Submission>> read_own(const std::vector<YamlValue>& documents,
                                         const std::string& source, const job::JobSpec& defaults,
                                         const FileWish& wish,
                                         const spec::FileOverrides& overrides) {
  std::vector<Submission> jobs;
  std::vector<Fault> faults;
  if (documents.size() > 1 && !wish.name.empty()) {
    faults.push_back({.field = "--name", .what = "is for one job, and the file has several"});
  }
  NamedLines known;
  for (const YamlValue& document : documents) {
    const std::string name = wish.name.empty() ? name_in(document) : wish.name;
    spec::FileOverrides own = overrides;
    if (!wish.name.empty() || example_of(name) != name) own.name = example_of(name);
    auto read = spec::read_spec_document(document, source, defaults, own);
    if (read) {
      Submission job{.spec = std::move(read->spec), .changes = std::move(read->changes)};
      if (wish.name.empty()) std::erase_if(job.changes, is_about_name);
      set_name(name, job);
      if (wish.name.empty() && !wish.may_repeat_names && !job::is_name_template(name)) {
        if (auto fault = repeated_name(document, job.spec, known)) {
          faults.push_back(*std::move(fault));
        }
      }
      if (read->workspace) job.workspace = options_of(*read->workspace, wish.file);
      jobs.push_back(std::move(job));
    } else if (documents.size() == 1) {
      return std::move(read).error();
    } else {
      for (const Fault& fault : read.error().faults) faults.push_back(fault);
    }
  }
  if (faults.empty()) return jobs;
  const size_t count = faults.size();
  return Error{
      .code = ErrorCode::kInvalid,
      .what = "'" + source + "' has " + std::to_string(count) + (count == 1 ? " fault" : " faults"),
      .faults = std::move(faults)};
}

/// The jobs of documents of which some are objects of Kubernetes.
Result<std::vector<Submission>> read_objects(const std::vector<YamlValue>& documents,
                                             const std::string& source, const FileWish& wish,
                                             const ForeignWish& foreign, const Hooks& hooks) {
  MUSTER_TRY(ForeignJobs read, hooks.read_foreign(documents, source, foreign));
  std::vector<Submission> jobs;
  std::vector<std::string> names;
  for (ForeignJob& job : read.jobs) {
    names.push_back(job.spec.name);
    if (!wish.only.empty() && job.spec.name != wish.only) continue;
    if (job.schedule && !wish.may_be_schedule) return is_schedule(job.schedule->name, wish.file);
    jobs.push_back({.spec = std::move(job.spec),
                    .files = std::move(job.files),
                    .schedule = std::move(job.schedule)});
  }
  if (jobs.empty()) return no_such_document(wish.only, names, source);
  print_warnings(read.warnings, source);
  if (!foreign.flags && foreign.settings.empty()) return jobs;
  // The same file without what the command line changes.
  ForeignWish plain = foreign;
  plain.flags = nullptr;
  plain.settings.clear();
  const auto before = hooks.read_foreign(documents, source, plain);
  for (Submission& job : jobs) {
    if (!before) break;
    const auto same =
        std::find_if(before->jobs.begin(), before->jobs.end(),
                     [&](const ForeignJob& old) { return old.spec.name == job.spec.name; });
    if (same == before->jobs.end()) continue;
    job::JobSpec flagged = same->spec;
    if (foreign.flags) foreign.flags(flagged);
    job.changes = spec::changed_values(same->spec, flagged, job.spec);
  }
  return jobs;
}

/// Applies the flags to a spec. Their faults were reported when the command line was read.
std::function<std::set<std::string>(job::JobSpec&)> applied(
    const std::optional<spec::FlagOverrides>& flags) {
  if (!flags) return nullptr;
  return [&flags](job::JobSpec& spec) {
    FlagReader reader(flags->arguments);
    return spec::override_spec(*flags, reader, spec);
  };
}

}  // namespace

spec::WorkspaceOptions options_of(const spec::WorkspaceKey& key, const std::string& file) {
  std::string where = key.from;
  const bool is_url = where.substr(0, where.find('/')).find(':') != std::string::npos;
  if (!is_url && file != "-") {
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    where = (folder / where).lexically_normal().string();
  }
  return {.source = {.where = where, .ref = key.ref}, .ignore = key.ignore};
}

void set_name(const std::string& name, Submission& job) {
  job.spec.name = example_of(name);
  if (job::is_name_template(name)) job.options.name_template = name;
}

Result<std::vector<Submission>> read_job_file(const FileWish& wish, const Hooks& hooks) {
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
  const auto flags = applied(wish.flags);
  if (!hooks.read_foreign || std::none_of(documents->begin(), documents->end(), is_foreign)) {
    MUSTER_CHECK(choose(*documents, wish.only, source));
    return read_own(*documents, source, defaults, wish,
                    {.settings = wish.settings, .flags = flags});
  }
  return read_objects(*documents, source, wish,
                      {.defaults = defaults,
                       .name = wish.name,
                       .settings = wish.settings,
                       .flags = flags,
                       .on_kubernetes = is_for_kubernetes(hooks, caller),
                       .is_root = caller.is_root},
                      hooks);
}

namespace {

Result<void> send_volumes(Connection& connection, Submission& job) {
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

Result<void> send_workspace_of(Connection& connection, Submission& job) {
  if (!job.workspace) return {};
  MUSTER_TRY(const spec::SentWorkspace sent,
             spec::send_workspace(connection, job.spec.project, *job.workspace));
  spec::work_in(sent.tree, job.spec);
  job.spec.annotations.erase(kCommitAnnotation);
  if (!sent.commit.empty()) job.spec.annotations[kCommitAnnotation] = sent.commit;
  job.workspace.reset();
  return {};
}

/// Names the job, of which there are several. `earlier`: the number of jobs that an earlier command
/// has submitted.
Error about_job(Error error, const job::JobSpec& spec, size_t count, size_t earlier) {
  if (count == 1) return error;
  const std::string all = std::to_string(count) + " jobs";
  error.what += earlier == 0 ? "; none of the " + all + " was submitted"
                             : "; an earlier command submitted " + std::to_string(earlier) +
                                   " of the " + all + ", and no other job was submitted";
  error.what += ", because of job '" + spec.name + "'";
  return error;
}

void take_back(Connection& connection, const std::vector<Submitted>& all) {
  for (const auto& [job, array, unused] : all) {
    connection.set_project(job.spec.project);
    const auto removed =
        array ? remove_array(connection, job.id, true) : remove_job(connection, job.id, true);
    if (!removed) {
      std::cerr << "muster: warning: job '" << job.spec.name
                << "' could not be taken back: " << removed.error().what << "\n";
    }
  }
}

/// Jobs that wait for `spec` wait for the job that has `name` now.
void rename_dependencies(const job::JobSpec& spec, const std::string& name,
                         std::vector<Submission>& jobs) {
  if (spec.name == name) return;
  for (Submission& other : jobs) {
    if (other.spec.project != spec.project) continue;
    for (job::Dependency& dependency : other.spec.after) {
      if (dependency.job == spec.name) dependency.job = name;
    }
  }
}

/// Whether the job waits for another job of the list, which is not on the server yet.
bool waits_for_another(const job::JobSpec& spec, const std::vector<Submission>& jobs) {
  return std::any_of(spec.after.begin(), spec.after.end(), [&](const job::Dependency& dependency) {
    return std::any_of(jobs.begin(), jobs.end(),
                       [&](const Submission& other) { return other.spec.name == dependency.job; });
  });
}

}  // namespace

Result<void> send_files(Connection& connection, Submission& job) {
  MUSTER_CHECK(send_workspace_of(connection, job));
  return send_volumes(connection, job);
}

Submitted submitted_array(job::Array array) {
  Submitted submitted;
  submitted.job.id = array.id;
  submitted.job.spec = array.spec;
  submitted.job.suspended = array.suspended;
  submitted.array = std::move(array);
  return submitted;
}

namespace {

Result<Submitted> submit_one(Connection& connection, const Submission& job,
                             const std::string& key) {
  if (!job.spec.array.is_none()) {
    MUSTER_TRY(job::Array array, connection.call([&](api::Client& client) {
      return client.submit_array(job.spec, key, job.options);
    }));
    return submitted_array(std::move(array));
  }
  MUSTER_TRY(job::Job submitted, connection.call([&](api::Client& client) {
    return client.submit(job.spec, key, job.options);
  }));
  return Submitted{.job = std::move(submitted)};
}

/// The key of one of `count` jobs.
std::string key_of_job(const std::string& key, size_t index, size_t count) {
  return count == 1 ? key : key + "-" + std::to_string(index);
}

/// The indexes of the jobs that an earlier command submitted with the same key.
/// Errors: the server would refuse another job.
Result<std::set<size_t>> submitted_earlier(Connection& connection,
                                           const std::vector<Submission>& jobs,
                                           const SubmissionKey& key) {
  std::set<size_t> earlier;
  const size_t count = jobs.size();
  if (count == 1 && !key.is_given) return earlier;
  std::optional<Error> refusal;  // of the first job that the server would refuse
  const job::JobSpec* refused = nullptr;
  for (size_t i = 0; i < count; ++i) {
    const Submission& job = jobs[i];
    const auto checked = connection.call([&](api::Client& client) {
      return client.forecast_unless_submitted(job.spec, key_of_job(key.text, i, count),
                                              job.options);
    });
    if (checked && !*checked) earlier.insert(i);
    if (checked || refusal) continue;
    if (checked.error().code == ErrorCode::kUnavailable) return checked.error();
    if (waits_for_another(job.spec, jobs)) continue;
    refusal = checked.error();
    refused = &job.spec;
  }
  if (refusal) return about_job(*std::move(refusal), *refused, count, earlier.size());
  return earlier;
}

}  // namespace

Result<std::vector<Submitted>> submit_all(Connection& connection, std::vector<Submission> jobs,
                                          const SubmissionKey& key) {
  const size_t count = jobs.size();
  std::vector<const job::JobSpec*> specs;
  for (const Submission& job : jobs) specs.push_back(&job.spec);
  MUSTER_TRY(const std::vector<size_t> order, spec::submit_order(specs));
  MUSTER_TRY(const std::set<size_t> earlier, submitted_earlier(connection, jobs, key));
  for (Submission& job : jobs) MUSTER_CHECK(send_files(connection, job));
  std::vector<Submitted> submitted;
  std::vector<Submitted> in_order(count);
  for (const size_t index : order) {
    const Submission& job = jobs[index];
    auto answer = submit_one(connection, job, key_of_job(key.text, index, count));
    if (!answer) {
      take_back(connection, submitted);
      return about_job(std::move(answer).error(), job.spec, count, earlier.size());
    }
    // The server may have given it another name.
    rename_dependencies(job.spec, answer->job.spec.name, jobs);
    answer->was_there = earlier.contains(index);
    if (!answer->was_there) submitted.push_back(*answer);
    in_order[index] = *std::move(answer);
  }
  return in_order;
}

}  // namespace muster::cli::jobs
