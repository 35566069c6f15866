// experiments start, stop, delete and tags: what changes an experiment.
#include <map>
#include <optional>
#include <utility>

#include "cli/common/report.h"
#include "dialects/gradient/command_parts.h"
#include "dialects/gradient/state.h"

namespace muster::dialects::gradient {

namespace {

using base::Error;
using base::ErrorCode;

constexpr const char* kWhichExperiment = "say which experiment";

Error experiment_has_ended(const job::Job& job) {
  return {.code = ErrorCode::kInternal,  // exit code 1: it was there, and nobody refused anything
          .what = "experiment " + job.id + " has ended: " + std::string(state_of(job)),
          .advice = "create it anew to run it again",
          .faults = {}};
}

/// A conflict is one of two: it has ended, or several projects have a job of that name. The latter
/// is the server's to tell.
Result<job::Job> start(cli::Connection& connection, const std::string& id) {
  auto started = connection.call([&](api::Client& client) { return client.resume(id); });
  if (started || started.error().code != ErrorCode::kConflict) return started;
  const auto job = connection.call([&](api::Client& client) { return client.get(id); });
  return job && job::is_final(job->phase) ? Result<job::Job>(experiment_has_ended(*job)) : started;
}

/// Kills what runs, and waits until nothing of it does.
Result<void> end_now(cli::Connection& connection, const std::string& id) {
  const auto stopped = connection.call([&](api::Client& client) { return client.stop(id, true); });
  if (!stopped) return stopped.error();
  if (job::is_final(stopped->phase)) return {};
  // Of the logs nothing but their end is wanted.
  const job::LogQuery query{.follow = true, .task = {}, .since = {}, .tail = 0};
  const auto ended = connection.call([&](api::Client& client) {
    return client.logs(id, query, [](const job::LogRecord&) { return true; });
  });
  if (!ended) return ended.error();
  return {};
}

/// By its ID, for another job may get the name meanwhile.
Result<void> end_and_remove(cli::Connection& connection, const job::Job& job) {
  if (!job::is_final(job.phase)) MUSTER_CHECK(end_now(connection, job.id));
  return connection.call([&](api::Client& client) { return client.remove(job.id); });
}

using Labels = std::map<std::string, std::optional<std::string>>;

/// `value`: what each tag becomes; nothing takes it away.
Result<int> change_tags(Asked& asked, const std::optional<std::string>& value,
                        const std::string& done) {
  const std::string id = required(asked, "--id", kWhichExperiment);
  Labels labels;
  for (const std::string& tag : words_of(asked, "--tag", "--tags")) labels[tag] = value;
  if (labels.empty() && asked.reader.ok()) {
    note("No tags provided");
    return cli::kExitUsage;
  }
  if (labels.empty()) asked.reader.fault("--tag", "is missing: No tags provided");
  return with_server(asked, kUpdate, "Experiment", [&](cli::Connection& connection) -> Result<int> {
    MUSTER_CHECK(
        connection.call([&](api::Client& client) { return client.set_labels(id, labels); }));
    MUSTER_CHECK(say(done));
    return cli::kExitDone;
  });
}

}  // namespace

Result<int> start_experiment(Asked& asked) {
  const std::string id = required(asked, "--id", kWhichExperiment);
  return with_server(asked, kUpdate, "Experiment", [&](cli::Connection& connection) -> Result<int> {
    MUSTER_TRY(const job::Job job, start(connection, id));
    MUSTER_CHECK(say("Experiment started"));
    return asked.reader.has("--logs") ? follow_logs(connection, job.id) : cli::kExitDone;
  });
}

Result<int> stop_experiment(Asked& asked) {
  const std::string id = required(asked, "--id", kWhichExperiment);
  return with_server(asked, kUpdate, "Experiment", [&](cli::Connection& connection) -> Result<int> {
    MUSTER_CHECK(connection.call([&](api::Client& client) { return client.stop(id, false); }));
    MUSTER_CHECK(say("Experiment stopped"));
    return cli::kExitDone;
  });
}

Result<int> delete_experiment(Asked& asked) {
  const std::string id = required(asked, "--id", kWhichExperiment);
  return with_server(asked, kDelete, "Experiment", [&](cli::Connection& connection) -> Result<int> {
    MUSTER_TRY(const job::Job job,
               connection.call([&](api::Client& client) { return client.get(id); }));
    const auto removed = end_and_remove(connection, job);
    // It was there when it was asked for: whoever removed it first did what was wanted.
    const bool is_gone = removed || removed.error().code == ErrorCode::kNotFound;
    if (!is_gone) return removed.error();
    MUSTER_CHECK(say("Experiment deleted"));
    return cli::kExitDone;
  });
}

Result<int> add_tags(Asked& asked) {
  return change_tags(asked, "", "Tags added to experiment");
}

Result<int> remove_tags(Asked& asked) {
  return change_tags(asked, std::nullopt, "Tags removed from experiment");
}

}  // namespace muster::dialects::gradient
