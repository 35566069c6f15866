#include "engine/container/docker_wire.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "engine/container/docker_json.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;
using nlohmann::json;

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
                 .what = theirs.empty() ? "it does not answer like Docker or Podman"
                                        : "its version of the API is '" + base::shortened(theirs) +
                                              "', which is malformed",
                 .advice = "check that Docker or Podman listens there"};
  }
  if (*newest >= *parse(kOldestApi)) return to_string(std::min(*newest, *parse(kNewestApi)));
  return Error{.code = ErrorCode::kUnavailable,
               .what = "it supports the Docker Engine API up to version " + to_string(*newest) +
                       ", and Muster requires version " + kOldestApi + " or later",
               .advice = "update it to Docker 19.03 or Podman 4, or later"};
}

namespace {

// Not by strptime(), which expects the names of months in the user's language.
constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::string_view kForm = "Sun, 06 Nov 1994 08:49:37 GMT";

}  // namespace

std::optional<int64_t> parse_http_date(std::string_view text) {
  if (text.size() != kForm.size() || !text.ends_with(" GMT")) return std::nullopt;
  const auto number = [&](size_t at, size_t width) {
    return base::number_of<unsigned>(text.substr(at, width));
  };
  const auto month = std::find(kMonths.begin(), kMonths.end(), text.substr(8, 3));
  const auto day = number(5, 2);
  const auto year = number(12, 4);
  const auto hours = number(17, 2);
  const auto minutes = number(20, 2);
  const auto seconds = number(23, 2);
  if (month == kMonths.end() || !day || !year || !hours || !minutes || !seconds) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date(
      std::chrono::year(static_cast<int>(*year)),
      std::chrono::month(static_cast<unsigned>(month - kMonths.begin()) + 1),
      std::chrono::day(*day));
  if (!date.ok() || *hours > 23 || *minutes > 59 || *seconds > 60) return std::nullopt;
  const std::chrono::seconds since = std::chrono::sys_days(date).time_since_epoch();
  return since.count() + int64_t{*hours} * 3600 + int64_t{*minutes} * 60 + *seconds;
}

namespace {

enum FrameKind : unsigned char { kInput = 0, kOutput = 1, kError = 2, kEngineError = 3 };

}  // namespace

base::Result<void> FrameReader::put(std::string_view bytes, const OnOutput& on_output) {
  while (!bytes.empty()) {
    if (left_ == 0) {
      header_[header_size_++] = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      if (header_size_ == kHeader) MUSTER_CHECK(begin_frame());
      continue;
    }
    const std::string_view part = bytes.substr(0, std::min<uint64_t>(left_, bytes.size()));
    bytes.remove_prefix(part.size());
    left_ -= part.size();
    if (!on_output(part, is_error_)) return {};
  }
  return {};
}

base::Result<void> FrameReader::begin_frame() {
  const auto [kind, zero1, zero2, zero3, a, b, c, d] = header_;
  if (kind > kEngineError || zero1 != 0 || zero2 != 0 || zero3 != 0) {
    return base::Error{.code = base::ErrorCode::kInternal,
                       .what = "the engine's output is not in frames: one begins with byte " +
                               std::to_string(kind)};
  }
  header_size_ = 0;
  is_error_ = kind == kError || kind == kEngineError;
  left_ = uint64_t{a} << 24U | uint64_t{b} << 16U | uint64_t{c} << 8U | d;
  return {};
}

namespace {

std::string_view without_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

base::Result<void> JsonLines::put(std::string_view bytes, const OnLine& on_line) {
  while (true) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) break;
    waiting_ += bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    const std::string line = std::exchange(waiting_, {});
    const std::string_view text = without_return(line);
    if (!text.empty() && !on_line(text)) return {};
  }
  waiting_ += bytes;
  if (waiting_.size() <= kLongest) return {};
  return base::Error{
      .code = base::ErrorCode::kInternal,
      .what = "the engine sends a line of more than " + std::to_string(kLongest) + " bytes"};
}

std::string JsonLines::take_rest() {
  const std::string rest = std::exchange(waiting_, {});
  return std::string(without_return(rest));
}

ImageName parse_image_name(const std::string& image) {
  const size_t digest = image.find('@');
  std::string name = image.substr(0, digest);
  // A colon before the last slash belongs to a registry's port.
  const size_t slash = name.rfind('/');
  const size_t colon = name.find(':', slash == std::string::npos ? 0 : slash);
  std::string tag = colon == std::string::npos ? "latest" : name.substr(colon + 1);
  if (digest != std::string::npos) tag = image.substr(digest + 1);
  name = name.substr(0, colon);
  return {.name = std::move(name), .tag = std::move(tag)};
}

Result<void> PullStream::put(std::string_view bytes) {
  Result<void> taken;
  const auto put = lines_.put(bytes, [&](std::string_view line) {
    taken = take(line);
    return taken.ok();
  });
  return taken ? put : taken;
}

Result<void> PullStream::put_end() {
  const std::string rest = lines_.take_rest();
  if (rest.empty()) return {};
  return take(rest);
}

Result<void> PullStream::take(std::string_view line) {
  return read_json<void>(
      line, "the engine's progress report of the pull", [&](const json& report) -> Result<void> {
        auto failure = value_at<std::string>(at(report, "errorDetail"), "message");
        if (failure.empty()) failure = value_at<std::string>(report, "error");
        if (!failure.empty()) {
          failure_ = std::move(failure);
          return {};
        }
        auto status = value_at<std::string>(report, "status");
        const auto id = value_at<std::string>(report, "id");
        const json& detail = at(report, "progressDetail");
        const bool is_layer = !id.empty();
        if (is_layer && status == "Downloading") {
          layers_[id] = {.done = value_at<int64_t>(detail, "current"),
                         .all = value_at<int64_t>(detail, "total")};
        } else if (is_layer && status == "Download complete" && layers_.contains(id)) {
          layers_[id].done = layers_[id].all;
        }
        if (on_progress_) on_progress_(progress(std::move(status)));
        return {};
      });
}

/// The sum over all layers that have been reported so far.
PullProgress PullStream::progress(std::string status) const {
  PullProgress progress{.status = std::move(status)};
  for (const auto& [id, layer] : layers_) {
    progress.done_bytes += layer.done;
    progress.all_bytes += layer.all;
  }
  return progress;
}

}  // namespace muster::engine
