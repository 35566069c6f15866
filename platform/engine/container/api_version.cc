#include "engine/container/api_version.h"

#include <algorithm>
#include <optional>

#include "base/units.h"
#include "base/text.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;

namespace {

struct Version {
  int major = 0;
  int minor = 0;

  auto operator<=>(const Version&) const = default;
};

std::optional<Version> parse(std::string_view text) {
  const size_t point = text.find('.');
  if (point == std::string_view::npos) return std::nullopt;
  const auto major = base::number_of<int>(text.substr(0, point));
  const auto minor = base::number_of<int>(text.substr(point + 1));
  if (!major || !minor || *major < 0 || *minor < 0) return std::nullopt;
  return Version{.major = *major, .minor = *minor};
}

std::string to_string(const Version& version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

}  // namespace

base::Result<std::string> choose_api_version(std::string_view theirs) {
  const auto newest = parse(theirs);
  if (!newest) {
    return Error{.code = ErrorCode::kUnavailable,
                 .what = theirs.empty() ? "it does not answer as Docker or Podman does"
                                        : "its version of the API is '" + base::shortened(theirs) +
                                              "', which is none",
                 .advice = "see that Docker or Podman answers there, and not something else"};
  }
  if (*newest >= *parse(kOldestApi)) return to_string(std::min(*newest, *parse(kNewestApi)));
  return Error{.code = ErrorCode::kUnavailable,
               .what = "it speaks version " + to_string(*newest) +
                       " of the Docker Engine API at most, Muster " + kOldestApi + " at least",
               .advice = "update it: Docker 19.03 or Podman 4 will do"};
}

}  // namespace muster::engine
