// Makes requests out of the bytes of one connection, one after the other, within limits.
//
// Stricter than RFC 9112 asks where a proxy in front of the server could read the bytes otherwise:
// the only transfer coding is one `chunked`, an HTTP/1.1 request has exactly one Host, and a header
// that is folded onto a second line is refused. Trailers are dropped.
//
// No I/O; not thread-safe. Beast's parser stays inside request_reader.cc.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "http/message.h"
#include "http/server.h"
#include "http/url.h"

namespace muster::http {

/// A whole request, and what the connection must know to answer it.
struct ReadRequest {
  Request request;
  bool keep_alive = true;
  bool head_only = false;  ///< HEAD: the handler sees GET, the client gets no body
  bool may_chunk = true;   ///< HTTP/1.0 knows no chunks
};

/// Why the bytes are no request, as it is answered.
struct ReadFault {
  int status = 400;
  std::string what;
};

class RequestReader {
 public:
  enum class Progress { kMore, kDone, kFault };

  explicit RequestReader(const Limits& limits);
  ~RequestReader();

  /// Goes on with the request that is being read. After kDone: take(); after kFault: fault(), and
  /// nothing else.
  Progress put(std::string_view bytes);
  /// Keeps bytes that came before the request in front of them was answered.
  void keep(std::string_view bytes) { waiting_ += bytes; }

  ReadRequest take();
  /// The request without its body, once its head is here and its body is not yet whole. Once a
  /// request.
  std::optional<Request> take_head();
  const ReadFault& fault() const { return fault_; }

  /// Bytes that no request has taken up yet.
  size_t kept() const { return waiting_.size(); }
  std::string take_kept() { return std::exchange(waiting_, {}); }
  /// Whether a part of a request is here: its sender owes the rest.
  bool in_request() const { return in_request_; }
  /// Whether the client asks for leave to send the body (expect: 100-continue). True once a
  /// request.
  bool wants_continue();

 private:
  struct Parser;
  Progress fail(int status, std::string what);
  /// Passes the bytes in `waiting_` to the parser.
  std::optional<ReadFault> parse();
  std::optional<ReadFault> read_head();

  Limits limits_;
  std::unique_ptr<Parser> parser_;
  std::string waiting_;
  Request head_;  ///< without its body, once it is read
  bool head_read_ = false;
  bool head_taken_ = false;
  ReadFault fault_;
  bool in_request_ = false;
  bool told_to_continue_ = false;
};

}  // namespace muster::http
