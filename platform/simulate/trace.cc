#include "simulate/trace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "schedule/model.h"
#include "schedule/nodes.h"

namespace muster::simulate {

using base::Fault;
using base::Result;

namespace {

constexpr const char* kWhat = "the trace";
// Three years: a larger number is a date, or has another unit.
constexpr double kMostSeconds = 1e8;
constexpr int64_t kMostGpus = 1'000'000;
constexpr int64_t kMostTraceTasks = 100'000;
constexpr int64_t kMostPriority = 1000;
constexpr double kMostCpus = 1e6;

class Reader {
 public:
  Reader(const CsvTable& table, std::vector<Fault>& faults) : table_(table), faults_(faults) {}

  TraceJob read(const CsvRow& row) {
    TraceJob job{.line = row.line};
    job.submit = seconds(row, "submit_s");
    job.duration = seconds(row, "duration_s");
    read_gpus(row, job);
    job.project = table_.text(row, "project");
    if (job.project.empty()) fault(row, "project", "is empty");
    read_shape(row, job);
    if (given(row, "priority"))
      job.priority =
          static_cast<int>(table_.whole(row, "priority", {.most = kMostPriority}, faults_));
    if (given(row, "time_limit_s")) job.time_limit = seconds(row, "time_limit_s");
    return job;
  }

 private:
  bool given(const CsvRow& row, std::string_view column) const {
    return !table_.text(row, column).empty();
  }

  void fault(const CsvRow& row, std::string field, std::string what) {
    faults_.push_back({.field = std::move(field), .what = std::move(what), .line = row.line});
  }

  milliseconds seconds(const CsvRow& row, std::string_view column) {
    const double value = table_.decimal(row, column, faults_);
    if (value > kMostSeconds) {
      fault(row, std::string(column), "is more than three years");
      return milliseconds(0);
    }
    return milliseconds(std::llround(value * 1000));
  }

  void read_gpus(const CsvRow& row, TraceJob& job) {
    const double gpus = table_.decimal(row, "gpus", faults_);
    const double whole = std::floor(gpus);
    if (gpus > static_cast<double>(kMostGpus)) {
      fault(row, "gpus", "is more than " + std::to_string(kMostGpus));
    } else if (gpus == whole) {
      job.gpus = static_cast<int>(whole);
    } else if (whole == 0 && std::lround(gpus * schedule::kWholeGpu) % schedule::kWholeGpu != 0) {
      job.gpu_share_milli = static_cast<int>(std::lround(gpus * schedule::kWholeGpu));
    } else {
      fault(row, "gpus",
            "'" + std::string(table_.text(row, "gpus")) +
                "' are not a whole number or a fraction in thousandths");
    }
  }

  void read_shape(const CsvRow& row, TraceJob& job) {
    if (given(row, "tasks"))
      job.tasks = static_cast<int>(
          table_.whole(row, "tasks", {.least = 1, .most = kMostTraceTasks}, faults_));
    if (given(row, "cpus")) {
      const double cpus = table_.decimal(row, "cpus", faults_);
      if (cpus > kMostCpus)
        fault(row, "cpus", "is more than a million");
      else
        job.cpu_milli = std::llround(cpus * 1000);
    }
    if (given(row, "memory")) {
      const auto bytes = base::parse_bytes(table_.text(row, "memory"));
      if (bytes)
        job.memory_bytes = *bytes;
      else
        fault(row, "memory", bytes.error().what);
    }
  }

  const CsvTable& table_;
  std::vector<Fault>& faults_;
};

}  // namespace

Result<std::vector<TraceJob>> parse_trace(std::string_view text) {
  MUSTER_TRY(const CsvTable table,
             parse_csv(text, kWhat, {"submit_s", "duration_s", "gpus", "project"}));
  std::vector<Fault> faults = table.row_faults;
  Reader reader(table, faults);
  std::vector<TraceJob> jobs;
  jobs.reserve(table.rows.size());
  for (const CsvRow& row : table.rows) jobs.push_back(reader.read(row));
  if (jobs.empty() && faults.empty()) faults.push_back({.what = "it contains no job"});
  if (!faults.empty()) return csv_error(kWhat, std::move(faults));
  return jobs;
}

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Takes rows off the front of a text, keeping count of lines.
class RowReader {
 public:
  explicit RowReader(std::string_view text) : rest_(text) {
    if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
  }

  /// Nothing at the end. Empty lines are not rows.
  std::optional<CsvRow> next(std::vector<base::Fault>& faults) {
    while (!rest_.empty()) {
      CsvRow row{.line = line_, .cells = {}};
      while (read_cell(row, faults)) {
      }
      if (row.cells.size() > 1 || !row.cells.front().empty()) return row;
    }
    return std::nullopt;
  }

 private:
  /// Whether another cell follows in the row.
  bool read_cell(CsvRow& row, std::vector<base::Fault>& faults) {
    std::string cell;
    if (rest_.starts_with('"')) read_quoted(cell, faults);
    const size_t end = std::min(rest_.find_first_of(",\n"), rest_.size());
    cell += rest_.substr(0, end);
    const bool goes_on = end < rest_.size() && rest_[end] == ',';
    if (!goes_on && cell.ends_with('\r')) cell.pop_back();
    if (end < rest_.size() && !goes_on) ++line_;
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    row.cells.push_back(std::move(cell));
    if (goes_on && rest_.empty()) row.cells.emplace_back();  // the last cell of all is empty
    return goes_on && !rest_.empty();
  }

  void read_quoted(std::string& cell, std::vector<base::Fault>& faults) {
    const int opened = line_;
    rest_.remove_prefix(1);
    while (!rest_.empty()) {
      const char character = rest_.front();
      rest_.remove_prefix(1);
      if (character == '"') {
        if (!rest_.starts_with('"')) return;
        rest_.remove_prefix(1);
      }
      if (character == '\n') ++line_;
      cell += character;
    }
    faults.push_back({.field = "", .what = "a quote is not closed", .line = opened});
  }

  std::string_view rest_;
  int line_ = 1;
};

std::string_view without_blanks(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

void check_columns(const CsvTable& table, const std::vector<std::string>& required,
                   std::vector<base::Fault>& faults) {
  for (const std::string& name : required) {
    if (table.has(name)) continue;
    const std::string meant = base::nearest(name, table.columns);
    faults.push_back({.field = name,
                      .what = "the column is missing" +
                              (meant.empty() ? std::string() : "; there is one named " + meant),
                      .line = 1});
  }
}

template <class Number>
bool parse_number(std::string_view text, Number& value) {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stopped, error] = std::from_chars(begin, end, value);
  return error == std::errc() && stopped == end;
}

base::Fault bad_cell(const CsvRow& row, std::string_view column, std::string_view cell,
                     const std::string& expected) {
  return {.field = std::string(column),
          .what = "'" + std::string(cell) + "' is not " + expected,
          .line = row.line};
}

std::string range_text(CsvRange range) {
  if (range.most == std::numeric_limits<int64_t>::max())
    return "a whole number of at least " + std::to_string(range.least);
  return "a whole number from " + std::to_string(range.least) + " to " + std::to_string(range.most);
}

}  // namespace

bool CsvTable::has(std::string_view column) const {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

std::string_view CsvTable::text(const CsvRow& row, std::string_view column) const {
  const auto found = std::find(columns.begin(), columns.end(), column);
  if (found == columns.end()) return {};
  return without_blanks(row.cells.at(static_cast<size_t>(found - columns.begin())));
}

int64_t CsvTable::whole(const CsvRow& row, std::string_view column, CsvRange range,
                        std::vector<base::Fault>& faults) const {
  const std::string_view cell = text(row, column);
  int64_t value = 0;
  if (parse_number(cell, value) && value >= range.least && value <= range.most) return value;
  faults.push_back(bad_cell(row, column, cell, range_text(range)));
  return range.least;
}

double CsvTable::decimal(const CsvRow& row, std::string_view column,
                         std::vector<base::Fault>& faults) const {
  const std::string_view cell = text(row, column);
  double value = 0;
  if (parse_number(cell, value) && std::isfinite(value) && value >= 0) return value;
  faults.push_back(bad_cell(row, column, cell, "a number of at least 0"));
  return 0;
}

base::Result<CsvTable> parse_csv(std::string_view text, std::string_view what,
                                 const std::vector<std::string>& required_columns) {
  CsvTable table;
  std::vector<base::Fault> faults;
  RowReader reader(text);
  if (std::optional<CsvRow> header = reader.next(faults)) {
    for (const std::string& name : header->cells) table.columns.emplace_back(without_blanks(name));
  }
  check_columns(table, required_columns, faults);
  const bool has_columns = faults.empty();
  while (std::optional<CsvRow> row = reader.next(faults)) {
    if (row->cells.size() != table.columns.size()) {
      faults.push_back({.field = "",
                        .what = "has " + std::to_string(row->cells.size()) +
                                " cells where the first row names " +
                                std::to_string(table.columns.size()) + " columns",
                        .line = row->line});
      continue;
    }
    table.rows.push_back(*std::move(row));
  }
  if (!has_columns) return csv_error(what, std::move(faults));
  table.row_faults = std::move(faults);
  return table;
}

base::Error csv_error(std::string_view what, std::vector<base::Fault> faults) {
  const std::string count = base::count_text(static_cast<int64_t>(faults.size()), "fault");
  std::stable_sort(
      faults.begin(), faults.end(),
      [](const base::Fault& one, const base::Fault& other) { return one.line < other.line; });
  return {.code = base::ErrorCode::kInvalid,
          .what = std::string(what) + " is invalid: " + count,
          .advice = "correct these lines; the first row names the columns",
          .faults = std::move(faults)};
}

namespace {

using schedule::kWholeGpu;

constexpr std::string_view kNodeList = "the node list";
constexpr std::string_view kPodList = "the pod list";
constexpr int64_t kMebibyte = 1 << 20;
constexpr CsvRange kBelowOverflow{.least = 0, .most = int64_t{1} << 40};
constexpr double kMostTuned = 100;

/// A pod as the scheduler sees it: a gang of one task.
using Pod = schedule::Gang;

int64_t gpu_milli(const Pod& pod) {
  const schedule::Claim& claim = pod.groups.front().claim;
  return int64_t{claim.gpus} * kWholeGpu + claim.gpu_share_milli;
}

int64_t gpu_milli(const std::vector<Pod>& pods) {
  int64_t sum = 0;
  for (const Pod& pod : pods) sum += gpu_milli(pod);
  return sum;
}

base::Result<std::vector<schedule::Node>> read_node_list(std::string_view text) {
  MUSTER_TRY(const CsvTable table,
             parse_csv(text, kNodeList, {"sn", "cpu_milli", "memory_mib", "gpu", "model"}));
  std::vector<base::Fault> faults = table.row_faults;
  std::vector<schedule::Node> nodes;
  std::set<std::string> names;
  for (const CsvRow& row : table.rows) {
    schedule::Node node{.name = std::string(table.text(row, "sn")),
                        .gpu_model = std::string(table.text(row, "model"))};
    node.gpus = static_cast<int>(
        table.whole(row, "gpu", {.least = 0, .most = schedule::kMaxGpusPerNode}, faults));
    node.cpu_milli = table.whole(row, "cpu_milli", kBelowOverflow, faults);
    node.memory_bytes = table.whole(row, "memory_mib", kBelowOverflow, faults) * kMebibyte;
    if (!names.insert(node.name).second)
      faults.push_back({"sn", "'" + node.name + "' is also the name of another node", row.line});
    nodes.push_back(std::move(node));
  }
  if (!faults.empty()) return csv_error(kNodeList, std::move(faults));
  return nodes;
}

Pod read_pod(const CsvTable& table, const CsvRow& row, std::vector<base::Fault>& faults) {
  const CsvRange count{.least = 0, .most = schedule::kMaxGpusPerNode};
  const int gpus = static_cast<int>(table.whole(row, "num_gpu", count, faults));
  const CsvRange part{.least = gpus == 0 ? 0 : 1, .most = kWholeGpu};
  const int milli = static_cast<int>(table.whole(row, "gpu_milli", part, faults));
  if (gpus > 1 && milli != kWholeGpu)
    faults.push_back({"gpu_milli", "a pod with several GPUs uses whole GPUs: 1000", row.line});
  schedule::Claim claim;
  if (gpus == 1 && milli < kWholeGpu)
    claim.gpu_share_milli = milli;
  else
    claim.gpus = gpus;
  claim.cpu_milli = table.whole(row, "cpu_milli", kBelowOverflow, faults);
  claim.memory_bytes = table.whole(row, "memory_mib", kBelowOverflow, faults) * kMebibyte;
  Pod pod{.groups = {{.claim = claim}}};
  if (gpus > 0) pod.gpu_models = base::split(table.text(row, "gpu_spec"), '|');
  return pod;
}

base::Result<std::vector<Pod>> read_pods(std::string_view text) {
  MUSTER_TRY(const CsvTable table,
             parse_csv(text, kPodList, {"cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}));
  std::vector<base::Fault> faults = table.row_faults;
  std::vector<Pod> pods;
  for (const CsvRow& row : table.rows) pods.push_back(read_pod(table, row, faults));
  if (!faults.empty()) return csv_error(kPodList, std::move(faults));
  return pods;
}

/// The same on every machine, which std::shuffle and the standard's distributions are not.
class Dice {
 public:
  explicit Dice(int seed) : engine_(static_cast<uint64_t>(seed)) {}
  size_t below(size_t bound) { return engine_() % bound; }

 private:
  std::mt19937_64 engine_;
};

std::vector<Pod> shuffled(std::vector<Pod> pods, Dice& dice) {
  for (size_t left = pods.size(); left > 1; --left)
    std::swap(pods[left - 1], pods[dice.below(left)]);
  return pods;
}

/// Adds random pods of the list, or removes random ones, until all together request `target`.
void tune(std::vector<Pod>& pods, const std::vector<Pod>& list, int64_t target, Dice& dice) {
  int64_t asked = gpu_milli(pods);
  while (asked > target) {
    const size_t leaving = dice.below(pods.size());
    asked -= gpu_milli(pods[leaving]);
    pods.erase(pods.begin() + static_cast<std::ptrdiff_t>(leaving));
  }
  for (;;) {
    const Pod& added = list[dice.below(list.size())];
    if (asked + gpu_milli(added) > target) return;
    asked += gpu_milli(added);
    pods.push_back(added);
  }
}

OpenbRun fill(schedule::Nodes nodes, const std::vector<Pod>& pods, const OpenbOptions& options) {
  const int64_t capacity = nodes.total().gpu_milli;
  const schedule::PlaceOptions place{.packing = options.packing};
  schedule::UsualClaims usual;
  OpenbRun run;
  int64_t asked = 0;
  int64_t allocated = 0;
  for (const Pod& pod : pods) {
    if (asked + gpu_milli(pod) > capacity) break;
    asked += gpu_milli(pod);
    ++run.arrived;
    usual.add(pod);
    if (usual.has_changed_enough()) nodes.set_usual_claims(usual.take());
    if (nodes.place(pod, {1}, place))
      allocated += gpu_milli(pod);
    else
      ++run.refused;
  }
  run.ratio = static_cast<double>(allocated) / static_cast<double>(capacity);
  return run;
}

std::vector<base::Fault> openb_option_faults(const OpenbOptions& options, int64_t capacity,
                                             int64_t asked) {
  std::vector<base::Fault> faults;
  if (options.seeds.empty()) faults.push_back({"seeds", "there is none"});
  if (!(options.tuned > 0 && options.tuned <= kMostTuned))
    faults.push_back({"tuned", "is not a factor of the GPUs above 0 and up to 100"});
  if (capacity <= 0) faults.push_back({"gpu", "no node has a GPU"});
  if (asked <= 0) faults.push_back({"num_gpu", "no pod asks for a GPU"});
  return faults;
}

std::string line(const char* name, double ratio, const std::string& rest) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%-8s %11.2f", name, 100 * ratio);
  return text.data() + rest + "\n";
}

}  // namespace

base::Result<OpenbResult> replay_openb(std::string_view nodes_csv, std::string_view pods_csv,
                                       const OpenbOptions& options) {
  MUSTER_TRY(const std::vector<schedule::Node> list, read_node_list(nodes_csv));
  MUSTER_TRY(const std::vector<Pod> pods, read_pods(pods_csv));
  schedule::Nodes nodes;
  for (const schedule::Node& node : list) nodes.set(node);
  const int64_t capacity = nodes.total().gpu_milli;
  if (auto faults = openb_option_faults(options, capacity, gpu_milli(pods)); !faults.empty())
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what = "these lists cannot be replayed",
                       .advice = "give a node list with GPUs and a pod list that asks for some",
                       .faults = std::move(faults)};

  OpenbResult result{.nodes = static_cast<int>(list.size()),
                     .gpus = static_cast<int>(capacity / kWholeGpu),
                     .pods = static_cast<int>(pods.size())};
  const auto target = static_cast<int64_t>(options.tuned * static_cast<double>(capacity));
  result.lowest = 1;
  for (const int seed : options.seeds) {
    Dice dice(seed);
    std::vector<Pod> arriving = shuffled(pods, dice);
    tune(arriving, pods, target, dice);
    OpenbRun run = fill(nodes, arriving, options);
    run.seed = seed;
    result.mean += run.ratio / static_cast<double>(options.seeds.size());
    result.lowest = std::min(result.lowest, run.ratio);
    result.highest = std::max(result.highest, run.ratio);
    result.runs.push_back(run);
  }
  return result;
}

std::string openb_text(const OpenbResult& result) {
  std::string text = std::to_string(result.pods) + " pods onto " + std::to_string(result.nodes) +
                     " nodes with " + std::to_string(result.gpus) +
                     " GPUs, until the pods that arrived ask for all of them\n\n";
  text += "SEED     ALLOCATED %    ARRIVED   REFUSED\n";
  for (const OpenbRun& run : result.runs) {
    std::array<char, 32> counts{};
    std::snprintf(counts.data(), counts.size(), "  %9d %9d", run.arrived, run.refused);
    text += line(std::to_string(run.seed).c_str(), run.ratio, counts.data());
  }
  text += line("mean", result.mean, "");
  text += line("lowest", result.lowest, "");
  text += line("highest", result.highest, "");
  return text;
}

}  // namespace muster::simulate
