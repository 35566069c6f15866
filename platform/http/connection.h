// One client's connection to the server: reads a request, has it answered, writes the answer,
// again and again.
//
// A read is open at all times, also while a request is being answered: that is how one learns that
// the client has gone, and that nobody waits for the stream any more.
//
// On the loop's thread only. Lives as long as an operation of its stream is under way; drop() ends
// them all.
#pragma once

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "http/byte_stream.h"
#include "http/head.h"
#include "http/request_reader.h"
#include "http/server.h"
#include "http/websocket_session.h"

namespace muster::http {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using OnEnd = std::function<void(const std::shared_ptr<Connection>&)>;

  struct Callbacks {
    Handler handler;
    Gate gate;  ///< may be empty
  };

  /// `waiting_bytes` is the sum over all connections that share it; null: it is not counted.
  Connection(base::EventLoop& loop, std::shared_ptr<const Callbacks> callbacks,
             const Limits& limits, Peer peer, std::shared_ptr<size_t> waiting_bytes);
  ~Connection();

  /// Takes the stream over. `on_end` is called once, when the connection has ended by itself.
  void start(std::unique_ptr<ByteStream> stream, OnEnd on_end);
  /// Ends it now: closes the stream, drops the body. Idempotent.
  void drop();
  /// Ends it once the answer that is under way is sent; one without an end (events, a WebSocket) is
  /// broken off, as is a request that has not come in whole.
  void retire();

  const Peer& peer() const { return peer_; }

 private:
  class Answer;
  using Next = void (Connection::*)();
  using Clock = std::chrono::steady_clock;

  void expect_request();
  void set_deadline(std::chrono::seconds from_now);
  void wait_for_deadline();
  void on_deadline();
  void refuse(int status, const std::string& why);
  void read();
  void on_input(std::string_view bytes);
  void on_input_end();
  void advance(RequestReader::Progress progress);
  void tell_to_go_on();
  void handle(ReadRequest read);
  bool is_refused_at_the_gate();
  void count_waiting_bytes(size_t now);
  void answer(Response response);
  void answer_whole(Response response);
  void answer_stream(Response response);
  void become_websocket(Response response);
  void pull();
  void on_piece(uint64_t pull, BodyPiece piece);
  void write(Next next);
  void write_rest();
  void finish();
  void leave();

  base::EventLoop& loop_;
  std::shared_ptr<const Callbacks> callbacks_;
  Limits limits_;
  Peer peer_;
  OnEnd on_end_;
  std::unique_ptr<ByteStream> stream_;
  std::shared_ptr<WebSocketSession> websocket_;  ///< what became of the stream

  // One timer, set anew only when it has gone off: most deadlines are moved before they come.
  boost::asio::steady_timer timer_;
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point timer_set_to_ = Clock::time_point::max();

  std::array<char, 16 << 10> input_;
  RequestReader reader_;
  std::shared_ptr<size_t> waiting_bytes_;
  size_t counted_ = 0;  ///< our part of *waiting_bytes_
  bool started_ = false;
  bool reading_ = false;      ///< a read is open
  bool input_ended_ = false;  ///< the client sends no more
  bool leaving_ = false;      ///< the last answer is sent
  bool retiring_ = false;     ///< as soon as the answer is sent
  bool closed_ = false;

  bool answering_ = false;  ///< from a whole request to the end of its answer
  bool keep_alive_ = true;
  bool head_only_ = false;
  bool may_chunk_ = true;
  bool endless_ = false;            ///< the answer is a stream of events
  std::optional<Request> upgrade_;  ///< the request that is being answered, if a WebSocket's
  std::string out_head_;            ///< what is being written: a head, or the size of a chunk
  BodyPiece out_body_ = std::nullopt;
  ByteStream::Pieces out_;  ///< what is left of it to write
  Next after_write_ = nullptr;
  bool telling_to_go_on_ = false;  ///< a write of our own: the answer's comes after it
  std::shared_ptr<BodyStream> body_;
  Framing framing_ = Framing::kLength;
  uint64_t owed_ = 0;  ///< of a body with Framing::kGiven, what is still to be sent
  uint64_t pull_ = 0;  ///< numbers pulls, so that a second answer to one is ignored
};

}  // namespace muster::http
