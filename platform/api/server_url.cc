#include "api/server_url.h"

#include <algorithm>
#include <optional>

#include "base/units.h"

namespace muster::api {

namespace {

using base::Error;
using base::ErrorCode;

constexpr std::string_view kScheme = "https://";

Error no_url(std::string_view text, std::string why) {
  return {.code = ErrorCode::kInvalid,
          .what = "'" + std::string(text) + "' is not the address of a server: " + std::move(why),
          .advice = "give https://HOST or https://HOST:PORT"};
}

bool is_host(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '.' || letter == '-' || letter == '_';
  });
}

bool is_ipv6(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
}

std::optional<int> parse_port(std::string_view text) {
  constexpr int kLargestPort = 65535;
  const auto port = base::number_of<int>(text);
  return port && *port >= 1 && *port <= kLargestPort ? port : std::nullopt;
}

}  // namespace

base::Result<ServerAddress> parse_server_url(std::string_view text) {
  if (!text.starts_with(kScheme)) return no_url(text, "it does not begin with https://");
  std::string_view rest = text.substr(kScheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find('@') != std::string_view::npos) {
    // The text may contain a password, so it is not printed.
    return no_url("https://...", "it contains a user");
  }

  ServerAddress address;
  const bool bracketed = rest.starts_with('[');
  const size_t host_end = bracketed ? rest.find(']') : std::min(rest.find(':'), rest.size());
  if (host_end == std::string_view::npos) return no_url(text, "its '[' is not closed");
  const std::string_view host = bracketed ? rest.substr(1, host_end - 1) : rest.substr(0, host_end);
  if (bracketed ? !is_ipv6(host) : !is_host(host)) {
    return no_url(text, "'" + std::string(host) + "' is not a host");
  }
  address.host = host;
  rest.remove_prefix(host_end + (bracketed ? 1 : 0));
  if (rest.empty()) return address;
  const auto port = rest.front() == ':' ? parse_port(rest.substr(1)) : std::nullopt;
  if (!port) return no_url(text, "'" + std::string(rest) + "' is not a port");
  address.port = *port;
  return address;
}

std::string server_url(std::string_view host, int port) {
  const bool bracketed = host.find(':') != std::string_view::npos;
  std::string url(kScheme);
  url.append(bracketed ? "[" : "").append(host).append(bracketed ? "]" : "");
  return url + ":" + std::to_string(port);
}

}  // namespace muster::api
