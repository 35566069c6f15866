// Who answers the requests that come in: nobody yet, a server that waits, or one that leads. The
// sockets are open all the while.
//
// On the EventLoop's thread.
#pragma once

#include <memory>

#include "http/server.h"

namespace muster::service {

class FrontDoor {
 public:
  /// For http::Server; may outlive the door, and turns everybody away then.
  http::Handler handler() const;
  /// From the next request on.
  void let_answer(http::Handler who);

 private:
  std::shared_ptr<http::Handler> who_ = std::make_shared<http::Handler>();
};

}  // namespace muster::service
