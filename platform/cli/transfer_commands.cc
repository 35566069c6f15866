#include "cli/transfer_commands.h"

#include <optional>

#include "base/number.h"
#include "job/validate.h"

namespace muster::cli {

namespace {

constexpr int kLargestPort = 65'535;

std::optional<int> port_from(std::string_view text, int least) {
  const auto port = base::number_of<int>(text);
  return port && *port >= least && *port <= kLargestPort ? port : std::nullopt;
}

}  // namespace

CopyPlace copy_place_of(std::string_view word) {
  const size_t colon = word.find(':');
  const std::string_view head = word.substr(0, colon);
  const size_t slash = head.find('/');
  const std::string_view job = head.substr(0, slash);
  const std::string_view task = slash == std::string_view::npos ? "" : head.substr(slash + 1);
  const bool names_task = slash == std::string_view::npos || job::is_job_name(task);
  if (colon == std::string_view::npos || !job::is_job_name(job) || !names_task) {
    return {.path = std::string(word)};
  }
  const std::string_view path = word.substr(colon + 1);
  return {.job = std::string(job),
          .task = std::string(task),
          .path = path.empty() ? "." : std::string(path)};
}

std::string to_text(const CopyPlace& place) {
  if (place.is_here()) return place.path;
  return place.job + (place.task.empty() ? "" : "/" + place.task) + ":" + place.path;
}

base::Result<ForwardedPort> forwarded_port_of(std::string_view word) {
  const size_t colon = word.find(':');
  const auto remote = port_from(colon == std::string_view::npos ? word : word.substr(colon + 1), 1);
  std::string_view here = word.substr(0, colon);
  if (colon == 0) here = "0";
  const auto local = port_from(here, 0);
  if (remote && local) return ForwardedPort{.local = *local, .remote = *remote};
  return base::Error{.code = base::ErrorCode::kInvalid,
                     .what = "'" + std::string(word) +
                             "' is neither PORT nor LOCAL:REMOTE, of numbers up to 65535"};
}

}  // namespace muster::cli
