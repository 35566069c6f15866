// What submit and run do: forecast jobs, print them as job files, or submit and follow them.
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/array_wire.h"
#include "api/wire.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/common/format.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "cli/jobs/arrays.h"
#include "cli/jobs/jobs.h"
#include "cli/jobs/submit_file.h"
#include "cli/logs/logs.h"
#include "http/client.h"
#include "job/spec_table.h"
#include "words/sentence.h"

namespace muster::cli::jobs {

using base::Error;
using base::ErrorCode;

namespace {

/// If the project is missing and the user did not type it: that error, with the project's origin.
/// Any other error is unchanged.
base::Error with_origin_of_project(base::Error error, const job::JobSpec& spec,
                                   Connection& connection, const Hooks& hooks) {
  const auto caller = this_caller(hooks.context);
  const bool is_in_use = caller && !caller->project.empty() && caller->project == spec.project;
  if (error.code != base::ErrorCode::kNotFound || !is_in_use) return error;
  // A folder, a secret or a job may be missing instead.
  auto project = connection.call([&](api::Client& client) { return client.project(spec.project); });
  if (project || project.error().code != base::ErrorCode::kNotFound) return error;
  error = std::move(project).error();
  error.what += ", the project in use";
  error.advice += error.advice.empty() ? "" : "; ";
  error.advice += "choose another with 'muster project use' or MUSTER_PROJECT";
  return error;
}

bool is_left(const Error& error) {
  return base::detail_of<http::RequestLeft>(error) != nullptr;
}

Error left_while_submitting(const Submission& job) {
  const std::string& name = job.spec.name;
  return {.code = ErrorCode::kUnavailable,
          .what = "interrupted before the server has answered; " + unanswered_job(job) +
                  " may be submitted",
          .advice = is_named_by_server(job)
                        ? kFindAmongNewest
                        : "look for it: muster get " + name + "; stop it: muster stop " + name,
          .detail = std::make_shared<http::RequestLeft>()};
}

Result<job::Job> submit_job(Connection& connection, const Submission& job, const std::string& key,
                            const Hooks& hooks) {
  auto submitted = connection.call(
      [&](api::Client& client) { return client.submit(job.spec, key, job.options); });
  if (submitted) return submitted;
  if (is_left(submitted.error())) return left_while_submitting(job);
  return with_origin_of_project(std::move(submitted).error(), job.spec, connection, hooks);
}

/// A job that was there when it was submitted.
Error removed_so_soon(const std::string& name) {
  return {
      .code = ErrorCode::kNotFound,
      .what =
          "job '" + name +
          "' was submitted, but was removed before its log could be read: it was deleted, or it "
          "ended and a rule of retention removed it",
      .advice =
          "find what removed it: muster audit; to keep it for a while after its end, submit it "
          "with --keep-for, e.g. --keep-for 1h"};
}

Result<int> submit_and_follow(Submission submission, const std::string& key, logs::LogLook look,
                              logs::OnInterrupt meaning, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_CHECK(send_files(connection, submission));
  // Constructed before the job is submitted, so that no Ctrl-C is lost between submitting and
  // following.
  Interrupts interrupts;
  const bool is_array = !submission.spec.array.is_none();
  bool is_asked = false;  // by a first Ctrl-C to stop the job, which may not exist yet
  const auto on_signal = [&] {
    if (!interrupts.take()) return true;
    if (std::exchange(is_asked, true)) return false;
    std::cerr
        << "muster: waiting for the server's answer to stop the job; press Ctrl-C again to leave"
        << std::endl;
    return true;
  };
  const bool stops = meaning == logs::OnInterrupt::kStop && !is_array;
  connection.set_wake(stops ? http::Wake{.fd = interrupts.fd(), .on_wake = on_signal}
                            : ended_by_signals(interrupts.fd()));
  if (is_array) {
    auto array = connection.call([&](api::Client& client) {
      return client.submit_array(submission.spec, key, submission.options);
    });
    if (!array && is_left(array.error())) return left_while_submitting(submission);
    if (!array) {
      return with_origin_of_project(std::move(array).error(), submission.spec, connection, hooks);
    }
    connection.set_project(array->spec.project);
    return logs::follow_array(connection, interrupts,
                              {.name = array->id, .query = {.follow = true}, .look = look});
  }
  MUSTER_TRY(const job::Job job, submit_job(connection, submission, key, hooks));
  connection.set_wake(ended_by_signals(interrupts.fd()));
  // The signal is blocked: follow() takes it, and stops the job. A command in the background of a
  // script may ignore SIGINT.
  if (is_asked) ::raise(SIGTERM);
  connection.set_project(job.spec.project);
  const logs::FollowRequest request{
      .name = job.spec.name, .query = {.follow = true}, .look = look, .on_interrupt = meaning};
  const Result<logs::FollowEnd> end = logs::follow(connection, interrupts, request);
  if (!end)
    return end.error().code == ErrorCode::kNotFound ? removed_so_soon(request.name) : end.error();
  return logs::report_end(*end, request, "");
}

/// One document, or a list of several.
std::string as_one(const std::vector<std::string>& documents) {
  return documents.size() == 1 ? documents.front() : "[" + base::joined(documents, ",") + "]";
}

/// Prints the forecasts. If a job can never run, the server refuses the request with an error.
Result<int> show_forecasts(const std::vector<Submission>& jobs, const SubmitRun& run,
                           const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  std::vector<std::string> pages;
  std::vector<std::string> documents;
  for (const Submission& job : jobs) {
    auto forecast = connection.call(
        [&](api::Client& client) { return client.forecast(job.spec, job.options); });
    if (!forecast) {
      return with_origin_of_project(std::move(forecast).error(), job.spec, connection, hooks);
    }
    const std::string title = jobs.size() == 1 ? "" : "JOB " + job.spec.name + "\n";
    const std::string changes = changes_table(job.changes, run.origin);
    pages.push_back(title + forecast_page(job.spec, *forecast, base::SystemClock().now()) +
                    (changes.empty() ? "" : "\nCHANGED\n" + changes));
    documents.push_back(api::forecast_to_json(*forecast));
  }
  MUSTER_CHECK(show(run.output, base::joined(pages, "\n"), as_one(documents)));
  return kExitDone;
}

/// Prints jobs as job files of Muster.
Result<int> show_specs(const std::vector<Submission>& jobs, Output output) {
  std::vector<std::string> pages;
  std::vector<std::string> documents;
  for (const Submission& job : jobs) {
    documents.push_back(record::to_json(job.spec, record::Form::kHuman));
    pages.push_back(json_to_yaml(documents.back()));
    for (const auto& [target, files] : job.files) {
      std::cerr << "muster: note: the files for " << target
                << " are not part of the job file; they are sent when the job is submitted\n";
    }
    if (job.workspace) {
      std::cerr << "muster: note: the workspace '" << job.workspace->source.where
                << "' is sent when the job is submitted, and is not part of this page\n";
    }
  }
  MUSTER_CHECK(show(output, base::joined(pages, "---\n"), as_one(documents)));
  return kExitDone;
}

/// Whether standard input is a file or a pipe with data that no program has read. Never waits: an
/// open pipe without data is the usual input under cron and ssh.
bool has_unread_input() {
  struct stat input{};
  if (::fstat(STDIN_FILENO, &input) != 0) return false;
  if (S_ISREG(input.st_mode)) return ::lseek(STDIN_FILENO, 0, SEEK_CUR) < input.st_size;
  int size = 0;
  const bool is_stream = S_ISFIFO(input.st_mode) || S_ISSOCK(input.st_mode);
  return is_stream && ::ioctl(STDIN_FILENO, FIONREAD, &size) == 0 && size > 0;
}

/// Whether it has warned.
bool warn_of_unread_input() {
  if (!has_unread_input()) return false;
  std::cerr << "muster: warning: 'muster run' does not read standard input; submit the job with "
               "--stdin, and send it with 'muster attach'\n";
  return true;
}

/// A rule that asks for a retry takes one of the job's retries.
void warn_of_idle_rules(const job::JobSpec& spec) {
  const job::Scheduling& scheduling = spec.scheduling;
  const bool has_rule = std::any_of(
      scheduling.retry_rules.begin(), scheduling.retry_rules.end(),
      [](const job::RetryRule& rule) { return rule.action == job::RetryRule::Action::kRetry; });
  if (!has_rule || scheduling.retries > 0) return;
  std::cerr << "muster: warning: job '" << spec.name
            << "': a rule with the action retry has no effect, because retries is 0; add "
               "--retries N\n";
}

Hooks with_engine(Hooks hooks, const std::string& engine) {
  hooks.engine = engine;
  return hooks;
}

/// The command that the user most likely needs next, without the job's name.
std::string next_step(const job::Job& job) {
  if (job.suspended) return "start it: muster resume ";
  if (job.spec.terminal) return "attach to it: muster attach ";
  const bool is_interactive = job.spec.scheduling.purpose == job::Purpose::kBuild;
  return is_interactive ? "open a shell in it: muster bash " : "follow it: muster logs -f ";
}

Result<std::vector<Submission>> jobs_of(const SubmitCommand& command, const Hooks& hooks) {
  std::vector<Submission> jobs;
  if (command.file) {
    MUSTER_TRY(jobs, read_job_file({.file = *command.file,
                                    .name = command.name,
                                    .only = command.only,
                                    .settings = command.settings,
                                    .flags = command.flags,
                                    .may_repeat_names = command.name_suffix},
                                   hooks));
  } else {
    jobs.push_back({.spec = command.spec, .options = {.name_template = command.name_template}});
  }
  if (command.array.is_set() && jobs.size() > 1) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "--array and the like are for one job, and the file has " +
                         std::to_string(jobs.size()),
                 .advice = "choose one with --only, or write `array` into the file"};
  }
  for (Submission& job : jobs) {
    MUSTER_CHECK(apply_array_flags(command.array, job.spec));
    job.options.name_suffix = command.name_suffix;
    if (command.workspace) job.workspace = command.workspace;
  }
  return jobs;
}

Error too_many_to_follow(size_t count) {
  return {.code = ErrorCode::kInvalid,
          .what = "--follow is for one job, and the file has " + std::to_string(count),
          .advice = "leave it out, and follow each: muster logs -f NAME"};
}

/// "submitted train-2, a rerun of train".
std::string submitted_text(const job::Job& job) {
  const bool is_rerun = job.origin && job.origin->kind == job::JobOrigin::Kind::kRerun;
  return "submitted " + job.spec.name + (is_rerun ? ", a rerun of " + job.origin->name : "") + "\n";
}

/// "submitted train: 8 members".
std::string submitted_text(const job::Array& array) {
  const int members = array.counts.all();
  return "submitted " + array.spec.name + ": " + std::to_string(members) +
         (members == 1 ? " member\n" : " members\n");
}

/// The answer could not be printed, but the jobs are there.
Error but_submitted(Error error, const std::vector<Submitted>& all) {
  std::vector<std::string> names;
  for (const auto& [job, array, unused] : all) names.push_back("'" + job.spec.name + "'");
  error.advice += error.advice.empty() ? "" : "; ";
  error.advice += "submitted all the same: " + base::joined(names);
  return error;
}

Result<void> show_submitted(const std::vector<Submitted>& all, Output output) {
  std::string text;
  std::vector<std::string> documents;
  for (const auto& [job, array, was_there] : all) {
    if (was_there) {
      text += job.spec.name + " is already there\n";
    } else {
      text += array ? submitted_text(*array) : submitted_text(job);
    }
    documents.push_back(array ? api::array_to_json(*array) : api::job_to_json(job));
  }
  MUSTER_CHECK(show(output, text, as_one(documents)));
  if (output != Output::kTable) return {};
  for (const auto& [job, array, unused] : all) {
    std::cerr << "  to " << next_step(job) << job.spec.name << std::endl;
  }
  return {};
}

/// Warns of a job that requests more than the whole quota: it waits until the quota is raised. Jobs
/// that wait for another reason start by themselves.
void warn_of_small_quota(Connection& connection, const job::Job& job) {
  if (job::is_preemptible(job.spec.scheduling)) return;
  const auto now = connection.call([&](api::Client& client) { return client.explain(job.id); });
  const auto* const over = now ? std::get_if<job::OverCapacity>(&now->reason.what) : nullptr;
  if (over == nullptr || over->requested <= over->bound) return;
  std::cerr << "muster: warning: " << safe_lines(words::sentence(now->reason)) << "\n";
  for (const std::string& line : words::details(now->reason)) {
    std::cerr << "  " << safe_lines(line) << "\n";
  }
}

/// "flag; the file has 2".
std::string changed_from(const spec::ChangedValue& change, const std::string& origin) {
  std::string by = change.by_setting ? "--set" : "flag";
  if (!change.value.left) return by;
  const std::string value = value_words(change.value.left);
  return by + "; " + (change.was_given ? origin + " has " : "the default is ") +
         (value.empty() ? "none" : value);
}

}  // namespace

std::string value_words(const std::optional<std::string>& json) {
  if (!json) return "";
  const auto value = base::parse_json(*json);
  return value.is_string() ? value.get<std::string>() : *json;
}

std::string changes_table(const std::vector<spec::ChangedValue>& changes,
                          const std::string& origin) {
  if (changes.empty()) return "";
  Table table({{"KEY"}, {"VALUE"}, {"FROM"}});
  for (const spec::ChangedValue& change : changes) {
    const std::string value = change.value.right ? value_words(change.value.right) : "removed";
    table.add({change.value.path, value, changed_from(change, origin)});
  }
  return table.to_string("  ");
}

Result<int> carry_out(std::vector<Submission> jobs, const SubmitRun& run, const Hooks& hooks) {
  for (const Submission& job : jobs) warn_of_idle_rules(job.spec);
  if (run.dry_run) return show_forecasts(jobs, run, hooks);
  if (run.follow && jobs.size() > 1) return too_many_to_follow(jobs.size());
  if (run.follow) {
    return submit_and_follow(std::move(jobs.front()), run.key.text, run.look,
                             logs::OnInterrupt::kDetach, hooks);
  }
  MUSTER_TRY(Connection connection, connect(hooks));
  const job::JobSpec known = jobs.front().spec;
  auto submitted = submit_all(connection, std::move(jobs), run.key);
  if (!submitted) {
    return with_origin_of_project(std::move(submitted).error(), known, connection, hooks);
  }
  if (auto shown = show_submitted(*submitted, run.output); !shown) {
    return but_submitted(std::move(shown).error(), *submitted);
  }
  if (run.output == Output::kTable) {
    for (const Submitted& one : *submitted) {
      if (!one.array && !one.was_there) warn_of_small_quota(connection, one.job);
    }
  }
  return kExitDone;
}

Result<int> execute(const SubmitCommand& command, const Hooks& given) {
  const Hooks hooks = with_engine(given, command.engine);
  MUSTER_TRY(std::vector<Submission> all, jobs_of(command, hooks));
  if (command.shows_spec) return show_specs(all, command.output);
  return carry_out(std::move(all),
                   {.key = command.key,
                    .follow = command.follow,
                    .dry_run = command.dry_run,
                    .look = command.look,
                    .output = command.output},
                   hooks);
}

Result<int> execute(const RunCommand& command, const Hooks& given) {
  const Hooks hooks = with_engine(given, command.engine);
  warn_of_idle_rules(command.spec);
  const bool has_warned = warn_of_unread_input();
  auto ended =
      submit_and_follow({.spec = command.spec,
                         .workspace = command.workspace,
                         .options = {.name_suffix = command.is_name_made},
                         .has_random_name = command.is_name_made},
                        command.idempotency_key, command.look, logs::OnInterrupt::kStop, hooks);
  // The other end of a pipe may have written later.
  if (!has_warned) warn_of_unread_input();
  return ended;
}

}  // namespace muster::cli::jobs
