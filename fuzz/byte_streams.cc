// Every byte stream that consists of frames (base/frame.h), divided anywhere: the remote shell,
// programs beside a task, muster-node, a followed task, and a followed log.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/log_stream.h"
#include "engine/node/messages.h"
#include "engine/rsh/connection.h"
#include "engine/shim/follow.h"
#include "engine/shim/run_wire.h"

namespace {

using namespace muster;

/// Reads all complete records after each piece. Returns false if the stream is broken.
template <class Reader>
bool read_on(Reader& reader) {
  while (true) {
    const auto next = reader.next();
    if constexpr (requires { reader.is_broken(); }) {
      if (!next) return !reader.is_broken();
    } else {
      if (!next) return false;
      if (!*next) return true;
    }
  }
}

template <class Reader>
void read_in_pieces(std::string_view text, size_t piece) {
  Reader reader;
  for (size_t at = 0; at < text.size(); at += piece) {
    reader.add(text.substr(at, piece));
    if (!read_on(reader)) return;
  }
}

void read_log_stream(std::string_view text, size_t cut) {
  size_t bytes = 0;
  const auto count = [&](std::string_view part) {
    bytes += part.size();
    return true;
  };
  api::LogStreamDecoder decoder(
      {.on_record = [&](const job::LogRecord& record) { return count(record.text); },
       .on_place = count,
       .on_end = count});
  for (const std::string_view piece : {text.substr(0, cut), text.substr(cut)}) {
    const auto more = decoder.put(piece);
    if (!more || !*more) break;
  }
  if (bytes > text.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t piece = size % 7 + 1;
  read_in_pieces<engine::rsh::FrameReader>(text, piece);
  read_in_pieces<engine::RunReader>(text, piece);
  read_in_pieces<engine::FollowReader>(text, piece);
  read_in_pieces<engine::node::NodeReader>(text, piece);
  read_log_stream(text, size == 0 ? 0 : data[0] % size);
  return 0;
}
