#include "control/retry.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/units.h"
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
  if (rule.exit_code) {
    if (!culprit.exit) return false;
    const int code = culprit.exit->shell_code();
    if (code < *rule.exit_code || code > rule.last_exit_code.value_or(*rule.exit_code))
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

/// The first rule that matches; nullptr: no rule does.
const RetryRule* rule_for(const job::Job& job, const job::Task& culprit,
                          const std::vector<std::string>& lines) {
  const auto& rules = job.spec.scheduling.retry_rules;
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const RetryRule& rule) {
    return matches(rule, lines, culprit);
  });
  return found == rules.end() ? nullptr : &*found;
}

/// The exit code that a rule has matched.
std::optional<int> code_by(const RetryRule& rule, const job::Task& culprit) {
  return rule.exit_code && culprit.exit ? std::optional(culprit.exit->shell_code()) : std::nullopt;
}

std::optional<Retry> follow(const RetryRule& rule, const job::Job& job, const job::Task& culprit) {
  if (rule.action == RetryRule::Action::kFail) return std::nullopt;
  if (rule.action == RetryRule::Action::kAvoidNode && !culprit.node.empty()) {
    return Retry{.cost = Retry::Cost::kAvoidsNode,
                 .node = culprit.node,
                 .by_rule = true,
                 .exit_code = code_by(rule, culprit),
                 .log_pattern = rule.log_pattern};
  }
  if (!has_retries_left(job)) return std::nullopt;
  Retry retry = counted_retry(job);
  retry.by_rule = true;
  retry.exit_code = code_by(rule, culprit);
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

std::vector<base::Fault> refused_rules(const job::Job& job) {
  std::vector<base::Fault> faults;
  const auto& rules = job.spec.scheduling.retry_rules;
  for (size_t i = 0; i < rules.size(); ++i) {
    const auto pattern = job::LogPattern::compile(rules[i].log_pattern);
    if (pattern) continue;
    faults.push_back({.field = "scheduling.retry_rules[" + std::to_string(i) + "].log_pattern",
                      .what = pattern.error().what});
  }
  return faults;
}

std::chrono::milliseconds backoff(int restarts, std::chrono::milliseconds first) {
  if (restarts <= 1) return std::chrono::milliseconds(0);
  const int doublings = std::min(restarts - 2, 10);
  return std::min(first * 60, first * (1 << doublings));
}

namespace {

using namespace std::literals;

// Servers bind their ports at their start, but a framework takes a while to be loaded before.
constexpr std::chrono::minutes kFirstMoments{2};

constexpr size_t kNearTheEnd = 40;
constexpr int kLeastPort = 1024;  ///< the lowest port that Muster chooses
constexpr int kMostPort = 65'535;

// Messages of the C library, of torch and Node, of TensorFlow and of gRPC.
constexpr std::array kPortErrorTexts{"ddress already in use"sv, "EADDRINUSE"sv,
                                     "Could not start gRPC server"sv,
                                     "Failed to add port to server"sv, "No address added out of"sv};

// "grpc_server_lib.cc:1234" is a place in a program.
constexpr std::array kSources{".cc"sv, ".cpp"sv, ".c"sv,  ".h"sv,
                              ".py"sv, ".go"sv,  ".rs"sv, ".js"sv};

bool mentions_a_port(std::string_view line) {
  return std::any_of(kPortErrorTexts.begin(), kPortErrorTexts.end(), [&](std::string_view words) {
    return line.find(words) != std::string_view::npos;
  });
}

bool is_digit(char letter) {
  return std::isdigit(static_cast<unsigned char>(letter)) != 0;
}

/// "[::]:29500", "worker-0:29500", "port: 29500", "port 29500", "port=29500", "('::', 29500)".
bool names_a_port(std::string_view before) {
  if (before.ends_with("', ")) return true;
  if (before.ends_with(':')) {
    before.remove_suffix(1);
    const bool is_place = std::any_of(kSources.begin(), kSources.end(),
                                      [&](std::string_view end) { return before.ends_with(end); });
    return !is_place && !before.empty() && before.back() != ' ';
  }
  while (!before.empty() &&
         (before.back() == ' ' || before.back() == ':' || before.back() == '=')) {
    before.remove_suffix(1);
  }
  return before.ends_with("port") || before.ends_with("Port");
}

void add_ports(std::string_view line, std::set<int>& ports) {
  for (size_t at = 0; at < line.size();) {
    if (!is_digit(line[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < line.size() && is_digit(line[end])) ++end;
    const auto number = base::number_of<int>(line.substr(at, end - at));
    const bool may_be_one = number && *number >= kLeastPort && *number <= kMostPort;
    if (may_be_one && names_a_port(line.substr(0, at))) ports.insert(*number);
    at = end;
  }
}

bool has_any(const std::set<int>& ports, const std::set<int>& of) {
  return std::any_of(ports.begin(), ports.end(), [&](int port) { return of.count(port) > 0; });
}

}  // namespace

std::optional<RefusedPort> refused_port_in(const std::vector<std::string>& lines) {
  std::optional<RefusedPort> refused;
  for (size_t i = lines.size() - std::min(lines.size(), kNearTheEnd); i < lines.size(); ++i) {
    if (!mentions_a_port(lines[i])) continue;
    if (!refused) refused.emplace();
    refused->line = i;
    add_ports(lines[i], refused->named);
  }
  return refused;
}

std::optional<job::AttemptAbandoned> start_under_other_ports(const job::Job& job,
                                                             const job::Task& culprit,
                                                             const std::vector<std::string>& lines,
                                                             const std::set<int>& chosen) {
  if (chosen.empty() || job.attempt - job.restarts >= kStartAttempts) return std::nullopt;
  const bool ran_for_long =
      culprit.started && culprit.ended && *culprit.ended - *culprit.started > kFirstMoments;
  const auto refused = refused_port_in(lines);
  if (ran_for_long || !refused) return std::nullopt;
  const bool is_its_own = !refused->named.empty() && !has_any(refused->named, chosen);
  if (is_its_own) return std::nullopt;
  int port = 0;
  for (const int named : refused->named) {
    if (chosen.count(named) > 0) port = named;
  }
  return job::AttemptAbandoned{
      .why = job::AttemptAbandoned::Why::kPortTaken, .task = culprit.name, .port = port};
}

std::optional<std::chrono::milliseconds> pause_before_another_start(int& unanswered_starts) {
  constexpr int kMostInARow = 4;
  if (++unanswered_starts >= kMostInARow) return std::nullopt;
  return backoff(unanswered_starts + 1);
}

}  // namespace muster::control
