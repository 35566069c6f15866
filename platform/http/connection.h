// One client's connection to the server: reads a request, has it answered, writes the answer,
// again and again.
//
// A read is open at all times, also while a request is being answered: that is how one learns that
// the client has gone, and that nobody waits for the stream any more.
//
// On the loop's thread only. Lives as long as an operation of its socket is under way; drop() ends
// them all.
#pragma once

#include <array>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/unique_fd.h"
#include "http/head.h"
#include "http/request_reader.h"
#include "http/server.h"

namespace muster::http {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using OnEnd = std::function<void(const std::shared_ptr<Connection>&)>;

  Connection(base::EventLoop& loop, std::shared_ptr<const Handler> handler, const Limits& limits,
             uid_t peer);

  /// Takes the socket over. `on_end` is called once, when the connection has ended by itself.
  void start(base::UniqueFd socket, OnEnd on_end);
  /// Ends it now: closes the socket, drops the stream. Idempotent.
  void drop();

 private:
  class Answer;
  using Next = void (Connection::*)();

  void expect_request();
  void on_deadline();
  void refuse(int status, const std::string& why);
  void read();
  void on_input(std::string_view bytes);
  void on_input_end();
  void advance(RequestReader::Progress progress);

  void handle(ReadRequest read);
  void answer(Response response);
  void answer_whole(Response response);
  void answer_stream(Response response);
  void pull();
  void on_piece(uint64_t pull, std::optional<std::string> piece);
  void write(Next next);
  void finish();

  std::shared_ptr<const Handler> handler_;
  Limits limits_;
  uid_t peer_;
  OnEnd on_end_;

  boost::asio::local::stream_protocol::socket socket_;
  boost::asio::steady_timer deadline_;
  std::array<char, 16 << 10> input_;
  RequestReader reader_;
  bool reading_ = false;      ///< a read is open
  bool input_ended_ = false;  ///< the client sends no more
  bool closed_ = false;

  bool answering_ = false;  ///< from a whole request to the end of its answer
  bool keep_alive_ = true;
  bool head_only_ = false;
  bool may_chunk_ = true;

  std::string out_head_;  ///< what is being written: a head, or the size of a chunk
  std::string out_body_;
  std::shared_ptr<BodyStream> stream_;
  Framing framing_ = Framing::kLength;
  uint64_t pull_ = 0;  ///< numbers pulls, so that a second answer to one is ignored
};

}  // namespace muster::http
