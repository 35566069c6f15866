// A stream for tests: nothing arrives on it, and the test decides when writes are done.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "http/byte_stream.h"

namespace muster::http {

/// What the test sees of a StuckStream, which another object owns.
struct SeenStream {
  std::vector<std::string> written = {};  ///< call by call
  std::chrono::milliseconds silent_for{0};
  bool is_closed = false;
  bool accepts = true;                   ///< writes end; false: only by end_write
  std::function<void()> end_write = {};  ///< set by a write that does not end
};

class StuckStream : public ByteStream {
 public:
  /// Both must outlive it.
  StuckStream(base::EventLoop& loop, SeenStream& seen) : loop_(loop), seen_(seen) {}

  void async_start(Done done) override { later(std::move(done), 0); }
  void async_read_some(boost::asio::mutable_buffer, Done done) override {
    reading_ = std::move(done);
  }
  void async_write_some(const Pieces& pieces, Done done) override {
    std::string text;
    for (const auto& piece : pieces) {
      text.append(static_cast<const char*>(piece.data()), piece.size());
    }
    const size_t size = text.size();
    seen_.written.push_back(std::move(text));
    if (seen_.accepts) return later(std::move(done), size);
    writing_ = std::move(done);
    seen_.end_write = [this, size] { later(std::exchange(writing_, nullptr), size); };
  }
  void async_finish(Done done) override { later(std::move(done), 0); }
  void async_close_output(Done done) override { later(std::move(done), 0); }
  void close() override {
    seen_.is_closed = true;
    for (Done* const open : {&reading_, &writing_}) {
      if (const Done done = std::exchange(*open, nullptr)) {
        loop_.post([done] { done(boost::asio::error::operation_aborted, 0); });
      }
    }
  }
  bool is_silent() const override { return true; }
  std::chrono::milliseconds silent_for() const override { return seen_.silent_for; }

 private:
  void later(Done done, size_t size) {
    loop_.post([done = std::move(done), size] { done({}, size); });
  }

  base::EventLoop& loop_;
  SeenStream& seen_;
  Done reading_;
  Done writing_;
};

}  // namespace muster::http
