#include "cli/spec_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/yaml_document.h"
#include "job/units.h"
#include "job/validate.h"

namespace muster::cli {

namespace {

using base::Error;
using base::ErrorCode;
using base::Fault;

std::string_view name_of(YamlValue::Type type) {
  switch (type) {
    case YamlValue::Type::kNull:
      return "nothing";
    case YamlValue::Type::kScalar:
      return "a single value";
    case YamlValue::Type::kList:
      return "a list";
    case YamlValue::Type::kMap:
      return "a map";
  }
  return "?";
}

class SpecReader {
 public:
  explicit SpecReader(const job::JobSpec& defaults) : spec_(defaults) {}

  Result<job::JobSpec> read(const YamlValue& root, const std::string& source) {
    if (root.type != YamlValue::Type::kMap) {
      fault("", "must be a map of keys and values, but is " + std::string(name_of(root.type)),
            root.line);
    } else {
      read_map(root, "", keys());
      report_missing();
      report_invalid();
    }
    if (faults_.empty()) return spec_;
    return Error{.code = ErrorCode::kInvalid,
                 .what = "'" + source + "' has " + std::to_string(faults_.size()) +
                         (faults_.size() == 1 ? " fault" : " faults"),
                 .faults = sorted_faults()};
  }

 private:
  using Read = void (SpecReader::*)(const YamlValue&);
  using Keys = std::vector<std::pair<std::string, Read>>;

  static Keys keys() {
    return {{"name", &SpecReader::read_name},
            {"project", &SpecReader::read_project},
            {"kind", &SpecReader::read_kind},
            {"command", &SpecReader::read_command},
            {"workers", &SpecReader::read_workers},
            {"slots_per_worker", &SpecReader::read_slots},
            {"resources", &SpecReader::read_resources},
            {"environment", &SpecReader::read_environment},
            {"folder", &SpecReader::read_folder},
            {"sandbox", &SpecReader::read_sandbox},
            {"start_timeout", &SpecReader::read_start_timeout},
            {"grace", &SpecReader::read_grace}};
  }

  void read_name(const YamlValue& value) { read_text("name", value, spec_.name); }
  void read_project(const YamlValue& value) { read_text("project", value, spec_.project); }
  void read_workers(const YamlValue& value) { read_count("workers", value, spec_.workers); }
  void read_slots(const YamlValue& value) {
    read_count("slots_per_worker", value, spec_.slots_per_worker);
  }
  void read_gpus(const YamlValue& value) {
    read_count("resources.gpus", value, spec_.resources.gpus);
  }
  void read_cpus(const YamlValue& value) {
    read_count("resources.cpus", value, spec_.resources.cpus);
  }
  void read_start_timeout(const YamlValue& value) {
    read_with("start_timeout", value, job::parse_duration, spec_.start_timeout);
  }
  void read_grace(const YamlValue& value) {
    read_with("grace", value, job::parse_duration, spec_.grace);
  }
  void read_memory(const YamlValue& value) {
    read_with("resources.memory", value, job::parse_bytes, spec_.resources.memory_bytes);
  }

  void read_kind(const YamlValue& value) {
    read_word("kind", value, {"mpi", "single"}, job::kind_of, spec_.kind);
  }
  void read_sandbox(const YamlValue& value) {
    read_word("sandbox", value, {"bubblewrap", "none"}, job::sandbox_of, spec_.sandbox);
  }

  void read_folder(const YamlValue& value) {
    std::string folder;
    if (!read_text("folder", value, folder)) return;
    spec_.folder = (std::filesystem::path(spec_.folder) / folder).lexically_normal().string();
  }

  void read_resources(const YamlValue& value) {
    if (!is("resources", value, YamlValue::Type::kMap)) return;
    read_map(value, "resources.",
             {{"gpus", &SpecReader::read_gpus},
              {"cpus", &SpecReader::read_cpus},
              {"memory", &SpecReader::read_memory}});
  }

  void read_command(const YamlValue& value) {
    if (value.type == YamlValue::Type::kScalar) {
      spec_.command = {"sh", "-c", value.scalar};
      if (value.scalar.empty()) fault("command", "is empty; say what to run", value.line);
      return;
    }
    if (!is("command", value, YamlValue::Type::kList)) return;
    spec_.command.clear();
    for (size_t i = 0; i < value.list.size(); ++i) {
      const std::string field = "command[" + std::to_string(i) + "]";
      lines_[field] = value.list[i].line;
      spec_.command.emplace_back();
      read_text(field, value.list[i], spec_.command.back());
    }
  }

  void read_environment(const YamlValue& value) {
    if (!is("environment", value, YamlValue::Type::kMap)) return;
    std::set<std::string> seen;
    for (const YamlEntry& entry : value.map) {
      const std::string field = "environment." + entry.key;
      lines_[field] = entry.line;
      if (!seen.insert(entry.key).second) fault(field, "is given twice", entry.line);
      std::string text;
      if (entry.value.type == YamlValue::Type::kNull) {
        fault(field, "has no value; write \"\" for an empty one", entry.line);
      } else if (read_text(field, entry.value, text)) {
        spec_.environment[entry.key] = text;
      }
    }
  }

  /// Reads each entry of `map` by its key, and reports keys that are unknown or given twice.
  void read_map(const YamlValue& map, const std::string& prefix, const Keys& known) {
    std::set<std::string> seen;
    for (const YamlEntry& entry : map.map) {
      const std::string field = prefix + entry.key;
      const auto key = std::find_if(known.begin(), known.end(),
                                    [&](const auto& each) { return each.first == entry.key; });
      if (key == known.end()) {
        report_unknown(entry, field, known);
      } else if (!seen.insert(entry.key).second) {
        fault(field, "is given twice", entry.line);
      } else {
        lines_[field] = entry.line;
        (this->*key->second)(entry.value);
      }
    }
  }

  void report_unknown(const YamlEntry& entry, const std::string& field, const Keys& known) {
    std::vector<std::string> names;
    for (const auto& [name, read] : known) names.push_back(name);
    const std::string meant = base::nearest(entry.key, names);
    fault(field, "unknown key" + (meant.empty() ? "" : "; did you mean '" + meant + "'?"),
          entry.line);
  }

  bool is(const std::string& field, const YamlValue& value, YamlValue::Type wanted) {
    if (value.type == wanted) return true;
    fault(
        field,
        "must be " + std::string(name_of(wanted)) + ", but is " + std::string(name_of(value.type)),
        value.line);
    return false;
  }

  bool read_text(const std::string& field, const YamlValue& value, std::string& target) {
    if (!is(field, value, YamlValue::Type::kScalar)) return false;
    target = value.scalar;
    return true;
  }

  void read_count(const std::string& field, const YamlValue& value, int& target) {
    std::string text;
    if (!read_text(field, value, text)) return;
    int number = 0;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number);
    if (error != std::errc{} || end != last) {
      fault(field, "'" + text + "' is not a whole number", value.line);
    } else if (number < 0) {
      fault(field, text + " is negative", value.line);
    } else {
      target = number;
    }
  }

  template <class Target>
  void read_with(const std::string& field, const YamlValue& value,
                 Result<Target> (*parse)(std::string_view), Target& target) {
    std::string text;
    if (!read_text(field, value, text)) return;
    if (const auto parsed = parse(text)) {
      target = *parsed;
    } else {
      fault(field, parsed.error().what, value.line);
    }
  }

  template <class Target>
  void read_word(const std::string& field, const YamlValue& value,
                 const std::vector<std::string>& words,
                 std::optional<Target> (*find)(std::string_view), Target& target) {
    std::string text;
    if (!read_text(field, value, text)) return;
    if (const auto found = find(text)) {
      target = *found;
      return;
    }
    const std::string meant = base::nearest(text, words);
    fault(field,
          "'" + text + "' is neither " + words[0] + " nor " + words[1] +
              (meant.empty() ? "" : "; did you mean '" + meant + "'?"),
          value.line);
  }

  void report_missing() {
    if (!lines_.contains("name")) fault("name", "is missing", 1);
    if (!lines_.contains("command")) {
      fault("command", "is missing; say what to run, as in: [python3, train.py]", 1);
    }
    const bool is_mpi = spec_.kind == job::Kind::kMpi;
    if (is_mpi && !lines_.contains("workers")) {
      fault("workers", "is missing; say how many", line_of("kind"));
    }
    // Which numbers of workers are right is not known where the kind is not.
    if (is_at_fault("kind")) at_fault_.insert("workers");
  }

  void report_invalid() {
    // A value that could not be read kept its default, and what that lacks is nobody's fault.
    const std::set<std::string> unread = at_fault_;
    for (const Fault& found : job::validate(spec_)) {
      if (!unread.contains(found.field)) fault(found.field, found.what, line_of(found.field));
    }
  }

  bool is_at_fault(const std::string& field) const { return at_fault_.contains(field); }

  /// The line of a field, or of the nearest one that it is part of.
  int line_of(std::string field) const {
    while (true) {
      if (const auto found = lines_.find(field); found != lines_.end()) return found->second;
      const size_t part = field.find_last_of(".[");
      if (part == std::string::npos) return 1;
      field.resize(part);
    }
  }

  void fault(const std::string& field, std::string what, int line) {
    at_fault_.insert(field);
    faults_.push_back({.field = field, .what = std::move(what), .line = line});
  }

  std::vector<Fault> sorted_faults() {
    std::stable_sort(faults_.begin(), faults_.end(),
                     [](const Fault& a, const Fault& b) { return a.line < b.line; });
    return std::move(faults_);
  }

  job::JobSpec spec_;
  std::map<std::string, int> lines_;  ///< of the fields that the file gives
  std::set<std::string> at_fault_;
  std::vector<Fault> faults_;
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
