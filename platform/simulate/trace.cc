#include "simulate/trace.h"

#include <cmath>
#include <utility>

#include "base/units.h"
#include "schedule/model.h"
#include "simulate/csv.h"

namespace muster::simulate {

using base::Fault;
using base::Result;

namespace {

constexpr const char* kWhat = "the trace";
// Three years: what is more is a date, or another unit.
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
                "' are neither whole ones nor a part of one, in thousandths");
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
  std::vector<Fault> faults;
  Reader reader(table, faults);
  std::vector<TraceJob> jobs;
  jobs.reserve(table.rows.size());
  for (const CsvRow& row : table.rows) jobs.push_back(reader.read(row));
  if (jobs.empty()) faults.push_back({.what = "it has no job in it"});
  if (!faults.empty()) return csv_error(kWhat, std::move(faults));
  return jobs;
}

}  // namespace muster::simulate
