#include "control/retry.h"

#include <algorithm>

#include "job/log_record.h"

namespace muster::control {

using job::Retry;
using job::RetryRule;

namespace {

bool found_in(const std::vector<std::string>& lines, const std::string& text) {
  const auto pattern = job::LogPattern::compile(text);
  return pattern && std::any_of(lines.begin(), lines.end(),
                                [&](const std::string& line) { return pattern->found_in(line); });
}

bool matches(const RetryRule& rule, const std::vector<std::string>& lines,
             const job::Task& culprit) {
  if (rule.exit_code && (!culprit.exit || culprit.exit->shell_code() != *rule.exit_code)) {
    return false;
  }
  return rule.log_pattern.empty() || found_in(lines, rule.log_pattern);
}

Retry counted_retry(const job::Job& job) {
  return {.number = job.retries_used + 1, .of = job.spec.scheduling.retries};
}

bool has_retries_left(const job::Job& job) {
  return job.retries_used < job.spec.scheduling.retries;
}

/// The first that matches; nullptr: none does.
const RetryRule* rule_for(const job::Job& job, const job::Task& culprit,
                          const std::vector<std::string>& lines) {
  const auto& rules = job.spec.scheduling.retry_rules;
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const RetryRule& rule) {
    return matches(rule, lines, culprit);
  });
  return found == rules.end() ? nullptr : &*found;
}

std::optional<Retry> follow(const RetryRule& rule, const job::Job& job, const job::Task& culprit) {
  if (rule.action == RetryRule::Action::kFail) return std::nullopt;
  if (rule.action == RetryRule::Action::kAvoidNode && !culprit.node.empty()) {
    return Retry{.cost = Retry::Cost::kAvoidsNode,
                 .node = culprit.node,
                 .by_rule = true,
                 .exit_code = rule.exit_code,
                 .log_pattern = rule.log_pattern};
  }
  if (!has_retries_left(job)) return std::nullopt;
  Retry retry = counted_retry(job);
  retry.by_rule = true;
  retry.exit_code = rule.exit_code;
  retry.log_pattern = rule.log_pattern;
  return retry;
}

}  // namespace

std::optional<Retry> retry_of(const job::Job& job, const job::Task& culprit,
                              const std::vector<std::string>& lines) {
  if (const RetryRule* const rule = rule_for(job, culprit, lines)) {
    return follow(*rule, job, culprit);
  }
  if (job.spec.scheduling.retries == 0) return std::nullopt;
  if (culprit.exit && culprit.exit->lost) {
    return Retry{.cost = Retry::Cost::kNone};
  }
  if (!has_retries_left(job)) return std::nullopt;
  return counted_retry(job);
}

std::optional<Retry> retry_by_rules(const job::Job& job, const job::Task& culprit,
                                    const std::vector<std::string>& lines) {
  const RetryRule* const rule = rule_for(job, culprit, lines);
  return rule == nullptr ? std::nullopt : follow(*rule, job, culprit);
}

std::chrono::milliseconds backoff(int restarts, std::chrono::milliseconds first) {
  if (restarts <= 1) return std::chrono::milliseconds(0);
  const int doublings = std::min(restarts - 2, 10);
  return std::min(first * 60, first * (1 << doublings));
}

}  // namespace muster::control
