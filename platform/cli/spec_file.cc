#include "cli/spec_file.h"

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/slurm_flags.h"
#include "cli/spec_file_container.h"
#include "cli/spec_file_roles.h"
#include "cli/spec_file_scheduling.h"
#include "cli/spec_file_secrets.h"
#include "cli/yaml_document.h"
#include "cli/yaml_fields.h"
#include "job/inherited.h"
#include "job/units.h"
#include "job/validate.h"

namespace muster::cli {

namespace {

using base::Error;
using base::ErrorCode;
using base::Fault;

class SpecReader {
 public:
  explicit SpecReader(const job::JobSpec& defaults) : spec_(defaults) {}

  Result<job::JobSpec> read(const YamlValue& root, const std::string& source) {
    if (root.type != YamlValue::Type::kMap) {
      fields_.fault("", "must be a map of keys and values, but is " + name_of(root.type),
                    root.line);
    } else {
      fields_.belong_in("resources", names_of_resources());
      fields_.belong_in("scheduling", names_of_scheduling());
      fields_.map(root, "", keys());
      note_inherited();
      report_missing();
      report_invalid();
    }
    if (fields_.ok()) return spec_;
    std::vector<Fault> faults = fields_.sorted_faults();
    return Error{.code = ErrorCode::kInvalid,
                 .what = "'" + source + "' has " + std::to_string(faults.size()) +
                         (faults.size() == 1 ? " fault" : " faults"),
                 .faults = std::move(faults)};
  }

 private:
  using Value = const YamlValue&;

  YamlFields::Keys keys() {
    YamlFields::Keys keys = role_keys(fields_, spec_, spec_.folder);
    for (auto& key : container_keys(fields_, spec_)) keys.push_back(std::move(key));
    for (auto& key : slurm_keys(fields_, spec_.slurm)) keys.push_back(std::move(key));
    for (auto& key : own_keys()) keys.push_back(std::move(key));
    return keys;
  }

  YamlFields::Keys own_keys() {
    return {
        {"name", [this](Value value) { fields_.text("name", value, spec_.name); }},
        {"project", [this](Value value) { fields_.text("project", value, spec_.project); }},
        {"kind",
         [this](Value value) {
           fields_.word("kind", value, {"mpi", "grpc", "torch", "single"}, job::kind_of,
                        spec_.kind);
         }},
        {"command",
         [this](Value value) { read_command(fields_, "command", value, spec_.command); }},
        {"workers", [this](Value value) { fields_.count("workers", value, spec_.workers); }},
        {"slots_per_worker",
         [this](Value value) { fields_.count("slots_per_worker", value, spec_.slots_per_worker); }},
        {"resources",
         [this](Value value) { read_resources(fields_, "resources", value, spec_.resources); }},
        {"scheduling", [this](Value value) { read_scheduling(fields_, value, spec_.scheduling); }},
        {"environment",
         [this](Value value) { read_texts(fields_, "environment", value, spec_.environment); }},
        {"secrets", [this](Value value) { read_secrets(fields_, value, spec_.secrets); }},
        {"folder", [this](Value value) { read_folder(value); }},
        {"sandbox",
         [this](Value value) {
           fields_.word("sandbox", value, {"bubblewrap", "none"}, job::sandbox_of, spec_.sandbox);
         }},
        {"start_timeout",
         [this](Value value) {
           fields_.with("start_timeout", value, job::parse_duration, spec_.start_timeout);
         }},
        {"grace",
         [this](Value value) { fields_.with("grace", value, job::parse_duration, spec_.grace); }},
    };
  }

  void read_folder(Value value) {
    std::string folder;
    if (!fields_.text("folder", value, folder)) return;
    spec_.folder = (std::filesystem::path(spec_.folder) / folder).lexically_normal().string();
  }

  /// What the defaults brought along, and the file does not say.
  void note_inherited() {
    std::set<std::string> names;
    for (const auto& [name, value] : spec_.environment) {
      if (!fields_.has("environment." + name)) names.insert(name);
    }
    job::note_inherited(names, !fields_.has("folder"), spec_);
  }

  void report_missing() {
    if (!fields_.has("name")) fields_.fault("name", "is missing", 1);
    if (!fields_.has("command") && !fields_.has("image")) {
      fields_.fault("command", "is missing; say what to run, as in: [python3, train.py]", 1);
    }
    const bool is_mpi = spec_.kind == job::Kind::kMpi;
    if (is_mpi && !fields_.has("workers")) {
      fields_.fault("workers", "is missing; say how many", fields_.line_of("kind"));
    }
    // Which numbers of which tasks are right is not known where the kind is not.
    if (fields_.is_at_fault("kind")) {
      for (const char* field :
           {"workers", "parameter_servers", "parameter_server", "evaluators", "evaluator"}) {
        fields_.suspect(field);
      }
    }
    if (fields_.is_at_fault("workers")) fields_.suspect("scheduling.min_workers");
    if (fields_.is_at_fault("scheduling.min_workers") || fields_.is_at_fault("parameter_servers")) {
      fields_.suspect("scheduling.resize");
    }
  }

  void report_invalid() {
    // A value that could not be read kept its default, and what that lacks is nobody's fault.
    const YamlFields unread = fields_;
    for (const Fault& found : job::validate(spec_)) {
      if (unread.is_at_fault(found.field)) continue;
      fields_.fault(found.field, found.what, fields_.line_of(found.field));
    }
  }

  job::JobSpec spec_;
  YamlFields fields_;
};

}  // namespace

Result<job::JobSpec> parse_spec_file(std::string_view text, const std::string& source,
                                     const job::JobSpec& defaults) {
  auto root = parse_yaml(text);
  if (!root) {
    Error error = std::move(root).error();
    error.what = "'" + source + "' is no YAML that can be used";
    return error;
  }
  return SpecReader(defaults).read(*root, source);
}

}  // namespace muster::cli
