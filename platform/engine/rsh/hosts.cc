#include "engine/rsh/hosts.h"

#include <algorithm>

#include "base/units.h"
#include "base/text.h"

namespace muster::engine::rsh {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr size_t kNamesShown = 20;
constexpr int kLastPort = 65'535;

std::string names_of(const std::vector<Host>& hosts) {
  std::string names;
  for (size_t i = 0; i < std::min(hosts.size(), kNamesShown); ++i) {
    names += (i == 0 ? "" : ", ") + hosts[i].name;
  }
  if (hosts.size() > kNamesShown) names += ", ...";
  return names;
}

}  // namespace

Result<std::vector<Host>> read_hosts(std::string_view text) {
  std::vector<Host> hosts;
  for (const std::string& line : base::split(text, '\n')) {
    if (line.empty()) continue;
    const std::vector<std::string> words = base::split(line, ' ');
    const auto port = words.size() == 3 ? base::number_of<int>(words[2]) : std::nullopt;
    if (!port || *port < 1 || *port > kLastPort || words[0].empty() || words[1].empty()) {
      return Error{.code = ErrorCode::kInvalid,
                   .what = "'" + line + "' is no line of NAME ADDRESS PORT"};
    }
    hosts.push_back({.name = words[0], .address = words[1], .port = *port});
  }
  return hosts;
}

Result<Host> find_host(const std::vector<Host>& hosts, std::string_view name) {
  const auto found =
      std::find_if(hosts.begin(), hosts.end(), [&](const Host& host) { return host.name == name; });
  if (found != hosts.end()) return *found;
  return Error{.code = ErrorCode::kNotFound,
               .what = "this job has no host '" + std::string(name) + "'",
               .advice = hosts.empty() ? "" : "its hosts are " + names_of(hosts)};
}

}  // namespace muster::engine::rsh
