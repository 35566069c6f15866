#include "cli/common/job_view.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "cli/common/format.h"
#include "cli/common/output.h"
#include "cli/common/row_view.h"
#include "job/job.h"
#include "words/sentence.h"

namespace muster::cli {

namespace {

using base::Time;

std::string words(std::string_view view) {
  return std::string(view);
}

std::string exit_of(const job::Job& job) {
  return job.exit_code ? std::to_string(*job.exit_code) : "-";
}

std::string moment_and_age(Time time, Time now) {
  return base::to_rfc3339(time, 0) + " (" + age(time, now) + " ago)";
}

std::string kept_words(Time until, Time now) {
  return "until " + base::to_rfc3339(until, 0) +
         (until > now ? " (for another " + age(now, until) + ")" : "");
}

std::string shape_of(const job::JobSpec& spec) {
  if (spec.kind == job::Kind::kSingle) return "";
  const std::string workers = worker_range(spec) + (spec.workers == 1 ? " worker" : " workers");
  if (spec.kind == job::Kind::kMpi) {
    const std::string own = spec.leader_slots == 0
                                ? ""
                                : ", a launcher of " + base::count_text(spec.leader_slots, "slot");
    return workers + " of " + base::count_text(spec.slots_per_worker, "slot") + own;
  }
  const std::string servers =
      spec.parameter_servers == 0
          ? ""
          : ", " + base::count_text(spec.parameter_servers, "parameter server");
  return (spec.kind == job::Kind::kGrpc ? "chief, " : "master, ") + workers + servers +
         (spec.evaluators == 0 ? "" : ", evaluator");
}

/// "3 of 2-4": the number of workers of an elastic job that have resources.
std::string workers_of(const job::Job& job) {
  if (!job::is_elastic(job.spec) || job::is_final(job.phase)) return "";
  const auto placed = std::count_if(job.tasks.begin(), job.tasks.end(), [](const job::Task& task) {
    return task.role == job::TaskRole::kWorker && !task.node.empty() && !task.left;
  });
  return std::to_string(placed) + " of " + worker_range(job.spec);
}

std::string command_of(const job::JobSpec& spec) {
  std::vector<std::string> words = spec.command;
  words.insert(words.end(), spec.arguments.begin(), spec.arguments.end());
  return base::shell_joined(words);
}

/// "nightly, team=vision"
std::string labels_of(const job::JobSpec& spec) {
  std::string text;
  for (const auto& [name, value] : spec.labels) {
    text += (text.empty() ? "" : ", ") + name + (value.empty() ? "" : "=" + value);
  }
  return text;
}

/// "0,1", or "0 (0.5 of it)"; "-" without GPUs.
std::string devices_of(const job::Task& task) {
  std::string text;
  for (const int device : task.devices) text += (text.empty() ? "" : ",") + std::to_string(device);
  if (text.empty()) return "-";
  const bool part = task.gpu_share_milli > 0 && task.gpu_share_milli < 1000;
  return part ? text + " (" + base::format_milli(task.gpu_share_milli) + " of it)" : text;
}

std::string phase_word(const job::Job& job) {
  return job.unreadable ? "Unreadable" : words(job::to_string(job.phase));
}

std::string phase_of(const job::Task& task) {
  if (!task.left) return words(job::to_string(task.phase));
  return job::has_gone(task) ? "Left" : "Leaving";
}

/// Muster ends the remaining tasks after the deciding task has ended.
std::string exit_words(const job::Job& job, const job::Task& task) {
  if (!task.exit) return "-";
  const bool is_decided = job.phase == job::Phase::kSucceeded &&
                          job::deciding_task(job).name != task.name && !task.left;
  return is_decided && task.exit->stopped ? "ended after the job succeeded"
                                          : job::explain(*task.exit);
}

std::string task_table(const job::Job& job) {
  // Omits the GPU column if no task has a GPU.
  const bool has_gpus = std::any_of(job.tasks.begin(), job.tasks.end(),
                                    [](const job::Task& task) { return !task.devices.empty(); });
  std::vector<Column> columns{{"NAME"}, {"ROLE"}, {"HOST"}, {"NODE"}, {"PHASE"}, {"EXIT"}};
  if (has_gpus) columns.insert(columns.begin() + 4, {"GPUS"});
  Table table(std::move(columns));
  for (const job::Task& task : job.tasks) {
    std::vector<std::string> row{task.name,      words(job::to_string(task.role)),
                                 task.hostname,  task.node.empty() ? "-" : task.node,
                                 phase_of(task), exit_words(job, task)};
    if (has_gpus) row.insert(row.begin() + 4, devices_of(task));
    table.add(std::move(row));
  }
  return table.to_string("  ");
}

std::string importance_words(const job::Scheduling& scheduling) {
  return std::to_string(job::priority_of(scheduling)) +
         (job::is_preemptible(scheduling) ? ", preemptible" : ", not preemptible");
}

std::string time_limit_words(const job::Scheduling& scheduling) {
  return scheduling.time_limit ? base::format_duration(*scheduling.time_limit) : "";
}

/// "1 of 3 used".
std::string retries_words(const job::Job& job) {
  const int allowed = job.spec.scheduling.retries;
  if (allowed == 0 && job.retries_used == 0) return "";
  return std::to_string(job.retries_used) + " of " + std::to_string(allowed) + " used";
}

/// The names of variables: their values may be long or confidential.
std::string environment_names(const job::JobSpec& spec) {
  std::vector<std::string> names;
  for (const auto& [name, value] : spec.environment) names.push_back(name);
  return base::joined(names);
}

/// "HF (variable HF_TOKEN), KEY (file /generated/secrets/key)".
std::string secrets_words(const job::JobSpec& spec) {
  std::vector<std::string> uses;
  for (const job::SecretUse& use : spec.secrets) {
    const std::string place = !use.variable.empty() ? "variable " + use.variable
                              : !use.file.empty()   ? "file /generated/secrets/" + use.file
                                                    : "";
    uses.push_back(place.empty() ? use.name : use.name + " (" + place + ")");
  }
  return base::joined(uses);
}

/// The sandbox, where the engine makes one: pods and containers have their own isolation.
std::string sandbox_words(const job::JobSpec& spec, std::string_view engine) {
  const bool has_containers =
      engine == "container" || engine == "kubernetes" || (engine.empty() && !spec.image.empty());
  return has_containers ? "" : words(job::to_string(spec.sandbox));
}

/// The jobs that hold the resources this job waits for, and until when.
std::string waiting_section(const job::Job& job, Time now) {
  if (job.phase != job::Phase::kQueued) return "";
  std::string text;
  for (const std::string& detail : words::details(job.reason)) text += "  " + detail + "\n";
  if (job.may_start) {
    const bool is_past = *job.may_start <= now;
    text += "  may start " + (is_past ? "now" : "in " + age(now, *job.may_start)) + "\n";
  }
  return text.empty() ? "" : "\nWAITS\n" + text;
}

std::string failure_section(const job::Failure& failure) {
  const bool is_named = failure.task.empty() || words::names_its_task(failure.cause);
  return "\nFAILURE\n  " + (is_named ? "" : failure.task + ": ") + words::sentence(failure.cause) +
         "\n" + evidence_text(failure);
}

std::string event_section(const std::vector<job::Event>& events) {
  std::string text = "\nEVENTS\n";
  for (const job::Event& event : events) {
    text += "  " + base::to_rfc3339(event.time) + "  " + words::sentence(event.what) + "\n";
  }
  return text;
}

}  // namespace

std::string job_table(const std::vector<job::Job>& jobs, Time now) {
  std::vector<api::JobRow> rows;
  for (const job::Job& job : jobs) rows.push_back(api::row_of(job));
  return row_table(rows, usual_columns(rows), now);
}

std::string job_page(const job::Job& job, Time now, std::string_view engine) {
  if (job.unreadable) {
    std::string advice;
    for (const std::string& detail : words::details(job.reason)) advice += "  " + detail + "\n";
    return fields({{"NAME", job.spec.name},
                   {"PHASE", phase_word(job)},
                   {"REASON", words::sentence(job.reason)},
                   {"PROJECT", job.spec.project},
                   {"ID", job.id}}) +
           "\nADVICE\n" + advice;
  }
  std::string text = fields({
      {"NAME", job.spec.name},
      {"KIND", words(job::to_string(job.spec.kind))},
      {"SHAPE", shape_of(job.spec)},
      {"WORKERS", workers_of(job)},
      {"PHASE", words(job::to_string(job.phase))},
      {"REASON", words::sentence(job.reason)},
      {"EXIT", job.exit_code ? std::to_string(*job.exit_code) : ""},
      {"PROJECT", job.spec.project},
      {"NEEDS", needs_words(job.spec)},
      {"PRIORITY", importance_words(job.spec.scheduling)},
      {"IMAGE", job.spec.image},
      {"RUNS AS", job.spec.user},
      {"CONTAINER", container_words(job.spec.container)},
      {"SLURM", slurm_words(job)},
      {"LAUNCH", launch_words(job)},
      {"COMMAND", command_of(job.spec)},
      {"FOLDER", job.spec.folder},
      {"SANDBOX", sandbox_words(job.spec, engine)},
      {"ENVIRONMENT", environment_names(job.spec)},
      {"SECRETS", secrets_words(job.spec)},
      {"LABELS", labels_of(job.spec)},
      {"ORIGIN", job.origin ? origin_words(*job.origin) : ""},
      {"TIME LIMIT", time_limit_words(job.spec.scheduling)},
      {"SUBMITTED", moment_and_age(job.submitted, now)},
      {"STARTED", job.started ? moment_and_age(*job.started, now) : ""},
      {"ENDED", job.ended ? moment_and_age(*job.ended, now) : ""},
      {"KEPT", job.kept_until ? kept_words(*job.kept_until, now) : ""},
      {"DURATION", run_time(job, now)},
      {"PROGRESS", job.progress ? progress_line(*job.progress, now) : ""},
      {"ATTEMPT", job.attempt > 1 ? std::to_string(job.attempt) : ""},
      {"RETRIES", retries_words(job)},
      {"RESTARTS", job.restarts > 0 ? std::to_string(job.restarts) : ""},
      {"ID", job.id},
  });
  text += waiting_section(job, now);
  text += "\nTASKS\n" + task_table(job);
  if (job.failure) text += failure_section(*job.failure);
  if (!job.events.empty()) text += event_section(job.events);
  return text;
}

std::string job_row(const job::Job& job, Time now) {
  Table table({{"NAME"}, {"PHASE"}, {"EXIT", true}, {"DURATION", true}});
  table.add({job.spec.name, words(job::to_string(job.phase)), exit_of(job), run_time(job, now)});
  return table.to_string();
}

namespace {

void append_item(std::string& list, const std::string& separator, const std::string& item) {
  if (!item.empty()) list += (list.empty() ? "" : separator) + item;
}

}  // namespace

std::string launch_words(const job::Job& job) {
  if (!job.launch) return "";
  const job::LaunchFacts& facts = *job.launch;
  std::string words;
  if (facts.by != job::LaunchBy::kAuto) {
    words = "by " + std::string(job::to_string(facts.by));
    append_item(words, ": ", facts.why);
  }
  append_item(words, "; ", facts.mpi);
  return words;
}

std::string container_words(const job::ContainerSpec& container) {
  std::string words;
  if (container.pull != job::ContainerSpec().pull) {
    append_item(words, ", ", "image pulled " + std::string(job::to_string(container.pull)));
  }
  if (container.writable_root) append_item(words, ", ", "writable root");
  if (container.new_privileges) append_item(words, ", ", "new privileges");
  for (const std::string& name : container.capabilities) append_item(words, ", ", name);
  if (container.shm_bytes != 0) {
    append_item(words, ", ", base::format_bytes(container.shm_bytes) + " of /dev/shm");
  }
  return words;
}

namespace {

constexpr std::array<std::pair<const char*, std::string job::SlurmSpec::*>, 5> kFields{
    {{"partition", &job::SlurmSpec::partition},
     {"account", &job::SlurmSpec::account},
     {"qos", &job::SlurmSpec::qos},
     {"reservation", &job::SlurmSpec::reservation},
     {"constraint", &job::SlurmSpec::constraint}}};

/// The Slurm job of a fact; 0: none. A heterogeneous job is identified by its leader's number.
uint64_t slurm_job_of(const job::Fact& fact) {
  if (const auto* const placed = std::get_if<job::Placed>(&fact)) return placed->slurm_job;
  if (const auto* const waits = std::get_if<job::SlurmWaits>(&fact)) return waits->slurm_job;
  if (const auto* const state = std::get_if<job::SlurmState>(&fact)) return state->slurm_job;
  return 0;
}

/// "job 17": the last Slurm job in the events.
std::string job_of(const std::vector<job::Event>& events) {
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    const uint64_t number = slurm_job_of(event->what);
    if (number != 0) return "job " + std::to_string(number);
  }
  return "";
}

}  // namespace

std::string slurm_words(const job::Job& job) {
  std::string words = job_of(job.events);
  for (const auto& [name, member] : kFields) {
    const std::string& value = job.spec.slurm.*member;
    if (!value.empty()) words += (words.empty() ? "" : ", ") + std::string(name) + " " + value;
  }
  return words;
}

}  // namespace muster::cli
