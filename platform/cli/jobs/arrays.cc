#include "cli/jobs/arrays.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "api/array_wire.h"
#include "api/sweep_wire.h"
#include "api/wire.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/common/array_view.h"
#include "cli/common/sweep_view.h"

namespace muster::cli::jobs {

using base::Error;
using base::ErrorCode;

Flags array_flags() {
  return {{.name = "--array",
           .value = "INDEXES[%N]",
           .help = "submit an array: one job for each index, as in 0-99 or 1,3,5-9; %N: at most N "
                   "of them run at the same time"},
          {.name = "--each-line",
           .value = "FILE",
           .help = "submit an array: one job for each line of the file, in MUSTER_ARRAY_LINE",
           .offer = Offer::kFiles},
          {.name = "--each-json",
           .value = "FILE",
           .help = "submit an array: one job for each element of a JSON array, or for each line "
                   "with a JSON value; a field lr is in MUSTER_ITEM_LR",
           .offer = Offer::kFiles},
          {.name = "--max-running",
           .value = "N",
           .help = "of an array: at most N jobs run at the same time"},
          {.name = "--max-failures",
           .value = "N",
           .help = "of an array: stop it when more than N jobs have failed"}};
}

ArrayFlags read_array_flags(FlagReader& reader) {
  ArrayFlags flags;
  if (reader.has("--array")) {
    const auto array = job::array_of(reader.text("--array"));
    if (array) {
      flags.indexes = *array;
    } else {
      reader.fault("--array", array.error().what);
    }
  }
  for (const char* flag : {"--each-line", "--each-json"}) {
    if (reader.has(flag) && reader.text(flag).empty()) {
      reader.fault(flag, "is empty; give a file, or leave it out");
    }
  }
  flags.lines_file = reader.text("--each-line");
  flags.json_file = reader.text("--each-json");
  if (!flags.lines_file.empty() && !flags.json_file.empty()) {
    reader.fault("--each-json", "cannot be used with --each-line");
  }
  if (reader.has("--max-running")) {
    flags.max_running = reader.number_between("--max-running", 0, 0);
  }
  if (reader.has("--max-failures")) {
    flags.max_failures = reader.number_between("--max-failures", 0, 0);
  }
  return flags;
}

namespace {

constexpr size_t kMostFileBytes = 64 << 20;

Result<std::string> read_items(const std::string& file) {
  auto text = base::read_file(file == "-" ? "/dev/stdin" : file, kMostFileBytes);
  if (text) return text;
  Error error = std::move(text).error();
  error.code = ErrorCode::kInvalid;  // kNotFound would mean that a job is missing
  return error;
}

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines = base::split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (std::string& line : lines) {
    if (line.ends_with('\r')) line.pop_back();
  }
  return lines;
}

/// The line of a member: a text without its quotes, everything else as it is written.
std::string item_text(const std::string& json) {
  return json.starts_with('"') ? base::parse_json(json).get<std::string>() : json;
}

constexpr const char* kTooLarge = "has a number that is too large; write it as text, in quotes";

/// What is wrong with a text that is not JSON.
std::string json_fault(const std::string& text) {
  try {
    (void)base::parse_json_or_throw(text);
  } catch (const nlohmann::json::out_of_range&) {
    return kTooLarge;
  } catch (const nlohmann::json::exception&) {
    return "is not a JSON value";
  }
  return "";
}

}  // namespace

Result<std::vector<std::string>> json_lines(const std::string& text) {
  std::vector<std::string> lines;
  if (base::parse_json(text).is_array()) {
    for (const std::string& element : job::parts_of_json(text)) lines.push_back(item_text(element));
    return lines;
  }
  if (base::trimmed(text).starts_with('[') && json_fault(text) == kTooLarge) {
    return Error{.code = ErrorCode::kInvalid, .what = std::string("the array ") + kTooLarge};
  }
  size_t number = 0;
  for (const std::string& line : lines_in(text)) {
    ++number;
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    const std::string fault = json_fault(line);
    if (!fault.empty()) {
      return Error{.code = ErrorCode::kInvalid,
                   .what = "line " + std::to_string(number) + " " + fault,
                   .advice = "give a file with one JSON array, or with one JSON value a line"};
    }
    // As the only element of an array.
    lines.push_back(item_text(job::parts_of_json("[" + line + "]").front()));
  }
  return lines;
}

Result<void> apply_array_flags(const ArrayFlags& flags, job::JobSpec& spec) {
  if (!flags.is_set()) return {};
  job::ArraySpec& array = spec.array;
  if (flags.indexes) {
    array.indexes = flags.indexes->indexes;
    if (flags.indexes->max_running > 0) array.max_running = flags.indexes->max_running;
  }
  const std::string& file = flags.lines_file.empty() ? flags.json_file : flags.lines_file;
  if (!file.empty()) {
    MUSTER_TRY(const std::string text, read_items(file));
    if (flags.json_file.empty()) {
      array.lines = lines_in(text);
    } else {
      auto lines = json_lines(text);
      if (!lines) {
        Error error = std::move(lines).error();
        error.what = "'" + file + "': " + error.what;
        return error;
      }
      array.lines = *std::move(lines);
    }
    if (array.lines.empty()) {
      return Error{.code = ErrorCode::kInvalid, .what = "'" + file + "' is empty"};
    }
    if (!flags.indexes) array.indexes.clear();
  }
  if (flags.max_running) array.max_running = *flags.max_running;
  if (flags.max_failures) array.max_failures = flags.max_failures;
  job::Checker check;
  job::check_array(spec, check);
  std::vector<base::Fault> faults = check.take();
  if (faults.empty()) return {};
  return Error{.code = ErrorCode::kInvalid,
               .what = "the array of job '" + spec.name + "' is invalid",
               .faults = std::move(faults)};
}

Result<int> change_each(Connection& connection, const std::vector<std::string>& names,
                        Output output, const NamedChange& change) {
  Documents all;
  std::string text;
  const int code = for_each_name(names, [&](const std::string& name) -> Result<void> {
    auto job = connection.call([&](api::Client& client) { return change.of_job(client, name); });
    if (job) {
      text += change.job_line(*job);
      all.jobs.push_back(api::job_to_json(*job));
      return {};
    }
    MUSTER_TRY(const auto array, instead_of_job(connection, job.error(), [&](api::Client& client) {
                 return change.of_array(client, name);
               }));
    if (array) {
      text += change.array_line(*array);
      all.arrays.push_back(api::array_to_json(*array));
      return {};
    }
    if (!change.of_sweep) return std::move(job).error();
    MUSTER_TRY(const auto sweep, instead_of_job(connection, job.error(), [&](api::Client& client) {
                 return change.of_sweep(client, name);
               }));
    if (!sweep) return std::move(job).error();
    text += sweep_stop_text(sweep->summary);
    all.sweeps.push_back(api::sweep_to_json(*sweep));
    return {};
  });
  MUSTER_CHECK(show(output, text, all.to_json()));
  return code;
}

std::string Documents::to_json() const {
  const auto list = [](const std::vector<std::string>& documents) {
    return "[" + base::joined(documents, ",") + "]";
  };
  return "{\"jobs\":" + list(jobs) + ",\"arrays\":" + list(arrays) + ",\"sweeps\":" + list(sweeps) +
         "}";
}

std::string array_stop_text(const job::Array& array) {
  return (array.ended ? array.spec.name + " has ended: " : "stopping " + array.spec.name + ": ") +
         array_counts(array) + "\n";
}

}  // namespace muster::cli::jobs
