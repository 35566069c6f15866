// Requests and responses as the rest of Muster sees them. Beast stays inside http/'s .cc files.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "http/query.h"

namespace muster::http {

/// Header names are in lower case.
using Headers = std::map<std::string, std::string>;

/// Who is at the other end of a connection (server side only).
struct Peer {
  std::optional<uid_t> user;      ///< over the unix socket: the kernel's word; nothing over TLS
  std::string address = "local";  ///< of a TLS client, without the port
};

struct Request {
  std::string method = "GET";
  std::string path;  ///< decoded, without the query: /v1/jobs/dist
  Query query;       ///< decoded
  Headers headers;
  std::string body;
  Peer peer;
};

/// Bytes that many streams send at once without a copy for each.
using Piece = std::shared_ptr<const std::string>;

/// What a stream delivers: a piece of its own, one that it shares with others, or the end (nullopt,
/// no Piece). Whoever delivers or receives a std::optional<std::string> gets on with it as well.
class BodyPiece {
 public:
  BodyPiece(std::nullopt_t) {}                              // NOLINT: conversion is the point
  BodyPiece(std::string bytes) : own_(std::move(bytes)) {}  // NOLINT: conversion is the point
  BodyPiece(const char* bytes) : own_(bytes) {}             // NOLINT: conversion is the point
  BodyPiece(Piece shared) : shared_(std::move(shared)) {}   // NOLINT: conversion is the point
  BodyPiece(std::optional<std::string> bytes)               // NOLINT: conversion is the point
      : own_(std::move(bytes)) {}

  bool is_end() const { return !own_ && shared_ == nullptr; }
  /// REQUIRES: !is_end(). As long as this lives where it is.
  const std::string& bytes() const { return own_ ? *own_ : *shared_; }
  operator std::optional<std::string>() const {  // NOLINT: conversion is the point
    return is_end() ? std::nullopt : std::optional(bytes());
  }

 private:
  std::optional<std::string> own_;
  Piece shared_;
};

/// A body that comes piece by piece. The connection pulls: it asks for the next piece once the last
/// is on its way, so a slow reader slows the source and nothing piles up in memory.
class BodyStream {
 public:
  using Deliver = std::function<void(BodyPiece)>;

  /// Dropped when the client goes: an open pull() must then deliver nothing more.
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
  /// When set, sent in the place of `body`: in chunks, or as it is where `headers` have a
  /// content-length; a stream that then ends early breaks the connection off.
  std::shared_ptr<BodyStream> stream;
  /// When set, the answer to a request that asks for it (wants_websocket()) is 101, and the
  /// connection is handed over as a WebSocket, on the loop's thread.
  std::function<void(std::shared_ptr<WebSocket>)> websocket;
};

/// percent-encoding of one path segment or query value.
std::string url_encoded(std::string_view text);

}  // namespace muster::http
