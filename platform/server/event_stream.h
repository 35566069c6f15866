// What all streams of server-sent events have in common: a comment now and then while nothing
// happens, which shows a vanished client, and an end where the caller is not allowed to watch any
// more.
//
// On the EventLoop's thread. Dropped when the client goes.
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

/// How a stream of events lives.
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
  /// What comes next, its end included; nothing: it is not there yet, and wake() will be called.
  virtual std::optional<http::BodyPiece> next() = 0;
  /// What says nothing, now and then.
  virtual std::string ping() const;
  /// Something may be there: looks at it in a turn of its own, once.
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

/// An answer that streams events, or what stands for them in another type: its name ends with
/// "event-stream".
http::Response event_answer(std::shared_ptr<http::BodyStream> stream,
                            std::string_view type = http::kEventStream);

/// The last id that a client saw, from the header or ?last_event_id=; empty: none.
std::string last_event_id(const http::Request& request);

}  // namespace muster::server
