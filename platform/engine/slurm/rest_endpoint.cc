#include "engine/slurm/rest_endpoint.h"

#include <algorithm>
#include <utility>

#include "base/number.h"
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
/// Of a unix socket's address.
constexpr size_t kLongestSocket = 107;

Error invalid(const std::string& text, const std::string& why) {
  return {.code = ErrorCode::kInvalid,
          .what = "'" + text + "' " + why,
          .advice = "slurmrestd is named by unix:///SOCKET, http://HOST:PORT or https://HOST:PORT"};
}

bool is_plain(char letter) {
  return letter > ' ' && letter < 0x7f && letter != '?' && letter != '#' && letter != '\\' &&
         letter != '"' && letter != '%';
}

Result<RestEndpoint> parse_socket(const std::string& whole, std::string_view path) {
  if (!path.starts_with('/')) return invalid(whole, "names no socket by its path from the root");
  if (path.size() > kLongestSocket) {
    return invalid(whole, "is longer than a socket's path may be (107 bytes)");
  }
  return RestEndpoint{.where = RestSocket{.socket = std::filesystem::path(path)}, .prefix = {}};
}

Result<RestEndpoint> parse_host(const std::string& whole, std::string_view rest, bool has_tls) {
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string prefix(rest.substr(slash));
  const std::string_view place = rest.substr(0, slash);
  if (!std::all_of(rest.begin(), rest.end(), is_plain)) {
    return invalid(whole, "holds what no address does");
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
  if (where.host.empty()) return invalid(whole, "names no host");
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
    // What stands before it may be a password: errors are shown and kept.
    return invalid("...@" + std::string(text.substr(at + 1)),
                   "names a user: whom slurmrestd is asked as is said by rest_user");
  }
  if (text.starts_with('/')) return parse_socket(whole, text);
  if (text.starts_with(kUnix)) return parse_socket(whole, text.substr(kUnix.size()));
  if (text.starts_with(kHttp)) return parse_host(whole, text.substr(kHttp.size()), false);
  if (text.starts_with(kHttps)) return parse_host(whole, text.substr(kHttps.size()), true);
  return invalid(whole, "is no address of a slurmrestd");
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

}  // namespace muster::engine::slurm
