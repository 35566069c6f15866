// Requests of the server to somebody else's: one POST on a connection of its own, to addresses that
// the caller has looked at before. Nothing is looked up in between, and no redirect is
// followed: what was allowed is what is reached.
//
// Blocking, each call for a bounded time; thread-safe (no state). While `cancel` is readable, a
// call returns at once; -1: nothing cancels it. REQUIRES: this process ignores SIGPIPE.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "http/ip_address.h"
#include "http/message.h"
#include "http/tls_context.h"

namespace muster::http {

/// All addresses of a name, or the one that it is. kUnavailable: it has none, or nobody says so in
/// time; kTimeout: cancelled.
base::Result<std::vector<IpAddress>> addresses_of(const std::string& host,
                                                  std::chrono::milliseconds patience, int cancel);

struct Outbound {
  bool over_tls = true;
  std::string host;  ///< whose name the certificate must have
  int port = 443;
  std::string target = "/";  ///< path and query, as they are sent
  Headers headers;
  std::string body;
};

struct OutboundLimits {
  std::chrono::milliseconds connect{5'000};  ///< with the handshake
  std::chrono::milliseconds whole{15'000};
  size_t answer_bytes = 64 << 10;  ///< of a longer answer the rest is left unread
};

/// To the first of `addresses` that accepts a connection. `tls` is that of client_context(). A
/// status of 400 and more is an answer, not an error. kUnavailable: nobody answers, or not in time;
/// kRefused: the certificate is not to be trusted; kTimeout: cancelled; kInternal: what came is no
/// HTTP.
base::Result<Response> post(const std::vector<IpAddress>& addresses, const Outbound& request,
                            const TlsContext& tls, const OutboundLimits& limits, int cancel);

}  // namespace muster::http
