// POST /v1/ui/codes, POST /v1/ui/session, DELETE /v1/ui/port.

#include "api/account_wire.h"
#include "api/routes.h"
#include "server/app.h"
#include "server/page.h"
#include "server/router.h"
#include "server/routes.h"

namespace muster::server {

namespace {

using base::Error;
using base::ErrorCode;

/// "https://HOST:PORT" or "http://NAME.localhost:PORT".
base::Result<std::string> page_origin(const PageRouteParts& parts) {
  if (!parts.address.empty()) return "https://" + parts.address;
  if (parts.door == nullptr) {
    return Error{.code = ErrorCode::kConflict, .what = "this server does not serve the web page"};
  }
  MUSTER_TRY(const LoopbackAddress address, parts.door->open());
  return "http://" + address.name + ":" + std::to_string(address.port);
}

RouteAnswer create_code(const PageRouteParts& parts, const ApiCall& call) {
  MUSTER_TRY(const std::string origin, page_origin(parts));
  const PageCodes::NewCode made = parts.codes.add(call.who, parts.clock.now(), parts.random);
  return json_answer(201, api::page_code_to_json({.code = made.text,
                                                  .url = origin + "/ui/#code=" + made.text,
                                                  .expires = made.expires}));
}

Error wrong_code() {
  return {.code = ErrorCode::kRefused,
          .what = "the code is not valid: it is valid once, for a minute",
          .advice = "get another with muster ui",
          .detail = std::make_shared<const access::NotLoggedIn>()};
}

/// The caller that a code or a token stands for.
base::Result<access::Identity> meant_by_code(const PageRouteParts& parts,
                                             const api::PageLogin& login,
                                             const std::string& address) {
  const base::Time now = parts.clock.now();
  if (auto who =
          login.check ? parts.codes.find(login.code, now) : parts.codes.take(login.code, now)) {
    // Since the code was made, the caller may have lost its token or its rights.
    if (parts.authenticator.still_is(*who)) return *std::move(who);
    return wrong_code();
  }
  auto who = parts.accounts.identify(login.code, address);
  if (who) return who;
  return wrong_code();
}

RouteAnswer open_session(const PageRouteParts& parts, const ApiCall& call) {
  const http::Request& request = call.request;
  if (request.peer.user) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "a browser cannot use the unix socket, which needs no session",
                 .advice = "muster ui prints the address of the page"};
  }
  // Otherwise another site could log a browser in as a different user.
  if (auto foreign = foreign_origin(request)) return *std::move(foreign);
  MUSTER_TRY(const api::PageLogin login, api::page_login_from_json(request.body));
  const auto who = meant_by_code(parts, login, request.peer.address);
  if (!who) return parts.authenticator.wrong_code(request.peer.address, who.error());
  if (login.check) return whoami(parts.accounts, parts.controller, *who);
  const access::Actor actor{who->user, request.peer.address, who->token, call.id};
  MUSTER_TRY(const control::IssuedToken issued,
             open_page_session(parts.accounts, *who, parts.session_lifetime, actor));
  const auto lifetime = issued.token.expires.value_or(parts.clock.now()) - parts.clock.now();
  MUSTER_TRY(const access::Identity session,
             parts.accounts.identify(issued.text, request.peer.address));
  http::Response answer = whoami(parts.accounts, parts.controller, session);
  answer.headers["set-cookie"] =
      cookie_with(request, issued.text, std::chrono::ceil<std::chrono::seconds>(lifetime));
  return answer;
}

RouteAnswer close_port(const PageRouteParts& parts, const ApiCall& call) {
  if (!call.request.peer.user) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "the port of the page can be closed only on the server's machine",
                 .advice = "run there: muster ui --close"};
  }
  if (parts.door != nullptr) parts.door->close();
  return nothing_more();
}

}  // namespace

void add_page_routes(Router& router, const PageRouteParts& parts) {
  router.add("POST", api::kPageCodesPath, Permission::kSignedIn,
             at_once([parts](const ApiCall& call) { return create_code(parts, call); }));
  router.add("POST", api::kPageSessionPath, Permission::kAnybody,
             at_once([parts](const ApiCall& call) { return open_session(parts, call); }));
  router.add("DELETE", api::kPagePortPath, Permission::kServerAdmin,
             at_once([parts](const ApiCall& call) { return close_port(parts, call); }));
}

}  // namespace muster::server
