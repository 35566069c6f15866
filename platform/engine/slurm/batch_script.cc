#include "engine/slurm/batch_script.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "engine/slurm/slurm_words.h"

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;
using base::Fault;
using base::Result;

namespace {

int nodes_for(int tasks, const Component& component) {
  const int on_each = std::max(component.tasks_per_node, 1);
  return (tasks + on_each - 1) / on_each;
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; });
}

/// As sbatch reads values in double quotes: a backslash takes the meaning of the next character.
std::string quoted(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

/// A per cent sign begins what Slurm puts a number in the place of.
std::string plain_path(std::string_view path) {
  std::string text;
  for (const char c : path) text += c == '%' ? "%%" : std::string(1, c);
  return text;
}

class Lines {
 public:
  void flag(std::string_view option) { (text_ += "#SBATCH --").append(option) += '\n'; }
  void number(std::string_view option, int64_t value) {
    flag(std::string(option) + "=" + std::to_string(value));
  }
  /// Nothing where the value is empty: then Slurm's own holds.
  void value(std::string_view option, std::string_view value) {
    if (!value.empty()) flag(std::string(option) + "=" + quoted(value));
  }
  void raw(std::string_view line) { (text_ += line) += '\n'; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void say_size(const Component& component, Lines& lines) {
  const int most = most_nodes(component);
  const int least = least_nodes(component);
  lines.flag("nodes=" + (least == most ? "" : std::to_string(least) + "-") + std::to_string(most));
  // A number of tasks would ask for all of its nodes.
  if (least == most) lines.number("ntasks", component.tasks);
  lines.number("ntasks-per-node", component.tasks_per_node);
  if (component.cpus_per_task > 0) lines.number("cpus-per-task", component.cpus_per_task);
  if (component.memory_bytes_per_node > 0) {
    lines.flag("mem=" +
               std::to_string((component.memory_bytes_per_node + kMebibyte - 1) / kMebibyte) + "M");
  }
  if (component.gpus_per_node > 0) {
    const std::string type = component.gpu_type.empty() ? "" : component.gpu_type + ":";
    lines.value("gpus-per-node", type + std::to_string(component.gpus_per_node));
  }
}

/// What each component of a heterogeneous job says again.
void say_place(const Submission& submission, Lines& lines) {
  lines.value("job-name", submission.name);
  lines.value("comment", submission.comment);
  lines.value("partition", submission.partition);
  lines.value("account", submission.account);
  lines.value("qos", submission.qos);
  lines.value("reservation", submission.reservation);
  lines.value("constraint", submission.constraint);
  lines.value("exclude", base::joined(submission.excluded_nodes, ","));
  if (submission.time_limit) lines.number("time", submission.time_limit->count());
  // Where Slurm takes its nodes away, it is put back into the queue and keeps its place there.
  lines.flag("requeue");
  for (const std::string& option : submission.options) lines.raw("#SBATCH " + option);
}

void say_script(const Submission& submission, Lines& lines) {
  lines.value("chdir", submission.folder);
  lines.value("output", plain_path(submission.output));
  lines.flag("open-mode=append");
  // Any other has Slurm run a login shell on the node to see what that would set.
  lines.flag("export=ALL");
}

class Checker {
 public:
  void text(const std::string& field, std::string_view value) {
    if (has_control(value)) fault(field, "holds a line break or another control character");
  }
  void at_least(const std::string& field, int64_t value, int64_t least) {
    if (value < least) {
      fault(field, "is " + std::to_string(value) + ", and is at least " + std::to_string(least));
    }
  }
  void fault(const std::string& field, std::string what) {
    faults_.push_back({.field = field, .what = std::move(what)});
  }
  std::vector<Fault> take() { return std::move(faults_); }

 private:
  std::vector<Fault> faults_;
};

bool is_variable(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

void check_component(const Component& component, size_t number, Checker& check) {
  const std::string field = "components[" + std::to_string(number) + "].";
  check.at_least(field + "tasks", component.tasks, 1);
  check.at_least(field + "tasks_per_node", component.tasks_per_node, 1);
  check.at_least(field + "cpus_per_task", component.cpus_per_task, 0);
  check.at_least(field + "gpus_per_node", component.gpus_per_node, 0);
  check.at_least(field + "memory_bytes_per_node", component.memory_bytes_per_node, 0);
  check.text(field + "gpu_type", component.gpu_type);
  if (component.least_tasks < 0 || component.least_tasks > component.tasks) {
    check.fault(field + "least_tasks", "is not between 0 and the number of tasks");
  }
}

void check_script(const Submission& submission, Checker& check) {
  if (!submission.script.starts_with("#!") || submission.script.find('\n') == std::string::npos) {
    check.fault("script", "does not begin with a line as #!/bin/sh is");
  }
  if (submission.script.find('\0') != std::string::npos) check.fault("script", "holds a NUL");
  check.text("folder", submission.folder);
  check.text("output", submission.output);
  // In a path, too, it would take the meaning of what follows.
  if (submission.output.find('\\') != std::string::npos) {
    check.fault("output", "holds a backslash, which Slurm does not take in such a path");
  }
  for (const auto& [name, value] : submission.environment) {
    if (!is_variable(name)) check.fault("environment", "'" + name + "' is no name of a variable");
    if (value.find('\0') != std::string::npos) check.fault("environment", name + " holds a NUL");
  }
}

std::vector<Fault> faults_of(const Submission& submission) {
  Checker check;
  check.text("name", submission.name);
  check.text("comment", submission.comment);
  check.text("partition", submission.partition);
  check.text("account", submission.account);
  check.text("qos", submission.qos);
  check.text("reservation", submission.reservation);
  check.text("constraint", submission.constraint);
  for (const std::string& node : submission.excluded_nodes) check.text("excluded_nodes", node);
  for (const std::string& option : submission.options) {
    check.text("options", option);
    if (!option.starts_with('-')) {
      check.fault("options", "'" + option + "' does not begin as an option of sbatch does");
    }
  }
  if (submission.components.empty()) check.fault("components", "are none");
  for (size_t i = 0; i < submission.components.size(); ++i) {
    check_component(submission.components[i], i, check);
  }
  check_script(submission, check);
  return check.take();
}

}  // namespace

int most_nodes(const Component& component) {
  return nodes_for(component.tasks, component);
}

int least_nodes(const Component& component) {
  return component.least_tasks == 0 ? most_nodes(component)
                                    : nodes_for(component.least_tasks, component);
}

Result<std::string> batch_script(const Submission& submission) {
  if (std::vector<Fault> faults = faults_of(submission); !faults.empty()) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the job cannot be said to Slurm",
                 .faults = std::move(faults)};
  }
  Lines lines;
  say_script(submission, lines);
  for (size_t i = 0; i < submission.components.size(); ++i) {
    if (i > 0) lines.raw("#SBATCH hetjob");
    say_place(submission, lines);
    say_size(submission.components[i], lines);
  }
  const size_t first_line = submission.script.find('\n') + 1;
  return submission.script.substr(0, first_line) + lines.take() +
         submission.script.substr(first_line);
}

}  // namespace muster::engine::slurm
