// The head of an HTTP message as bytes: the start line and the headers.
//
// Pure; thread-safe. Heads are written by hand, because that takes only a few appends. Parsing a
// head is the difficult part and is left to Beast (message_reader.cc).
#pragma once

#include <string>
#include <string_view>

#include "http/message.h"

namespace muster::http {

/// The phrase of a status (RFC 9110, section 15): "Not Found" for 404; "Unknown" for a status that
/// Muster never sends.
std::string_view reason_phrase(int status);

/// How the receiver finds the end of a body.
enum class Framing {
  kLength,   ///< content-length is the size of Response::body
  kGiven,    ///< content-length is already among the headers
  kChunked,  ///< transfer-encoding: chunked
  kClose,    ///< the end of the connection (HTTP/1.0 has no other way for a stream)
};

/// False for 204 and 304, which have neither a body nor a length (RFC 9110, 8.6).
bool may_have_body(int status);

std::string request_head(const Request& request, std::string_view host = "localhost");
/// The same for a target that is already percent-encoded; writes no header about the body.
std::string request_head(std::string_view method, std::string_view target, const Headers& headers,
                         std::string_view host);
std::string response_head(const Response& response, Framing framing, bool keep_alive);

/// An answer that the server gives itself: problem+json (RFC 9457) with one sentence.
/// REQUIRES: `detail` needs no escaping in JSON.
Response plain_problem(int status, const std::string& detail);

}  // namespace muster::http
