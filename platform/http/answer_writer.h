// The parts of a server's connection that own their data: the time limit, the memory of unfinished
// requests, and the writer of answers.
//
// On the loop's thread only. Each part belongs to a connection and is a member of it. Pending
// operations hold that connection (`owner`), because the stream must outlive them.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "http/byte_stream.h"
#include "http/head.h"
#include "http/message.h"

namespace muster::http {

/// A time limit that often moves before it expires. The timer is restarted only after it has fired.
class Deadline {
 public:
  explicit Deadline(base::EventLoop& loop) : timer_(loop.context()) {}

  /// Calls `on_expiry` each time that a limit expires, as long as `owner` exists. To be called
  /// once, before set().
  void start(std::weak_ptr<void> owner, std::function<void()> on_expiry);
  void set(std::chrono::seconds from_now);
  /// Removes the limit until the next set().
  void clear() { at_ = Clock::time_point::max(); }
  /// `on_expiry` is not called any more.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  void wait();

  boost::asio::steady_timer timer_;
  std::weak_ptr<void> owner_;
  std::function<void()> on_expiry_;
  bool stopped_ = false;
  Clock::time_point at_ = Clock::time_point::max();
  Clock::time_point timer_set_to_ = Clock::time_point::max();
};

/// The part of one connection in a sum over all connections that share a limit.
class SharedCount {
 public:
  /// nullptr: not counted.
  explicit SharedCount(std::shared_ptr<size_t> sum) : sum_(std::move(sum)) {}
  ~SharedCount() { set(0); }
  SharedCount(const SharedCount&) = delete;
  SharedCount& operator=(const SharedCount&) = delete;

  void set(size_t part);
  bool is_above(size_t limit) const { return sum_ != nullptr && *sum_ > limit; }

 private:
  std::shared_ptr<size_t> sum_;
  size_t part_ = 0;
};

/// What a request requires of its answer.
struct AnswerRules {
  bool keep_alive = true;
  bool head_only = false;  ///< HEAD: no body is sent
  bool may_chunk = true;
};

/// How the body of `response` is framed.
Framing framing_of(const Response& response, const AnswerRules& rules);

/// Runs code of the server's user. Returns the text of its exception, if any.
template <class Code>
std::optional<std::string> thrown_by(const Code& code) {
  try {
    code();
    return std::nullopt;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

/// Writes the answers of a connection, one after the other. A streamed body is pulled piece by
/// piece, at the pace of the client.
class AnswerWriter {
 public:
  struct Handlers {
    std::function<void()> on_write;  ///< a write begins: the client has a time limit to accept it
    std::function<void()> on_pull;   ///< the body is asked for its next piece: no time limit
    std::function<void()> on_done;   ///< the answer has been written
    std::function<void()> on_failure;
  };

  /// To be called once, before anything else. The stream must live as long as `owner`.
  void start(std::weak_ptr<void> owner, ByteStream& stream, Handlers handlers);

  /// Writes "100 Continue". The request, and so its answer, may be complete before it is written;
  /// the answer then follows it.
  void write_continue();
  /// REQUIRES: the answer before was done. `framing`: framing_of() the response.
  void write(Response response, Framing framing, const AnswerRules& rules);
  /// Whether a body is being streamed.
  bool has_stream() const { return body_ != nullptr; }
  /// Whether the body is a stream of events, which has no end.
  bool is_endless() const { return endless_; }
  /// Drops the body; no handler is called any more.
  void drop();

 private:
  std::shared_ptr<AnswerWriter> self() { return {owner_.lock(), this}; }
  void pull();
  void put(uint64_t pull, BodyPiece piece);
  void write_out(bool pulls_next);
  void write_rest();
  void finish();

  std::weak_ptr<void> owner_;
  ByteStream* stream_ = nullptr;
  Handlers handlers_;
  bool dropped_ = false;

  std::string head_;  ///< being written: a head, or the size of a chunk
  BodyPiece piece_ = std::nullopt;
  ByteStream::Pieces rest_;          ///< the part that is not written yet
  bool pulls_next_ = false;          ///< after `rest_`; otherwise the answer is done
  bool writing_continue_ = false;    ///< "100 Continue" is being written
  bool waits_for_continue_ = false;  ///< `rest_` is written after it

  std::shared_ptr<BodyStream> body_;
  bool endless_ = false;
  Framing framing_ = Framing::kLength;
  uint64_t owed_ = 0;  ///< Framing::kGiven: the bytes of the body that are not sent yet
  uint64_t pull_ = 0;  ///< number of the current pull, so that a second delivery is ignored
};

}  // namespace muster::http
