// A list of jobs as a cluster has seen them (or may see them): when each came, how long it takes,
// what it needs. trace_replay.h runs it through the scheduler.
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
  milliseconds submit{0};  ///< from the beginning of the trace
  milliseconds duration{0};
  int gpus = 0;             ///< whole ones of each task; 0 where it asks for a part of one
  int gpu_share_milli = 0;  ///< 1 to 999: a part of one
  int64_t cpu_milli = 0;    ///< of each task
  int64_t memory_bytes = 0;
  /// Nothing: one, or, where no node has so many GPUs, as few as share them evenly.
  std::optional<int> tasks;
  std::string project;
  int priority = 50;  ///< from 100 on it is never evicted, and stays within its project's quota
  std::optional<milliseconds> time_limit;  ///< known to the scheduler, unlike `duration`

  bool operator==(const TraceJob&) const = default;
};

/// Comma-separated values with the columns submit_s, duration_s, gpus, project and, where wanted,
/// tasks, cpus, memory, priority, time_limit_s; an empty cell of these means the default. GPUs,
/// CPUs and memory are those of each task. In the order of the file.
///
/// Errors: kInvalid, with every fault and its line.
base::Result<std::vector<TraceJob>> parse_trace(std::string_view text);

// Tables of comma-separated values, read whole: the first row names the columns, order does not
// matter, columns that nobody asks for are ignored. Every fault is found in one go, with its line.
//
//   MUSTER_TRY(CsvTable table, parse_csv(text, "the node list", {"sn", "gpu"}));
//   std::vector<base::Fault> faults;
//   for (const CsvRow& row : table.rows)
//     use(table.text(row, "sn"), table.whole(row, "gpu", {.most = 64}, faults));
//   if (!faults.empty()) return csv_error("the node list", std::move(faults));
//
// Quotes are those of RFC 4180: "a ""quoted"" cell, with a comma". Pure: text in, values out.

struct CsvRow {
  int line = 0;                    ///< where it begins; the first line of the file is 1
  std::vector<std::string> cells;  ///< as many as there are columns

  bool operator==(const CsvRow&) const = default;
};

/// What a number may be.
struct CsvRange {
  int64_t least = 0;
  int64_t most = std::numeric_limits<int64_t>::max();
};

struct CsvTable {
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;

  bool has(std::string_view column) const;
  /// Without the blanks around it; empty where there is no such column.
  std::string_view text(const CsvRow& row, std::string_view column) const;
  /// Where it is no number, or out of range: a fault, and `range.least`. An empty cell is no
  /// number.
  int64_t whole(const CsvRow& row, std::string_view column, CsvRange range,
                std::vector<base::Fault>& faults) const;
  /// The same for a number with a fraction: finite, and not negative.
  double decimal(const CsvRow& row, std::string_view column,
                 std::vector<base::Fault>& faults) const;
};

/// Empty lines are skipped; a byte order mark and carriage returns at line ends are taken off.
/// `what` names the file in the error: "the node list".
///
/// Errors: kInvalid, with every missing column, every row that has too few or too many cells, and
/// a quote that is never closed.
base::Result<CsvTable> parse_csv(std::string_view text, std::string_view what,
                                 const std::vector<std::string>& required_columns);

/// "the node list cannot be used: 3 faults", with the faults.
base::Error csv_error(std::string_view what, std::vector<base::Fault> faults);

// The openb experiment: a cluster's list of nodes is filled by the pods of a list, one after the
// other in random order and none ever leaving, until as many GPUs have been asked for as there are.
// What part of the GPUs is then in use says how well a packing avoids fragments.
//
// The way of Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
// Fragmentation Gradient Descent" (USENIX ATC'23), over Alibaba's openb lists
// (cluster-trace-gpu-v2023), with the placement that the scheduler uses. Pure: no file is read
// here.

struct OpenbOptions {
  std::vector<int> seeds{42, 43, 44, 45, 46, 47, 48, 49, 50, 51};
  /// Random pods are added again, or left out, until all of them ask for this part of all GPUs.
  double tuned = 1.3;
  schedule::Packing packing = schedule::Packing::kFragmentation;
};

struct OpenbRun {
  int seed = 0;
  double ratio = 0;  ///< allocated GPUs / all, when the arrived pods ask for all GPUs there are
  int arrived = 0;   ///< pods until then
  int refused = 0;   ///< of these
};

struct OpenbResult {
  std::vector<OpenbRun> runs;  ///< by seed
  double mean = 0;             ///< of their ratios
  double lowest = 0;
  double highest = 0;
  int nodes = 0;
  int gpus = 0;
  int pods = 0;  ///< of the list, before tuning
};

/// Columns of the nodes: sn, cpu_milli, memory_mib, gpu, model. Of the pods: cpu_milli, memory_mib,
/// num_gpu, gpu_milli, and gpu_spec if there is one (the models it may use, joined by '|').
///
/// Errors: kInvalid, with every fault of the lists and its line.
base::Result<OpenbResult> replay_openb(std::string_view nodes_csv, std::string_view pods_csv,
                                       const OpenbOptions& options);

/// A table: a line for each seed, then the mean with the spread.
std::string openb_text(const OpenbResult& result);

}  // namespace muster::simulate
