#include "engine/kubernetes/server_url.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/bytes.h"
#include "base/text.h"
#include "http/sockets.h"

namespace muster::engine::kubernetes {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr int kDefaultProxyPort = 80;

std::optional<int> number_in(std::string_view text, int most) {
  int number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (number < 0 || number > most) return std::nullopt;
  return number;
}

struct HostPart {
  std::string host;
  std::optional<int> port;
};

/// "HOST", "HOST:PORT", "[IPV6]:PORT". nullopt: another form.
std::optional<HostPart> read_host(std::string_view text) {
  HostPart part;
  std::string_view behind;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    part.host = text.substr(1, end - 1);
    behind = text.substr(end + 1);
    if (!http::ip_address_of(part.host)) return std::nullopt;
  } else {
    const size_t colon = text.find(':');
    part.host = text.substr(0, colon);
    behind = colon == std::string_view::npos ? "" : text.substr(colon);
  }
  // Names of Services may have underscores; an entry of NO_PROXY may begin with "*.".
  const bool is_host = std::all_of(part.host.begin(), part.host.end(), [](unsigned char letter) {
    return std::isalnum(letter) != 0 ||
           std::string_view("-._*:").find(static_cast<char>(letter)) != std::string_view::npos;
  });
  if (part.host.empty() || !is_host) return std::nullopt;
  if (behind.empty()) return part;
  if (!behind.starts_with(':')) return std::nullopt;
  part.port = number_in(behind.substr(1), 65535);
  if (!part.port || *part.port == 0) return std::nullopt;
  return part;
}

std::string decoded(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned letter = 0;
    const bool is_escape =
        text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, letter, 16).ptr ==
            text.data() + i + 3;
    plain += is_escape ? static_cast<char>(letter) : text[i];
    if (is_escape) i += 2;
  }
  return plain;
}

/// Whether an address is within "10.0.0.0/8".
bool is_in_range(const http::IpAddress& address, std::string_view range) {
  const size_t slash = range.find('/');
  if (slash == std::string_view::npos) return false;
  const auto network = http::ip_address_of(std::string(range.substr(0, slash)));
  if (!network || network->is_v4 != address.is_v4) return false;
  const auto bits = number_in(range.substr(slash + 1), network->is_v4 ? 32 : 128);
  if (!bits) return false;
  for (int i = 0; i < *bits; ++i) {
    const auto byte = static_cast<size_t>(i / 8);
    const unsigned mask = 0x80U >> static_cast<unsigned>(i % 8);
    if ((address.bytes[byte] & mask) != (network->bytes[byte] & mask)) return false;
  }
  return true;
}

/// Whether one entry of NO_PROXY covers the server.
bool covers(std::string_view entry, const ServerUrl& server) {
  if (entry == "*") return true;
  const auto address = http::ip_address_of(server.host);
  if (address && is_in_range(*address, entry)) return true;
  const auto part = read_host(entry);
  if (!part || (part->port && *part->port != server.port)) return false;
  if (const auto listed = http::ip_address_of(part->host)) return address && *listed == *address;
  std::string name = base::lower_case(part->host);
  if (name.starts_with("*.")) name.erase(0, 1);
  const std::string host = base::lower_case(server.host);
  if (name.starts_with('.')) return host.ends_with(name);
  return host == name || host.ends_with("." + name);
}

Error bad_url(std::string_view text, const std::string& what) {
  return {.code = ErrorCode::kInvalid,
          .what = "invalid address of an API server " + base::in_quotes(text) + ": " + what,
          .advice = "write it as https://HOST:PORT"};
}

}  // namespace

Result<ServerUrl> parse_server_url(std::string_view text) {
  ServerUrl url;
  std::string_view rest = text;
  if (const size_t scheme = rest.find("://"); scheme != std::string_view::npos) {
    const std::string name = base::lower_case(rest.substr(0, scheme));
    if (name != "https" && name != "http") return bad_url(text, "its scheme is not https");
    url.has_tls = name == "https";
    rest.remove_prefix(scheme + 3);
  } else {
    url.has_tls = false;
  }
  const size_t slash = rest.find('/');
  const std::string_view authority = rest.substr(0, slash);
  if (authority.find('@') != std::string_view::npos) {
    return bad_url("...@...", "it contains a user; the kubeconfig's users belong in `users`");
  }
  const auto part = read_host(authority);
  if (!part) return bad_url(text, "it has no valid host and port");
  url.host = part->host;
  url.port = part->port.value_or(url.has_tls ? 443 : 80);
  if (slash != std::string_view::npos) url.prefix = rest.substr(slash);
  if (url.prefix.find_first_of("?# ") != std::string::npos) {
    return bad_url(text, "its path has a query, a fragment or a blank");
  }
  while (url.prefix.ends_with('/')) url.prefix.pop_back();
  return url;
}

std::string to_string(const ServerUrl& url) {
  return (url.has_tls ? "https://" : "http://") +
         http::to_string(http::HostAndPort{.host = url.host, .port = url.port}) + url.prefix;
}

bool is_this_machine(const std::string& host) {
  if (base::lower_case(host) == "localhost") return true;
  const auto address = http::ip_address_of(host);
  if (!address) return false;
  if (address->is_v4) return address->bytes[0] == 127;
  return *address == *http::ip_address_of("::1");
}

Result<http::HttpProxy> parse_proxy(std::string_view text) {
  std::string_view rest = text;
  const size_t at = rest.rfind('@');
  // The user and the password are left out of errors.
  const std::string shown = at == std::string_view::npos
                                ? base::in_quotes(text)
                                : base::in_quotes("...@" + std::string(rest.substr(at + 1)));
  const auto bad = [&](const std::string& what) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "invalid proxy " + shown + ": " + what,
                 .advice = "write it as http://HOST:PORT"};
  };
  if (const size_t scheme = rest.find("://"); scheme != std::string_view::npos) {
    const std::string name = base::lower_case(rest.substr(0, scheme));
    if (name != "http") return bad("proxies of the kind '" + name + "' are not supported");
    rest.remove_prefix(scheme + 3);
  }
  http::HttpProxy proxy;
  if (const size_t end = rest.rfind('@'); end != std::string_view::npos) {
    proxy.authorization = "Basic " + base::to_base64(decoded(rest.substr(0, end)));
    rest.remove_prefix(end + 1);
  }
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const auto part = read_host(rest);
  if (!part) return bad("it has no valid host and port");
  proxy.host = part->host;
  proxy.port = part->port.value_or(kDefaultProxyPort);
  return proxy;
}

std::string variable_in(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& variable : environment) {
    if (variable.size() > name.size() && variable.starts_with(name) &&
        variable[name.size()] == '=') {
      return variable.substr(name.size() + 1);
    }
  }
  return "";
}

Result<std::optional<http::HttpProxy>> proxy_for(const ServerUrl& server,
                                                 const std::vector<std::string>& environment) {
  const auto either = [&](std::string_view upper, std::string_view lower) {
    const std::string value = variable_in(environment, upper);
    return value.empty() ? variable_in(environment, lower) : value;
  };
  const std::string url = either("HTTPS_PROXY", "https_proxy");
  if (url.empty() || !server.has_tls || is_this_machine(server.host)) {
    return std::optional<http::HttpProxy>();
  }
  for (const std::string& entry : base::split(either("NO_PROXY", "no_proxy"), ',')) {
    if (covers(base::trimmed(entry), server)) return std::optional<http::HttpProxy>();
  }
  MUSTER_TRY(http::HttpProxy proxy, parse_proxy(url));
  return std::optional(std::move(proxy));
}

}  // namespace muster::engine::kubernetes
