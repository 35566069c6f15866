#include "cli/jobs/submit_file.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "cli/common/terminal.h"
#include "cli/common/typed_input.h"
#include "cli/jobs/arrays.h"
#include "cli/jobs/jobs.h"
#include "cli/spec/send_workspace.h"
#include "cli/spec/spec_file.h"
#include "cli/spec/spec_flags.h"
#include "cli/spec/submit_order.h"
#include "config/yaml.h"
#include "http/client.h"
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

/// Objects of Kubernetes have an apiVersion, which is not a key of a job file.
bool is_foreign(const YamlValue& document) {
  return std::any_of(document.map.begin(), document.map.end(),
                     [](const config::YamlEntry& entry) { return entry.key == "apiVersion"; });
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
                                         const JobFileOptions& options,
                                         const spec::FileOverrides& overrides) {
  std::vector<Submission> jobs;
  std::vector<Fault> faults;
  if (documents.size() > 1 && !options.name.empty()) {
    faults.push_back({.field = "--name", .what = "is for one job, and the file has several"});
  }
  NamedLines known;
  for (const YamlValue& document : documents) {
    const std::string name = options.name.empty() ? name_in(document) : options.name;
    spec::FileOverrides own = overrides;
    if (!options.name.empty() || example_of(name) != name) own.name = example_of(name);
    auto read = spec::read_spec_document(document, source, defaults, own);
    if (read) {
      Submission job{.spec = std::move(read->spec), .changes = std::move(read->changes)};
      if (options.name.empty()) std::erase_if(job.changes, is_about_name);
      set_name(name, job);
      if (options.name.empty() && !options.may_repeat_names && !job::is_name_template(name)) {
        if (auto fault = repeated_name(document, job.spec, known)) {
          faults.push_back(*std::move(fault));
        }
      }
      if (read->workspace) job.workspace = options_of(*read->workspace, options.file);
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
                                             const std::string& source,
                                             const JobFileOptions& options,
                                             const ForeignOptions& foreign, const Hooks& hooks) {
  MUSTER_TRY(ForeignJobs read, hooks.read_foreign(documents, source, foreign));
  std::vector<Submission> jobs;
  std::vector<std::string> names;
  for (ForeignJob& job : read.jobs) {
    names.push_back(job.spec.name);
    if (!options.only.empty() && job.spec.name != options.only) continue;
    if (job.schedule && !options.may_be_schedule)
      return is_schedule(job.schedule->name, options.file);
    jobs.push_back({.spec = std::move(job.spec),
                    .files = std::move(job.files),
                    .schedule = std::move(job.schedule)});
  }
  if (jobs.empty()) return no_such_document(options.only, names, source);
  print_warnings(read.warnings, source);
  if (!foreign.flags && foreign.settings.empty()) return jobs;
  // The same file without what the command line changes.
  ForeignOptions plain = foreign;
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

bool is_named_by_server(const Submission& job) {
  if (job.has_random_name) return false;
  return job.options.name_suffix || !job.options.name_template.empty();
}

std::string unanswered_job(const Submission& job) {
  if (!is_named_by_server(job)) return "job " + base::in_quotes(job.spec.name);
  const std::string& pattern = job.options.name_template;
  return "a job named like " + base::in_quotes(pattern.empty() ? job.spec.name : pattern);
}

Result<std::vector<Submission>> read_job_file(const JobFileOptions& options, const Hooks& hooks) {
  MUSTER_TRY(const std::string text, read_flag_file(options.file));
  MUSTER_TRY(const Caller caller, this_caller(hooks.context));
  const std::string source = options.file == "-" ? "standard input" : options.file;
  const job::JobSpec defaults = spec::default_spec(caller);
  auto documents = config::parse_yaml_documents(text);
  if (!documents) {
    Error error = std::move(documents).error();
    error.what = "'" + source + "' is not a valid job file";
    return error;
  }
  // An empty file has its own error.
  if (documents->empty()) documents->push_back(YamlValue{.line = 1});
  const auto flags = applied(options.flags);
  if (!hooks.read_foreign || std::none_of(documents->begin(), documents->end(), is_foreign)) {
    MUSTER_CHECK(choose(*documents, options.only, source));
    return read_own(*documents, source, defaults, options,
                    {.settings = options.settings, .flags = flags});
  }
  return read_objects(*documents, source, options,
                      {.defaults = defaults,
                       .name = options.name,
                       .settings = options.settings,
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

/// The jobs that are on the server although the command failed.
struct LeftBehind {
  std::vector<Submitted> jobs;          ///< they could not be taken back
  std::vector<const Submission*> lost;  ///< their request got no answer: perhaps submitted
};

/// Reports which of several jobs are on the server. `earlier`: the number of jobs that an earlier
/// command has submitted.
Error with_rest(Error error, size_t count, size_t earlier, const LeftBehind& left) {
  if (count == 1) return error;
  const std::string all = std::to_string(count) + " jobs";
  const auto add_advice = [&](const std::string& advice) {
    error.advice += (error.advice.empty() ? "" : "; ") + advice;
  };
  std::vector<std::string> names;
  for (const Submitted& each : left.jobs) {
    names.push_back(base::in_quotes(each.job.spec.name));
    add_advice("delete it: muster delete " + each.job.spec.name + " --force --project " +
               each.job.spec.project);
  }
  if (!names.empty()) {
    error.what += "; still submitted: " + base::joined(names);
  } else if (left.lost.empty() && earlier > 0) {
    error.what += "; an earlier command submitted " + std::to_string(earlier) + " of the " + all +
                  ", and no other job was submitted";
  } else if (left.lost.empty()) {
    error.what += "; none of the " + all + " was submitted";
  }
  for (const Submission* const job : left.lost) {
    error.what += "; " + unanswered_job(*job) + " may be submitted";
    add_advice(is_named_by_server(*job) ? kFindAmongNewest
                                        : "look for it: muster get " + job->spec.name);
  }
  return error;
}

/// The same for the error of one job.
Error about_job(Error error, const job::JobSpec& spec, size_t count, size_t earlier,
                const LeftBehind& left = {}) {
  if (count == 1) return error;
  const bool is_none_left = left.jobs.empty() && left.lost.empty();
  if (!is_none_left) error.what = "cannot submit job '" + spec.name + "': " + error.what;
  error = with_rest(std::move(error), count, earlier, left);
  if (is_none_left) error.what += ", because of job '" + spec.name + "'";
  return error;
}

/// Removes the jobs. Returns those that could not be removed.
std::vector<Submitted> take_back(Connection& connection, const std::vector<Submitted>& all) {
  std::vector<Submitted> left;
  for (const Submitted& each : all) {
    connection.set_project(each.job.spec.project);
    const auto removed = each.array ? remove_array(connection, each.job.id, true)
                                    : remove_job(connection, each.job.id, true);
    if (removed || removed.error().code == ErrorCode::kNotFound) continue;
    left.push_back(each);
    std::cerr << "muster: warning: job '" << each.job.spec.name
              << "' could not be taken back: " << removed.error().what << "\n";
  }
  return left;
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

/// Whether a request may have been carried out although it failed with `error`.
bool leaves_open(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout ||
         error.code == ErrorCode::kInternal;
}

/// A request to submit a job may have been carried out. If the server has the job, it is added to `submitted`:
/// submitting again with the same key returns it. If the server still gives no clear answer, the job
/// is added to `left`.
void find_unanswered(Connection& connection, const Submission& job, const std::string& key,
                     std::vector<Submitted>& submitted, LeftBehind& left) {
  const auto checked = connection.call([&](api::Client& client) {
    return client.forecast_unless_submitted(job.spec, key, job.options);
  });
  const bool is_absent =
      checked ? checked->has_value()
              : !leaves_open(checked.error()) && checked.error().code != ErrorCode::kExhausted;
  if (is_absent) return;
  if (checked) {
    if (auto found = submit_one(connection, job, key)) {
      submitted.push_back(*std::move(found));
      return;
    }
  }
  left.lost.push_back(&job);
}

Error interrupted() {
  return {.code = ErrorCode::kUnavailable,
          .what = "interrupted",
          .detail = std::make_shared<http::RequestLeft>()};
}

/// Before the submitted jobs are deleted, which may take a while. `unanswered`: a job that the server
/// may have, too.
void report_interrupt(const std::vector<Submitted>& submitted, const Submission* unanswered) {
  std::vector<std::string> names;
  for (const Submitted& each : submitted) names.push_back(each.job.spec.name);
  if (unanswered != nullptr) names.push_back(unanswered->spec.name);
  if (names.empty()) return;
  std::cerr << "muster: interrupted; deleting the jobs that were submitted: " << base::joined(names)
            << "; press Ctrl-C again to leave them" << std::endl;
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
  // Ctrl-C takes the submitted jobs back. A second Ctrl-C ends the process.
  std::optional<Interrupts> interrupts;
  if (count > 1) {
    interrupts.emplace();
    connection.set_wake(ended_by_signals(interrupts->fd()));
  }
  const auto end_interrupts = [&] {
    connection.set_wake({});
    interrupts.reset();
  };
  for (const size_t index : order) {
    const Submission& job = jobs[index];
    const std::string key_of_this = key_of_job(key.text, index, count);
    auto answer = submit_one(connection, job, key_of_this);
    if (!answer) {
      end_interrupts();
      const bool is_left = base::detail_of<http::RequestLeft>(answer.error()) != nullptr;
      const bool is_open = count > 1 && leaves_open(answer.error()) && !earlier.contains(index);
      if (is_left) report_interrupt(submitted, is_open ? &job : nullptr);
      LeftBehind left;
      if (is_open) find_unanswered(connection, job, key_of_this, submitted, left);
      left.jobs = take_back(connection, submitted);
      if (is_left) {
        return with_rest(interrupted(), count, earlier.size(), left);
      }
      return about_job(std::move(answer).error(), job.spec, count, earlier.size(), left);
    }
    // The server may have given it another name.
    rename_dependencies(job.spec, answer->job.spec.name, jobs);
    answer->was_there = earlier.contains(index);
    if (!answer->was_there) submitted.push_back(*answer);
    in_order[index] = *std::move(answer);
    if (interrupts && interrupts->take()) {
      end_interrupts();
      report_interrupt(submitted, nullptr);
      const LeftBehind left{.jobs = take_back(connection, submitted)};
      return with_rest(interrupted(), count, earlier.size(), left);
    }
  }
  end_interrupts();
  return in_order;
}

}  // namespace muster::cli::jobs
