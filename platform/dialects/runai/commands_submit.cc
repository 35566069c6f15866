// submit, submit-mpi, submit-dist: submit a job under the given name, or under the first unused
// numbered name.
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "api/wire.h"
#include "base/random.h"
#include "base/units.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "dialects/runai/commands.h"
#include "dialects/runai/submission.h"
#include "dialects/runai/volumes.h"

namespace muster::dialects::runai {

namespace {

using base::Error;
using base::ErrorCode;

/// The number of attempts, if other clients take the chosen numbers first.
constexpr size_t kMostTries = 100;
/// The number of refusals of names that the list does not show. After more, the conflict has another
/// cause, such as a project that accepts no jobs.
constexpr ptrdiff_t kMostHidden = 10;

Result<job::Job> submit_as(cli::Connection& connection, const job::JobSpec& spec,
                           const std::string& name) {
  constexpr size_t kKeyLength = 26;  // 130 bits: collisions are practically impossible
  base::SystemRandom random;
  const std::string key = base::random_name(random, kKeyLength);
  const job::JobSpec named = named_after(spec, name);
  return connection.call([&](api::Client& client) { return client.submit(named, key); });
}

/// Replaces the server's error by Run:AI's message if the project is missing.
Error in_words_of_runai(Error error, cli::Connection& connection, const std::string& project) {
  if (error.code != ErrorCode::kNotFound) return error;
  const auto found = connection.call([&](api::Client& client) { return client.project(project); });
  const bool is_missing = !found && found.error().code == ErrorCode::kNotFound;
  return is_missing ? no_such_project(project) : error;
}

Result<job::Job> submit_named(cli::Connection& connection, const job::JobSpec& spec) {
  auto job = submit_as(connection, spec, spec.name);
  if (job || job.error().code != ErrorCode::kConflict) return job;
  // A project that accepts no jobs is a conflict, too.
  const auto other = connection.call([&](api::Client& client) { return client.get(spec.name); });
  if (!other) return job;
  return Error{.code = ErrorCode::kConflict,
               .what = "the job " + spec.name +
                       " already exists, please delete it first (use 'runai delete " + spec.name +
                       "')"};
}

/// The numbers of the jobs, arrays, sweeps and schedules named PREFIX-NUMBER.
Result<std::set<int>> numbers_taken(cli::Connection& connection, const std::string& project,
                                    const std::string& prefix) {
  api::JobQuery query{.project = project,
                      .prefix = prefix + "-",
                      .order = api::JobQuery::Order::kByName,
                      .limit = api::kMostJobs};
  std::set<int> taken;
  do {
    MUSTER_TRY(const api::RowPage page,
               connection.call([&](api::Client& client) { return client.list_rows(query); }));
    for (const api::JobRow& row : page.rows) {
      if (!row.name.starts_with(*query.prefix)) continue;
      const auto number =
          base::number_of<int>(std::string_view(row.name).substr(query.prefix->size()));
      if (number) taken.insert(*number);
    }
    query.cursor = page.next;
  } while (!query.cursor.empty());
  return taken;
}

int smallest_free(const std::set<int>& taken) {
  int number = 0;
  while (taken.contains(number)) ++number;
  return number;
}

/// Chooses an unused number and submits. Tries the next number if another client took this one first,
/// or if an object that the list does not show has the name.
Result<job::Job> submit_numbered(cli::Connection& connection, const job::JobSpec& spec,
                                 const std::string& prefix) {
  std::set<int> refused;
  while (true) {
    MUSTER_TRY(std::set<int> taken, numbers_taken(connection, spec.project, prefix));
    const auto hidden = std::count_if(refused.begin(), refused.end(),
                                      [&](int number) { return !taken.contains(number); });
    taken.insert(refused.begin(), refused.end());
    const int number = smallest_free(taken);
    auto job = submit_as(connection, spec, prefix + "-" + std::to_string(number));
    const bool may_be_taken = !job && job.error().code == ErrorCode::kConflict;
    if (!may_be_taken || hidden == kMostHidden || refused.size() == kMostTries) return job;
    refused.insert(number);
  }
}

Result<void> bring_in_files(cli::Connection& connection, const Submission& submission,
                            job::JobSpec& spec) {
  if (!submission.git_sync) return {};
  MUSTER_TRY(const cli::spec::SentWorkspace sent,
             cli::spec::send_workspace(connection, spec.project, *submission.git_sync));
  const auto volume =
      std::find_if(spec.volumes.begin(), spec.volumes.end(), [&](const job::Volume& one) {
        return one.kind == job::Volume::Kind::kTree && one.target == submission.git_target;
      });
  volume->source = sent.tree;
  return {};
}

Result<job::Job> hand_over(cli::Connection& connection, const Submission& submission) {
  job::JobSpec spec = submission.spec;
  MUSTER_CHECK(bring_in_files(connection, submission, spec));
  if (submission.name_prefix.empty()) return submit_named(connection, spec);
  return submit_numbered(connection, spec, submission.name_prefix);
}

/// The name if no number is in use.
std::string first_name_of(const Submission& submission) {
  return submission.name_prefix.empty() ? submission.spec.name : submission.name_prefix + "-0";
}

std::string success_text(const job::JobSpec& spec) {
  return "The job '" + spec.name + "' has been submitted successfully\n" +
         "You can run `runai describe job " + spec.name + " -p " + spec.project +
         "` to check the job status\n";
}

/// Reads the flags. Errors: a usage error with all faults.
Result<Submission> read(Invocation& invocation) {
  const std::vector<std::string>& path = invocation.arguments.path;
  const bool has_kind = path.front() != "submit-dist" || path.size() > 1;
  if (!has_kind && invocation.reader.ok()) {
    invocation.reader.fault("", "a framework is missing: runai submit-dist mpi, pytorch or tf");
  }
  if (!has_kind) return usage_error_of(invocation);
  Submission submission =
      read_submission(invocation.arguments, invocation.reader, invocation.caller, invocation.words,
                      cli::is_for_kubernetes(invocation.hooks, invocation.caller));
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  return submission;
}

}  // namespace

Result<int> submit(Invocation& invocation) {
  MUSTER_TRY(Submission submission, read(invocation));
  // Without a terminal, only the output is shown, unless a flag requests input.
  if (submission.attach && ::isatty(STDIN_FILENO) != 1) {
    submission.spec.input = invocation.reader.has("--stdin");
    submission.spec.terminal = invocation.reader.has("--tty");
  }
  for (const std::string& text : submission.notes) note("runai: note: " + text);
  const std::string& project = submission.spec.project;
  if (submission.dry_run) {
    if (submission.git_sync)
      note("runai: note: the repository is cloned when the job is submitted");
    MUSTER_CHECK(cli::show(cli::json_to_yaml(
        api::spec_to_json(named_after(submission.spec, first_name_of(submission))))));
    return cli::kExitDone;
  }
  MUSTER_TRY(cli::Connection connection, connect(invocation));
  connection.set_project(project);
  auto job = hand_over(connection, submission);
  if (!job) return in_words_of_runai(std::move(job).error(), connection, project);
  MUSTER_CHECK(cli::show(success_text(job->spec)));
  if (submission.attach) return attach(connection, job->spec.name, "");
  return cli::kExitDone;
}

}  // namespace muster::dialects::runai
