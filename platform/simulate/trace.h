// Traces: lists of jobs with their submission times, durations and claims (trace_replay.h replays
// them); CSV tables; and the openb experiment.
//
// Pure: text in, values out.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "schedule/nodes.h"

namespace muster::simulate {

using std::chrono::milliseconds;

struct TraceJob {
  int line = 0;            ///< of the file
  milliseconds submit{0};  ///< since the start of the trace
  milliseconds duration{0};
  int gpus = 0;             ///< whole GPUs of each task; 0 for a fraction
  int gpu_share_milli = 0;  ///< 1 to 999: a fraction of one GPU
  int64_t cpu_milli = 0;    ///< of each task
  int64_t memory_bytes = 0;
  /// Nothing: one task, or, if no node has enough GPUs, the fewest that share them evenly.
  std::optional<int> tasks;
  std::string project;
  int priority = 50;  ///< from 100 on: not preemptible, within the project's quota
  std::optional<milliseconds> time_limit;  ///< known to the scheduler, unlike `duration`

  bool operator==(const TraceJob&) const = default;
};

/// Comma-separated values with the columns submit_s, duration_s, gpus, project and, optionally,
/// tasks, cpus, memory, priority, time_limit_s; an empty optional cell means the default. GPUs,
/// CPUs and memory are those of each task. In the order of the file.
///
/// Errors: kInvalid, with all faults and their lines.
base::Result<std::vector<TraceJob>> parse_trace(std::string_view text);

// CSV tables. The first row names the columns, in any order; unused columns are ignored. All faults
// are reported, with their lines.
//
//   MUSTER_TRY(CsvTable table, parse_csv(text, "the node list", {"sn", "gpu"}));
//   std::vector<base::Fault> faults = table.row_faults;
//   for (const CsvRow& row : table.rows)
//     use(table.text(row, "sn"), table.whole(row, "gpu", {.most = 64}, faults));
//   if (!faults.empty()) return csv_error("the node list", std::move(faults));
//
// Quotes are those of RFC 4180: "a ""quoted"" cell, with a comma". Pure: text in, values out.

struct CsvRow {
  int line = 0;                    ///< of the file, from 1
  std::vector<std::string> cells;  ///< one for each column

  bool operator==(const CsvRow&) const = default;
};

/// The range of a number.
struct CsvRange {
  int64_t least = 0;
  int64_t most = std::numeric_limits<int64_t>::max();
};

struct CsvTable {
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;
  std::vector<base::Fault> row_faults;  ///< of whole rows: add those of the cells

  bool has(std::string_view column) const;
  /// The trimmed cell; empty if there is no such column.
  std::string_view text(const CsvRow& row, std::string_view column) const;
  /// A number; reports a fault and returns `range.least` if the cell is empty, not a number or out
  /// of range.
  int64_t whole(const CsvRow& row, std::string_view column, CsvRange range,
                std::vector<base::Fault>& faults) const;
  /// The same for a finite, non-negative number with a fraction.
  double decimal(const CsvRow& row, std::string_view column,
                 std::vector<base::Fault>& faults) const;
};

/// Skips empty lines, a byte order mark, and carriage returns at line ends. `what`: the file's name
/// for errors, such as "the node list".
///
/// Rows with a wrong number of cells and unclosed quotes are faults of the table.
///
/// Errors: kInvalid, with all missing columns and those faults.
base::Result<CsvTable> parse_csv(std::string_view text, std::string_view what,
                                 const std::vector<std::string>& required_columns);

/// "the node list is invalid: 3 faults", with the faults.
base::Error csv_error(std::string_view what, std::vector<base::Fault> faults);

// The openb experiment: a cluster is filled with pods in random order, which never end, until they
// have requested as many GPUs as there are. The allocated fraction shows how well a packing avoids
// fragmentation.
//
// The method of Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
// Fragmentation Gradient Descent" (USENIX ATC'23), over Alibaba's openb lists
// (cluster-trace-gpu-v2023), with the placement that the scheduler uses. Pure: no file is read
// here.

struct OpenbOptions {
  std::vector<int> seeds{42, 43, 44, 45, 46, 47, 48, 49, 50, 51};
  /// Random pods are repeated or omitted until their requests are this fraction of all GPUs.
  double tuned = 1.3;
  schedule::Packing packing = schedule::Packing::kFragmentation;
};

struct OpenbRun {
  int seed = 0;
  double ratio = 0;  ///< allocated / all GPUs, when the arrived pods have requested all GPUs
  int arrived = 0;   ///< number of pods until then
  int refused = 0;   ///< how many of them did not fit
};

struct OpenbResult {
  std::vector<OpenbRun> runs;  ///< by seed
  double mean = 0;             ///< of the ratios
  double lowest = 0;
  double highest = 0;
  int nodes = 0;
  int gpus = 0;
  int pods = 0;  ///< in the list, before tuning
};

/// Columns of the nodes: sn, cpu_milli, memory_mib, gpu, model. Of the pods: cpu_milli, memory_mib,
/// num_gpu, gpu_milli, and optionally gpu_spec (allowed models, joined by '|').
///
/// Errors: kInvalid, with every fault of the lists and its line.
base::Result<OpenbResult> replay_openb(std::string_view nodes_csv, std::string_view pods_csv,
                                       const OpenbOptions& options);

/// A table with a line for each seed, and the mean with the spread.
std::string openb_text(const OpenbResult& result);

}  // namespace muster::simulate
