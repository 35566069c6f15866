#include "server/authenticator.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "server/answers.h"

namespace muster::server {

using access::Identity;
using base::ErrorCode;
using http::Response;

namespace {

/// The token that a request shows: the scheme's name is written in any case (RFC 9110, 11.1).
std::optional<std::string_view> token_of(const http::Request& request) {
  const auto header = request.headers.find("authorization");
  if (header == request.headers.end()) return std::nullopt;
  const std::string_view value = header->second;
  constexpr std::string_view kScheme = "bearer ";
  if (!base::same_but_for_case(value.substr(0, kScheme.size()), kScheme)) return std::nullopt;
  const std::string_view token = base::trimmed(value.substr(kScheme.size()), " ");
  if (token.empty()) return std::nullopt;
  return token;
}

Response unauthorized(const base::Error& error, std::string challenge) {
  constexpr int kUnauthorized = 401;
  Response response = problem(error, kUnauthorized);
  response.headers["www-authenticate"] = std::move(challenge);
  return response;
}

Response no_token() {
  return unauthorized({.code = ErrorCode::kRefused,
                       .what = "this server wants to know who asks, and no token was shown",
                       .advice = "muster login; or send 'authorization: Bearer TOKEN'",
                       .detail = std::make_shared<const access::NotLoggedIn>()},
                      R"(Bearer realm="muster")");
}

Response wrong_token(const base::Error& error) {
  return unauthorized(error, R"(Bearer realm="muster", error="invalid_token")");
}

Response too_often(std::string what, std::chrono::milliseconds wait) {
  const auto seconds =
      std::max(std::chrono::ceil<std::chrono::seconds>(wait), std::chrono::seconds(1));
  const std::string text = std::to_string(seconds.count());
  constexpr int kTooManyRequests = 429;
  Response response = problem({.code = ErrorCode::kExhausted,
                               .what = std::move(what),
                               .advice = "try again in " + text + " s"},
                              kTooManyRequests);
  response.headers["retry-after"] = text;
  return response;
}

}  // namespace

Authenticator::Authenticator(Parts parts, const Options& options)
    : parts_(std::move(parts)),
      failed_logins_(options.failed_logins),
      request_rate_(options.request_rate, options.request_burst) {}

void Authenticator::set_options(const Options& options) {
  failed_logins_ = access::FailedLogins(options.failed_logins);
  request_rate_ = access::RequestRate(options.request_rate, options.request_burst);
}

base::Result<Identity, Response> Authenticator::identify(const http::Request& request,
                                                         Permission permission) {
  if (request.peer.user) return access::local_identity(parts_.owner);
  Identity who{.address = request.peer.address};
  if (permission != Permission::kAnybody) {
    auto known = by_token(request);
    if (!known) return std::move(known).error();
    who = *std::move(known);
  }
  const std::string& caller = who.token.empty() ? who.address : who.token;
  if (const auto wait = request_rate_.take(caller, parts_.clock.now())) {
    return too_often("too many requests at once", *wait);
  }
  return who;
}

base::Result<Identity, Response> Authenticator::by_token(const http::Request& request) {
  const std::string& address = request.peer.address;
  const base::Time now = parts_.clock.now();
  const auto token = token_of(request);
  if (!token) return no_token();
  auto who = parts_.accounts.identify(*token, address);
  if (who) return *std::move(who);
  if (const auto wait = failed_logins_.wait(address, now)) {
    return too_often("too many wrong tokens came from this address", *wait);
  }
  failed_logins_.failed(address, now);
  return wrong_token(who.error());
}

std::optional<Response> Authenticator::refusal_of_body(const http::Request& head) {
  if (head.peer.user) return std::nullopt;
  auto who = by_token(head);
  if (who) return std::nullopt;
  return std::move(who).error();
}

bool Authenticator::still_is(const Identity& who) const {
  if (who.token.empty()) return true;
  const auto token = parts_.accounts.token(who.token);
  const auto user = parts_.accounts.user(who.user);
  if (!token || !user || user->disabled || is_expired(*token, parts_.clock.now())) return false;
  return access::identity_of(*user, *token, who.address) == who;
}

}  // namespace muster::server
