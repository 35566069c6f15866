// The HTTP API over the controller. Every request gets an id, its caller is identified and held to
// its limits, its route is found (routes.h), and its outcome is written to the server's log. An App
// also decides when an idle server exits.
//
// On the EventLoop's thread; the parts must outlive an App.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "access/identity.h"
#include "access/limits.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/random.h"
#include "base/result.h"
#include "control/accounts.h"
#include "control/controller.h"
#include "http/message.h"
#include "http/server.h"
#include "job/machine_type.h"
#include "notify/notifications.h"
#include "server/page.h"
#include "server/router.h"
#include "server/status_routes.h"
#include "workspace/tree_store.h"

namespace muster::server {

/// Identifies the caller of a request and limits how often it may ask.
///
/// Over the unix socket the kernel names the caller: the owner of the server. Over TLS a request
/// shows a token (RFC 6750: `authorization: Bearer TOKEN`), or comes from the web page with a cookie
/// (page.h). An address that showed too many wrong
/// tokens must wait (429) before it learns whether another one is wrong. A valid token is accepted
/// all the same: 256 random bits cannot be guessed, but a whole team may share an address with one
/// broken script. A request without a token is not a guess.
///
/// Requests have a rate: those of one token, those of all tokens of a user together (twice as
/// much), and, for each address, those without a valid token, those of public routes and those for
/// files of the page (ten times as much). A client beyond it must wait (429). The /64 network of an
/// IPv6 address counts as one address.
///
/// On the EventLoop's thread; accounts and clock must outlive it.
class Authenticator {
 public:
  struct Dependencies {
    control::Accounts& accounts;
    const base::Clock& clock;
    std::string owner;  ///< of the unix socket
  };
  struct Options {
    double request_rate = 200;
    double request_burst = 400;
    access::FailedLogins::Options failed_logins;
  };

  Authenticator(Dependencies parts, const Options& options);
  /// Applies to later requests. Waiting addresses and counted rates are reset.
  void set_options(const Options& options);

  /// The caller of `request`, or an error answer: 401 or 429. A public route needs no token, and
  /// ignores it; its requests are counted for their address.
  base::Result<access::Identity, http::Response> identify(const http::Request& request,
                                                          Permission permission);

  /// Counts a request for a file of the page, or one that is refused for its host; a refusal if the
  /// address makes too many. Apart from other requests, so that users behind one address who load
  /// the page leave logins and probes from there alone.
  std::optional<http::Response> refusal_of_page(const http::Request& request);

  /// The answer to `head` if its body is not to be read; nothing: the caller has a valid token.
  /// identify() then counts the request.
  std::optional<http::Response> refusal_of_body(const http::Request& head);

  /// Counts a wrong code or token that `address` sent in a body. The answer: 401 or 429.
  http::Response wrong_code(const std::string& address, const base::Error& error);

  /// Whether a request with the same token would have the same caller now, with the same rights.
  /// Does not count as a use of the token.
  bool still_is(const access::Identity& who) const;

 private:
  base::Result<access::Identity, http::Response> by_token(const http::Request& request);
  base::Result<access::Identity, http::Response> by_given_token(const http::Request& request);

  Dependencies parts_;
  access::FailedLogins failed_logins_;
  access::RequestRate request_rate_;  ///< by token; of public routes, by address
  access::RequestRate page_rate_;     ///< by address
  access::RequestRate user_rate_;     ///< by user
  access::RequestRate refused_rate_;  ///< of requests without a valid token, by address
};

/// The id of a request in the log, in its answer and in the audit log: the client's (x-request-id),
/// if that has 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-', because it goes into logs and headers;
/// otherwise a new one.
std::string request_id(const http::Request& request, base::RandomSource& random);

struct AppOptions {
  std::string version;
  std::string state_folder;
  std::string engine;   ///< "process", "slurm"
  std::string address;  ///< HOST:PORT where others reach the server; empty: the unix socket alone
  /// Whether the configuration file has been written since it was read; empty: there is none.
  std::function<bool()> config_changed = {};
  std::vector<std::string> need_restart = {};        ///< see api::ServerInfo
  std::map<std::string, std::string> settings = {};  ///< see api::ServerInfo
  /// The server exits when nothing ran and no request came or was answered for this long. Absent:
  /// never.
  std::optional<std::chrono::milliseconds> idle_exit;
  /// Requests of one token: per second, and at once. All tokens of a user have twice as many. The
  /// unix socket has no limit.
  double request_rate = 200;
  double request_burst = 400;
  access::FailedLogins::Options failed_logins;
  std::chrono::seconds session_lifetime = std::chrono::days(30);  ///< at most
  job::MachineTypes machine_types;                                ///< all of them
  bool log_requests = false;  ///< also over the unix socket; over TLS always
};

class App {
 public:
  struct Dependencies {
    base::EventLoop& loop;
    control::Controller& controller;
    control::Accounts& accounts;
    const base::Clock& clock;
    base::RandomSource& random;
    std::string owner;  ///< of the unix socket
    workspace::TreeStore& trees;
    notify::Notifications& notifications;
    /// Whether all notifications were delivered; empty: always.
    std::function<bool()> all_delivered = {};
    /// Where the page of a server without TLS is served; nullptr: nowhere.
    LoopbackDoor* door = nullptr;
  };

  /// Calls `leave`, once, when the server should exit.
  App(Dependencies parts, AppOptions options, std::function<void()> leave);

  http::Handler handler();
  /// Accepts the bodies of callers with a valid token.
  http::Gate gate();
  /// Takes over the options that can change while the server runs.
  void set_options(const AppOptions& options);
  const Router& router() const { return router_; }

 private:
  void add_routes();
  void take(http::Request request, http::Respond respond);
  std::optional<http::Response> answer_without_caller(const http::Request& request);
  std::optional<http::Response> refusal_of_body(const http::Request& head);
  http::Respond answering(const ApiCall& call, std::string route, http::Respond respond);
  bool is_logged(int status);
  void touch();
  void look_whether_idle();

  Dependencies parts_;
  AppOptions options_;
  std::function<void()> leave_;
  Router router_;
  base::Background background_;  ///< for work that blocks
  RequestCounts requests_;
  PageCodes codes_;
  Authenticator authenticator_;
  base::Time refusal_logged_{};    ///< when a 429 was last written to the log
  int64_t unlogged_refusals_ = 0;  ///< since then
  /// Held by each answer that is computed or sent, except by streams of events, most of
  /// which have no end.
  std::shared_ptr<void> answering_ = std::make_shared<char>();
  bool leaving_ = false;
  bool was_answering_ = false;  ///< at the last look for idleness: an answer may have ended since
  base::EventLoop::Interest idle_timer_;
};

}  // namespace muster::server
