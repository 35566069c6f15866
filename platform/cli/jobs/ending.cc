// The commands stop and wait: end jobs, and wait for their end.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/array_wire.h"
#include "api/wire.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command/command.h"
#include "cli/common/array_view.h"
#include "cli/common/job_view.h"
#include "cli/common/output.h"
#include "cli/common/sweep_view.h"
#include "cli/common/terminal.h"
#include "cli/common/typed_input.h"
#include "cli/connection/connection.h"
#include "cli/jobs/arrays.h"
#include "cli/jobs/jobs.h"
#include "job/fact_parts.h"
#include "job/project.h"
#include "record/input.h"
#include "workspace/path_text.h"

namespace muster::cli::jobs {

using base::Error;
using base::ErrorCode;

// --- the commands

namespace {

constexpr const char* kPhasePrefix = "phase=";

std::vector<std::string> final_phase_words() {
  std::vector<std::string> words;
  for (const job::Phase phase : {job::Phase::kSucceeded, job::Phase::kFailed, job::Phase::kStopped})
    words.emplace_back(job::to_string(phase));
  return words;
}

Call read_stop(Reading& in) {
  return StopCommand{.names = in.names("job"),
                     .project = in.project_of_job(),
                     .now = in.reader.has("--now"),
                     .wait = in.reader.has("--wait"),
                     .output = in.output()};
}

}  // namespace

std::optional<job::Phase> phase_meant(std::string_view word) {
  std::string name = base::lower_case(word);
  if (!name.empty() && name[0] >= 'a' && name[0] <= 'z') {
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
  }
  return job::phase_of(name);
}

namespace {

JobGoal read_goal(FlagReader& reader) {
  const std::string text = reader.text("--for", "ended");
  if (text == "ended") return {.kind = JobGoal::Kind::kEnded};
  if (text == "started") return {.kind = JobGoal::Kind::kStarted};
  if (text.starts_with(kPhasePrefix)) {
    const std::string name = text.substr(std::string_view(kPhasePrefix).size());
    if (const auto phase = phase_meant(name)) {
      return {.kind = JobGoal::Kind::kPhase, .phase = *phase};
    }
    std::vector<std::string> phases{"Queued", "Starting", "Running"};
    for (std::string& word : final_phase_words()) phases.push_back(std::move(word));
    reader.fault("--for", record::not_a_choice(name, phases));
    return {};
  }
  reader.fault("--for", record::not_a_choice(text, {"started", "ended", "phase=PHASE"}));
  return {};
}

Call read_wait(Reading& in) {
  WaitCommand command{.names = in.names("job"),
                      .project = in.project_of_job(),
                      .goal = read_goal(in.reader),
                      .output = in.output()};
  if (in.reader.has("--timeout")) {
    command.timeout = in.reader.duration("--timeout", std::chrono::milliseconds(0));
  }
  return command;
}

}  // namespace

Command stop_command() {
  return {.name = "stop",
          .more_aliases = {"cancel", "kill"},
          .help = "stop jobs, arrays and sweeps: SIGTERM, then SIGKILL after the grace period",
          .read = read_stop,
          .positionals = some_of(Offer::kJobs),
          .flags = Flags{{.name = "--now", .help = "send SIGKILL at once"},
                         {.name = "--wait", .letter = "-w", .help = "wait until they have ended"}} +
                   job_project_flag() + output_flag(),
          .example = "muster stop dist --wait",
          .see_also = "muster wait, muster delete"};
}

Command wait_command() {
  std::vector<std::string> goals{"ended", "started"};
  for (const char* phase : {"Queued", "Starting", "Running"})
    goals.push_back(kPhasePrefix + std::string(phase));
  for (const std::string& phase : final_phase_words()) goals.push_back(kPhasePrefix + phase);
  return {
      .name = "wait",
      .help = "wait for jobs, arrays and sweeps, and exit with their exit code",
      .read = read_wait,
      .positionals = some_of(Offer::kJobs),
      .flags = Flags{{.name = "--for",
                      .value = "WHAT",
                      .help = "ended, started, or phase=PHASE (default: ended)",
                      .choices = goals,
                      .offer = Offer::kChoices},
                     {.name = "--timeout",
                      .value = "TIME",
                      .help = "exit with code 124 after this time, as in 30m; the jobs continue"}} +
               job_project_flag() + output_flag(),
      .example = "muster wait prepare train --timeout 2h",
      .see_also = "muster stop --wait, muster logs -f"};
}

// --- waiting
//
// The server's feed of changes is read: nothing is polled. A job is known by its id, so that a new
// job of the same name is not mistaken for it.

namespace {

enum class Standing { kWaiting, kReached, kMissed };

Standing standing_of(job::Phase phase, const JobGoal& goal) {
  const bool ended = job::is_final(phase);
  switch (goal.kind) {
    case JobGoal::Kind::kEnded:
      return ended ? Standing::kReached : Standing::kWaiting;
    case JobGoal::Kind::kStarted:
      if (phase == job::Phase::kRunning || phase == job::Phase::kSucceeded) {
        return Standing::kReached;
      }
      return ended ? Standing::kMissed : Standing::kWaiting;
    case JobGoal::Kind::kPhase:
      if (phase == goal.phase) return Standing::kReached;
      return ended ? Standing::kMissed : Standing::kWaiting;
  }
  return Standing::kWaiting;
}

job::Phase phase_of(const job::Job& job) {
  return job.phase;
}
job::Phase phase_of(const job::Array& array) {
  return array.phase;
}
job::Phase phase_of(const sweep::SweepSummary& sweep) {
  return sweep::job_phase(sweep.phase);
}

/// A job, an array or a sweep that a command waits for, in its newest state.
struct Waited {
  std::string id;
  std::string name;
  std::string project;
  std::variant<job::Job, job::Array, sweep::SweepSummary> state;

  job::Phase phase() const {
    return std::visit([](const auto& each) { return phase_of(each); }, state);
  }
  /// Of its end.
  int exit_code() const {
    if (const auto* const job = std::get_if<job::Job>(&state)) return exit_code_of(*job);
    return phase() == job::Phase::kSucceeded ? kExitDone : kExitFailed;
  }
};

Waited waited_for(job::Job job) {
  return {job.id, job.spec.name, job.spec.project, std::move(job)};
}
Waited waited_for(job::Array array) {
  return {array.id, array.spec.name, array.spec.project, std::move(array)};
}
Waited waited_for(sweep::SweepSummary sweep) {
  return {sweep.id, sweep.name, sweep.project, std::move(sweep)};
}

bool is_same_member(const Waited& before, const Waited& now) {
  const auto* const one = std::get_if<job::Job>(&before.state);
  const auto* const other = std::get_if<job::Job>(&now.state);
  return one != nullptr && other != nullptr && one->origin && one->origin == other->origin &&
         one->origin->kind == job::JobOrigin::Kind::kArray;
}

std::string_view kind_word(const Waited& waited) {
  constexpr std::array<std::string_view, 3> kWords{"job", "array", "sweep"};
  return kWords.at(waited.state.index());
}

/// The exit code for an object whose wait is over.
int code_of_wait(const Waited& waited, const JobGoal& goal) {
  if (standing_of(waited.phase(), goal) == Standing::kReached) {
    return goal.kind == JobGoal::Kind::kEnded ? waited.exit_code() : kExitDone;
  }
  const int code = waited.exit_code();
  return code == kExitDone ? kExitFailed : code;
}

/// "train: Failed, exit code 3", or of an array "train: 40 of 100 done: ...".
std::string line_of_wait(const Waited& waited) {
  if (const auto* const array = std::get_if<job::Array>(&waited.state)) {
    return waited.name + ": " + array_counts(*array) + "\n";
  }
  if (const auto* const sweep = std::get_if<sweep::SweepSummary>(&waited.state)) {
    return waited.name + ": " + sweep_line(*sweep) + "\n";
  }
  const auto& job = std::get<job::Job>(waited.state);
  std::string line = waited.name + ": " + std::string(job::to_string(job.phase));
  if (job::is_final(job.phase) && job.exit_code.value_or(0) != 0) {
    line += ", exit code " + std::to_string(*job.exit_code);
  }
  return line + "\n";
}

/// Waits until each of several jobs, arrays and sweeps has reached a goal, or can no longer reach it.
class JobWait {
 public:
  enum class End { kDone, kTimeout, kInterrupted };
  using OnDone = std::function<void(const Waited& waited)>;

  /// `all`: in the order of the command line.
  JobWait(Connection& connection, std::vector<Waited> all, JobGoal goal, OnDone on_done)
      : connection_(connection), all_(std::move(all)), goal_(goal), on_done_(std::move(on_done)) {}

  Result<End> run(std::optional<std::chrono::milliseconds> timeout) {
    const auto deadline =
        timeout ? std::optional(std::chrono::steady_clock::now() + *timeout) : std::nullopt;
    Interrupts interrupts;
    for (const Waited& waited : all_) note_if_done(waited);
    std::set<std::string> projects;
    for (const Waited& waited : all_) {
      if (!done_.contains(waited.id)) projects.insert(waited.project);
    }
    if (projects.empty()) return End::kDone;
    if (projects.size() == 1) project_ = *projects.begin();
    JobWatch watch{.project = project_, .names = watched_names()};
    watch.on_job = [this](const std::string& name, const job::Job* job) {
      if (job != nullptr) {
        take(waited_for(*job));
      } else {
        note_deleted(name);
      }
      return !waiting().empty();
    };
    watch.on_array = [this](const std::string& /*name*/, const job::Array& array) {
      take(waited_for(array));
      return !waiting().empty();
    };
    watch.on_sweep = [this](const std::string& /*name*/, const sweep::SweepSummary& sweep) {
      take(waited_for(sweep));
      return !waiting().empty();
    };
    watch.interrupts = &interrupts;
    if (deadline) {
      watch.bound = std::max(std::chrono::milliseconds(1),
                             std::chrono::duration_cast<std::chrono::milliseconds>(
                                 *deadline - std::chrono::steady_clock::now()));
    }
    MUSTER_TRY(const WatchEnd end, watch_jobs(connection_, watch));
    if (end == WatchEnd::kInterrupted) return End::kInterrupted;
    if (end == WatchEnd::kBoundReached) return End::kTimeout;
    return End::kDone;
  }

  /// As JSON.
  std::string document() const {
    Documents all;
    for (const Waited& waited : all_) {
      if (const auto* const job = std::get_if<job::Job>(&waited.state)) {
        all.jobs.push_back(api::job_to_json(*job));
      } else if (const auto* const array = std::get_if<job::Array>(&waited.state)) {
        all.arrays.push_back(api::array_to_json(*array));
      } else {
        all.sweeps.push_back(record::to_json(std::get<sweep::SweepSummary>(waited.state)));
      }
    }
    return all.to_json();
  }

  std::set<std::string> waiting() const {
    std::set<std::string> names;
    for (const Waited& waited : all_) {
      if (!done_.contains(waited.id)) names.insert(waited.name);
    }
    return names;
  }

  /// The first exit code that is not 0, in the order of the command line.
  int code() const {
    for (const Waited& waited : all_) {
      const int code = deleted_.contains(waited.id) ? kExitNotFound : code_of_wait(waited, goal_);
      if (code != kExitDone) return code;
    }
    return kExitDone;
  }

 private:
  /// As in JobWatch::names.
  std::string watched_name(const std::string& project, const std::string& name) const {
    return project_.empty() ? project + "/" + name : name;
  }

  std::set<std::string> watched_names() const {
    std::set<std::string> names;
    for (const Waited& waited : all_) {
      if (!done_.contains(waited.id)) names.insert(watched_name(waited.project, waited.name));
    }
    return names;
  }

  /// The newest state of a job or an array. One with another id has replaced it, unless it is the
  /// same member of an array, which gets an id of its own when it becomes a job.
  void take(const Waited& news) {
    bool is_known = false;
    for (Waited& waited : all_) {  // the same one may be named more than once
      const bool is_it = waited.id == news.id || is_same_member(waited, news);
      if (!is_it || done_.contains(waited.id)) continue;
      is_known = true;
      waited.id = news.id;
      waited.state = news.state;
      note_if_done(waited);
    }
    if (!is_known) note_deleted(watched_name(news.project, news.name));
  }

  void note_if_done(const Waited& waited) {
    if (done_.contains(waited.id) || standing_of(waited.phase(), goal_) == Standing::kWaiting) {
      return;
    }
    done_.insert(waited.id);
    on_done_(waited);
  }

  void note_deleted(const std::string& name) {
    for (const Waited& waited : all_) {
      const bool is_it = watched_name(waited.project, waited.name) == name;
      if (!is_it || done_.contains(waited.id)) continue;
      done_.insert(waited.id);
      deleted_.insert(waited.id);
      std::cerr << "muster: " << kind_word(waited) << " '" << waited.name << "' was deleted"
                << std::endl;
    }
  }

  Connection& connection_;
  std::vector<Waited> all_;
  JobGoal goal_;
  OnDone on_done_;
  std::string project_;            ///< of all that are watched; empty: several
  std::set<std::string> done_;     ///< ids
  std::set<std::string> deleted_;  ///< ids of jobs that were deleted during the wait
};

/// An array or a sweep. Errors: `of_job`, if there is neither.
Result<Waited> other_named(Connection& connection, const std::string& name, const Error& of_job) {
  MUSTER_TRY(auto array, instead_of_job(connection, of_job,
                                        [&](api::Client& client) { return client.array(name); }));
  if (array) return waited_for(*std::move(array));
  MUSTER_TRY(auto sweep, instead_of_job(connection, of_job,
                                        [&](api::Client& client) { return client.sweep(name); }));
  if (sweep) return waited_for(std::move(sweep->summary));
  return of_job;
}

/// The jobs, arrays and sweeps of these names or ids. Errors: the first that does not exist.
Result<std::vector<Waited>> all_named(Connection& connection,
                                      const std::vector<std::string>& names) {
  std::vector<Waited> all;
  for (const std::string& name : names) {
    auto job = connection.call([&](api::Client& client) { return client.get(name); });
    if (job) {
      all.push_back(waited_for(*std::move(job)));
      continue;
    }
    MUSTER_TRY(Waited other, other_named(connection, name, job.error()));
    all.push_back(std::move(other));
  }
  return all;
}

void print_safely(const std::string& text) {
  std::cerr << (terminal_of(STDERR_FILENO).is_terminal ? safe_lines(text) : text) << std::flush;
}

std::string goal_words(const JobGoal& goal) {
  if (goal.kind == JobGoal::Kind::kEnded) return "has not ended";
  if (goal.kind == JobGoal::Kind::kStarted) return "has not started";
  return "is not " + std::string(job::to_string(goal.phase));
}

}  // namespace

Result<int> execute(const WaitCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  MUSTER_TRY(std::vector<Waited> all, all_named(connection, command.names));
  JobWait wait(connection, std::move(all), command.goal, [&](const Waited& waited) {
    if (command.output == Output::kTable) (void)show(line_of_wait(waited));
    if (const auto* const job = std::get_if<job::Job>(&waited.state)) {
      print_safely(failure_text(*job));
    }
  });
  MUSTER_TRY(const JobWait::End end, wait.run(command.timeout));
  if (command.output != Output::kTable) MUSTER_CHECK(show(command.output, "", wait.document()));
  if (end == JobWait::End::kInterrupted) {
    std::cerr << "muster: interrupted; the jobs continue" << std::endl;
    return kExitInterrupted;
  }
  if (end == JobWait::End::kTimeout) {
    for (const std::string& name : wait.waiting()) {
      std::cerr << "muster: job '" << name << "' " << goal_words(command.goal) << " after "
                << base::format_duration(*command.timeout) << "; it continues" << std::endl;
    }
    return kExitTimeout;
  }
  return wait.code();
}

Result<int> wait_for_sweep(Connection& connection, const sweep::SweepSummary& sweep,
                           std::optional<std::chrono::milliseconds> timeout) {
  JobWait wait(connection, {waited_for(sweep)}, {}, [](const Waited& /*waited*/) {});
  MUSTER_TRY(const JobWait::End end, wait.run(timeout));
  if (end == JobWait::End::kDone) return wait.code();
  std::cerr << "muster: sweep '" << sweep.name << "' has not ended" << std::endl;
  return end == JobWait::End::kTimeout ? kExitTimeout : kExitInterrupted;
}

// --- stop

namespace {

std::string stop_text(const job::Job& job) {
  if (!job::is_final(job.phase)) return "stopping " + job.spec.name + "\n";
  return job.spec.name + " has ended: " + std::string(job::to_string(job.phase)) + "\n";
}

std::string stop_text(const Waited& waited) {
  if (const auto* const job = std::get_if<job::Job>(&waited.state)) return stop_text(*job);
  if (const auto* const array = std::get_if<job::Array>(&waited.state)) {
    return array_stop_text(*array);
  }
  const auto& sweep = std::get<sweep::SweepSummary>(waited.state);
  return sweep.name + " has ended: " + sweep_line(sweep) + "\n";
}

}  // namespace

Result<int> execute(const StopCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  const NamedChange stop{
      .of_job = [&](api::Client& client,
                    const std::string& name) { return client.stop(name, command.now); },
      .of_array = [&](api::Client& client,
                      const std::string& name) { return client.stop_array(name, command.now); },
      .of_sweep = [&](api::Client& client,
                      const std::string& name) { return client.change_sweep(name, "stop"); },
      .job_line = [](const job::Job& job) { return stop_text(job); },
      .array_line = array_stop_text};
  if (!command.wait) return change_each(connection, command.names, command.output, stop);
  std::vector<Waited> stopped;
  const int code = for_each_name(command.names, [&](const std::string& name) -> Result<void> {
    auto job = connection.call([&](api::Client& client) { return stop.of_job(client, name); });
    if (job) {
      stopped.push_back(waited_for(*std::move(job)));
      return {};
    }
    MUSTER_TRY(auto array, instead_of_job(connection, job.error(), [&](api::Client& client) {
                 return stop.of_array(client, name);
               }));
    if (array) {
      stopped.push_back(waited_for(*std::move(array)));
      return {};
    }
    MUSTER_TRY(auto sweep, instead_of_job(connection, job.error(), [&](api::Client& client) {
                 return stop.of_sweep(client, name);
               }));
    if (!sweep) return std::move(job).error();
    MUSTER_CHECK(wait_for_trials(connection, sweep->summary));
    stopped.push_back(waited_for(std::move(sweep->summary)));
    return {};
  });
  JobWait wait(connection, std::move(stopped), {}, [&](const Waited& waited) {
    if (command.output == Output::kTable) (void)show(stop_text(waited));
  });
  MUSTER_TRY(const JobWait::End end, wait.run(std::nullopt));
  if (command.output != Output::kTable) MUSTER_CHECK(show(command.output, "", wait.document()));
  if (end != JobWait::End::kInterrupted) return code;
  std::cerr << "muster: interrupted; the jobs are still being stopped" << std::endl;
  return kExitInterrupted;
}

}  // namespace muster::cli::jobs
