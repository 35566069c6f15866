// What stands between the method and the version of a request: a path and a query, percent-encoded.
// (RFC 3986; in a query '+' is a space, as HTML forms send it.)
//
// Pure; thread-safe. url_encoded() is in http/message.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/query.h"

namespace muster::http {

struct Target {
  std::string path;  ///< decoded
  Query query;       ///< decoded

  bool operator==(const Target&) const = default;
};

/// Takes the origin form (/v1/jobs?x=1) and the absolute form that proxies send
/// (http://host/v1/jobs). Nothing where it is neither, or holds a '%' without two hex digits; nor
/// where the path holds what could lead elsewhere than it seems: an encoded slash, a segment "." or
/// "..", a control character; nor where the query holds a NUL.
std::optional<Target> parse_target(std::string_view text);

/// The reverse. A '/' in the path stays one: it separates segments. An empty path is the root.
std::string format_target(std::string_view path, const Query& query);

}  // namespace muster::http
