// Requests and responses as the rest of Muster sees them. Beast stays inside http/'s .cc files.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace muster::http {

/// Header names are in lower case.
using Headers = std::map<std::string, std::string>;

struct Request {
  std::string method = "GET";
  std::string path;                          ///< decoded, without the query: /v1/jobs/dist
  std::map<std::string, std::string> query;  ///< decoded
  Headers headers;
  std::string body;
  uid_t peer = 0;  ///< who is at the other end of the unix socket (server side only)
};

/// A body that comes piece by piece. The connection pulls: it asks for the next piece once the last
/// is on its way, so a slow reader slows the source and nothing piles up in memory.
class BodyStream {
 public:
  using Deliver = std::function<void(std::optional<std::string>)>;

  /// Dropped when the client goes: an open pull() must then deliver nothing more.
  virtual ~BodyStream() = default;
  /// Delivers one piece, now or later, on the loop's thread; nullopt ends the body.
  /// REQUIRES: the last pull() has delivered.
  virtual void pull(Deliver deliver) = 0;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  Headers headers;
  std::shared_ptr<BodyStream> stream;  ///< when set, sent in chunks in the place of `body`
};

/// percent-encoding of one path segment or query value.
std::string url_encoded(std::string_view text);

}  // namespace muster::http
