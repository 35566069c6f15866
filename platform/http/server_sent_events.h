// Server-sent events (WHATWG HTML, section 9.2): the format of a stream of events over HTTP.
//
//   id: 42
//   event: log
//   data: {"text":"hello"}
//
// An empty line ends an event. A line that starts with ':' is a comment, which keeps an idle
// connection alive. An id marks the position in the stream: after a disconnect, the client sends
// the last id that it received, and the server continues after it. An id without an event only
// moves the position.
//
// No I/O; not thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace muster::http {

inline constexpr std::string_view kEventStream = "text/event-stream";
/// A comment that the server sends from time to time on an idle stream.
inline constexpr std::string_view kPing = ": ping\n\n";
/// The header with the last id that the client received.
inline constexpr std::string_view kLastEventId = "last-event-id";

/// Appends one event. Each line of `data` is sent as a separate line, whatever its line ending.
/// REQUIRES: neither `event` nor `id` contains a line break or NUL. An empty `id` is left out.
void append_event(std::string& out, std::string_view event, std::string_view data,
                  std::string_view id = {});
/// Appends an id without an event.
void append_event_id(std::string& out, std::string_view id);

/// Parses events from pieces that may be cut anywhere.
class EventDecoder {
 public:
  /// Both arguments are valid during the call only. Returns false to stop.
  using OnEvent = std::function<bool(std::string_view event, std::string_view data)>;

  /// Hands over each event that is complete. False after `on_event` returned false.
  bool put(std::string_view piece, const OnEvent& on_event);

  /// The last id received; during a call of `on_event`, the id of that event or of an earlier one.
  const std::string& last_id() const { return last_id_; }

 private:
  bool take_line(std::string_view line, const OnEvent& on_event);
  bool dispatch(const OnEvent& on_event);

  std::string partial_;  ///< the beginning of an incomplete line
  std::string event_;
  std::string data_;
  std::string id_;  ///< the id of the incomplete event
  std::string last_id_;
  bool has_data_ = false;
  bool at_start_ = true;   ///< a byte order mark may follow
  bool after_cr_ = false;  ///< a following '\n' belongs to the same line ending
};

}  // namespace muster::http
