#include "engine/slurm/rest_access.h"

#include <string.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/bytes.h"
#include "base/json_text.h"
#include "base/subprocess.h"
#include "base/units.h"
#include "engine/slurm/rest_answer.h"
#include "engine/slurm/slurm_programs.h"
#include "http/sockets.h"
#include "http/tls.h"

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr std::string_view kUnix = "unix://";
constexpr std::string_view kHttp = "http://";
constexpr std::string_view kHttps = "https://";
constexpr int kSlurmrestdPort = 6820;
constexpr int kHttpsPort = 443;
/// The longest path of a unix socket.
constexpr size_t kLongestSocket = 107;

Error invalid(const std::string& text, const std::string& why) {
  return {.code = ErrorCode::kInvalid,
          .what = "'" + text + "' " + why,
          .advice = "expected unix:///SOCKET, http://HOST:PORT or https://HOST:PORT"};
}

bool is_plain(char letter) {
  return letter > ' ' && letter < 0x7f && letter != '?' && letter != '#' && letter != '\\' &&
         letter != '"' && letter != '%';
}

Result<RestEndpoint> parse_socket(const std::string& whole, std::string_view path) {
  if (!path.starts_with('/')) return invalid(whole, "is not the absolute path of a socket");
  if (path.size() > kLongestSocket) {
    return invalid(whole, "is too long for the path of a socket (107 bytes)");
  }
  return RestEndpoint{.where = RestSocket{.socket = std::filesystem::path(path)}, .prefix = {}};
}

Result<RestEndpoint> parse_host(const std::string& whole, std::string_view rest, bool has_tls) {
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string prefix(rest.substr(slash));
  const std::string_view place = rest.substr(0, slash);
  if (!std::all_of(rest.begin(), rest.end(), is_plain)) {
    return invalid(whole, "has characters that an address cannot have");
  }
  while (prefix.ends_with('/')) prefix.pop_back();
  RestHost where{.host = {}, .port = has_tls ? kHttpsPort : kSlurmrestdPort, .has_tls = has_tls};
  const size_t bracket = place.starts_with('[') ? place.find(']') : std::string_view::npos;
  const size_t colon = place.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (bracket != std::string_view::npos) {
    where.host = place.substr(1, bracket - 1);
    if (colon != std::string_view::npos && colon != bracket + 1) where.host.clear();
    if (!http::ip_address_of(where.host)) where.host.clear();
  } else {
    where.host = place.substr(0, colon);
  }
  if (where.host.empty()) return invalid(whole, "has no host");
  if (colon != std::string_view::npos) {
    const auto port = base::number_of<int>(place.substr(colon + 1));
    if (!port || *port < 1 || *port > 65535) return invalid(whole, "has no port from 1 to 65535");
    where.port = *port;
  } else if (bracket != std::string_view::npos && bracket + 1 != place.size()) {
    return invalid(whole, "has no port from 1 to 65535");
  }
  return RestEndpoint{.where = std::move(where), .prefix = std::move(prefix)};
}

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  const auto address = http::ip_address_of(host);
  if (!address) return false;
  if (address->is_v4) return address->bytes[0] == 127;
  constexpr std::array<uint8_t, 16> kLoopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return address->bytes == kLoopback;
}

}  // namespace

Result<RestEndpoint> parse_rest_endpoint(std::string_view text) {
  const std::string whole(text);
  if (const size_t at = text.rfind('@');
      at != std::string_view::npos && !text.starts_with('/') && !text.starts_with(kUnix)) {
    // The text before it may be a password, and errors are printed and logged.
    return invalid("...@" + std::string(text.substr(at + 1)),
                   "contains a user; set the user of slurmrestd with rest_user");
  }
  if (text.starts_with('/')) return parse_socket(whole, text);
  if (text.starts_with(kUnix)) return parse_socket(whole, text.substr(kUnix.size()));
  if (text.starts_with(kHttp)) return parse_host(whole, text.substr(kHttp.size()), false);
  if (text.starts_with(kHttps)) return parse_host(whole, text.substr(kHttps.size()), true);
  return invalid(whole, "is not an address of slurmrestd");
}

std::string to_string(const RestEndpoint& endpoint) {
  if (const auto* socket = std::get_if<RestSocket>(&endpoint.where)) {
    return std::string(kUnix) + socket->socket.string();
  }
  const auto& host = std::get<RestHost>(endpoint.where);
  return std::string(host.has_tls ? kHttps : kHttp) +
         http::to_string(http::HostAndPort{.host = host.host, .port = host.port}) + endpoint.prefix;
}

bool is_private(const RestEndpoint& endpoint) {
  const auto* host = std::get_if<RestHost>(&endpoint.where);
  return host == nullptr || host->has_tls || is_loopback(host->host);
}

Result<http::AsyncPlace> place_of(const RestEndpoint& endpoint) {
  if (const auto* socket = std::get_if<RestSocket>(&endpoint.where)) {
    return http::AsyncPlace(socket->socket);
  }
  const auto& host = std::get<RestHost>(endpoint.where);
  if (!host.has_tls) return http::AsyncPlace(http::TcpPlace{.host = host.host, .port = host.port});
  MUSTER_TRY(http::TlsContext context,
             http::client_context(
                 {.host = host.host, .port = host.port, .fingerprint = {}, .authorities = {}}));
  return http::AsyncPlace(
      http::TlsPlace{.host = host.host, .port = host.port, .context = std::move(context)});
}

namespace {

/// A token has some hundred bytes, or some thousand with large keys.
constexpr size_t kLongestToken = 16 << 10;
/// A token is replaced this long before it expires.
constexpr std::chrono::seconds kMargin{60};
/// The life of a token without an expiry: half of Slurm's default.
constexpr std::chrono::seconds kUnknownLife{900};

void wipe(std::string& text) {
  ::explicit_bzero(text.data(), text.size());
  text.clear();
}

bool is_token_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '-' || letter == '_' || letter == '.' ||
         letter == '=' || letter == '+' || letter == '/';
}

std::string_view without_blanks_at_the_end(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

/// Decodes base64url: without padding, and with - and _.
std::optional<std::string> from_base64_for_urls(std::string text) {
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  while (text.size() % 4 != 0) text += '=';
  return base::from_base64(text);
}

}  // namespace

Result<std::string> token_of(std::string_view printed) {
  constexpr std::string_view kName = "SLURM_JWT=";
  const Error error{.code = ErrorCode::kInternal,
                    .what = "the token command has not printed a token",
                    .advice =
                        "it must print \"SLURM_JWT=...\", as `scontrol token` does, or the "
                        "token alone"};
  printed = without_blanks_at_the_end(printed);
  if (const size_t at = printed.rfind(kName); at != std::string_view::npos) {
    printed.remove_prefix(at + kName.size());
  }
  if (printed.empty() || printed.size() >= kLongestToken) return error;
  if (!std::all_of(printed.begin(), printed.end(), is_token_letter)) return error;
  return std::string(printed);
}

std::optional<base::Time> end_of_token(std::string_view token) {
  const size_t first = token.find('.');
  if (first == std::string_view::npos) return std::nullopt;
  const size_t second = token.find('.', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const auto claims =
      from_base64_for_urls(std::string(token.substr(first + 1, second - first - 1)));
  if (!claims) return std::nullopt;
  const auto read = base::parse_json(*claims);
  if (!read.is_object() || !read.contains("exp") || !read["exp"].is_number()) return std::nullopt;
  const double seconds = read["exp"].get<double>();
  constexpr double kLatest = 9e9;  // the latest time that fits into nanoseconds
  if (!(seconds >= 0 && seconds <= kLatest)) return std::nullopt;
  return base::Time(std::chrono::seconds(static_cast<int64_t>(seconds)));
}

RestToken::RestToken(base::EventLoop& loop, std::vector<std::string> command,
                     std::chrono::milliseconds patience)
    : command_(std::move(command)), patience_(patience), programs_(loop, 1) {}

RestToken::~RestToken() {
  wipe(token_);
}

void RestToken::get(Then then) {
  if (!token_.empty() && std::chrono::system_clock::now() < good_until_) return then(token_);
  if (command_.empty()) {
    return then(Error{.code = ErrorCode::kInvalid,
                      .what = "slurmrestd requires a token, and no token command is set"});
  }
  waiting_.push_back(std::move(then));
  if (waiting_.size() > 1) return;
  programs_.run({.argv = command_,
                 .environment = environment_for_asking(base::current_environment()),
                 .input = {},
                 .patience = patience_},
                [this](Result<ProgramEnd> end) { has_ended(std::move(end)); });
}

void RestToken::drop() {
  wipe(token_);
}

std::chrono::nanoseconds RestToken::age() const {
  return std::chrono::steady_clock::now() - made_;
}

void RestToken::has_ended(Result<ProgramEnd> end) {
  auto made = made_by(std::move(end));
  if (!made) return answer(std::move(made).error());
  wipe(token_);
  token_ = *std::move(made);
  made_ = std::chrono::steady_clock::now();
  const auto now = std::chrono::system_clock::now();
  const base::Time ends = end_of_token(token_).value_or(now + kUnknownLife);
  // A token with a very short life is used for half of it.
  good_until_ = ends - std::min<std::chrono::nanoseconds>(kMargin, (ends - now) / 2);
  answer(token_);
}

Result<std::string> RestToken::made_by(Result<ProgramEnd> end) const {
  const auto failed = [this](const std::string& why) {
    return Error{
        .code = ErrorCode::kUnavailable,
        .what = "cannot get a token for slurmrestd from '" + command_.front() + "': " + why,
        .advice = "run it by hand, as the user of the server"};
  };
  if (!end) return failed(end.error().what);
  auto token = token_of(end->output);
  wipe(end->output);
  if (end->was_late)
    return failed("it takes longer than " + std::to_string(patience_.count()) + " ms");
  if (end->code == 0) return token;
  constexpr size_t kLongestMessage = 500;
  const std::string message =
      rest::one_line(without_blanks_at_the_end(end->errors), kLongestMessage);
  return failed(message.empty() ? "it ends with code " + std::to_string(end->code) : message);
}

/// A handler may call get() again, or destroy this object.
void RestToken::answer(const Result<std::string>& result) {
  const std::weak_ptr<bool> alive = alive_;
  const auto kept = std::make_shared<const Result<std::string>>(result);
  for (const auto& then : std::exchange(waiting_, {})) {
    if (!alive.expired()) then(*kept);
  }
}

}  // namespace muster::engine::slurm
