// Server-sent events (WHATWG HTML, section 9.2): the format of a stream of events over HTTP.
//
//   id: 42
//   event: log
//   data: {"text":"hello"}
//
// An empty line ends an event; a line that starts with ':' is a comment, which keeps a silent
// connection alive. An id says how far the stream has come: a client that was cut off asks again
// with the last one that it saw, and is sent what came after. Where it stands alone, there is no
// event, but it is seen.
//
// No I/O; not thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace muster::http {

inline constexpr std::string_view kEventStream = "text/event-stream";
/// A comment, for the server to send now and then while nothing happens.
inline constexpr std::string_view kPing = ": ping\n\n";
/// The header in which a client says the last id that it saw.
inline constexpr std::string_view kLastEventId = "last-event-id";

/// Appends one event. Each line of `data` travels as a line of its own, whatever ends it.
/// REQUIRES: neither `event` nor `id` holds a line break or NUL. Empty: it has no id.
void append_event(std::string& out, std::string_view event, std::string_view data,
                  std::string_view id = {});
/// Appends an id that stands alone.
void append_event_id(std::string& out, std::string_view id);

/// Finds the events in pieces that are cut anywhere.
class EventDecoder {
 public:
  /// Both are valid during the call only. Returns false to have no more events.
  using OnEvent = std::function<bool(std::string_view event, std::string_view data)>;

  /// Hands over each event that is complete now. False once `on_event` has said so.
  bool put(std::string_view piece, const OnEvent& on_event);

  /// The last that was seen; while an event is handed over, that of the event or one before it.
  const std::string& last_id() const { return last_id_; }

 private:
  bool take_line(std::string_view line, const OnEvent& on_event);
  bool dispatch(const OnEvent& on_event);

  std::string partial_;  ///< the beginning of a line whose end has not come
  std::string event_;
  std::string data_;
  std::string id_;  ///< of the event whose end has not come
  std::string last_id_;
  bool has_data_ = false;
  bool at_start_ = true;   ///< a byte order mark may come
  bool after_cr_ = false;  ///< a '\n' that comes first ends no line of its own
};

}  // namespace muster::http
