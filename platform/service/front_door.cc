#include "service/front_door.h"

#include <utility>

#include "server/router.h"

namespace muster::service {

namespace {

http::Response not_yet() {
  return server::problem({.code = base::ErrorCode::kUnavailable,
                          .what = "the server starts",
                          .advice = "ask again in a moment"});
}

}  // namespace

http::Handler FrontDoor::handler() const {
  return [weak = std::weak_ptr(inside_)](http::Request request, http::Respond respond) {
    const auto inside = weak.lock();
    if (inside == nullptr || !inside->handler) return respond(not_yet());
    // A copy: who answers may be replaced by the answer itself.
    const http::Handler answer = inside->handler;
    answer(std::move(request), std::move(respond));
  };
}

http::Gate FrontDoor::gate() const {
  return
      [weak = std::weak_ptr(inside_)](const http::Request& head) -> std::optional<http::Response> {
        const auto inside = weak.lock();
        if (inside == nullptr || !inside->handler) return not_yet();
        if (!inside->gate) return std::nullopt;
        const http::Gate gate = inside->gate;
        return gate(head);
      };
}

void FrontDoor::let_answer(http::Handler who, http::Gate gate) {
  *inside_ = {.handler = std::move(who), .gate = std::move(gate)};
}

}  // namespace muster::service
