// Server-sent events (WHATWG HTML, section 9.2): the format of a stream of events over HTTP.
//
//   event: log
//   data: {"text":"hello"}
//
// An empty line ends an event; a line that starts with ':' is a comment, which keeps a silent
// connection alive.
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

/// Appends one event. Each line of `data` travels as a line of its own, whatever ends it.
/// REQUIRES: `event` holds no line break.
void append_event(std::string& out, std::string_view event, std::string_view data);

/// Finds the events in pieces that are cut anywhere.
class EventDecoder {
 public:
  /// Both are valid during the call only. Returns false to have no more events.
  using OnEvent = std::function<bool(std::string_view event, std::string_view data)>;

  /// Hands over each event that is complete now. False once `on_event` has said so.
  bool put(std::string_view piece, const OnEvent& on_event);

 private:
  bool take_line(std::string_view line, const OnEvent& on_event);
  bool dispatch(const OnEvent& on_event);

  std::string partial_;  ///< the beginning of a line whose end has not come
  std::string event_;
  std::string data_;
  bool has_data_ = false;
  bool at_start_ = true;   ///< a byte order mark may come
  bool after_cr_ = false;  ///< a '\n' that comes first ends no line of its own
};

}  // namespace muster::http
