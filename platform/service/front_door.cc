#include "service/front_door.h"

#include <utility>

#include "server/answers.h"

namespace muster::service {

http::Handler FrontDoor::handler() const {
  return [weak = std::weak_ptr(who_)](http::Request request, http::Respond respond) {
    const auto who = weak.lock();
    if (who == nullptr || !*who) {
      return respond(server::problem({.code = base::ErrorCode::kUnavailable,
                                      .what = "the server starts",
                                      .advice = "ask again in a moment"}));
    }
    // A copy: who answers may be replaced by the answer itself.
    const http::Handler answer = *who;
    answer(std::move(request), std::move(respond));
  };
}

void FrontDoor::let_answer(http::Handler who) {
  *who_ = std::move(who);
}

}  // namespace muster::service
