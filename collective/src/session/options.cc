#include <cstdlib>
#include <optional>
#include <string>

#include "muster/collective/session.h"

namespace muster::collective {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<double> number_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  // Written so that a NaN is refused as well.
  if (text.empty() || *end != '\0' || !(value >= 0 && value < 1e15)) return std::nullopt;
  return value;
}

Error not_a_number(const char* name, const std::string& value, const char* example) {
  return {.code = ErrorCode::kConfiguration,
          .message = std::string(name) + " is '" + value + "', which is no number of 0 or more",
          .advice = std::string("set it like ") + name + "=" + example};
}

}  // namespace

Result<SessionOptions> session_options_from_environment(SessionOptions given) {
  if (given.timeline.empty()) given.timeline = variable("MUSTER_COLLECTIVE_TIMELINE");
  if (given.autotune_log.empty()) given.autotune_log = variable("MUSTER_COLLECTIVE_AUTOTUNE_LOG");
  const std::string autotune = variable("MUSTER_COLLECTIVE_AUTOTUNE");
  if (autotune != "" && autotune != "0") given.autotune = true;
  constexpr const char* kStall = "MUSTER_COLLECTIVE_STALL_SECONDS";
  const std::string stall = variable(kStall);
  // A value that was set to what it is by default cannot be told from one that was not.
  if (!stall.empty() && given.stall_warning == SessionOptions{}.stall_warning) {
    const std::optional<double> seconds = number_of(stall);
    if (!seconds || *seconds > 1e9) return not_a_number(kStall, stall, "60");
    given.stall_warning = std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1000));
  }
  constexpr const char* kLimit = "MUSTER_COLLECTIVE_STALL_LIMIT_SECONDS";
  const std::string limit = variable(kLimit);
  if (!limit.empty() && given.stall_limit == SessionOptions{}.stall_limit) {
    const std::optional<double> seconds = number_of(limit);
    if (!seconds || *seconds > 1e9) return not_a_number(kLimit, limit, "600");
    given.stall_limit = std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1000));
  }
  constexpr const char* kFusion = "MUSTER_COLLECTIVE_FUSION_BYTES";
  const std::string fusion = variable(kFusion);
  if (!fusion.empty() && given.fusion_bytes == 0) {
    const std::optional<double> bytes = number_of(fusion);
    if (!bytes) return not_a_number(kFusion, fusion, "16777216");
    given.fusion_bytes = static_cast<std::uint64_t>(*bytes);
  }
  return given;
}

}  // namespace muster::collective
