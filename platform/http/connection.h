// One client's connection to the server: reads a request, passes it to the handler, writes the
// answer, and repeats. A request may turn the connection into a WebSocket.
//
// A read is always pending, also while a request is answered, because only a read detects that the
// client has disconnected.
//
// On the loop's thread only. Objects live as long as an operation of their stream is pending;
// drop() ends all operations.
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
#include "http/message.h"
#include "http/message_reader.h"
#include "http/server.h"
#include "http/websocket.h"

namespace muster::http {

/// The server's end of a WebSocket, which its connection can drop.
class WebSocketSession : public WebSocket {
 public:
  struct Begin {
    Request request;  ///< the request to upgrade
    Headers headers;  ///< of the answer, in addition to those of the protocol
    Limits limits;
    std::string early_bytes;                                  ///< bytes that followed the request
    std::function<void(std::shared_ptr<WebSocket>)> on_open;  ///< called when the answer is sent
    std::function<void()> on_end;  ///< called once, after the last operation
  };

  /// Answers the request and takes over the stream.
  static std::shared_ptr<WebSocketSession> start(base::EventLoop& loop,
                                                 std::unique_ptr<ByteStream> stream, Begin begin);
  /// Ends it at once. Idempotent.
  virtual void drop() = 0;
};

class ServerConnection : public std::enable_shared_from_this<ServerConnection> {
 public:
  using OnEnd = std::function<void(const std::shared_ptr<ServerConnection>&)>;

  struct Callbacks {
    Handler handler;
    Gate gate;  ///< may be empty
  };

  /// `waiting_bytes`: the sum of Limits::waiting_bytes over all connections that share it; null:
  /// not counted.
  ServerConnection(base::EventLoop& loop, std::shared_ptr<const Callbacks> callbacks,
                   const Limits& limits, Peer peer, std::shared_ptr<size_t> waiting_bytes);
  ~ServerConnection();

  /// Takes ownership of the stream. `on_end` is called once, unless drop() ends the connection.
  void start(std::unique_ptr<ByteStream> stream, OnEnd on_end);
  /// Closes the stream at once and drops the body. Idempotent.
  void drop();
  /// Closes after the current answer is sent. Endless answers (events, a WebSocket) and incomplete
  /// requests are aborted.
  void retire();

  const Peer& peer() const { return peer_; }

 private:
  class Answer;
  using Next = void (ServerConnection::*)();
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
  std::shared_ptr<WebSocketSession> websocket_;  ///< set after an upgrade, instead of stream_

  // One timer, restarted only after it has fired, because most deadlines move before they expire.
  boost::asio::steady_timer timer_;
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point timer_set_to_ = Clock::time_point::max();

  std::array<char, 16 << 10> input_;
  RequestReader reader_;
  std::shared_ptr<size_t> waiting_bytes_;
  size_t counted_ = 0;  ///< this connection's part of *waiting_bytes_
  bool started_ = false;
  bool reading_ = false;      ///< a read is pending
  bool input_ended_ = false;  ///< the client has closed its output
  bool leaving_ = false;      ///< the last answer has been sent
  bool retiring_ = false;     ///< close as soon as the answer is sent
  bool closed_ = false;

  bool answering_ = false;  ///< from a complete request to the end of its answer
  bool keep_alive_ = true;
  bool head_only_ = false;
  bool may_chunk_ = true;
  bool endless_ = false;            ///< the answer is a stream of events
  std::optional<Request> upgrade_;  ///< the current request, if it asks for a WebSocket
  std::string out_head_;            ///< being written: a head, or the size of a chunk
  BodyPiece out_body_ = std::nullopt;
  ByteStream::Pieces out_;  ///< the part that is not written yet
  Next after_write_ = nullptr;
  bool telling_to_go_on_ = false;  ///< a "100 Continue" is being written; the answer follows
  std::shared_ptr<BodyStream> body_;
  Framing framing_ = Framing::kLength;
  uint64_t owed_ = 0;  ///< Framing::kGiven: the bytes of the body that are not sent yet
  uint64_t pull_ = 0;  ///< number of the current pull, so that a second delivery is ignored
};

}  // namespace muster::http
