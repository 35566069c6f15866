#include "control/port_taken.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/units.h"

namespace muster::control {

namespace {

using namespace std::literals;

// Servers bind their ports when they start. A framework takes its time to be loaded before that.
constexpr std::chrono::minutes kFirstMoments{2};

constexpr size_t kNearTheEnd = 40;
constexpr int kLeastPort = 1024;  ///< that Muster chooses; smaller numbers are of something else
constexpr int kMostPort = 65'535;

// Of the C library, of torch and Node, of TensorFlow and of gRPC.
constexpr std::array kSaidOfPorts{"ddress already in use"sv, "EADDRINUSE"sv,
                                  "Could not start gRPC server"sv, "Failed to add port to server"sv,
                                  "No address added out of"sv};

// "grpc_server_lib.cc:1234" is a place in a program.
constexpr std::array kSources{".cc"sv, ".cpp"sv, ".c"sv,  ".h"sv,
                              ".py"sv, ".go"sv,  ".rs"sv, ".js"sv};

bool speaks_of_a_port(std::string_view line) {
  return std::any_of(kSaidOfPorts.begin(), kSaidOfPorts.end(), [&](std::string_view words) {
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
    if (!speaks_of_a_port(lines[i])) continue;
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

}  // namespace muster::control
