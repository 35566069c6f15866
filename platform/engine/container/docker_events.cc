// What happens to containers, as it happens.
#include <utility>

#include "base/log.h"
#include "engine/container/docker_client_impl.h"
#include "engine/container/docker_json.h"
#include "engine/container/http_date.h"
#include "engine/container/json_lines.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;

namespace {

/// Events under way.
struct Telling {
  std::function<void(const DockerEvent&)> on_event;
  std::string engine;
  std::function<bool()> is_wanted = {};  ///< until somebody who is told drops it
  JsonLines lines = {};
  Result<void> understood = {};

  /// False: what comes is not understood.
  bool take(std::string_view bytes) {
    Result<void> read;
    const auto put = lines.put(bytes, [&](std::string_view line) {
      const auto event = read_event(line);
      if (!event) {
        read = event.error();
        return false;
      }
      on_event(*event);
      return is_wanted();
    });
    understood = read ? put : read;
    return understood.ok();
  }
};

Error ended(const Telling& telling) {
  if (!telling.understood) {
    return {.code = ErrorCode::kInternal,
            .what = telling.engine + " tells of its containers what cannot be understood: " +
                    telling.understood.error().what};
  }
  return {.code = ErrorCode::kUnavailable,
          .what = telling.engine + " tells no more of its containers"};
}

/// By the engine's clock, which need not be ours. Podman answers before it listens to its own
/// events: only those since a moment are told without a gap.
std::string since(const http::Response& pinged) {
  const auto date = pinged.headers.find("date");
  if (date == pinged.headers.end()) return "";
  const auto now = parse_http_date(date->second);
  return now ? "&since=" + std::to_string(*now) : "";
}

}  // namespace

std::shared_ptr<void> DockerClient::events(const std::vector<std::string>& labels,
                                           std::function<void(const DockerEvent&)> on_event,
                                           std::function<void(base::Error)> broken,
                                           std::function<void()> open) {
  const auto telling =
      std::make_shared<Telling>(Telling{.on_event = std::move(on_event), .engine = impl_->name});
  const auto call = std::make_shared<uint64_t>();
  const auto listen = [impl = impl_.get(), labels, telling, broken, open,
                       call](const Result<http::Response>& pinged) {
    if (!pinged) return broken(pinged.error());
    *call = impl->ask(
        {.path = "/events?filters=" + url_escaped(filters(labels, {"container"})) + since(*pinged),
         .doing = "what happens to containers cannot be heard",
         .on_piece = [telling](std::string_view bytes) { return telling->take(bytes); },
         .on_head = open},
        Impl::Answered([telling, broken](const Result<http::Response>& answer) {
          broken(answer ? ended(*telling) : answer.error());
        }));
    telling->is_wanted = impl->is_open(*call);
  };
  *call = impl_->ask({.path = "/_ping", .doing = "what happens to containers cannot be heard"},
                     Impl::Answered(listen));
  return {nullptr, [weak = std::weak_ptr(impl_), call](void*) {
            if (const auto impl = weak.lock()) impl->drop(*call);
          }};
}

}  // namespace muster::engine
