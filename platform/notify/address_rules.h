// The addresses that notifications may be sent to. Addresses that only the server can reach are
// refused, unless the administrator allows them.
//
// A user chooses the URL, and the server makes the request: without rules a user could have the
// server send requests to its own network, to other services of its machine, or to a cloud's
// metadata service. So each time the host name is resolved, the address is checked, and the
// connection is made to exactly this address.
//
// Pure; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "http/sockets.h"

namespace muster::notify {

/// The detail of an error of receiver_of(): the fault of the URL, without the subject.
struct UrlFault : base::ErrorDetail {
  explicit UrlFault(std::string fault) : what(std::move(fault)) {}
  std::string what;
};

/// The parts of a receiver's URL.
struct Receiver {
  bool over_tls = true;
  std::string host;  ///< in lower case, without brackets
  int port = 443;
  std::string target = "/";

  bool operator==(const Receiver&) const = default;
};

/// kInvalid, with the fault. The message does not contain the URL, which may be a secret.
base::Result<Receiver> receiver_of(const std::string& url);

class AddressRules {
 public:
  /// Only public addresses are allowed.
  AddressRules() = default;
  /// Each element of `allow` is HOST, ADDRESS or NETWORK/BITS, and may end with :PORT (:* allows
  /// every port; without it, the usual ports). An IPv6 address with a port is in brackets:
  /// [fd00::1]:8443. kInvalid has a fault for each invalid element.
  static base::Result<AddressRules> of(const std::vector<std::string>& allow, bool allow_http);

  /// The checks that are possible before the name is resolved.
  base::Result<void> check(const Receiver& receiver) const;
  /// Whether a connection to `address` is allowed. kRefused gives the reason.
  base::Result<void> check(const Receiver& receiver, const http::IpAddress& address) const;

 private:
  struct Exception {
    std::string host;  ///< empty: a network
    http::IpAddress network;
    int bits = 0;
    std::optional<int> port;  ///< nothing: the usual ports
    bool every_port = false;
  };
  static std::optional<Exception> exception_of(std::string text);
  static bool allows_port(const Exception& exception, const Receiver& receiver);

  std::vector<Exception> exceptions_;
  bool allows_http_ = false;
};

/// The kind of an address that is not public ("a private network"); nullptr: it is public.
const char* kind_of_inner(const http::IpAddress& address);

}  // namespace muster::notify
