// Parses HTTP messages from the bytes of a connection: requests for the server, responses for the
// clients.
//
// No I/O; not thread-safe. Only message_reader.cc includes Beast's parser.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "http/message.h"
#include "http/server.h"
#include "http/url.h"

namespace muster::http {

/// A complete request, with what the connection needs to answer it.
struct ReadRequest {
  Request request;
  bool keep_alive = true;
  bool head_only = false;  ///< HEAD: the handler gets GET, the client gets no body
  bool may_chunk = true;   ///< false: HTTP/1.0, which has no chunks
};

/// The answer to bytes that are not a valid request.
struct ReadFault {
  int status = 400;
  std::string what;
};

/// Parses the requests of one connection, one after the other, within limits.
///
/// Stricter than RFC 9112 where a proxy in front of the server might read the bytes differently:
/// the only transfer coding is a single `chunked`, an HTTP/1.1 request has exactly one Host, and a
/// header folded onto a second line is refused. Trailers are dropped.
class RequestReader {
 public:
  enum class Progress { kMore, kDone, kFault };

  explicit RequestReader(const Limits& limits);
  ~RequestReader();

  /// Continues with the current request. After kDone call take(); after kFault only fault().
  Progress put(std::string_view bytes);
  /// Keeps bytes that arrived before the previous request was answered.
  void keep(std::string_view bytes) { waiting_ += bytes; }

  ReadRequest take();
  /// The request without its body, when its head is complete and its body is not. At most once for
  /// each request.
  std::optional<Request> take_head();
  const ReadFault& fault() const { return fault_; }

  /// The number of bytes that no request has consumed yet.
  size_t kept() const { return waiting_.size(); }
  std::string take_kept() { return std::exchange(waiting_, {}); }
  /// Whether part of a request has arrived, so that the client owes the rest.
  bool in_request() const { return in_request_; }
  /// Whether the client waits for permission to send the body (expect: 100-continue). True once
  /// for each request.
  bool awaits_continue();

 private:
  struct Parser;
  Progress fail(int status, std::string what);
  /// Feeds the bytes in `waiting_` to the parser.
  std::optional<ReadFault> parse();
  std::optional<ReadFault> read_head();

  Limits limits_;
  std::unique_ptr<Parser> parser_;
  std::string waiting_;
  Request head_;  ///< without its body; valid when head_read_
  bool head_read_ = false;
  bool head_taken_ = false;
  ReadFault fault_;
  bool in_request_ = false;
  bool continue_sent_ = false;
};

/// Returns false to end the body.
using OnPiece = std::function<bool(std::string_view)>;

/// Parses one response from the bytes of a connection. Hands its body on piece by piece, or keeps
/// it. Interim responses (1xx, except 101) before it are skipped.
class ResponseReader {
 public:
  enum class Progress { kMore, kDone, kLeft };  ///< kLeft: on_piece returned false

  /// Without `on_piece`, or if the status is 400 or more, the body is kept.
  ResponseReader(bool head_only, const OnPiece& on_piece);
  /// Keeps at most `most` bytes of a body; a longer body is kExhausted.
  ResponseReader(bool head_only, const OnPiece& on_piece, size_t most);
  ~ResponseReader();

  /// kInternal: the bytes are not an HTTP response.
  base::Result<Progress> put(std::string_view bytes);
  /// The connection has ended. kUnavailable: the response is incomplete.
  base::Result<void> put_end();

  /// Whether any byte of the response has arrived.
  bool started() const { return started_; }
  /// Whether the status and all headers have arrived.
  bool has_head() const;
  /// REQUIRES: has_head().
  int status() const;
  /// Whether the whole response has arrived.
  bool is_done() const;
  /// The bytes after the end of the response. REQUIRES: kDone.
  std::string_view rest() const { return waiting_; }
  /// Whether the connection can carry another request. REQUIRES: kDone.
  bool keep_alive() const;
  Response take();

 private:
  struct Sink;
  struct SinkBody;
  struct Parser;
  base::Result<Progress> put_once(std::string_view bytes);
  std::unique_ptr<Parser> parser_;
  std::string waiting_;
  bool started_ = false;
};

}  // namespace muster::http
