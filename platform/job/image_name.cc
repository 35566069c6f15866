#include "job/image_name.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/number.h"
#include "base/text.h"

namespace muster::job {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

bool is_alphanumeric(char c) {
  return is_digit(c) || is_lower(c) || is_upper(c);
}

template <class Allowed>
bool all_are(std::string_view text, Allowed allowed) {
  return std::all_of(text.begin(), text.end(), allowed);
}

/// What stands before and behind the first or last `separator`; the latter only where there is one.
struct Halves {
  std::string_view before;
  std::optional<std::string_view> behind;
};

Halves halves(std::string_view text, size_t at) {
  if (at == std::string_view::npos) return {.before = text, .behind = {}};
  return {.before = text.substr(0, at), .behind = text.substr(at + 1)};
}

bool is_host_part(std::string_view text) {
  return !text.empty() && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         all_are(text, [](char c) { return is_alphanumeric(c) || c == '-'; });
}

bool is_host(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) {
    const std::string_view address = text.substr(1, text.size() - 2);
    return !address.empty() && all_are(address, [](char c) {
      return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':';
    });
  }
  if (text.empty() || text.ends_with('.')) return false;
  const std::vector<std::string> parts = base::split(text, '.');
  return std::all_of(parts.begin(), parts.end(), is_host_part);
}

/// Small letters and digits; between them one '.', one or two '_', or any number of '-'.
bool is_path_part(std::string_view text) {
  const auto plain = [](char c) { return is_lower(c) || is_digit(c); };
  if (text.empty() || !plain(text.front()) || !plain(text.back())) return false;
  for (size_t i = 0; i < text.size();) {
    if (plain(text[i])) {
      ++i;
      continue;
    }
    const size_t end = text.find_first_not_of(text[i], i);
    const size_t length = end - i;
    const bool fits =
        text[i] == '-' || (text[i] == '_' && length <= 2) || (text[i] == '.' && length == 1);
    if (!fits || !plain(text[end])) return false;
    i = end;
  }
  return true;
}

bool is_tag(std::string_view text) {
  constexpr size_t kLongest = 128;
  return !text.empty() && text.size() <= kLongest && text.front() != '.' && text.front() != '-' &&
         all_are(text,
                 [](char c) { return is_alphanumeric(c) || c == '_' || c == '.' || c == '-'; });
}

bool is_digest(std::string_view text) {
  constexpr size_t kShortest = 32;
  const auto [algorithm, digits] = halves(text, text.find(':'));
  return digits && is_path_part(algorithm) && digits->size() >= kShortest &&
         all_are(*digits, [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

std::string fault_of_path(std::string_view path) {
  if (path.empty()) return "has no name before its tag";
  if (path.starts_with('/') || path.ends_with('/') || path.find("//") != std::string_view::npos) {
    return "has a '/' with nothing beside it";
  }
  std::vector<std::string> parts = base::split(path, '/');
  if (parts.size() > 1 && is_registry(parts.front())) parts.erase(parts.begin());
  if (std::all_of(parts.begin(), parts.end(), is_path_part)) return "";
  const bool shouts = std::any_of(parts.begin(), parts.end(), [](const std::string& part) {
    return std::any_of(part.begin(), part.end(), is_upper);
  });
  if (shouts) return "has capital letters, which only a tag may have";
  return "has signs that a path does not: it is made of a-z and 0-9, with '.', '_' and '-' between "
         "them";
}

}  // namespace

std::string registry_of_image(std::string_view image) {
  const size_t slash = image.find('/');
  const std::string_view first = image.substr(0, slash);
  // As every engine tells "team/image" of its usual registry from "host/image".
  const bool is_host = slash != std::string_view::npos &&
                       (first.find_first_of(".:") != std::string_view::npos ||
                        first == "localhost" || std::any_of(first.begin(), first.end(), is_upper));
  return std::string(is_host ? first : "docker.io");
}

bool is_registry(std::string_view text) {
  const size_t bracket = text.find(']');
  const size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  const auto [host, port] = halves(text, colon);
  if (!is_host(host)) return false;
  if (!port) return true;
  constexpr int kHighestPort = 65'535;
  const auto number = base::number_of<int>(*port);
  return number && *number > 0 && *number <= kHighestPort;
}

std::string fault_of_image_name(std::string_view text) {
  constexpr std::string_view kScheme = "://";
  if (const size_t scheme = text.find(kScheme); scheme != std::string_view::npos) {
    return "is an address; leave '" + std::string(text.substr(0, scheme + kScheme.size())) +
           "' out";
  }
  const auto [named, digest] = halves(text, text.find('@'));
  if (digest && !is_digest(*digest)) return "has no digest such as sha256:9f86d0... behind its '@'";
  const size_t slash = named.rfind('/');
  const auto [path, tag] =
      halves(named, named.find(':', slash == std::string_view::npos ? 0 : slash));
  if (tag && !is_tag(*tag)) {
    return "has no tag behind its last ':'; one is made of letters, digits, '_', '.' and '-'";
  }
  return fault_of_path(path);
}

}  // namespace muster::job
