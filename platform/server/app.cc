#include "server/app.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>

#include "api/file_wire.h"
#include "api/routes.h"
#include "api/wire.h"
#include "base/log.h"
#include "base/text.h"
#include "http/sockets.h"
#include "server/router.h"
#include "server/routes.h"

namespace muster::server {

using base::ErrorCode;
using http::client_of_address;
using http::Respond;
using http::Response;

namespace {

Authenticator::Options limits_of(const AppOptions& options) {
  return {.request_rate = options.request_rate,
          .request_burst = options.request_burst,
          .failed_logins = options.failed_logins};
}

/// The media type of the body that a route accepts.
std::string_view media_type_of(std::string_view route) {
  return route.ends_with("/chunks") ? api::kChunksType : "application/json";
}

constexpr int kTooManyRequests = 429;

constexpr std::string_view kBlank = " \t";

/// The value of a parameter of a media type (RFC 9110, 5.6.6), in lower case: of "charset" in
/// `application/json; charset="UTF-8"`. Empty: there is no such parameter.
std::string parameter_of_type(const std::string& content_type, std::string_view name) {
  std::vector<std::string> parts = base::split(content_type, ';');
  if (!parts.empty()) parts.erase(parts.begin());  // the type itself
  for (const std::string& part : parts) {
    const size_t equals = std::min(part.find('='), part.size());
    if (!base::same_but_for_case(base::trimmed(part.substr(0, equals), kBlank), name)) continue;
    return base::lower_case(base::trimmed(part.substr(equals), "= \t\""));
  }
  return "";
}

Response unsupported(std::string what, std::string advice) {
  constexpr int kUnsupportedMediaType = 415;
  return problem(
      {.code = ErrorCode::kInvalid, .what = std::move(what), .advice = std::move(advice)},
      kUnsupportedMediaType);
}

/// Why a body that claims to be of another type than the route's, of another charset or compressed
/// is not read; nothing if the headers permit it.
std::optional<Response> refusal_of_type(const http::Request& request, std::string_view type) {
  const std::string right(type);
  const std::string content_type = header(request, "content-type");
  const std::string_view media = std::string_view(content_type).substr(0, content_type.find(';'));
  if (!content_type.empty() && !base::same_but_for_case(base::trimmed(media, kBlank), type)) {
    return unsupported("the body of this request is " +
                           (type == api::kChunksType ? "bytes (" + right + ")" : "JSON"),
                       "send 'content-type: " + right + "', or none");
  }
  const std::string charset = parameter_of_type(content_type, "charset");
  if (type != api::kChunksType && !charset.empty() && charset != "utf-8" && charset != "us-ascii") {
    return unsupported("JSON is UTF-8, and the charset of this body is " + base::in_quotes(charset),
                       "send the body in UTF-8, without a charset");
  }
  const std::string coding = header(request, "content-encoding");
  if (coding.empty() || base::same_but_for_case(coding, "identity")) return std::nullopt;
  Response refusal = unsupported(
      "the content-encoding " + base::in_quotes(coding) + " of this body is not supported",
      "send the body without a content-encoding");
  refusal.headers["accept-encoding"] = "identity";
  return refusal;
}

Response takes_no_body() {
  constexpr int kContentTooLarge = 413;
  return problem(
      {.code = ErrorCode::kInvalid, .what = "a request to this path must not have a body"},
      kContentTooLarge);
}

/// Of the body: long enough for a code.
bool is_short(const http::Request& head) {
  constexpr size_t kMostDigits = 3;
  const std::string length = header(head, "content-length");
  return !length.empty() && length.size() <= kMostDigits;
}

/// The server keeps the connection of the caller, of whom it now has seen a valid token.
void note_identified(const http::Request& request) {
  if (request.identified != nullptr) *request.identified = true;
}

RouteAnswer may_shut_down(const ApiCall& call) {
  if (call.request.peer.user) return Response{.status = 202};
  return base::Error{.code = ErrorCode::kRefused,
                     .what = "a server can be stopped only on its own machine",
                     .advice = "run there: muster server --stop"};
}

}  // namespace

App::App(Dependencies parts, AppOptions options, std::function<void()> leave)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      leave_(std::move(leave)),
      background_(parts_.loop),
      authenticator_({parts_.accounts, parts_.clock, parts_.owner}, limits_of(options_)) {
  add_routes();
  touch();
}

http::Handler App::handler() {
  return [this](http::Request request, Respond respond) {
    touch();
    take(std::move(request), std::move(respond));
  };
}

http::Gate App::gate() {
  return [this](const http::Request& head) { return refusal_of_body(head); };
}

std::optional<Response> App::refusal_of_body(const http::Request& head) {
  if (head.peer.user) return std::nullopt;
  const auto found = router_.find(head.method, head.path);
  const bool has_other_methods =
      found.handler == nullptr && found.path_known && found.permission == Permission::kAnybody;
  if ((found.route == api::kPageSessionPath || has_other_methods) && is_short(head)) {
    return std::nullopt;
  }
  std::optional<Response> refusal = found.permission == Permission::kAnybody
                                        ? std::optional(takes_no_body())
                                        : authenticator_.refusal_of_body(head);
  if (!refusal) {
    note_identified(head);
    return std::nullopt;
  }
  const ApiCall call{.request = head, .id = request_id(head, parts_.random)};
  std::optional<Response> answered;
  answering(call, found.route,
            [&](Response response) { answered = std::move(response); })(*std::move(refusal));
  return answered;
}

void App::set_options(const AppOptions& options) {
  options_.request_rate = options.request_rate;
  options_.request_burst = options.request_burst;
  options_.failed_logins = options.failed_logins;
  options_.log_requests = options.log_requests;
  options_.session_lifetime = options.session_lifetime;
  options_.machine_types = options.machine_types;
  options_.config_changed = options.config_changed;
  options_.need_restart = options.need_restart;
  authenticator_.set_options(limits_of(options_));
}

/// The answers that need no caller and no route: the files of the page, and the refusal of a foreign
/// host. These requests are counted for their address.
std::optional<Response> App::answer_without_caller(const http::Request& request) {
  if (request.peer.user) return std::nullopt;
  std::optional<Response> refusal;
  if (is_from_loopback(request)) {
    const auto address = parts_.door == nullptr ? std::nullopt : parts_.door->address();
    refusal = refusal_of_host(request, address);
  }
  if (!refusal && !is_page_path(request.path)) return std::nullopt;
  if (auto too_many = authenticator_.refusal_of_page(request)) return too_many;
  return refusal ? std::move(refusal) : page_answer(request);
}

void App::take(http::Request request, Respond respond) {
  ApiCall call{.request = std::move(request)};
  call.id = request_id(call.request, parts_.random);
  if (auto answer = answer_without_caller(call.request)) {
    // A client may invent methods, and each route and method has a counter.
    const bool is_get = call.request.method == "GET";
    return answering(call, is_get ? "/ui" : "", std::move(respond))(*std::move(answer));
  }
  const auto found = router_.find(call.request.method, call.request.path);
  auto who = authenticator_.identify(
      call.request, found.handler == nullptr && found.permission != Permission::kAnybody
                        ? Permission::kSignedIn
                        : found.permission);
  if (who) call.who = *who;
  if (!call.who.token.empty()) {
    note_identified(call.request);
    call.still_valid = [this, who = call.who] { return authenticator_.still_is(who); };
  }
  const std::string_view type = media_type_of(found.route);
  respond = answering(call, found.route, std::move(respond));
  if (!who) return respond(who.error());
  // An unknown route accepts no type, so 404 is answered first.
  if (found.handler != nullptr) {
    if (auto refusal = refusal_of_type(call.request, type)) return respond(*std::move(refusal));
  }
  router_.handle(std::move(call), std::move(respond));
}

namespace {

/// Load balancers and Kubernetes send these every few seconds.
bool is_probe(std::string_view route) {
  return route == api::kHealthPath || route == api::kReadyPath;
}

}  // namespace

namespace {

/// RFC 9110, 5.6.7: "Sat, 31 Jan 2026 12:34:56 GMT". The page compares it with the browser's clock.
std::string http_date(base::Time time) {
  constexpr std::array<const char*, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t seconds =
      std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                kDays[static_cast<size_t>(utc.tm_wday)], utc.tm_mday,
                kMonths[static_cast<size_t>(utc.tm_mon)], utc.tm_year + 1900, utc.tm_hour,
                utc.tm_min, utc.tm_sec);
  return text.data();
}

}  // namespace

/// Whether a line is written to the log: of the refusals of clients that ask too often, one in a
/// second is, because such clients would fill the disk of the log.
bool App::is_logged(int status) {
  if (status != kTooManyRequests) return true;
  const base::Time now = parts_.clock.now();
  const auto since = now - refusal_logged_;
  if (since >= std::chrono::seconds(0) && since < std::chrono::seconds(1)) {
    ++unlogged_refusals_;
    return false;
  }
  refusal_logged_ = now;
  return true;
}

namespace {

/// The stream, which keeps `held` until it is dropped.
std::shared_ptr<http::BodyStream> holding(std::shared_ptr<http::BodyStream> stream,
                                          std::shared_ptr<void> held) {
  const auto both =
      std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<http::BodyStream>>>(
          std::move(held), std::move(stream));
  return {both, both->second.get()};
}

}  // namespace

/// `respond`, which also sets the request's id, writes a line to the log, and counts the request.
/// An idle server stays until the answer is sent.
Respond App::answering(const ApiCall& call, std::string route, Respond respond) {
  const bool logged = options_.log_requests || (!call.request.peer.user && !is_probe(route));
  // Of a browser, which must neither guess a type nor keep what the next user should not see.
  const bool is_remote = !call.request.peer.user;
  const bool has_cookie = cookie_of(call.request).has_value();
  return [this, logged, is_remote, has_cookie, respond = std::move(respond),
          route = std::move(route), id = call.id, method = call.request.method,
          path = call.request.path, user = call.who.user, address = call.request.peer.address,
          since = parts_.clock.now(), held = answering_](Response response) {
    touch();
    if (response.stream && !http::is_event_stream(response)) {
      response.stream = holding(std::move(response.stream), held);
    }
    response.headers["x-request-id"] = id;
    if (is_remote) {
      response.headers["x-content-type-options"] = "nosniff";
      response.headers["date"] = http_date(parts_.clock.now());
    }
    if (has_cookie) response.headers.emplace("cache-control", "no-store");
    const int status = response.websocket ? 101 : response.status;
    requests_.add(method, route, status);
    if (logged && is_logged(status)) {
      constexpr size_t kLongestLoggedMethod = 16;
      constexpr size_t kLongestLoggedPath = 256;
      const std::chrono::duration<double, std::milli> took = parts_.clock.now() - since;
      base::LogFields fields{{"method", base::shortened(method, kLongestLoggedMethod)},
                             {"path", base::shortened(path, kLongestLoggedPath)},
                             {"status", status},
                             {"ms", took.count()},
                             {"user", user},
                             {"request", id},
                             {"address", address}};
      const int64_t unlogged = std::exchange(unlogged_refusals_, 0);
      if (unlogged > 0) fields.emplace_back("unlogged_refusals", unlogged);
      base::log_info("request", fields);
    }
    respond(std::move(response));
  };
}

void App::add_routes() {
  router_.add("GET", "/v1/info", Permission::kSignedIn,
              at_once([this](const ApiCall& call) -> RouteAnswer {
                api::ServerInfo info{.version = options_.version, .engine = options_.engine};
                if (call.who.over_server() >= access::Role::kAdmin) {
                  info.pid = ::getpid();
                  info.state_folder = options_.state_folder;
                  info.address = options_.address;
                  info.config_changed = options_.config_changed && options_.config_changed();
                  info.need_restart = options_.need_restart;
                  info.on_demand = options_.idle_exit.has_value();
                  info.settings = options_.settings;
                }
                return json_answer(200, api::info_to_json(info));
              }));
  add_job_routes(router_, parts_.controller);
  add_array_routes(router_, parts_.loop, parts_.controller);
  add_job_list_route(router_, parts_.controller);
  add_job_metric_routes(router_, parts_.controller);
  add_log_routes(router_, parts_.loop, parts_.controller);
  add_log_window_routes(router_, parts_.loop, parts_.controller);
  add_logs_search_route(router_, parts_.loop, parts_.controller);
  add_attach_route(router_, parts_.controller);
  add_exec_route(router_, parts_.controller);
  add_copy_route(router_, parts_.controller);
  add_forward_route(router_, parts_.controller);
  add_artifact_routes(router_, parts_.loop, parts_.controller);
  add_watch_routes(router_, parts_.loop, parts_.controller);
  add_sweep_routes(router_, parts_.controller);
  add_project_routes(router_, parts_.controller);
  add_member_routes(router_, parts_.accounts, parts_.controller);
  add_notification_routes(router_, parts_.notifications, parts_.controller);
  add_schedule_routes(router_, parts_.controller);
  add_what_if_route(router_, parts_.loop, parts_.controller);
  add_node_routes(router_, parts_.controller);
  add_machine_route(router_, options_.machine_types);
  add_tree_routes(router_, parts_.controller, parts_.trees, parts_.clock, background_);
  add_account_routes(router_, parts_.accounts, parts_.controller, parts_.clock,
                     options_.session_lifetime);
  add_audit_routes(router_, parts_.accounts, parts_.controller);
  add_page_routes(router_, {.codes = codes_,
                            .authenticator = authenticator_,
                            .accounts = parts_.accounts,
                            .controller = parts_.controller,
                            .clock = parts_.clock,
                            .random = parts_.random,
                            .door = parts_.door,
                            .address = options_.address,
                            .session_lifetime = options_.session_lifetime});
  add_status_routes(router_, parts_.controller, requests_, options_.version);
  router_.add("POST", "/v1/shutdown", Permission::kServerAdmin,
              at_once([this](const ApiCall& call) -> RouteAnswer {
                MUSTER_TRY(Response accepted, may_shut_down(call));
                leaving_ = true;
                parts_.loop.post(leave_);
                return accepted;
              }));
}

void App::touch() {
  if (!options_.idle_exit) return;
  idle_timer_ = parts_.loop.after(*options_.idle_exit, [this] { look_whether_idle(); });
}

void App::look_whether_idle() {
  const bool has_page = parts_.door != nullptr && parts_.door->address();
  const bool is_answering = answering_.use_count() > 1;
  const bool was_answering = std::exchange(was_answering_, is_answering);
  const bool is_busy =
      has_page || !parts_.controller.idle() || (parts_.all_delivered && !parts_.all_delivered());
  if (is_busy || is_answering || was_answering) return touch();
  if (std::exchange(leaving_, true)) return;
  base::log_info("the server exits because no job runs and no requests come");
  leave_();
}

using access::Identity;

namespace {

/// The token of a request: the scheme's name may be in any case (RFC 9110, 11.1).
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
                       .what = "this server requires a token, and the request has none",
                       .advice = "log in: muster login; or send 'authorization: Bearer TOKEN'",
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
  Response response = problem({.code = ErrorCode::kExhausted,
                               .what = std::move(what),
                               .advice = "try again in " + text + " s"},
                              kTooManyRequests);
  response.headers["retry-after"] = text;
  return response;
}

}  // namespace

namespace {

/// All tokens of a user have twice the rate of one token, so that a program that uses up the rate of
/// its token leaves as much to the other tokens of its user.
constexpr double kShareOfUser = 2;

/// A first load of the page makes about 40 requests.
access::RequestRate page_rate_of(const Authenticator::Options& options) {
  constexpr double kShareOfPage = 10;
  constexpr double kLeastBurst = 400;
  return {kShareOfPage * options.request_rate,
          std::max(kShareOfPage * options.request_burst, kLeastBurst)};
}

}  // namespace

Authenticator::Authenticator(Dependencies parts, const Options& options)
    : parts_(std::move(parts)),
      failed_logins_(options.failed_logins),
      request_rate_(options.request_rate, options.request_burst),
      page_rate_(page_rate_of(options)),
      user_rate_(kShareOfUser * options.request_rate, kShareOfUser * options.request_burst),
      refused_rate_(options.request_rate, options.request_burst) {}

void Authenticator::set_options(const Options& options) {
  failed_logins_ = access::FailedLogins(options.failed_logins);
  request_rate_ = access::RequestRate(options.request_rate, options.request_burst);
  page_rate_ = page_rate_of(options);
  user_rate_ = access::RequestRate(kShareOfUser * options.request_rate,
                                   kShareOfUser * options.request_burst);
  refused_rate_ = access::RequestRate(options.request_rate, options.request_burst);
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
  const base::Time now = parts_.clock.now();
  const bool has_token = !who.token.empty();
  auto wait = request_rate_.take(has_token ? who.token : client_of_address(who.address), now);
  if (!wait && has_token) wait = user_rate_.take(who.user, now);
  if (wait) return too_often("too many requests at once", *wait);
  return who;
}

std::optional<Response> Authenticator::refusal_of_page(const http::Request& request) {
  const std::string client = client_of_address(request.peer.address);
  const auto wait = page_rate_.take(client, parts_.clock.now());
  if (!wait) return std::nullopt;
  return too_often("too many requests at once", *wait);
}

base::Result<Identity, Response> Authenticator::by_token(const http::Request& request) {
  auto who = by_given_token(request);
  if (who) return who;
  const std::string client = client_of_address(request.peer.address);
  const auto wait = refused_rate_.take(client, parts_.clock.now());
  if (!wait) return who;
  return too_often("too many requests without a valid token came from this address", *wait);
}

base::Result<Identity, Response> Authenticator::by_given_token(const http::Request& request) {
  const std::string& address = request.peer.address;
  // Other users of the machine reach the loopback port, so it has the page's sessions alone.
  const auto token = is_from_loopback(request) ? std::nullopt : token_of(request);
  const auto cookie = token ? std::nullopt : cookie_of(request);
  if (!token && !cookie) return no_token();
  if (cookie) {
    if (const auto foreign = foreign_origin(request)) return problem(*foreign);
  }
  auto who = parts_.accounts.identify(token ? *token : *cookie, address);
  if (who) return *std::move(who);
  Response refusal = wrong_code(address, who.error());
  // The browser would send it again and again, and lock out its address.
  if (cookie) refusal.headers["set-cookie"] = cookie_removed(request);
  return refusal;
}

Response Authenticator::wrong_code(const std::string& address, const base::Error& error) {
  const base::Time now = parts_.clock.now();
  const std::string client = client_of_address(address);
  if (const auto wait = failed_logins_.wait(client, now)) {
    return too_often("too many wrong tokens came from this address", *wait);
  }
  failed_logins_.failed(client, now);
  return wrong_token(error);
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

namespace {

constexpr size_t kLongestId = 64;
constexpr size_t kFresh = 20;  // 100 random bits
constexpr std::string_view kAllowed =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

bool is_sane(std::string_view id) {
  return !id.empty() && id.size() <= kLongestId &&
         id.find_first_not_of(kAllowed) == std::string_view::npos;
}

}  // namespace

std::string request_id(const http::Request& request, base::RandomSource& random) {
  const auto given = request.headers.find("x-request-id");
  if (given != request.headers.end() && is_sane(given->second)) return given->second;
  return base::random_name(random, kFresh);
}

}  // namespace muster::server
