// experiments list and details, jobs list.

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/common/typed_input.h"
#include "cli/connection/connection.h"
#include "dialects/gradient/commands.h"
#include "dialects/gradient/views.h"

namespace muster::dialects::gradient {

namespace {

constexpr const char* kNothing = "No data found";

/// Asks on a terminal; every answer except yes means no; nothing: Ctrl-C, or the end of the input.
/// Without a terminal, prints how to list the rest.
Result<std::optional<bool>> ask_to_continue(size_t next_offset) {
  if (::isatty(STDIN_FILENO) != 1) {
    note("there are more; list them with: --offset " + std::to_string(next_offset));
    return std::optional(false);
  }
  cli::Interrupts interrupts;
  MUSTER_TRY(
      const auto answer,
      cli::ask(STDIN_FILENO, "Do you want to continue? [y/N]: ", cli::Echo::kOn, interrupts));
  if (!answer) return std::optional<bool>();
  return std::optional(*answer == "y" || *answer == "Y" || *answer == "yes");
}

Result<int> show_pages(JobPages& pages, size_t limit, size_t offset) {
  MUSTER_TRY(const std::vector<job::Job> passed_over, pages.next(offset));
  while (true) {
    MUSTER_TRY(const std::vector<job::Job> jobs, pages.next(limit));
    if (jobs.empty()) MUSTER_CHECK(print_line(kNothing));
    if (!jobs.empty()) MUSTER_CHECK(cli::show(experiment_table(jobs).to_string()));
    MUSTER_TRY(const bool has_more, pages.has_more());
    if (!has_more) return cli::kExitDone;
    offset += jobs.size();
    MUSTER_TRY(const std::optional<bool> goes_on, ask_to_continue(offset));
    if (!goes_on) return cli::kExitInterrupted;
    if (!*goes_on) return cli::kExitDone;
  }
}

/// The jobs of one experiment, or of all experiments that match.
Result<std::vector<job::Job>> experiments_of(cli::Connection& connection,
                                             const Invocation& invocation) {
  const cli::FlagReader& reader = invocation.reader;
  if (reader.has("--experimentId")) {
    MUSTER_TRY(job::Job job, get_job(connection, reader.text("--experimentId")));
    return std::vector<job::Job>{std::move(job)};
  }
  const std::string project = reader.text("--projectId", reader.text("--project"));
  api::JobQuery query{.labels = words_of(invocation, "--tag", ""),
                      .order = api::JobQuery::Order::kNewestFirst};
  if (!project.empty()) query.project = project;
  return connection.call([&](api::Client& client) { return client.list_all(query); });
}

}  // namespace

Result<int> list_experiments(Invocation& invocation) {
  constexpr int kPage = 20;
  const auto limit = static_cast<size_t>(invocation.reader.number_between("--limit", kPage, 1));
  const auto offset = static_cast<size_t>(invocation.reader.number_between("--offset", 0, 0));
  return with_server(invocation, kFetch, "Project", [&](cli::Connection& connection) {
    JobPages pages(connection, words_of(invocation, "--projectId", ""),
                   words_of(invocation, "--tag", ""));
    return show_pages(pages, limit, offset);
  });
}

Result<int> show_experiment(Invocation& invocation) {
  const std::string id = required(invocation, "--id", "name the experiment");
  return with_server(invocation, kFetch, "Experiment",
                     [&](cli::Connection& connection) -> Result<int> {
                       MUSTER_TRY(const job::Job job, get_job(connection, id));
                       MUSTER_CHECK(show_table(experiment_details(job)));
                       return cli::kExitDone;
                     });
}

Result<int> list_jobs(Invocation& invocation) {
  const std::string entity = invocation.reader.has("--experimentId") ? "Experiment" : "Project";
  return with_server(invocation, kFetch, entity, [&](cli::Connection& connection) -> Result<int> {
    MUSTER_TRY(const std::vector<job::Job> jobs, experiments_of(connection, invocation));
    MUSTER_CHECK(jobs.empty() ? print_line(kNothing) : show_table(job_table(jobs)));
    return cli::kExitDone;
  });
}

JobPages::JobPages(cli::Connection& connection, const std::vector<std::string>& projects,
                   const std::vector<std::string>& tags)
    : connection_(connection) {
  const api::JobQuery query{.labels = tags, .order = api::JobQuery::Order::kNewestFirst};
  for (const std::string& project : projects) {
    sources_.push_back({.query = query});
    sources_.back().query.project = project;
  }
  if (projects.empty()) sources_.push_back({.query = query});
}

base::Result<std::vector<job::Job>> JobPages::next(size_t count) {
  std::vector<job::Job> page;
  while (page.size() < count) {
    MUSTER_CHECK(fill(count - page.size()));
    Source* const source = newest();
    if (source == nullptr) break;
    page.push_back(std::move(source->read.front()));
    source->read.pop_front();
  }
  return page;
}

base::Result<bool> JobPages::has_more() {
  // If unread jobs are left in the buffer, no request is needed.
  if (newest() != nullptr) return true;
  MUSTER_CHECK(fill(1));
  return newest() != nullptr;
}

base::Result<void> JobPages::fill(size_t count) {
  for (Source& source : sources_) {
    if (!source.read.empty() || source.is_read_out) continue;
    // One more than requested, so that has_more() needs no other request.
    source.query.limit = static_cast<int>(std::min<size_t>(count + 1, api::kMostJobs));
    MUSTER_TRY(api::JobPage page,
               connection_.call([&](api::Client& client) { return client.list(source.query); }));
    std::move(page.jobs.begin(), page.jobs.end(), std::back_inserter(source.read));
    source.query.cursor = page.next;
    source.is_read_out = page.next.empty();
  }
  return {};
}

JobPages::Source* JobPages::newest() {
  Source* best = nullptr;
  for (Source& source : sources_) {
    if (source.read.empty()) continue;
    const bool is_newer =
        best == nullptr || source.read.front().submitted > best->read.front().submitted;
    if (is_newer) best = &source;
  }
  return best;
}

// experiments start, stop, delete and tags.

namespace {

using base::Error;
using base::ErrorCode;

constexpr const char* kWhichExperiment = "name the experiment";

Error experiment_has_ended(const job::Job& job) {
  // Exit code 1: the experiment exists, and the server refused nothing.
  return {.code = ErrorCode::kInternal,
          .what = "experiment " + job.id + " has ended: " + std::string(state_of(job)),
          .advice = "create it again to run it again",
          .faults = {}};
}

/// A conflict has two causes: the experiment has ended, or several projects have a job of that
/// name. For the latter, the server's message is returned.
Result<job::Job> start(cli::Connection& connection, const std::string& id) {
  auto started = connection.call([&](api::Client& client) { return client.resume(id); });
  if (started || started.error().code != ErrorCode::kConflict) return started;
  const auto job = connection.call([&](api::Client& client) { return client.get(id); });
  return job && job::is_final(job->phase) ? Result<job::Job>(experiment_has_ended(*job)) : started;
}

/// Stops the tasks, which have the job's grace period to end, and waits until all have ended, also
/// while the server restarts.
Result<void> stop_and_wait(cli::Connection& connection, const std::string& id) {
  const auto stopped = connection.call([&](api::Client& client) { return client.stop(id, false); });
  if (!stopped) return stopped.error();
  if (job::is_final(stopped->phase)) return {};
  const cli::JobWatch watch{.project = stopped->spec.project,
                            .names = {stopped->spec.name},
                            .on_job = [&](const std::string& /*name*/, const job::Job* now) {
                              return now != nullptr && now->id == stopped->id &&
                                     !job::is_final(now->phase);
                            }};
  MUSTER_CHECK(cli::watch_jobs(connection, watch));
  return {};
}

/// By ID, because another job may get the name in between.
Result<void> end_and_remove(cli::Connection& connection, const job::Job& job) {
  if (!job::is_final(job.phase)) MUSTER_CHECK(stop_and_wait(connection, job.id));
  return connection.call([&](api::Client& client) { return client.remove(job.id); });
}

using Labels = std::map<std::string, std::optional<std::string>>;

/// `value`: the new value of each tag; nothing removes the tags.
Result<int> change_tags(Invocation& invocation, const std::optional<std::string>& value,
                        const std::string& done) {
  const std::string id = required(invocation, "--id", kWhichExperiment);
  Labels labels;
  for (const std::string& tag : words_of(invocation, "--tag", "--tags")) labels[tag] = value;
  if (labels.empty() && invocation.reader.ok()) {
    note("No tags provided");
    return cli::kExitUsage;
  }
  if (labels.empty()) invocation.reader.fault("--tag", "is missing: No tags provided");
  return with_server(
      invocation, kUpdate, "Experiment", [&](cli::Connection& connection) -> Result<int> {
        MUSTER_CHECK(
            connection.call([&](api::Client& client) { return client.set_labels(id, labels); }));
        MUSTER_CHECK(print_line(done));
        return cli::kExitDone;
      });
}

}  // namespace

Result<int> start_experiment(Invocation& invocation) {
  const std::string id = required(invocation, "--id", kWhichExperiment);
  return with_server(
      invocation, kUpdate, "Experiment", [&](cli::Connection& connection) -> Result<int> {
        MUSTER_TRY(const job::Job job, start(connection, id));
        MUSTER_CHECK(print_line("Experiment started"));
        return invocation.reader.has("--logs") ? follow_logs(connection, job.id) : cli::kExitDone;
      });
}

Result<int> stop_experiment(Invocation& invocation) {
  const std::string id = required(invocation, "--id", kWhichExperiment);
  return with_server(
      invocation, kUpdate, "Experiment", [&](cli::Connection& connection) -> Result<int> {
        MUSTER_CHECK(connection.call([&](api::Client& client) { return client.stop(id, false); }));
        MUSTER_CHECK(print_line("Experiment stopped"));
        return cli::kExitDone;
      });
}

Result<int> delete_experiment(Invocation& invocation) {
  const std::string id = required(invocation, "--id", kWhichExperiment);
  return with_server(
      invocation, kDelete, "Experiment", [&](cli::Connection& connection) -> Result<int> {
        MUSTER_TRY(const job::Job job,
                   connection.call([&](api::Client& client) { return client.get(id); }));
        const auto removed = end_and_remove(connection, job);
        // The experiment existed before: another client has removed it in between, which is the
        // intended result.
        const bool is_gone = removed || removed.error().code == ErrorCode::kNotFound;
        if (!is_gone) return removed.error();
        MUSTER_CHECK(print_line("Experiment deleted"));
        return cli::kExitDone;
      });
}

Result<int> add_tags(Invocation& invocation) {
  return change_tags(invocation, "", "Tags added to experiment");
}

Result<int> remove_tags(Invocation& invocation) {
  return change_tags(invocation, std::nullopt, "Tags removed from experiment");
}

}  // namespace muster::dialects::gradient
