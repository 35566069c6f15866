// One request of AsyncClient on its connection: connects, sends, reads the answer, and where that
// turns it into a stream of bytes, goes on as that.
//
// Private to async_client.cc and async_exchange.cc. On the loop's thread. What is under way on the
// connection holds the exchange, so it lives at least as long as that.
#pragma once

#include <boost/system/error_code.hpp>
#include <optional>
#include <vector>

#include "http/async_client.h"
#include "http/byte_stream.h"

namespace muster::http {

/// Who is told of what. Held by whoever calls one of them, so that it outlives being dropped.
struct ExchangeHandlers {
  std::function<base::Result<std::string>()> next_piece;  ///< of the request's body
  AsyncClient::Answered answered;
  std::function<void()> on_head;  ///< once, and then no more
  OnPiece on_piece;
  RawStream::Handlers raw;
  std::function<void(base::Result<Upgraded>)> upgraded;  ///< set: the request asks for a stream
};

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(base::EventLoop& loop, std::string name, AsyncRequest request, const AsyncLimits& limits,
           ExchangeHandlers handlers);

  void begin(const AsyncPlace& place);
  /// Ends it without a word, unless it is a stream by now and not the call's any more.
  void drop_call();
  void drop();

  void pause(bool paused);
  void write(std::string_view bytes);
  size_t waiting() const { return out_.size() + on_the_way_.size() - sent_; }
  void close_output();

 private:
  enum class Phase { kConnecting, kAsking, kRaw, kOver };
  using ErrorCode = boost::system::error_code;

  void connected(base::Result<base::UniqueFd> fd, const AsyncPlace& place);
  void started(const ErrorCode& error, const std::string& host);

  void write_more();
  void written(const ErrorCode& error, size_t bytes);
  /// False: the request has ended.
  bool add_next_piece();

  void read_more();
  void has_read(const ErrorCode& error, size_t bytes);
  void process(const ErrorCode& error, std::string_view bytes);
  void read_answer(std::string_view bytes);
  void read_raw(std::string_view bytes);
  void become_raw();
  void tell_head();
  bool hand_on(std::string_view bytes);
  void raw_ended();

  bool hands_on_body() const;
  void wait_for(std::chrono::milliseconds limit, const char* what);
  void finish(base::Result<Response> answer);
  void let_go();
  base::Error named(base::Error error) const;
  base::Error broken(const std::string& what) const;

  base::EventLoop& loop_;
  std::string name_;
  AsyncRequest request_;
  AsyncLimits limits_;
  std::shared_ptr<ExchangeHandlers> handlers_;
  Phase phase_ = Phase::kConnecting;

  std::shared_ptr<void> connecting_;
  std::unique_ptr<ByteStream> stream_;
  ResponseReader reader_;
  base::EventLoop::Interest deadline_;

  std::string out_;         ///< what is written next
  std::string on_the_way_;  ///< what the write under way is of; `sent_` of it have been taken
  size_t sent_ = 0;
  bool writing_ = false;
  bool cannot_write_ = false;  ///< the other side takes no more
  bool output_ends_ = false;

  std::vector<char> in_;
  bool reading_ = false;
  bool paused_ = false;
  struct Read {
    ErrorCode error;
    size_t bytes = 0;
  };
  std::optional<Read> held_;  ///< came while it was paused
};

}  // namespace muster::http
