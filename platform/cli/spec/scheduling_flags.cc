#include "cli/spec/scheduling_flags.h"

#include "base/units.h"
#include "job/job.h"

namespace muster::cli::spec {

namespace {

using job::RetryRule;

/// A number, or a word that says what the job is for.
void read_priority(FlagReader& reader, job::Scheduling& scheduling) {
  if (!reader.has("--priority")) return;
  const std::string text = reader.text("--priority");
  if (const auto purpose = job::purpose_of(text)) {
    scheduling.purpose = *purpose;
  } else if (const auto number = base::number_of<int>(text)) {
    scheduling.priority = number;
  } else {
    reader.fault("--priority", "'" + text + "' is neither a number nor train, build or inference");
  }
}

void read_interactive(FlagReader& reader, job::Scheduling& scheduling) {
  if (!reader.has("--interactive")) return;
  const bool is_for_something_else =
      reader.has("--priority") && !scheduling.priority && reader.text("--priority") != "build";
  if (is_for_something_else && !reader.is_at_fault("--priority")) {
    reader.fault("--interactive", "does not go with --priority " + reader.text("--priority"));
  }
  scheduling.purpose = job::Purpose::kBuild;
}

void read_preemptible(FlagReader& reader, job::Scheduling& scheduling) {
  const bool yes = reader.has("--preemptible");
  const bool no = reader.has("--no-preemptible");
  if (yes && no) reader.fault("--no-preemptible", "does not go with --preemptible");
  if (yes || no) scheduling.preemptible = yes;
}

/// "CODE=ACTION": what comes before the last '=', for a pattern may hold some; the action in
/// `rule`.
std::optional<std::string> split_rule(const std::string& flag, const std::string& text,
                                      RetryRule& rule, FlagReader& reader) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos) {
    reader.fault(flag, "'" + text + "' has no action; write it as in " +
                           (flag == "--on-exit" ? "42=fail" : "'CUDA error=avoid-node'"));
    return std::nullopt;
  }
  const std::string action = text.substr(equals + 1);
  if (const auto known = job::retry_action_of(action)) {
    rule.action = *known;
    return text.substr(0, equals);
  }
  reader.fault(flag, "'" + action + "' is not an action; use retry, fail or avoid-node");
  return std::nullopt;
}

void read_retry_flags(FlagReader& reader, std::vector<RetryRule>& rules) {
  for (const std::string& text : reader.texts("--on-exit")) {
    RetryRule rule;
    const auto code = split_rule("--on-exit", text, rule, reader);
    if (!code) continue;
    rule.exit_code = base::number_of<int>(*code);
    if (rule.exit_code) {
      rules.push_back(rule);
    } else {
      reader.fault("--on-exit", "'" + *code + "' is not an exit code");
    }
  }
  for (const std::string& text : reader.texts("--on-log")) {
    RetryRule rule;
    const auto pattern = split_rule("--on-log", text, rule, reader);
    if (!pattern) continue;
    rule.log_pattern = *pattern;
    if (pattern->empty()) {
      reader.fault("--on-log", "'" + text + "' has no pattern");
    } else {
      rules.push_back(rule);
    }
  }
}

}  // namespace

void read_scheduling_flags(FlagReader& reader, job::Scheduling& scheduling) {
  read_priority(reader, scheduling);
  read_interactive(reader, scheduling);
  read_preemptible(reader, scheduling);
  read_retry_flags(reader, scheduling.retry_rules);
}

void read_workers(FlagReader& reader, job::JobSpec& spec) {
  const bool has_most = reader.has("--max-workers");
  if (!reader.has("--workers") && !has_most) {
    reader.fault("--workers", "is missing; say how many");
  }
  spec.workers = reader.number("--workers", 1);
  if (!has_most) return;
  const int most = reader.number("--max-workers", spec.workers);
  const bool is_said_otherwise =
      reader.has("--workers") && !reader.is_at_fault("--workers") && spec.workers != most;
  if (is_said_otherwise) {
    reader.fault("--max-workers", std::to_string(most) + " is not the " +
                                      std::to_string(spec.workers) +
                                      " of --workers, and both say how many there are at the "
                                      "most; give one of them");
  }
  spec.workers = most;
  if (!reader.has("--min-workers")) {
    spec.scheduling.min_workers = job::fewest_workers(spec.kind);
  }
}

}  // namespace muster::cli::spec
