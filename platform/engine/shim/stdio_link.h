// This process's standard input and output as a stream of messages to and from whoever asked for it
// (run_wire.h).
//
// Owned and called by one thread, the one that polls: watch() before, serve() after.
#pragma once

#include <poll.h>

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/shim/run_wire.h"

namespace muster::engine {

class StdioLink {
 public:
  /// While more waits to be read by the other side, no more should be told.
  static constexpr size_t kHigh = 256 << 10;

  /// Both no longer block.
  StdioLink();

  /// Appends what is to be polled. `wants_more`: messages are read; else only a hang-up is heeded.
  void watch(std::vector<pollfd>& polled, bool wants_more) const;
  /// What watch() appended, polled.
  void serve(std::span<const pollfd> polled);

  /// The next message that has come.
  std::optional<RunMessage> next() { return reader_.next(); }
  /// Waits for it. nullopt: hung up.
  std::optional<RunMessage> await();

  /// Nobody is there any more, or what comes from there is no message.
  bool is_over() const { return over_ || reader_.is_broken(); }

  void tell(const RunMessage& message) { out_ += encode_run(message); }
  /// A packet of attach_wire.h as it is.
  void tell_packet(std::string_view packet);
  bool has_room() const { return out_.size() < kHigh; }

  /// Until all is written, or hung up.
  void flush();

 private:
  void read();
  void write();

  RunReader reader_;
  std::string out_;
  bool over_ = false;
};

}  // namespace muster::engine
