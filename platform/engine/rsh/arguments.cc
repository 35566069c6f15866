#include "engine/rsh/arguments.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "base/units.h"

namespace muster::engine::rsh {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

// ssh's options, which include those of rsh.
constexpr std::string_view kOptionsAlone = "1246AaCfgKkMNnqsTtVvXxYy";
constexpr std::string_view kOptionsWithValue = "BbcDEeFIiJLlmOopQRSWw";

Error unusable(std::string what) {
  return {.code = ErrorCode::kInvalid,
          .what = std::move(what),
          .advice = "use: muster-rsh [options of ssh] HOST COMMAND..."};
}

bool is_option(std::string_view word) {
  return word.size() > 1 && word.front() == '-';
}

/// Parses the option at `at` and its value.
Result<size_t> take_option(const std::vector<std::string>& words, size_t at, Request& request) {
  const std::string_view letters = std::string_view(words[at]).substr(1);
  for (size_t i = 0; i < letters.size(); ++i) {
    const char letter = letters[i];
    if (kOptionsWithValue.find(letter) != std::string_view::npos) {
      const bool has_own_word = i + 1 == letters.size();
      if (has_own_word && at + 1 == words.size()) {
        return unusable("option -" + std::string(1, letter) + " requires a value");
      }
      return at + (has_own_word ? 2 : 1);
    }
    if (kOptionsAlone.find(letter) == std::string_view::npos) {
      return unusable("'" + words[at] + "' is not an option of rsh or ssh");
    }
    request.no_input = request.no_input || letter == 'n';
  }
  return at + 1;
}

}  // namespace

Result<Request> read_arguments(const std::vector<std::string>& words) {
  Request request;
  size_t at = 0;
  while (at < words.size()) {
    if (words[at] == "--") {
      ++at;
      if (!request.host.empty()) break;
      continue;
    }
    if (is_option(words[at])) {
      MUSTER_TRY(at, take_option(words, at, request));
      continue;
    }
    if (!request.host.empty()) break;
    request.host = words[at].substr(words[at].find('@') + 1);  // npos + 1 is 0
    ++at;
  }
  if (request.host.empty()) return unusable("the host is missing");
  for (; at < words.size(); ++at) {
    request.command += (request.command.empty() ? "" : " ") + words[at];
  }
  return request;
}

namespace {

/// The number of hosts that an error lists.
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
                   .what = "'" + line + "' is not a line NAME ADDRESS PORT"};
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
