// Where notifications may go: nowhere that only the server can reach, unless its admin says so.
//
// A receiver's URL comes from a user, and the request from the server: without rules a user could
// have the server speak to its own network, to other services of its machine, or to the cloud's
// metadata. So the name is looked up, the address is judged, and the connection is made to that
// very address; every time anew, for a name may mean something else tomorrow.
//
// Pure; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "http/sockets.h"

namespace muster::notify {

/// Of an error of receiver_of(): what is wrong with the URL, without its subject.
struct UrlFault : base::ErrorDetail {
  explicit UrlFault(std::string fault) : what(std::move(fault)) {}
  std::string what;
};

/// A receiver, taken apart.
struct Receiver {
  bool over_tls = true;
  std::string host;  ///< in lower case, without brackets
  int port = 443;
  std::string target = "/";

  bool operator==(const Receiver&) const = default;
};

/// kInvalid with what is wrong with it. The URL itself is in no sentence: it may be a secret.
base::Result<Receiver> receiver_of(const std::string& url);

class AddressRules {
 public:
  /// Nothing is allowed beyond what always is.
  AddressRules() = default;
  /// Each of `allow` is HOST, ADDRESS or NETWORK/BITS, and may have :PORT behind it (:* is every
  /// port; none: the usual ones). kInvalid names the one that is none of these.
  static base::Result<AddressRules> of(const std::vector<std::string>& allow, bool allow_http);

  /// What can be said before the name is looked up.
  base::Result<void> check(const Receiver& receiver) const;
  /// Whether the connection to `address` may be made. kRefused says why not.
  base::Result<void> check(const Receiver& receiver, const http::IpAddress& address) const;

 private:
  struct Exception {
    std::string host;  ///< empty: a network
    http::IpAddress network;
    int bits = 0;
    std::optional<int> port;  ///< unset: the usual ones
    bool every_port = false;
  };
  static std::optional<Exception> exception_of(std::string text);
  static bool allows_port(const Exception& exception, const Receiver& receiver);

  std::vector<Exception> exceptions_;
  bool allows_http_ = false;
};

/// What is at an address that not everybody can reach ("a private network"); nullptr: everybody
/// can.
const char* kind_of_inner(const http::IpAddress& address);

}  // namespace muster::notify
