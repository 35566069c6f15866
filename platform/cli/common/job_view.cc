#include "cli/common/job_view.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "cli/common/format.h"
#include "cli/common/output.h"
#include "job/job.h"
#include "words/sentence.h"

namespace muster::cli {

namespace {

using base::Time;

std::string words(std::string_view view) {
  return std::string(view);
}

/// In an elastic job, new workers may have replaced workers that left.
std::string tasks_running(const job::Job& job) {
  std::set<int> seats;
  int running = 0;
  for (const job::Task& task : job.tasks) {
    seats.insert(task.seat);
    if (task.phase == job::TaskPhase::kRunning && !task.left) ++running;
  }
  return std::to_string(running) + "/" + std::to_string(seats.size());
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
                                 phase_of(task), task.exit ? job::explain(*task.exit) : "-"};
    if (has_gpus) row.insert(row.begin() + 4, devices_of(task));
    table.add(std::move(row));
  }
  return table.to_string("  ");
}

std::string importance_words(const job::Scheduling& scheduling) {
  return std::to_string(job::priority_of(scheduling)) +
         (job::is_preemptible(scheduling) ? ", preemptible" : ", not preemptible");
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
  // Omits the progress column if no job reports progress.
  const bool has_progress =
      std::any_of(jobs.begin(), jobs.end(), [](const job::Job& job) { return !!job.progress; });
  std::vector<Column> columns{{"NAME"},        {"PROJECT"},   {"KIND"},           {"PHASE"},
                              {"TASKS", true}, {"AGE", true}, {"DURATION", true}, {"REASON"}};
  if (has_progress) columns.insert(columns.end() - 1, {"PROGRESS"});
  Table table(std::move(columns));
  for (const job::Job& job : jobs) {
    std::vector<std::string> row{
        job.spec.name,
        job.spec.project,
        job.unreadable ? "-" : words(job::to_string(job.spec.kind)),
        phase_word(job),
        job.unreadable ? "-" : tasks_running(job),
        age(job.submitted, now),
        run_time(job, now),
        job.failure ? words::sentence(job.failure->cause) : words::sentence(job.reason)};
    if (has_progress) {
      row.insert(row.end() - 1, job.progress ? progress_line(*job.progress, now) : "-");
    }
    table.add(std::move(row));
  }
  return table.to_string();
}

/// "rerun of train".
std::string origin_words(const job::Job& job) {
  if (!job.origin) return "";
  return std::string(record::word_for(job.origin->kind)) + " of " + job.origin->name;
}

std::string job_page(const job::Job& job, Time now) {
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
      {"ORIGIN", origin_words(job)},
      {"NEEDS", needs_words(job.spec)},
      {"PRIORITY", importance_words(job.spec.scheduling)},
      {"IMAGE", job.spec.image},
      {"RUNS AS", job.spec.user},
      {"CONTAINER", container_words(job.spec.container)},
      {"SLURM", slurm_words(job)},
      {"LAUNCH", launch_words(job)},
      {"COMMAND", command_of(job.spec)},
      {"FOLDER", job.spec.folder},
      {"SANDBOX", words(job::to_string(job.spec.sandbox))},
      {"LABELS", labels_of(job.spec)},
      {"SUBMITTED", moment_and_age(job.submitted, now)},
      {"STARTED", job.started ? moment_and_age(*job.started, now) : ""},
      {"ENDED", job.ended ? moment_and_age(*job.ended, now) : ""},
      {"KEPT", job.kept_until ? kept_words(*job.kept_until, now) : ""},
      {"DURATION", run_time(job, now)},
      {"PROGRESS", job.progress ? progress_line(*job.progress, now) : ""},
      {"ATTEMPT", job.attempt > 1 ? std::to_string(job.attempt) : ""},
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
