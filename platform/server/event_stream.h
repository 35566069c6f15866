// The common parts of all streams of server-sent events: a comment from time to time while there
// are no events, which detects a vanished client, and the end when the caller loses its rights.
//
// On the EventLoop's thread. Dropped when the client disconnects.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "http/message.h"
#include "http/server_sent_events.h"

namespace muster::server {

/// The timing of a stream of events.
struct StreamLife {
  base::EventLoop& loop;
  std::function<bool()> still_valid;  ///< Call's
  std::chrono::milliseconds ping = std::chrono::seconds(15);
};

class EventStream : public http::BodyStream {
 public:
  explicit EventStream(StreamLife life) : life_(std::move(life)) {}
  void pull(Deliver deliver) final;

 protected:
  /// The next piece, or the end; nothing: not available yet, and wake() will be called.
  virtual std::optional<http::BodyPiece> next() = 0;
  /// The comment that is sent while there are no events.
  virtual std::string ping() const;
  /// There may be a next piece: requests it in a later turn of the loop, once.
  void wake();

 private:
  void look();
  void look_again_later();
  void give(http::BodyPiece piece);

  StreamLife life_;
  Deliver deliver_;
  base::EventLoop::Interest ping_;
  bool posted_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// An answer that streams events, or their equivalent in another type whose name ends with
/// "event-stream".
http::Response event_answer(std::shared_ptr<http::BodyStream> stream,
                            std::string_view type = http::kEventStream);

/// The last id that a client saw, from the header or ?last_event_id=; empty: none.
std::string last_event_id(const http::Request& request);

}  // namespace muster::server
