#include "service/front_door.h"

#include <utility>

namespace muster::service {

http::Handler FrontDoor::handler() const {
  return [weak = std::weak_ptr(who_)](http::Request request, http::Respond respond) {
    const auto who = weak.lock();
    if (who == nullptr || !*who) {
      respond({.status = 503, .content_type = "text/plain", .body = "the server starts\n"});
      return;
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
