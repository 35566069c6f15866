// The first lines of a message, as bytes: the start line and the headers.
//
// Pure; thread-safe. Written by hand, for a head is a handful of appends; reading one is the part
// that is hard to get right, and that is Beast's (request_reader.cc, response_reader.cc).
#pragma once

#include <string>
#include <string_view>

#include "http/message.h"

namespace muster::http {

/// How the receiver finds the end of a body.
enum class Framing {
  kLength,   ///< content-length, of the body
  kGiven,    ///< content-length, which stands in the headers
  kChunked,  ///< transfer-encoding: chunked
  kClose,    ///< the connection's end (HTTP/1.0 knows nothing better for a stream)
};

/// 204 and 304 have no body by definition, and so no length either (RFC 9110, 8.6).
bool may_have_body(int status);

std::string request_head(const Request& request, std::string_view host = "localhost");
/// The same of a path and query that are encoded already; nothing is said of a body.
std::string request_head(std::string_view method, std::string_view target, const Headers& headers,
                         std::string_view host);
std::string response_head(const Response& response, Framing framing, bool keep_alive);

/// An answer that the server gives by itself: problem+json (RFC 9457) with one sentence.
/// REQUIRES: `detail` needs no escaping in JSON.
Response plain_problem(int status, const std::string& detail);

}  // namespace muster::http
