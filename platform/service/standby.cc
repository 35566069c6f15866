#include "service/standby.h"

#include <unistd.h>

#include <utility>

#include "api/routes.h"
#include "api/wire.h"
#include "server/router.h"

namespace muster::service {

namespace {

base::Error waits(const std::optional<std::string>& leader) {
  if (leader) {
    return {.code = base::ErrorCode::kUnavailable,
            .what = "this server waits; " + *leader + " leads",
            .advice = "ask that one, or this one again: it takes over when the other ends"};
  }
  return {.code = base::ErrorCode::kUnavailable,
          .what = "this server waits, and none leads",
          .advice = "ask again: one of them takes over within seconds"};
}

http::Response unavailable(const Standby& standby) {
  http::Response response = server::problem(waits(standby.leader()));
  response.headers["retry-after"] = "1";
  return response;
}

std::string info_of(const Standby& standby) {
  return api::info_to_json({.version = standby.version,
                            .pid = ::getpid(),
                            .state_folder = standby.state_folder,
                            .engine = standby.engine});
}

}  // namespace

http::Handler standby_handler(Standby standby) {
  return
      [standby = std::move(standby)](const http::Request& request, const http::Respond& respond) {
        const bool is_owner = request.peer.user.has_value();
        const bool asks = request.method == "GET";
        if (asks && request.path == api::kHealthPath) {
          respond(server::json_answer(200, "{\"status\":\"waits\"}"));
        } else if (is_owner && asks && request.path == api::kInfoPath) {
          respond(server::json_answer(200, info_of(standby)));
        } else if (is_owner && request.method == "POST" && request.path == api::kShutdownPath) {
          respond({.status = 202});
          standby.leave();
        } else {
          respond(unavailable(standby));
        }
      };
}

http::Gate standby_gate(Standby standby) {
  return
      [standby = std::move(standby)](const http::Request& head) -> std::optional<http::Response> {
        if (head.peer.user) return std::nullopt;
        return unavailable(standby);
      };
}

}  // namespace muster::service
