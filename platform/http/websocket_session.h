// The server's end of a WebSocket as its connection knows it: one that can be dropped.
//
// On the loop's thread only. Lives as long as an operation is under way; drop() ends them all.
#pragma once

#include <functional>
#include <memory>

#include "http/byte_stream.h"
#include "http/message.h"
#include "http/server.h"
#include "http/websocket.h"

namespace muster::http {

class WebSocketSession : public WebSocket {
 public:
  struct Begin {
    Request request;  ///< that asked for it
    Headers headers;  ///< of the answer, besides those of the protocol
    Limits limits;
    std::string early_bytes;                                  ///< that came behind the request
    std::function<void(std::shared_ptr<WebSocket>)> on_open;  ///< the answer is sent
    std::function<void()> on_end;                             ///< once, after the last operation
  };

  /// Answers the request and goes on from there.
  static std::shared_ptr<WebSocketSession> start(base::EventLoop& loop,
                                                 std::unique_ptr<ByteStream> stream, Begin begin);
  /// Ends it now. Idempotent.
  virtual void drop() = 0;
};

}  // namespace muster::http
