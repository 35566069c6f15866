// A sweep as a YAML file: a job file with one more section.
//
//   name: lr
//   command: [./train, --lr, "{lr}"]
//   resources: {gpus: 1}
//   sweep:
//     method: asha
//     metric: accuracy
//     max_trials: 16
//     max_steps: 40
//     parameters:
//       lr: log:1e-4..1e-1
//       batch: [16, 32, 64]
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/spec/spec_file.h"
#include "cli/sweeps/sweeps.h"
#include "config/yaml.h"
#include "record/input.h"
#include "record/table.h"

namespace muster::cli::sweeps {

using base::Error;
using base::ErrorCode;
using base::Fault;
using config::YamlEntry;
using config::YamlValue;
using sweep::SweepSpec;

namespace {

constexpr const char* kSection = "sweep";

std::vector<Fault> read_section(const nlohmann::json& document, SweepSpec& spec) {
  std::vector<Fault> faults;
  const auto tree = record::ValueTree::of(document);
  const record::Path top;
  record::read(record::Input{tree.root(), top, faults, record::Form::kHuman}, spec);
  return faults;
}

/// The fault of a value that could not be read is reported already.
bool is_known(const std::vector<Fault>& faults, const std::string& field) {
  return std::any_of(faults.begin(), faults.end(), [&](const Fault& fault) {
    return record::is_within(field, fault.field) || record::is_within(fault.field, field);
  });
}

}  // namespace

std::vector<Fault> set_sweep_keys(const std::vector<std::pair<std::string, std::string>>& keys,
                                  SweepSpec& spec) {
  nlohmann::json document = nlohmann::json::object();
  constexpr std::string_view kParameter = "parameters.";
  for (const auto& [key, text] : keys) {
    if (key.starts_with(kParameter)) {
      document["parameters"][key.substr(kParameter.size())] = text;
    } else {
      document[key] = text;
    }
  }
  return read_section(document, spec);
}

Result<SweepFile> parse_sweep_file(std::string_view text, const std::string& source,
                                   const job::JobSpec& defaults,
                                   const std::vector<std::pair<std::string, std::string>>& keys,
                                   const std::string& name,
                                   const std::vector<std::string>& settings) {
  auto root = config::parse_yaml(text);
  if (!root) {
    Error error = std::move(root).error();
    error.what = "'" + source + "' is not a valid sweep file";
    return error;
  }
  const auto section = std::find_if(root->map.begin(), root->map.end(),
                                    [](const YamlEntry& entry) { return entry.key == kSection; });
  SweepSpec spec;
  std::vector<Fault> faults;
  config::FieldLines lines;
  if (section == root->map.end()) {
    faults.push_back({.field = kSection,
                      .what = "is missing; a sweep is a job file with the section `sweep`",
                      .line = 1});
  } else {
    const YamlValue value = std::move(section->value);
    root->map.erase(section);
    const nlohmann::json document = config::human_document(value, lines, faults);
    for (Fault& fault : read_section(document, spec)) faults.push_back(std::move(fault));
    for (Fault& fault : faults) {
      if (fault.line == 0) fault.line = fault.field.empty() ? value.line : lines.of(fault.field);
      fault.field = fault.field.empty() ? kSection : "sweep." + fault.field;
    }
  }
  for (Fault& fault : set_sweep_keys(keys, spec)) faults.push_back(std::move(fault));
  std::optional<spec::WorkspaceKey> workspace;
  auto job =
      spec::read_spec_document(*root, source, defaults, {.name = name, .settings = settings});
  if (job) {
    spec.job = std::move(job->spec);
    workspace = std::move(job->workspace);
    const std::vector<Fault> unread = faults;
    for (Fault& fault : sweep::validate(spec)) {
      if (is_known(unread, "sweep." + fault.field) || is_known(unread, fault.field)) continue;
      if (!fault.field.starts_with("job.")) {
        fault.line = lines.has(fault.field) ? lines.of(fault.field) : 0;
        fault.field = "sweep." + fault.field;
      } else {
        fault.field = fault.field.substr(4);
      }
      faults.push_back(std::move(fault));
    }
  } else {
    for (const Fault& fault : job.error().faults) faults.push_back(fault);
  }
  if (faults.empty()) return SweepFile{.spec = std::move(spec), .workspace = std::move(workspace)};
  std::stable_sort(faults.begin(), faults.end(),
                   [](const Fault& a, const Fault& b) { return a.line < b.line; });
  return Error{.code = ErrorCode::kInvalid,
               .what = "'" + source + "' has " + std::to_string(faults.size()) +
                       (faults.size() == 1 ? " fault" : " faults"),
               .faults = std::move(faults)};
}

}  // namespace muster::cli::sweeps
