// The web page (docs/web.md): its files below /ui/, and the sessions of browsers.
//
// `muster ui` gets a code that is valid once and for a minute. The page exchanges it for a cookie,
// which holds the text of an ordinary session token: its rights, its expiry, its place in the list of
// tokens and its revocation are those of any token, and it survives a restart or a failover. A
// browser sends the cookie with every request, also with those that another site's page makes, so a
// request with a cookie has to come from the page itself:
//
//   GET                      sec-fetch-site is absent, same-origin or none; origin is absent or own
//   WebSocket                origin is own
//   POST, PUT, PATCH, DELETE origin is own, and the header x-muster-request is there, which a page of
//                            another site cannot add without permission
//
// Without TLS the page is served on a loopback port only, which every user of the machine can reach:
// there the host must be one of the port's own names (DNS rebinding), and only cookies are accepted.
//
// On the EventLoop's thread.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "access/identity.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "control/accounts.h"
#include "http/message.h"

namespace muster::server {

/// Where the page of a server without TLS is served.
struct LoopbackAddress {
  std::string name;  ///< "ui-k3x9a2.localhost": keeps its cookie from other ports of 127.0.0.1
  int port = 0;

  bool operator==(const LoopbackAddress&) const = default;
};

/// The loopback port of a server, which it opens on demand.
class LoopbackDoor {
 public:
  virtual ~LoopbackDoor() = default;
  /// Opens the port, or returns the address of the open port.
  virtual base::Result<LoopbackAddress> open() = 0;
  virtual void close() = 0;
  /// Nothing: the port is closed.
  virtual std::optional<LoopbackAddress> address() const = 0;
};

/// Whether the client uses the loopback port.
bool is_from_loopback(const http::Request& request);

/// The refusal of a request on the loopback port whose Host is not a name of the port: 421.
std::optional<http::Response> refusal_of_host(const http::Request& request,
                                              const std::optional<LoopbackAddress>& address);

/// "/", "/ui" and all below it.
bool is_page_path(std::string_view path);
/// The file of the page, 304, or 404. REQUIRES: is_page_path(request.path).
http::Response page_answer(const http::Request& request);

/// The header that the page's changing requests carry.
inline constexpr std::string_view kPageRequestHeader = "x-muster-request";

/// Why a request with a cookie is refused: it may come from the page of another site.
std::optional<base::Error> foreign_origin(const http::Request& request);

// --- cookies

/// "__Host-muster" over TLS, "muster-41873" on the loopback port.
std::string cookie_name(const http::Request& request);
/// The token in the cookie; nothing if there is no cookie.
std::optional<std::string> cookie_of(const http::Request& request);
/// The values of set-cookie.
std::string cookie_with(const http::Request& request, std::string_view token,
                        std::chrono::seconds lifetime);
std::string cookie_removed(const http::Request& request);

// --- codes

/// The codes that wait for their browser. They are in memory: after a restart, or when another server
/// has taken the lead, the user asks for a new one.
class PageCodes {
 public:
  static constexpr std::chrono::seconds kLifetime{60};
  static constexpr size_t kMostOfOneUser = 8;

  struct Code {
    access::Token secret;  ///< its id, the hash of its secret, and when it expires
    access::Identity who;
  };
  struct NewCode {
    std::string text;
    base::Time expires;
  };

  NewCode add(const access::Identity& who, base::Time now, base::RandomSource& random);
  /// Whose session a code opens. Nothing: the text is not a valid code.
  std::optional<access::Identity> find(std::string_view text, base::Time now) const;
  /// Uses up a code. Nothing: the text is not a valid code.
  std::optional<access::Identity> take(std::string_view text, base::Time now);

 private:
  std::map<std::string, Code> codes_;  ///< by id
};

/// The lifetime of a page's session, unless the server permits less.
inline constexpr std::chrono::seconds kPageSessionLifetime = std::chrono::days(7);

/// A session for the user of a code or of a token. The owner of the unix socket, who needs no
/// account there, gets one: with the role admin, because the owner may do everything. Its name is
/// that of the Unix account, or a similar one if users cannot have that name. If a user of that
/// name exists, the session is for that user.
///
/// Errors: kRefused: the text is neither a code nor a token, or no longer valid.
base::Result<control::IssuedToken> open_page_session(control::Accounts& accounts,
                                                     const access::Identity& who,
                                                     std::chrono::seconds longest,
                                                     const access::Actor& by);

}  // namespace muster::server
