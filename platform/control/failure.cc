#include "control/failure.h"

#include <algorithm>
#include <deque>
#include <set>

#include "control/log_lines.h"

namespace muster::control {

using engine::RankPlace;

namespace {

// More than the last lines need, little enough to read at once.
constexpr size_t kBytesOfLastLines = 64 << 10;
constexpr size_t kLongestShownLine = 400;
constexpr size_t kReadLines = 80;  // mpirun's explanations are long
constexpr size_t kShownLines = 12;

struct Hint {
  std::string_view words;
  std::string_view advice;
};

// What mpirun says, and what a user of Muster does about it.
constexpr Hint kHints[] = {
    {"There are not enough slots available",
     "-np asks for more ranks than the workers have slots: raise --workers or --slots-per-worker, "
     "or lower -np"},
    {"could not access",
     "the program that mpirun was to run does not exist or is not executable; give its full path"},
    {"unrecognized argument", "mpirun does not know one of its options; see mpirun --help"},
    {"attempt to run as root", "add --allow-run-as-root to mpirun, or submit as a user"},
};

/// What of a task's lines is worth showing, and what to do about it where that is known.
struct Words {
  std::string advice;
  std::vector<std::string> shown;
};

std::vector<std::string> end_of(std::vector<std::string> lines) {
  if (lines.size() > kShownLines) lines.erase(lines.begin(), lines.end() - kShownLines);
  return lines;
}

/// From the words on that say what went wrong, where they are known; else the end.
Words words_of_launcher(std::vector<std::string> lines) {
  for (const Hint& hint : kHints) {
    const auto said = std::find_if(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(hint.words) != std::string::npos;
    });
    if (said == lines.end()) continue;
    lines.erase(lines.begin(), said);
    lines.resize(std::min(lines.size(), kShownLines));
    return {.advice = std::string(hint.advice), .shown = std::move(lines)};
  }
  return {.shown = end_of(std::move(lines))};
}

}  // namespace

std::vector<std::string> last_lines(engine::Engine& engine, const engine::Gang& gang,
                                    const job::Task& task) {
  auto cursor = engine.open_log(gang, task.name);
  if (!cursor) return {};
  std::deque<std::string> lines;
  const auto keep = [&](const job::LogRecord& record) {
    lines.push_back(record.text.substr(0, kLongestShownLine));
    if (lines.size() > kReadLines) lines.pop_front();
  };
  LineSplitter splitter(task.name, task.hostname);
  [[maybe_unused]] const auto near_end = (*cursor)->seek_near_end(kBytesOfLastLines);
  engine::LogFrame frame;
  while (true) {
    const auto more = (*cursor)->next(frame);
    if (!more || !*more) break;
    splitter.add(frame, keep);
  }
  splitter.flush(true, keep);
  return {lines.begin(), lines.end()};
}

std::string census_fault(const job::Job& job, const std::vector<RankPlace>& ranks) {
  if (job.spec.kind != job::Kind::kMpi || ranks.empty()) return "";
  const bool on_launcher_alone =
      std::all_of(ranks.begin(), ranks.end(),
                  [&](const RankPlace& rank) { return rank.task == job::deciding_task(job).name; });
  if (on_launcher_alone) {
    return "all ranks ran on the launcher and none on a worker: mpirun did not use the hostfile";
  }
  int world_size = 0;
  std::set<int> seen;
  for (const RankPlace& rank : ranks) {
    world_size = std::max(world_size, rank.world_size);
    seen.insert(rank.rank);
  }
  if (static_cast<int>(seen.size()) >= world_size) return "";
  return "only " + std::to_string(seen.size()) + " of " + std::to_string(world_size) +
         " ranks ever started";
}

job::Failure failure_of(const job::Task& task, std::vector<std::string> lines) {
  const job::ExitStatus status = task.exit.value_or(job::ExitStatus{.lost = true});
  Words words = task.role == job::Role::kLauncher ? words_of_launcher(std::move(lines))
                                                  : Words{.shown = end_of(std::move(lines))};
  if (status.succeeded() && words.advice.empty()) {
    words.advice =
        "the others still need it: let its command go on until it is stopped, as "
        "'sleep infinity' does, or a server that waits";
  }
  return {.task = task.name,
          .cause = task.name + " " + job::explain(status),
          .advice = words.advice.empty() ? job::advice_for(status) : std::move(words.advice),
          .last_lines = std::move(words.shown)};
}

}  // namespace muster::control
