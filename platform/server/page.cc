#include "server/page.h"

#include <algorithm>
#include <array>
#include <vector>

#include "api/routes.h"
#include "base/text.h"
#include "http/server.h"
#include "page/page_files.h"
#include "server/router.h"

namespace muster::server {

using base::Error;
using base::ErrorCode;
using http::Request;
using http::Response;

namespace {

constexpr std::string_view kPageFolder = "/ui/";
/// A view of the page is a path such as /ui/jobs/NAME/logs: its script shows it.
constexpr size_t kDeepestView = 4;  // segments
constexpr std::array<std::string_view, 19> kViews{
    "overview", "jobs",  "arrays",   "sweeps", "schedules", "compare", "logs",
    "projects", "nodes", "submit",   "queue",  "scheduler", "users",   "tokens",
    "audit",    "usage", "settings", "login",  "help"};

constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; font-src 'self'; require-trusted-types-for 'script'; "
    "trusted-types 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// "https://muster.example.org:7443".
std::string own_origin(const Request& request) {
  return (is_from_loopback(request) ? "http://" : "https://") + header(request, "host");
}

bool is_view(std::string_view path) {
  const std::string_view first = path.substr(0, path.find('/'));
  const auto depth = static_cast<size_t>(std::count(path.begin(), path.end(), '/'));
  const bool is_known = std::find(kViews.begin(), kViews.end(), first) != kViews.end();
  return path.empty() || (is_known && depth < kDeepestView);
}

Response page_missing(const std::string& path) {
  if (page::find_page_file("index.html") == nullptr) {
    return problem({.code = ErrorCode::kNotFound,
                    .what = "this server was built without its web page",
                    .advice = "build the page with make web, then build the server again"});
  }
  return problem({.code = ErrorCode::kNotFound, .what = "there is nothing at '" + path + "'"});
}

void add_page_headers(Response& response) {
  response.headers["content-security-policy"] = kPolicy;
  response.headers["referrer-policy"] = "no-referrer";
  response.headers["cross-origin-opener-policy"] = "same-origin";
  response.headers["cross-origin-resource-policy"] = "same-origin";
  response.headers["permissions-policy"] =
      "camera=(), geolocation=(), microphone=(), payment=(), usb=()";
  response.headers["x-content-type-options"] = "nosniff";
  response.headers["x-frame-options"] = "DENY";
}

/// RFC 9110, 12.5.3: without the header every coding is acceptable.
bool refuses_gzip(const Request& request) {
  const auto found = request.headers.find("accept-encoding");
  if (found == request.headers.end()) return false;
  for (std::string_view coding : {"gzip", "*"}) {
    for (const std::string& each : base::split(found->second, ',')) {
      const std::string_view part = base::trimmed(each, " \t");
      const std::string_view name = base::trimmed(part.substr(0, part.find(';')), " \t");
      if (!base::same_but_for_case(name, coding)) continue;
      const size_t weight = part.find("q=");
      return weight != std::string_view::npos &&
             part.substr(weight + 2).find_first_not_of("0.") == std::string_view::npos;
    }
  }
  return true;
}

Response gzip_required() {
  constexpr int kNotAcceptable = 406;
  return problem({.code = ErrorCode::kInvalid,
                  .what = "the page is compressed with gzip, which this client refuses",
                  .advice = "send 'accept-encoding: gzip', or none (curl --compressed)"},
                 kNotAcceptable);
}

Response page_file_answer(const Request& request, const page::PageFile& file, bool is_immutable) {
  Response response{.content_type = std::string(page::content_type_of(file.path))};
  const std::string etag = page::etag_of(file);
  response.headers["etag"] = etag;
  response.headers["vary"] = "accept-encoding";
  response.headers["cache-control"] =
      is_immutable ? "public, max-age=31536000, immutable" : "no-cache";
  if (header(request, "if-none-match").find(etag) != std::string::npos) {
    response.status = 304;
    return response;
  }
  response.headers["content-encoding"] = "gzip";
  response.body = file.gzip;
  return response;
}

}  // namespace

bool is_from_loopback(const Request& request) {
  return !request.peer.user && request.peer.address == http::kLoopbackPeer;
}

std::optional<Response> refusal_of_host(const Request& request,
                                        const std::optional<LoopbackAddress>& address) {
  const std::string host = header(request, "host");
  if (address) {
    const std::string port = ":" + std::to_string(address->port);
    for (const std::string_view name :
         {std::string_view(address->name), std::string_view("127.0.0.1"),
          std::string_view("localhost")}) {
      if (base::same_but_for_case(host, std::string(name) + port)) return std::nullopt;
    }
  }
  constexpr int kMisdirected = 421;
  return problem({.code = ErrorCode::kRefused,
                  .what = "this port does not serve the host of the request",
                  .advice = "open the address that muster ui prints"},
                 kMisdirected);
}

bool is_page_path(std::string_view path) {
  return path == "/" || path == "/ui" || path.starts_with(kPageFolder);
}

Response page_answer(const Request& request) {
  Response response;
  if (request.method != "GET") {
    constexpr int kMethodNotAllowed = 405;
    response = problem(
        {.code = ErrorCode::kInvalid, .what = request.method + " is not allowed on this path"},
        kMethodNotAllowed);
    response.headers["allow"] = "GET, HEAD";
  } else if (!request.path.starts_with(kPageFolder)) {
    response = {.status = 303};
    response.headers["location"] = kPageFolder;
  } else {
    const std::string_view path = std::string_view(request.path).substr(kPageFolder.size());
    const page::PageFile* file = page::find_page_file(path);
    const bool is_immutable = file != nullptr && path.starts_with("assets/");
    if (file == nullptr && is_view(path)) file = page::find_page_file("index.html");
    response = file == nullptr         ? page_missing(request.path)
               : refuses_gzip(request) ? gzip_required()
                                       : page_file_answer(request, *file, is_immutable);
  }
  add_page_headers(response);
  return response;
}

// --- requests with a cookie

std::optional<Error> foreign_origin(const Request& request) {
  Error foreign{
      .code = ErrorCode::kRefused,
      .what = "this request comes from a page of another site",
      .advice = "open the server's page itself; programs send 'authorization: Bearer TOKEN'"};
  const std::string site = header(request, "sec-fetch-site");
  if (!site.empty() && site != "same-origin" && site != "none") return foreign;
  const std::string origin = header(request, "origin");
  const bool is_own = base::same_but_for_case(origin, own_origin(request));
  if (!origin.empty() && !is_own) return foreign;
  const bool is_websocket = request.headers.contains("upgrade");
  if (request.method == "GET" && !is_websocket) return std::nullopt;
  if (!is_own) return foreign;
  if (is_websocket || !header(request, kPageRequestHeader).empty()) {
    return std::nullopt;
  }
  return Error{.code = ErrorCode::kRefused,
               .what = "a changing request with a cookie requires the header " +
                       std::string(kPageRequestHeader),
               .advice = "programs send 'authorization: Bearer TOKEN' instead of a cookie"};
}

std::string cookie_name(const Request& request) {
  if (!is_from_loopback(request)) return "__Host-muster";
  // Cookies are not separated by port, so servers on one host need different names.
  const std::string host = header(request, "host");
  return "muster-" + host.substr(host.rfind(':') + 1);
}

std::optional<std::string> cookie_of(const Request& request) {
  if (request.peer.user) return std::nullopt;
  const auto header = request.headers.find("cookie");
  if (header == request.headers.end()) return std::nullopt;
  const std::string start = cookie_name(request) + "=";
  for (const std::string& each : base::split(header->second, ';')) {
    const std::string_view pair = base::trimmed(each, " ");
    if (pair.starts_with(start) && pair.size() > start.size()) {
      return std::string(pair.substr(start.size()));
    }
  }
  return std::nullopt;
}

std::string cookie_with(const Request& request, std::string_view token,
                        std::chrono::seconds lifetime) {
  return cookie_name(request) + "=" + std::string(token) + "; Path=/; HttpOnly; SameSite=Strict" +
         (is_from_loopback(request) ? "" : "; Secure") +
         "; Max-Age=" + std::to_string(lifetime.count());
}

std::string cookie_removed(const Request& request) {
  return cookie_with(request, "", std::chrono::seconds(0));
}

// --- codes

PageCodes::NewCode PageCodes::add(const access::Identity& who, base::Time now,
                                  base::RandomSource& random) {
  std::erase_if(codes_,
                [&](const auto& entry) { return access::is_expired(entry.second.secret, now); });
  const auto is_of_user = [&](const auto& entry) { return entry.second.who.user == who.user; };
  if (static_cast<size_t>(std::count_if(codes_.begin(), codes_.end(), is_of_user)) >=
      kMostOfOneUser) {
    auto oldest = std::find_if(codes_.begin(), codes_.end(), is_of_user);
    for (auto each = oldest; each != codes_.end(); ++each) {
      if (is_of_user(*each) && each->second.secret.created < oldest->second.secret.created) {
        oldest = each;
      }
    }
    codes_.erase(oldest);
  }
  const access::NewToken made = access::make_token(random);
  const base::Time expires = now + kLifetime;
  codes_[made.id] = {
      .secret = {.id = made.id, .created = now, .expires = expires, .hash = made.hash}, .who = who};
  return {.text = made.text, .expires = expires};
}

std::optional<access::Identity> PageCodes::find(std::string_view text, base::Time now) const {
  const auto parts = access::parse_token(text);
  if (!parts) return std::nullopt;
  const auto found = codes_.find(parts->id);
  if (found == codes_.end() || !access::matches(found->second.secret, parts->secret) ||
      access::is_expired(found->second.secret, now)) {
    return std::nullopt;
  }
  return found->second.who;
}

std::optional<access::Identity> PageCodes::take(std::string_view text, base::Time now) {
  auto who = find(text, now);
  if (who) codes_.erase(access::parse_token(text)->id);
  return who;
}

namespace {

/// The account of the owner of the unix socket. A Unix account may have a name that a user cannot
/// have: 'Ada' becomes 'ada', and 'CORP\ada' becomes 'corp-ada'.
std::string account_of_owner(const std::string& owner) {
  if (access::validate_user({.name = owner}).empty()) return owner;
  constexpr size_t kLongest = 64;
  std::string name = base::lower_case(owner);
  for (char& letter : name) {
    const bool is_valid = (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
                          std::string_view("._-@").find(letter) != std::string_view::npos;
    if (!is_valid) letter = '-';
  }
  name.erase(0, std::min(name.find_first_not_of("._-@"), name.size()));
  name.resize(std::min(name.size(), kLongest));
  return name.empty() ? "owner" : name;
}

}  // namespace

base::Result<control::IssuedToken> open_page_session(control::Accounts& accounts,
                                                     const access::Identity& who,
                                                     std::chrono::seconds longest,
                                                     const access::Actor& by) {
  const std::chrono::seconds lifetime = std::min(longest, kPageSessionLifetime);
  constexpr const char* kDescription = "web page";
  if (!who.token.empty()) return accounts.log_in(who, kDescription, lifetime, by);
  const std::string name = account_of_owner(who.user);
  if (!accounts.user(name)) {
    MUSTER_CHECK(accounts.create_user({.name = name, .server_role = access::Role::kAdmin}, by));
  }
  return accounts.issue({.user = name,
                         .kind = access::TokenKind::kSession,
                         .description = kDescription,
                         .lifetime = lifetime},
                        by);
}

}  // namespace muster::server
