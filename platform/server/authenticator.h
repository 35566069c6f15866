// Who a request is from, and whether they may ask as often as they do.
//
// Over the unix socket the kernel says who it is: the owner of the server. Over TLS a request shows
// a token (RFC 6750: `authorization: Bearer TOKEN`). An address that showed too many wrong ones has
// to wait (429) before it hears of another that it is wrong. A right one is taken all the same: 256
// random bits are not guessed, but behind one address may be a whole team and one broken script. A
// request without any token is no guess.
//
// On the EventLoop's thread; accounts and clock must outlive it.
#pragma once

#include <optional>
#include <string>

#include "access/identity.h"
#include "access/limits.h"
#include "base/clock.h"
#include "base/result.h"
#include "control/accounts.h"
#include "http/message.h"
#include "server/call.h"

namespace muster::server {

class Authenticator {
 public:
  struct Parts {
    control::Accounts& accounts;
    const base::Clock& clock;
    std::string owner;  ///< who the unix socket belongs to
  };
  struct Options {
    double request_rate = 200;
    double request_burst = 400;
    access::FailedLogins::Options failed_logins;
  };

  Authenticator(Parts parts, const Options& options);
  /// For requests from now on. Addresses that wait, and what is left of the rates, begin anew.
  void set_options(const Options& options);

  /// The caller of `request`, or what it is answered instead: 401 or 429. A route for anybody wants
  /// no token and looks at none; its requests count for their address.
  base::Result<access::Identity, http::Response> identify(const http::Request& request,
                                                          Permission permission);

  /// What `head` is answered instead of having its body read; nothing: the caller has a valid
  /// token. identify() then counts the request.
  std::optional<http::Response> refusal_of_body(const http::Request& head);

  /// Whether a request that shows the same token would have the same caller now, with the same
  /// rights. Notes no use.
  bool still_is(const access::Identity& who) const;

 private:
  base::Result<access::Identity, http::Response> by_token(const http::Request& request);

  Parts parts_;
  access::FailedLogins failed_logins_;
  access::RequestRate request_rate_;
};

}  // namespace muster::server
