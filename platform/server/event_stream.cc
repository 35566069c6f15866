#include "server/event_stream.h"

#include <utility>

#include "api/routes.h"
#include "http/server_sent_events.h"

namespace muster::server {

void EventStream::pull(Deliver deliver) {
  deliver_ = std::move(deliver);
  look();
}

void EventStream::wake() {
  if (!deliver_ || std::exchange(posted_, true)) return;
  life_.loop.post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    posted_ = false;
    if (deliver_) look();
  });
}

void EventStream::look() {
  if (life_.still_valid && !life_.still_valid()) return give(std::nullopt);
  if (auto piece = next()) return give(*std::move(piece));
  look_again_later();
}

void EventStream::look_again_later() {
  if (ping_) return;
  ping_ = life_.loop.after(life_.ping, [this] {
    ping_.reset();
    const bool valid = !life_.still_valid || life_.still_valid();
    give(valid ? http::BodyPiece(ping()) : std::nullopt);
  });
}

std::string EventStream::ping() const {
  return std::string(http::kPing);
}

void EventStream::give(http::BodyPiece piece) {
  ping_.reset();
  const Deliver deliver = std::exchange(deliver_, nullptr);
  deliver(std::move(piece));
}

http::Response event_answer(std::shared_ptr<http::BodyStream> stream, std::string_view type) {
  return {.content_type = std::string(type),
          .headers = {{"cache-control", "no-store"}},
          .stream = std::move(stream)};
}

std::string last_event_id(const http::Request& request) {
  const auto header = request.headers.find(std::string(http::kLastEventId));
  if (header != request.headers.end()) return header->second;
  const auto parameter = request.query.find(std::string(api::kLastEventIdParameter));
  return parameter == request.query.end() ? "" : parameter->second;
}

}  // namespace muster::server
