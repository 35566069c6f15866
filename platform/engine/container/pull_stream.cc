#include "engine/container/pull_stream.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "engine/container/json_read.h"

namespace muster::engine {

using base::Result;
using nlohmann::json;

ImageName parse_image_name(const std::string& image) {
  const size_t digest = image.find('@');
  std::string name = image.substr(0, digest);
  // A colon before the last slash is that of a registry's port.
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
      line, "what the engine tells of its pull", [&](const json& told) -> Result<void> {
        auto failure = value_at<std::string>(at(told, "errorDetail"), "message");
        if (failure.empty()) failure = value_at<std::string>(told, "error");
        if (!failure.empty()) {
          failure_ = std::move(failure);
          return {};
        }
        auto status = value_at<std::string>(told, "status");
        const auto id = value_at<std::string>(told, "id");
        const json& detail = at(told, "progressDetail");
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

/// Of all layers together: those of which one has been heard.
PullProgress PullStream::progress(std::string status) const {
  PullProgress progress{.status = std::move(status)};
  for (const auto& [id, layer] : layers_) {
    progress.done_bytes += layer.done;
    progress.all_bytes += layer.all;
  }
  return progress;
}

}  // namespace muster::engine
