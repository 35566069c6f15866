#include "dialects/gradient/gradient.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "config/yaml.h"
#include "dialects/gradient/command_tree.h"
#include "dialects/gradient/commands.h"
#include "dialects/gradient/experiment.h"
#include "record/field.h"

namespace muster::dialects::gradient {

namespace {

const cli::Command& command_at(const cli::Command& root, const std::vector<std::string>& path) {
  const cli::Command* command = &root;
  for (const std::string& word : path) command = command->find_command(word);
  return *command;
}

/// If a flag's value was forgotten, the next flag was taken as its value.
void report_swallowed_flags(const cli::Command& command, cli::Arguments& arguments) {
  for (const auto& [flag, values] : arguments.flags) {
    for (const std::string& value : values) {
      if (!value.starts_with("--") || command.find_flag(value) == nullptr) continue;
      arguments.faults.push_back(
          {.field = flag, .what = "requires a value, but is followed by the flag '" + value + "'"});
    }
  }
}

Result<void> read_options(const cli::Command& command, cli::Arguments& arguments) {
  const auto found = arguments.flags.find("--optionsFile");
  if (found == arguments.flags.end()) return {};
  const std::string& file = found->second.back();
  auto text = base::read_file(file, config::kMaxYamlBytes);
  if (!text) {
    base::Error error = std::move(text).error();
    error.code = base::ErrorCode::kInvalid;  // kNotFound would mean that an experiment is missing
    return error;
  }
  return add_options(*text, file, command, arguments);
}

Result<int> write_options(const cli::Command& command, const cli::Arguments& arguments) {
  if (!arguments.faults.empty()) {
    return cli::usage_error(arguments.path, arguments.faults, "gradient");
  }
  // 0600: the options may contain a password.
  MUSTER_CHECK(base::write_file(arguments.flags.at("--createOptionsFile").back(),
                                options_text(command, arguments)));
  return cli::kExitDone;
}

bool creates(const std::vector<std::string>& path) {
  constexpr size_t kDepth = 3;
  return path.size() == kDepth && path[0] == "experiments" &&
         (path[1] == "create" || path[1] == "run");
}

Result<int> run_command_line(const std::vector<std::string>& words, const cli::Hooks& hooks) {
  const cli::Command root = command_tree();
  cli::Arguments arguments = cli::sort_arguments(root, words);
  if (arguments.has("--help")) {
    MUSTER_CHECK(cli::show(cli::help_text(root, arguments.path)));
    return cli::kExitDone;
  }
  if (arguments.path.empty() && arguments.has("--version")) arguments.path = {"version"};
  const cli::Command& command = command_at(root, arguments.path);
  report_swallowed_flags(command, arguments);
  MUSTER_CHECK(read_options(command, arguments));
  if (arguments.has("--createOptionsFile")) return write_options(command, arguments);
  MUSTER_TRY(const cli::Caller caller, cli::this_caller(hooks.context));
  cli::FlagReader reader(arguments);
  Invocation invocation{.path = arguments.path,
                        .arguments = arguments,
                        .reader = reader,
                        .caller = caller,
                        .hooks = hooks,
                        .words = words};
  return creates(arguments.path) ? create_or_run(invocation) : run_command(invocation);
}

}  // namespace

int run(const std::vector<std::string>& words, const cli::Hooks& hooks) {
  return cli::run_and_report(kProgram, [&]() -> Result<int> {
    auto code = run_command_line(words, hooks);
    if (code) return code;
    return for_gradient(std::move(code).error());
  });
}

namespace {

using base::Error;
using base::ErrorCode;
using nlohmann::ordered_json;

constexpr std::string_view kDataset = "--dataset";
constexpr const char* kDatasets = "datasets";

bool is_option(const cli::Flag& flag) {
  return flag.name != "--help" && flag.name != "--optionsFile" &&
         flag.name != "--createOptionsFile";
}

/// "--datasetAwsEndpoint" -> "awsEndpoint".
std::string dataset_key(const std::string& flag) {
  std::string key = flag.substr(kDataset.size());
  key.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(key.front())));
  return key;
}

using record::Input;

class OptionsReader {
 public:
  OptionsReader(const cli::Command& command, cli::Arguments& arguments)
      : command_(command), arguments_(arguments), given_(arguments.flags) {}

  base::Result<void> read(const config::YamlValue& root, const std::string& file) {
    config::FieldLines lines;
    const auto document = record::ValueTree::of(config::human_document(root, lines, faults_));
    const record::Path top;
    const Input options{document.root(), top, faults_, record::Form::kHuman};
    if (!document.root().is_null()) {
      record::read_pairs(options, [&](const std::string& key, const Input& value) {
        read_option(key, value, document.root().find(kDatasets) != nullptr);
      });
    }
    if (faults_.empty()) return {};
    config::locate(faults_, lines, root.line);
    return Error{.code = ErrorCode::kInvalid,
                 .what = "'" + file + "' has " +
                         base::count_text(static_cast<int64_t>(faults_.size()), "fault"),
                 .faults = std::move(faults_)};
  }

 private:
  /// A key with the value null is ignored.
  void read_option(const std::string& key, const Input& value, bool has_datasets) {
    std::vector<std::string> known;
    for (const cli::Flag& flag : command_.flags) {
      if (!is_option(flag)) continue;
      known.push_back(flag.name.substr(2));
      if (known.back() != key || value.value.is_null()) continue;
      const bool is_of_dataset = flag.name.starts_with(kDataset);
      return is_of_dataset && has_datasets ? note_both(value) : take(flag, value);
    }
    if (command_.find_flag("--datasetUri") != nullptr) known.emplace_back(kDatasets);
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      value.note("unknown key" + record::did_you_mean(key, known));
    } else if (key == kDatasets && !value.value.is_null()) {
      record::read_list(value, "maps", [&](const Input& dataset) { take_dataset(dataset); });
    }
  }

  void take(const cli::Flag& flag, const Input& value) {
    std::vector<std::string> values;
    if (flag.is_switch()) {
      if (record::read_flag(value).value_or(false)) values = {"true"};
    } else if (flag.repeats) {
      values = texts_of(value);
    } else if (value.value.is_object()) {
      values = {base::json_text(json_of(value.value))};
    } else if (const auto text = record::read_text(value)) {
      if (!flag.value_optional || *text != "false") values = {*text};
    }
    if (!values.empty() && !given_.contains(flag.name)) {
      arguments_.flags[flag.name] = std::move(values);
    }
  }

  static std::vector<std::string> texts_of(const Input& value) {
    if (value.value.is_text()) return {std::string(value.value.text())};
    std::vector<std::string> texts;
    record::read_list(value, "texts", [&](const Input& item) {
      texts.push_back(item.value.is_null() ? kNone : record::read_text(item).value_or(kNone));
    });
    return texts;
  }

  /// Scalars stay text, because they are inserted into text.
  static ordered_json json_of(const record::Value& value) {
    if (value.is_text()) return std::string(value.text());
    if (value.is_null()) return nullptr;
    ordered_json json = value.is_list() ? ordered_json::array() : ordered_json::object();
    for (const record::Value& each : value) {
      if (value.is_list()) {
        json.push_back(json_of(each));
      } else {
        json[std::string(each.name())] = json_of(each);
      }
    }
    return json;
  }

  void take_dataset(const Input& dataset) {
    std::map<std::string, std::string> values;
    record::read_pairs(dataset, [&](const std::string& key, const Input& part) {
      std::vector<std::string> known;
      for (const cli::Flag& flag : command_.flags) {
        if (!flag.name.starts_with(kDataset)) continue;
        known.push_back(dataset_key(flag.name));
        if (known.back() != key || part.value.is_null()) continue;
        if (const auto text = record::read_text(part)) values[flag.name] = *text;
      }
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        part.note("unknown key" + record::did_you_mean(key, known));
      }
    });
    // Positions matter, so missing values are filled in.
    for (const cli::Flag& flag : command_.flags) {
      if (!flag.name.starts_with(kDataset) || datasets_are_given()) continue;
      const auto found = values.find(flag.name);
      arguments_.flags[flag.name].push_back(found == values.end() ? kNone : found->second);
    }
  }

  bool datasets_are_given() const {
    return std::any_of(given_.begin(), given_.end(),
                       [](const auto& flag) { return flag.first.starts_with(kDataset); });
  }

  static void note_both(const Input& value) {
    value.note("cannot be used with the list 'datasets'; move it into that list");
  }

  const cli::Command& command_;
  cli::Arguments& arguments_;
  const std::map<std::string, std::vector<std::string>> given_;  ///< on the command line
  std::vector<base::Fault> faults_;
};

ordered_json json_of(const cli::Flag& flag, const cli::Arguments& arguments) {
  const auto found = arguments.flags.find(flag.name);
  if (flag.is_switch()) return found != arguments.flags.end();
  if (found == arguments.flags.end()) return nullptr;
  if (flag.repeats) return found->second;
  return found->second.back();
}

}  // namespace

base::Result<void> add_options(std::string_view text, const std::string& file,
                               const cli::Command& command, cli::Arguments& arguments) {
  const auto root = config::parse_yaml(text);
  if (!root) {
    Error error = root.error();
    error.what = "'" + file + "' is not valid YAML";
    return error;
  }
  return OptionsReader(command, arguments).read(*root, file);
}

std::string options_text(const cli::Command& command, const cli::Arguments& arguments) {
  ordered_json json = ordered_json::object();
  for (const cli::Flag& flag : command.flags) {
    if (is_option(flag) && !flag.hidden) json[flag.name.substr(2)] = json_of(flag, arguments);
  }
  return cli::json_to_yaml(base::json_text(json));
}

}  // namespace muster::dialects::gradient
