#include "cli/command/call.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "cli/common/output.h"
#include "job/project.h"

namespace muster::cli {

namespace {

/// The command that `path` leads to.
const Command& command_at(const Command& root, const std::vector<std::string>& path) {
  const Command* command = &root;
  for (const std::string& word : path) command = command->find_command(word);
  return *command;
}

}  // namespace

Output Reading::output(const std::vector<std::string>& formats) {
  const std::string format = reader.choice("--output", formats);
  if (format == "json") return Output::kJson;
  if (format == "yaml") return Output::kYaml;
  return format == "names" ? Output::kNames : Output::kTable;
}

std::string Reading::idempotency_key() {
  constexpr size_t kLength = 26;  // 130 bits: collisions are practically impossible
  refuse_empty("--idempotency-key");
  return reader.text("--idempotency-key", base::random_name(random, kLength));
}

SubmissionKey Reading::submission_key() {
  return {.text = idempotency_key(), .is_given = reader.has("--idempotency-key")};
}

void Reading::refuse_empty(const std::string& flag) {
  const std::vector<std::string> values = reader.texts(flag);
  const bool has_empty = std::any_of(values.begin(), values.end(),
                                     [](const std::string& value) { return value.empty(); });
  if (!has_empty || reader.is_at_fault(flag)) return;
  reader.fault(flag, "is empty; give a value, or leave it out");
}

std::string Reading::project_of_job() {
  refuse_empty("--project");
  return reader.text("--project");
}

std::string Reading::name(const std::string& of) {
  if (!arguments.names.empty()) return arguments.names.front();
  reader.fault("NAME", "is missing; name the " + of);
  return "";
}

Reading::JobTask Reading::job_and_task() {
  const std::string word = name("job");
  const size_t slash = word.find('/');
  JobTask meant{.job = word.substr(0, slash), .task = reader.text("--task")};
  if (slash == std::string::npos) return meant;
  const std::string task = word.substr(slash + 1);
  if (meant.job.empty() || task.empty()) {
    reader.fault("NAME", base::in_quotes(word) + " is not JOB or JOB/TASK");
  } else if (!meant.task.empty() && meant.task != task) {
    reader.fault("--task", base::in_quotes(meant.task) + " and " + base::in_quotes(word) +
                               " name different tasks");
  }
  meant.task = task;
  return meant;
}

std::vector<std::string> Reading::names(const std::string& of) {
  if (arguments.names.empty()) reader.fault("NAME", "is missing; name the " + of + "s");
  return arguments.names;
}

std::optional<std::string> Reading::optional_name() const {
  if (arguments.names.empty()) return std::nullopt;
  return arguments.names.front();
}

std::string Reading::absolute_path(const std::string& flag) const {
  if (!reader.has(flag)) return "";
  return (std::filesystem::path(caller.folder) / reader.text(flag)).lexically_normal();
}

std::string Reading::project_meant() const {
  const std::string in_use =
      caller.project.empty() ? std::string(job::kDefaultProject) : caller.project;
  return reader.text("--project", in_use);
}

std::string context_flag(const Command& root, const std::vector<std::string>& words) {
  const bool may_be_there = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.starts_with("--context");
  });
  if (!may_be_there) return "";
  const Arguments arguments = sort_arguments(root, words);
  const auto found = arguments.flags.find("--context");
  return found == arguments.flags.end() ? "" : found->second.back();
}

Result<Call> read_call(const Command& root, const std::vector<std::string>& words,
                       const Caller& caller, base::RandomSource& random) {
  const Arguments arguments = sort_arguments(root, words);
  Reading in{root, arguments, caller, random, FlagReader(arguments)};
  if (arguments.has("--help")) return root.read(in);
  const Command& command = command_at(root, arguments.path);
  in.refuse_empty("--context");
  Call call = command.read != nullptr ? command.read(in) : root.read(in);
  // Without a value, each of these would choose something else: all jobs of a file, or the default.
  for (const char* flag : {"--name", "--only", "--task"}) in.refuse_empty(flag);
  if (!in.reader.ok()) return usage_error(arguments.path, in.reader.faults());
  return call;
}

}  // namespace muster::cli
