// Requests from the server to other servers (webhooks): one POST on its own connection, to
// addresses that the caller has checked. Between the check and the connection no name is looked up
// again and no redirect is followed, so only checked addresses are reached.
//
// Blocking, each call for a bounded time; thread-safe (no state). While `cancel` is readable, a
// call returns at once; -1: no cancellation. REQUIRES: this process ignores SIGPIPE.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "http/message.h"
#include "http/sockets.h"
#include "http/tls.h"

namespace muster::http {

/// All addresses of a host name, or the address itself. kUnavailable: the name has no address, or
/// the lookup took too long; kTimeout: cancelled.
base::Result<std::vector<IpAddress>> addresses_of(const std::string& host,
                                                  std::chrono::milliseconds patience, int cancel);

struct Outbound {
  bool over_tls = true;
  std::string host;  ///< the name that the certificate must contain
  int port = 443;
  std::string target = "/";  ///< path and query, percent-encoded
  Headers headers;
  std::string body;
};

struct OutboundLimits {
  std::chrono::milliseconds connect{5'000};  ///< including the TLS handshake
  std::chrono::milliseconds whole{15'000};
  size_t answer_bytes = 64 << 10;  ///< the rest of a longer answer is not read
};

/// Posts to the first of `addresses` that accepts a connection. `tls`: made by client_context(). A
/// status of 400 or more is an answer, not an error. kUnavailable: no answer in time; kRefused: the
/// certificate is not trusted; kTimeout: cancelled; kInternal: the answer is not HTTP.
base::Result<Response> post(const std::vector<IpAddress>& addresses, const Outbound& request,
                            const TlsContext& tls, const OutboundLimits& limits, int cancel);

}  // namespace muster::http
