// The connection of one client to the server: reads a request, passes it to the handler, has the
// answer written (AnswerWriter), and repeats. A request may turn the connection into a WebSocket.
//
// A read is always pending, also while a request is answered, because only a read detects that the
// client has disconnected.
//
// On the loop's thread only. Objects live as long as an operation of their stream is pending;
// drop() ends all operations.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "http/answer_writer.h"
#include "http/byte_stream.h"
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

  /// `arrival`: ascending in the order in which connections were opened. `waiting_bytes`: the sum of
  /// Limits::waiting_bytes over all connections that share it; nullptr: not counted.
  ServerConnection(base::EventLoop& loop, std::shared_ptr<const Callbacks> callbacks,
                   const Limits& limits, Peer peer, uint64_t arrival,
                   std::shared_ptr<size_t> waiting_bytes);

  /// Takes ownership of the stream. `on_end` is called once, unless drop() ends the connection.
  void start(std::unique_ptr<ByteStream> stream, OnEnd on_end);
  /// Closes the stream at once and drops the body. Idempotent.
  void drop();
  /// Closes after the current answer is sent. Endless answers (events, a WebSocket) and incomplete
  /// requests are aborted.
  void retire();

  const Peer& peer() const { return peer_; }
  uint64_t arrival() const { return arrival_; }
  /// Whether a request of this connection had an identified caller (Request::identified).
  bool is_identified() const { return *identified_; }

 private:
  class Answer;
  enum class Phase {
    kHandshake,
    kRequest,  ///< waits for a complete request
    kAnswer,   ///< from a complete request to the end of its answer, or to the end of a WebSocket
    kLeaving,  ///< the last answer has been sent; the client may still be sending
    kClosed,
  };

  void expect_request();
  void set_deadline_of_request();
  void on_deadline();
  void refuse(int status, const std::string& why);
  void read();
  void on_input(std::string_view bytes);
  void on_input_end();
  void advance(RequestReader::Progress progress);
  void handle(ReadRequest read);
  bool is_refused_at_the_gate();
  void answer(Response response);
  void become_websocket(Response response);
  void answered();
  void leave();

  base::EventLoop& loop_;
  std::shared_ptr<const Callbacks> callbacks_;
  Limits limits_;
  Peer peer_;
  uint64_t arrival_;
  std::shared_ptr<bool> identified_ = std::make_shared<bool>(false);
  OnEnd on_end_;
  std::unique_ptr<ByteStream> stream_;
  std::shared_ptr<WebSocketSession> websocket_;  ///< set after an upgrade, instead of stream_

  Phase phase_ = Phase::kHandshake;
  Deadline deadline_;
  bool had_head_ = false;  ///< the head of a request has arrived
  bool retiring_ = false;  ///< close as soon as the answer is sent

  std::array<char, 16 << 10> input_;
  RequestReader reader_;
  SharedCount waiting_bytes_;
  bool reading_ = false;      ///< a read is pending
  bool input_ended_ = false;  ///< the client has closed its output

  AnswerRules rules_;               ///< of the current request
  std::optional<Request> upgrade_;  ///< the current request, if it asks for a WebSocket
  AnswerWriter writer_;
};

}  // namespace muster::http
