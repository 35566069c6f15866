// HTTP requests and responses as the rest of Muster uses them. Only http/'s .cc files include
// Beast.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "http/url.h"

namespace muster::http {

/// Header names are in lower case.
using Headers = std::map<std::string, std::string>;

/// The other end of a connection (server side only).
struct Peer {
  std::optional<uid_t> user;      ///< over a unix socket, from the kernel; nullopt over TLS
  std::string address = "local";  ///< the address of a TLS client, without the port
  /// Whether the client of a request has gone, or at least sends nothing more: long work for it can
  /// be dropped. Empty: unknown.
  std::function<bool()> has_left = {};
};

struct Request {
  std::string method = "GET";
  std::string path;  ///< decoded, without the query: /v1/jobs/dist
  Query query;       ///< decoded
  Headers headers;
  std::string body;
  Peer peer;
  /// Server side only: the handler and the gate set it when they have identified the caller. If
  /// there are too many connections, the server closes those that never had an identified caller.
  std::shared_ptr<bool> identified = nullptr;
};

/// Bytes that several streams can send without a copy for each.
using SharedBytes = std::shared_ptr<const std::string>;

/// What a stream delivers: its own piece, a shared piece, or the end (nullopt or a null Piece).
/// Converts from and to std::optional<std::string>.
class BodyPiece {
 public:
  BodyPiece(std::nullopt_t) {}                                   // NOLINT: conversion is the point
  BodyPiece(std::string bytes) : own_(std::move(bytes)) {}       // NOLINT: conversion is the point
  BodyPiece(const char* bytes) : own_(bytes) {}                  // NOLINT: conversion is the point
  BodyPiece(SharedBytes shared) : shared_(std::move(shared)) {}  // NOLINT: conversion is the point
  BodyPiece(std::optional<std::string> bytes)                    // NOLINT: conversion is the point
      : own_(std::move(bytes)) {}

  bool is_end() const { return !own_ && shared_ == nullptr; }
  /// REQUIRES: !is_end(). Valid until this object is moved or destroyed.
  const std::string& bytes() const { return own_ ? *own_ : *shared_; }
  operator std::optional<std::string>() const {  // NOLINT: conversion is the point
    return is_end() ? std::nullopt : std::optional(bytes());
  }

 private:
  std::optional<std::string> own_;
  SharedBytes shared_;
};

/// A body that is sent piece by piece. The connection pulls: it requests the next piece when the
/// previous one has been sent, so a slow reader slows the source and no data piles up in memory.
class BodyStream {
 public:
  using Deliver = std::function<void(BodyPiece)>;

  /// Called when the client disconnects: an open pull() must not deliver after that.
  virtual ~BodyStream() = default;
  /// Delivers one piece, now or later, on the loop's thread; nullopt ends the body.
  /// REQUIRES: the last pull() has delivered.
  virtual void pull(Deliver deliver) = 0;
};

class WebSocket;

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  Headers headers;
  /// If set, sent instead of `body`: in chunks, or unchunked if `headers` contain a content-length.
  /// In that case a stream that ends early aborts the connection.
  std::shared_ptr<BodyStream> stream;
  /// If set, a request with requests_websocket() is answered with 101, and the connection is handed
  /// over as a WebSocket, on the loop's thread.
  std::function<void(std::shared_ptr<WebSocket>)> websocket;
};

/// Whether the answer is a stream of events: text/event-stream, or another form of one.
inline bool is_event_stream(const Response& response) {
  return response.stream != nullptr && response.content_type.ends_with("event-stream");
}

/// Percent-encodes one path segment or query value.
std::string url_encoded(std::string_view text);

}  // namespace muster::http
