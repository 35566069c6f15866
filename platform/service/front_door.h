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
  /// As handler(). Lets no body in as long as nobody answers.
  http::Gate gate() const;
  /// From the next request on. `gate` may be empty: it lets every body in.
  void let_answer(http::Handler who, http::Gate gate = nullptr);

 private:
  struct Inside {
    http::Handler handler;
    http::Gate gate;
  };
  std::shared_ptr<Inside> inside_ = std::make_shared<Inside>();
};

}  // namespace muster::service
