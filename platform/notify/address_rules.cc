#include "notify/address_rules.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/text.h"

namespace muster::notify {

using base::Error;
using base::ErrorCode;
using base::Result;
using http::IpAddress;

namespace {

struct Network {
  const char* address;
  int bits;
  const char* kind;
};

// RFC 6890 and later RFCs. A range stands before the range that contains it.
constexpr Network kInner[] = {
    {"0.0.0.0", 8, "this machine"},
    {"10.0.0.0", 8, "a private network"},
    {"100.64.0.0", 10, "a provider's inner network"},
    {"127.0.0.0", 8, "this machine"},
    {"169.254.0.0", 16, "the local link, where clouds keep their metadata"},
    {"172.16.0.0", 12, "a private network"},
    {"192.0.0.0", 24, "a network for special purposes"},
    {"192.0.2.0", 24, "a network for documentation"},
    {"192.88.99.0", 24, "a relay to other networks"},
    {"192.168.0.0", 16, "a private network"},
    {"198.18.0.0", 15, "a network for measurements"},
    {"198.51.100.0", 24, "a network for documentation"},
    {"203.0.113.0", 24, "a network for documentation"},
    {"224.0.0.0", 4, "many machines at once"},
    {"240.0.0.0", 4, "a reserved network"},
    {"::", 128, "this machine"},
    {"::1", 128, "this machine"},
    {"64:ff9b:1::", 48, "a network behind a translator"},
    {"100::", 64, "nowhere"},
    {"2001::", 23, "a network for special purposes"},
    {"2001:db8::", 32, "a network for documentation"},
    {"2002::", 16, "a relay to other networks"},
    {"3fff::", 20, "a network for documentation"},
    {"5f00::", 16, "a network for special purposes"},
    {"fc00::", 7, "a private network"},
    {"fe80::", 10, "the local link"},
    {"fec0::", 10, "a private network"},
    {"ff00::", 8, "many machines at once"},
};

bool is_within(const IpAddress& address, const IpAddress& network, int bits) {
  if (address.is_v4 != network.is_v4) return false;
  for (size_t i = 0; bits > 0; ++i, bits -= 8) {
    const unsigned mask = bits >= 8 ? 0xffU : 0xffU << (8 - bits) & 0xffU;
    if ((address.bytes[i] & mask) != (network.bytes[i] & mask)) return false;
  }
  return true;
}

/// The IPv4 address in an IPv6 address: mapped, compatible, or translated (NAT64).
std::optional<IpAddress> embedded_v4(const IpAddress& address) {
  if (address.is_v4) return std::nullopt;
  constexpr Network kEmbedding[] = {
      {"::ffff:0:0", 96, ""}, {"::ffff:0:0:0", 96, ""}, {"::", 96, ""}, {"64:ff9b::", 96, ""}};
  for (const Network& network : kEmbedding) {
    if (!is_within(address, *http::ip_address_of(network.address), network.bits)) continue;
    IpAddress four;
    std::copy(address.bytes.begin() + 12, address.bytes.end(), four.bytes.begin());
    return four;
  }
  return std::nullopt;
}

std::optional<int> number_in(std::string_view text, int low, int high) {
  int value = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end || value < low || value > high) {
    return std::nullopt;
  }
  return value;
}

bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= 253 &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-._") ==
             std::string_view::npos;
}

Error bad_url(const std::string& what, const std::string& advice = {}) {
  return {.code = ErrorCode::kInvalid,
          .what = "the receiver's URL " + what,
          .advice = advice.empty() ? "write it as in https://hooks.example.com/muster" : advice,
          .detail = std::make_shared<const UrlFault>(what)};
}

int usual_port(bool over_tls) {
  return over_tls ? 443 : 80;
}

/// "[::1]:8443", "host:8443", "host" -> the host without brackets, and the port after the colon.
std::optional<std::pair<std::string, std::optional<std::string>>> host_and_port(
    std::string_view text) {
  const bool in_brackets = text.starts_with('[');
  const size_t close = in_brackets ? text.find(']') : 0;
  if (close == std::string_view::npos) return std::nullopt;
  const std::string_view behind = in_brackets ? text.substr(close + 1) : text;
  const size_t colon = behind.find(':');
  std::string host(in_brackets ? text.substr(1, close - 1) : behind.substr(0, colon));
  if (in_brackets && colon != 0 && !behind.empty()) return std::nullopt;
  if (colon == std::string_view::npos) return std::pair{std::move(host), std::nullopt};
  return std::pair{std::move(host), std::optional(std::string(behind.substr(colon + 1)))};
}

}  // namespace

Result<Receiver> receiver_of(const std::string& url) {
  constexpr size_t kLongest = 2048;
  if (url.size() > kLongest) return bad_url("is longer than 2048 bytes");
  const bool is_plain =
      std::all_of(url.begin(), url.end(), [](char each) { return each > ' ' && each < '\x7f'; });
  if (!is_plain) {
    return bad_url("contains a blank or a non-ASCII character", "percent-encode these characters");
  }
  const size_t colon = url.find("://");
  const std::string scheme =
      colon == std::string::npos ? "" : base::lower_case(url.substr(0, colon));
  if (scheme != "https" && scheme != "http")
    return bad_url("begins neither with https:// nor http://");
  const std::string_view rest = std::string_view(url).substr(colon + 3);
  const size_t path = std::min(rest.find_first_of("/?#\\"), rest.size());
  const std::string_view authority = rest.substr(0, path);
  if (authority.find('@') != std::string_view::npos) {
    return bad_url("contains a user or a password", "put a secret into the path of the URL");
  }
  if (rest.find('#') != std::string_view::npos) return bad_url("has a fragment (#)");
  if (rest.find('\\') != std::string_view::npos) return bad_url("contains a backslash");

  const auto parts = host_and_port(authority);
  if (!parts) return bad_url("has no valid host");
  Receiver receiver{.over_tls = scheme == "https", .host = base::lower_case(parts->first)};
  const bool in_brackets = authority.starts_with('[');
  const auto address = http::ip_address_of(receiver.host);
  const bool is_six = address && !address->is_v4;
  if (in_brackets ? !is_six : !is_host(receiver.host)) {
    return bad_url("has no valid host");
  }
  receiver.port = usual_port(receiver.over_tls);
  if (parts->second) {
    const auto port = number_in(*parts->second, 1, 65535);
    if (!port) return bad_url("has an invalid port; give 1 to 65535");
    receiver.port = *port;
  }
  receiver.target = std::string(rest.substr(path));
  if (!receiver.target.starts_with('/')) receiver.target.insert(0, "/");
  return receiver;
}

Result<AddressRules> AddressRules::of(const std::vector<std::string>& allow, bool allow_http) {
  AddressRules rules;
  rules.allows_http_ = allow_http;
  std::vector<base::Fault> faults;
  for (const std::string& text : allow) {
    if (auto exception = exception_of(base::lower_case(text))) {
      rules.exceptions_.push_back(*std::move(exception));
    } else {
      faults.push_back(
          {.field = "notify.allow", .what = "'" + text + "' is not a host, address or network"});
    }
  }
  if (faults.empty()) return rules;
  return Error{.code = ErrorCode::kInvalid,
               .what = "the server cannot use notify.allow",
               .advice =
                   "write hooks.internal, hooks.internal:8443, 10.1.2.3 or 10.1.2.0/24; an "
                   "IPv6 address with a port in brackets",
               .faults = std::move(faults)};
}

std::optional<AddressRules::Exception> AddressRules::exception_of(std::string text) {
  Exception exception;
  const bool bare_six = !text.starts_with('[') && std::count(text.begin(), text.end(), ':') > 1;
  if (!bare_six) {
    // "[fc00::]/7:8443" is read as fc00::/7 and 8443.
    if (const size_t close = text.find("]/"); close != std::string::npos) {
      const size_t end = std::min(text.find(':', close), text.size());
      text = "[" + text.substr(1, close - 1) + text.substr(close + 1, end - close - 1) + "]" +
             text.substr(end);
    }
    const auto parts = host_and_port(text);
    if (!parts) return std::nullopt;
    text = parts->first;
    if (parts->second == "*") {
      exception.every_port = true;
    } else if (parts->second) {
      exception.port = number_in(*parts->second, 1, 65535);
      if (!exception.port) return std::nullopt;
    }
  }
  const size_t slash = text.find('/');
  const auto address = http::ip_address_of(text.substr(0, slash));
  if (!address) {
    if (slash != std::string::npos || !is_host(text)) return std::nullopt;
    exception.host = text;
    return exception;
  }
  const int most = address->is_v4 ? 32 : 128;
  exception.network = *address;
  exception.bits = most;
  if (slash == std::string::npos) return exception;
  const auto bits = number_in(std::string_view(text).substr(slash + 1), 0, most);
  if (!bits) return std::nullopt;
  exception.bits = *bits;
  return exception;
}

bool AddressRules::allows_port(const Exception& exception, const Receiver& receiver) {
  if (exception.every_port) return true;
  return receiver.port == exception.port.value_or(usual_port(receiver.over_tls));
}

Result<void> AddressRules::check(const Receiver& receiver) const {
  if (receiver.over_tls || allows_http_) return {};
  return Error{.code = ErrorCode::kRefused,
               .what = "notifications require https",
               .advice = "an administrator can allow http: notify.allow_http"};
}

Result<void> AddressRules::check(const Receiver& receiver, const IpAddress& address) const {
  MUSTER_CHECK(check(receiver));
  const std::optional<IpAddress> inside = embedded_v4(address);
  const bool is_allowed =
      std::any_of(exceptions_.begin(), exceptions_.end(), [&](const Exception& exception) {
        if (!allows_port(exception, receiver)) return false;
        if (!exception.host.empty()) return exception.host == receiver.host;
        return is_within(address, exception.network, exception.bits) ||
               (inside && is_within(*inside, exception.network, exception.bits));
      });
  if (is_allowed) return {};
  const std::string place = receiver.host == http::to_string(address)
                                ? receiver.host
                                : receiver.host + " (" + http::to_string(address) + ")";
  const bool is_six = receiver.host.find(':') != std::string::npos;
  const std::string host = is_six ? "[" + receiver.host + "]" : receiver.host;
  const std::string advice = "an administrator can allow it: notify.allow, as in \"" + host + ":" +
                             std::to_string(receiver.port) + "\"";
  if (const char* const kind = kind_of_inner(address)) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "notifications to " + place + " are not allowed, because it is in " + kind,
                 .advice = advice};
  }
  if (receiver.port == usual_port(receiver.over_tls)) return {};
  return Error{.code = ErrorCode::kRefused,
               .what = "notifications to port " + std::to_string(receiver.port) +
                       " are not allowed on " + receiver.host,
               .advice = "use the usual port; " + advice};
}

const char* kind_of_inner(const IpAddress& address) {
  for (const Network& network : kInner) {
    if (is_within(address, *http::ip_address_of(network.address), network.bits)) {
      return network.kind;
    }
  }
  const auto inside = embedded_v4(address);
  return inside ? kind_of_inner(*inside) : nullptr;
}

}  // namespace muster::notify
