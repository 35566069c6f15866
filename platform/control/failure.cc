#include "control/failure.h"

#include <algorithm>
#include <csignal>
#include <deque>
#include <set>

#include "base/units.h"
#include "control/failure_clues.h"
#include "control/launcher_reports.h"
#include "launch/plan_task.h"
#include "logs/log_lines.h"

namespace muster::control {

using engine::RankPlace;

namespace {

// More than the last lines need, and little enough to read at once.
constexpr size_t kBytesOfLastLines = 64 << 10;
constexpr size_t kBytesOfLastLinesOfRank = 1 << 20;
constexpr size_t kLongestShownLine = 400;
constexpr size_t kReadLines = 80;  // mpirun's explanations are long
// torchrun's report, and a traceback of each of its ranks.
constexpr size_t kReadLinesOfEnd = 1000;
constexpr size_t kShownLines = 12;

constexpr const char* kFinalize =
    "every rank of an MPI program must call MPI_Init, and MPI_Finalize before every exit";

/// The lines of a task that are shown, their meaning, and the advice.
struct LogSummary {
  std::string meaning;
  std::string advice;
  std::vector<std::string> shown;
  /// The code is one of mpirun's own, which look like codes of signals; or the program did not
  /// start.
  bool overrides_code = false;
};

Surroundings surroundings_of(const Evidence& evidence) {
  if (!evidence.container) return Surroundings::kMachine;
  return evidence.container->is_writable ? Surroundings::kWritableImage : Surroundings::kImage;
}

/// The lines from `begin` on, or the last lines if there are few.
std::vector<std::string> window(std::vector<std::string> lines, size_t begin) {
  lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(begin));
  lines.resize(std::min(lines.size(), kShownLines));
  return lines;
}

/// The explanation of mpirun that begins there.
std::vector<std::string> explanation_from(std::vector<std::string> lines, size_t begin) {
  lines.resize(end_of_explanation(lines, begin));
  return window(std::move(lines), begin);
}

std::vector<std::string> end_of(std::vector<std::string> lines) {
  const size_t begin = lines.size() - std::min(lines.size(), kShownLines);
  return window(std::move(lines), begin);
}

/// The important line is the last of a traceback, and the first of any other message.
std::vector<std::string> around(const Clue& clue, std::vector<std::string> lines) {
  const bool is_near_end = lines.size() - clue.begin <= kShownLines;
  if (is_near_end) return end_of(std::move(lines));
  lines.resize(std::min(lines.size(), clue.end + 1));
  if (clue.end - clue.begin >= kShownLines) return end_of(std::move(lines));
  return window(std::move(lines), clue.begin);
}

/// From the line of the error on, if it is known; else the last lines.
LogSummary summary_of_lines(std::vector<std::string> lines, Printers printers,
                            Surroundings surroundings) {
  auto clue = clue_in(lines, printers, surroundings);
  if (!clue) return {.meaning = {}, .advice = {}, .shown = end_of(std::move(lines))};
  return {.meaning = std::move(clue->words),
          .advice = std::move(clue->advice),
          .shown = around(*clue, std::move(lines)),
          .overrides_code = clue->overrides_code};
}

LogSummary summary_of_launcher(std::vector<std::string> lines, Surroundings surroundings) {
  auto clue = clue_of_mpirun(lines);
  if (!clue) {
    // mpirun reports at length what followed from the message of ssh, say, that names the cause.
    LastLines of_others = without_launcher_words(lines);
    const bool names_cause = clue_in(of_others, Printers::kSeveral, surroundings).has_value();
    return summary_of_lines(names_cause ? std::move(of_others) : std::move(lines),
                            Printers::kSeveral, surroundings);
  }
  return {.meaning = clue->words,
          .advice = std::move(clue->advice),
          .shown = explanation_from(std::move(lines), clue->begin),
          .overrides_code = !clue->words.empty()};
}

/// The output of a rank. If it went through the launcher: the launcher's log without the launcher's
/// own messages.
LogSummary summary_of_rank(const Evidence& evidence) {
  const Surroundings surroundings = surroundings_of(evidence);
  if (!evidence.rank_lines.empty()) {
    return summary_of_lines(evidence.rank_lines, Printers::kOneProcess, surroundings);
  }
  LogSummary words =
      summary_of_lines(without_launcher_words(evidence.untagged.value_or(evidence.lines)),
                       Printers::kSeveral, surroundings);
  const bool is_elsewhere = evidence.where && evidence.where->name != evidence.task.name;
  if (!is_elsewhere) return words;
  for (std::string& line : words.shown) line = "[" + evidence.task.name + "] " + line;
  return words;
}

/// Exit codes that only mean failure: the last lines explain them. Signals come from outside,
/// except the one of abort().
bool is_explained_by_lines(const job::ExitStatus& status) {
  // A process that was refused may be one of many, and another fault the cause.
  const bool was_refused = status.limit && status.limit->limit == job::Limit::kProcesses;
  return status.signal == SIGABRT ||
         (status.signal == 0 && (was_refused || !job::names_cause(status)));
}

std::string advice_for(const job::ExitStatus& status, const std::optional<Container>& container) {
  if (!container || status.lost) return job::advice_for(status);
  if (status.out_of_memory) {
    return "request more --memory, or use a smaller batch or fewer processes in a container";
  }
  if (status.limit) return job::advice_for(status);
  if (job::was_killed(status) && !status.stopped) {
    return "Muster did not send that signal: the kernel sends it when memory runs out (dmesg on "
           "the host shows it), or a user ended the container";
  }
  if (job::was_not_found(status)) {
    return "check the spelling, give the full path, or use an image that has the program";
  }
  return job::advice_for(status);
}

job::TaskFailed cause_of_end(std::string task, const job::ExitStatus& status,
                             const LogSummary& words, const Evidence& evidence) {
  job::TaskFailed cause{
      .task = std::move(task), .exit = status, .exited_before = evidence.exited_before};
  if (const auto& container = evidence.container) {
    cause.image = container->image;
    const bool lacks_limit = status.out_of_memory && !status.limit && container->memory_bytes > 0;
    if (lacks_limit) cause.exit.limit = {job::Limit::kMemory, container->memory_bytes};
  }
  cause.clue_explains_code = words.overrides_code && status.signal == 0 && status.advice.empty();
  if (cause.clue_explains_code || is_explained_by_lines(status)) cause.clue = words.meaning;
  return cause;
}

/// The advice by the lines, unless the exit is more specific.
std::string advice_of(const job::ExitStatus& status, const LogSummary& words,
                      const Evidence& evidence) {
  std::string advice = advice_for(status, evidence.container);
  const bool is_exit_specific = status.signal == SIGKILL || status.out_of_memory || status.limit ||
                                status.lost || !status.advice.empty();
  if (!words.advice.empty() && (!is_exit_specific || advice.empty())) advice = words.advice;
  if (!advice.empty() || evidence.exited_before.empty()) return advice;
  return "the other tasks still needed " + evidence.exited_before +
         ": its log may show why it ended first; a common reason is that it had fewer batches";
}

job::Failure failure_of_rank(const Evidence& evidence) {
  const RankEnd& end = *evidence.rank;
  job::ExitStatus status = end.status;
  // The kernel's out-of-memory killer leaves no other trace in the process.
  const auto& around = evidence.where ? evidence.where->exit : evidence.task.exit;
  status.out_of_memory = job::was_killed(status) && around && around->out_of_memory;
  if (status.out_of_memory) status.limit = around->limit;
  LogSummary words = summary_of_rank(evidence);
  job::TaskFailed cause =
      cause_of_end(evidence.where ? evidence.where->name : "", status, words, evidence);
  cause.is_rank = true;
  cause.rank = end.rank;
  std::string advice = end.aborted ? words.advice : advice_of(status, words, evidence);
  if (end.aborted) cause.how = job::TaskFailed::How::kAborted;
  if (end.unfinalized) {
    cause.how = job::TaskFailed::How::kUnfinalized;
    if (words.advice.empty()) advice = kFinalize;
  }
  if (cause.how != job::TaskFailed::How::kEnded) cause.clue = words.meaning;
  return {.task = evidence.where ? evidence.where->name : evidence.task.name,
          .rank = end.rank,
          .cause = std::move(cause),
          .advice = std::move(advice),
          .last_lines = std::move(words.shown)};
}

/// The worker runs, but its launcher cannot reach it.
job::Failure failure_of_lost_host(const Evidence& evidence) {
  const job::Task& launcher = evidence.task;
  const job::ExitStatus status = launcher.exit.value_or(job::ExitStatus{.lost = true});
  const std::string node =
      evidence.where && !evidence.where->node.empty() ? " on " + evidence.where->node : "";
  return {.task = evidence.where ? evidence.where->name : launcher.name,
          .rank = {},
          .cause = job::WorkerUnreachable{.task = evidence.where ? evidence.where->name : "",
                                          .host = *evidence.lost_host,
                                          .launcher = launcher.name,
                                          .exit = status},
          .advice = "a user or the kernel ended that process (out of memory: see dmesg" + node +
                    "), or the network between the tasks failed",
          .last_lines = end_of(evidence.lines)};
}

/// The lines of a log that are read.
struct LineFilter {
  enum class Ranks { kAll, kOne, kNone } ranks = Ranks::kAll;
  int rank = 0;  ///< of kOne

  bool matches(const engine::LogFrame& frame) const {
    if (ranks == Ranks::kOne) return frame.rank == rank;
    return ranks == Ranks::kAll || !frame.rank;
  }
};

/// The last lines of a task, at most `most`.
TimedLines read_timed_lines(engine::Engine& engine, const engine::GangId& gang,
                            const job::Task& task, LineFilter filter, size_t most) {
  auto cursor = engine.open_log(gang, task.name);
  if (!cursor) return {};
  std::deque<std::string> lines;
  std::deque<base::Time> times;
  const auto keep = [&](const job::LogRecord& record) {
    lines.push_back(record.text.substr(0, kLongestShownLine));
    times.push_back(record.time);
    if (lines.size() <= most) return;
    lines.pop_front();
    times.pop_front();
  };
  logs::LineSplitter splitter(task.name, task.hostname);
  // One rank among many has fewer lines near the end of the log.
  const size_t bytes =
      filter.ranks == LineFilter::Ranks::kOne ? kBytesOfLastLinesOfRank : kBytesOfLastLines;
  [[maybe_unused]] const auto near_end = (*cursor)->seek_near_end(bytes);
  engine::LogFrame frame;
  while (true) {
    const auto more = (*cursor)->next(frame);
    if (!more || !*more) break;
    if (filter.matches(frame)) splitter.add(frame, keep);
  }
  splitter.flush(true, keep);
  return {.lines = {lines.begin(), lines.end()}, .times = {times.begin(), times.end()}};
}

std::vector<std::string> read_last_lines(engine::Engine& engine, const engine::GangId& gang,
                                         const job::Task& task, LineFilter filter) {
  return read_timed_lines(engine, gang, task, filter, kReadLines).lines;
}

/// The task that a rank ran in: by the census, or by the host that its launcher names.
std::optional<job::Task> task_of(const RankEnd& end, const std::vector<RankPlace>& ranks,
                                 const job::Job& job) {
  const auto of_rank = std::find_if(ranks.begin(), ranks.end(), [&](const RankPlace& place) {
    return end.rank && place.rank == *end.rank;
  });
  for (const job::Task& task : job.tasks) {
    const bool is_it =
        of_rank != ranks.end() ? task.name == of_rank->task : task.hostname == end.host;
    if (is_it) return task;
  }
  return std::nullopt;
}

/// The task that answers at a host name or an address.
std::optional<job::Task> task_at(const std::string& host, const job::Job& job,
                                 const TasksByAddress& addresses) {
  const auto known = addresses.find(host);
  for (const job::Task& task : job.tasks) {
    const bool is_it =
        known == addresses.end() ? task.hostname == host : task.name == known->second;
    if (is_it) return task;
  }
  return std::nullopt;
}

/// Whether the task starts other processes and reports their ends. An MPI launcher reports on the
/// workers of its job.
bool reports_on_ranks(const job::Job& job, const job::Task& task) {
  const bool is_reached = job.spec.kind == job::Kind::kMpi && task.role == job::TaskRole::kWorker;
  return !is_reached && task.exit && !task.exit->lost && !task.exit->stopped;
}

Container container_of(const job::JobSpec& spec, job::TaskRole role) {
  return {.image = launch::image_of(spec, role),
          .is_writable = spec.container.writable_root,
          .memory_bytes = job::resources_of(spec, role).memory_bytes};
}

}  // namespace

std::vector<std::string> last_lines(engine::Engine& engine, const engine::GangId& gang,
                                    const job::Task& task) {
  return read_last_lines(engine, gang, task, {});
}

PrintedEnd printed_end(engine::Engine& engine, const engine::GangId& gang, const job::Job& job,
                       const job::Task& task) {
  const TimedLines printed = read_timed_lines(engine, gang, task, {}, kReadLinesOfEnd);
  // torchrun starts several processes; the other programs are one process each.
  const Printers printers =
      job.spec.kind == job::Kind::kTorch ? Printers::kSeveral : Printers::kOneProcess;
  return {.error = error_in(printed, printers), .report = first_failed(printed.lines)};
}

Evidence evidence_of(engine::Engine& engine, const engine::GangId& gang, const job::Job& job,
                     const job::Task& culprit, const TasksByAddress& addresses) {
  Evidence evidence{.task = culprit, .lines = last_lines(engine, gang, culprit)};
  if (engine.runs_images()) evidence.container = container_of(job.spec, culprit.role);
  if (!reports_on_ranks(job, culprit)) return evidence;
  const job::Task* const early = exited_before(job, culprit);
  if (early != nullptr && !job::was_killed(*culprit.exit) &&
      reports_loss(printed_end(engine, gang, job, culprit))) {
    evidence.exited_before = early->name;
  }
  evidence.rank = first_failed(evidence.lines);
  if (!evidence.rank) {
    evidence.lost_host = lost_host_in(evidence.lines);
    if (evidence.lost_host) evidence.where = task_at(*evidence.lost_host, job, addresses);
    return evidence;
  }
  std::vector<std::string> names;
  for (const job::Task& task : job.tasks) names.push_back(task.name);
  evidence.where = task_of(*evidence.rank, engine.ranks(gang, names), job);
  if (!evidence.where && job.spec.kind != job::Kind::kMpi) evidence.where = culprit;
  if (evidence.container && evidence.where) {
    evidence.container = container_of(job.spec, evidence.where->role);
  }
  if (!evidence.rank->rank) return evidence;
  // The lines are in the log of the rank's task, or tagged in the log of its launcher.
  const LineFilter of_rank{.ranks = LineFilter::Ranks::kOne, .rank = *evidence.rank->rank};
  if (evidence.where) {
    evidence.rank_lines = read_last_lines(engine, gang, *evidence.where, of_rank);
  }
  if (evidence.rank_lines.empty()) {
    evidence.rank_lines = read_last_lines(engine, gang, culprit, of_rank);
  }
  if (evidence.rank_lines.empty()) {
    evidence.untagged = read_last_lines(engine, gang, culprit, {.ranks = LineFilter::Ranks::kNone});
  }
  return evidence;
}

job::Failure failure_of(const Evidence& found) {
  Evidence evidence = found;
  for (auto* lines : {&evidence.lines, &evidence.rank_lines}) {
    std::erase_if(*lines, is_harmless_remark);
  }
  if (evidence.untagged) std::erase_if(*evidence.untagged, is_harmless_remark);
  if (evidence.rank) return failure_of_rank(evidence);
  if (evidence.lost_host) return failure_of_lost_host(evidence);
  const job::Task& task = evidence.task;
  const job::ExitStatus status = task.exit.value_or(job::ExitStatus{.lost = true});
  const Surroundings surroundings = surroundings_of(evidence);
  LogSummary words = task.role == job::TaskRole::kLauncher
                         ? summary_of_launcher(evidence.lines, surroundings)
                         : summary_of_lines(evidence.lines, Printers::kOneProcess, surroundings);
  std::string advice = advice_of(status, words, evidence);
  if (status.succeeded()) {
    words.meaning.clear();
    advice =
        "the other tasks still need this task: its command must run until Muster stops it, as "
        "'sleep infinity' or a server does";
  }
  return {.task = task.name,
          .cause = cause_of_end(task.name, status, words, evidence),
          .advice = std::move(advice),
          .last_lines = std::move(words.shown)};
}

job::Failure failure_of(const job::Task& task, std::vector<std::string> lines) {
  return failure_of(Evidence{.task = task, .lines = std::move(lines)});
}

std::vector<std::string> lines_of(const Evidence& evidence) {
  std::vector<std::string> lines = evidence.lines;
  lines.insert(lines.end(), evidence.rank_lines.begin(), evidence.rank_lines.end());
  return lines;
}

job::Task culprit_of(const Evidence& evidence) {
  job::Task culprit = evidence.task;
  if (evidence.where) culprit.node = evidence.where->node;
  return culprit;
}

}  // namespace muster::control
