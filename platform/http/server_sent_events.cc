#include "http/server_sent_events.h"

#include <utility>

namespace muster::http {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// The end of the first line of `text`: '\n', '\r' or "\r\n". Two searches for one byte each are
/// several times as fast as one search for either; the second stops where the first has found one.
size_t end_of_line(std::string_view text) {
  const size_t line_feed = text.find('\n');
  const size_t carriage_return = text.substr(0, line_feed).find('\r');
  return carriage_return != std::string_view::npos ? carriage_return : line_feed;
}

}  // namespace

void append_event(std::string& out, std::string_view event, std::string_view data,
                  std::string_view id) {
  if (!id.empty()) {
    out += "id: ";
    out += id;
    out += '\n';
  }
  out += "event: ";
  out += event;
  while (true) {
    const size_t end = end_of_line(data);
    out += "\ndata: ";
    out += data.substr(0, end);
    if (end == std::string_view::npos) break;
    data.remove_prefix(end + (data.substr(end).starts_with("\r\n") ? 2 : 1));
  }
  out += "\n\n";
}

void append_event_id(std::string& out, std::string_view id) {
  out += "id: ";
  out += id;
  out += "\n\n";
}

bool EventDecoder::put(std::string_view piece, const OnEvent& on_event) {
  while (!piece.empty()) {
    if (std::exchange(after_cr_, false) && piece.front() == '\n') {
      piece.remove_prefix(1);
      continue;
    }
    const size_t end = end_of_line(piece);
    if (end == std::string_view::npos) {
      partial_ += piece;
      return true;
    }
    const std::string_view line = piece.substr(0, end);
    after_cr_ = piece[end] == '\r';
    piece.remove_prefix(end + 1);
    if (partial_.empty()) {
      if (!take_line(line, on_event)) return false;
      continue;
    }
    partial_ += line;
    const std::string whole = std::exchange(partial_, {});
    if (!take_line(whole, on_event)) return false;
  }
  return true;
}

bool EventDecoder::take_line(std::string_view line, const OnEvent& on_event) {
  if (std::exchange(at_start_, false) && line.starts_with(kByteOrderMark)) {
    line.remove_prefix(kByteOrderMark.size());
  }
  if (line.empty()) return dispatch(on_event);
  const size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") {
    event_ = value;
  } else if (field == "data") {
    if (std::exchange(has_data_, true)) data_ += '\n';
    data_ += value;
  } else if (field == "id" && value.find('\0') == std::string_view::npos) {
    id_ = value;
  }
  // A comment has an empty field name. "retry" is ignored: our clients choose their own pauses.
  return true;
}

bool EventDecoder::dispatch(const OnEvent& on_event) {
  bool go_on = true;
  last_id_ = id_;
  if (has_data_) go_on = on_event(event_.empty() ? "message" : std::string_view(event_), data_);
  event_.clear();
  data_.clear();
  has_data_ = false;
  return go_on;
}

}  // namespace muster::http
