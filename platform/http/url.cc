#include "http/url.h"

#include <algorithm>

#include "http/message.h"

namespace muster::http {

namespace {

enum class Plus { kIsSpace, kIsItself };

bool is_unreserved(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '-' || letter == '.' || letter == '_' ||
         letter == '~';
}

std::optional<unsigned> hex_digit(char letter) {
  if (letter >= '0' && letter <= '9') return static_cast<unsigned>(letter - '0');
  if (letter >= 'a' && letter <= 'f') return static_cast<unsigned>(letter - 'a' + 10);
  if (letter >= 'A' && letter <= 'F') return static_cast<unsigned>(letter - 'A' + 10);
  return std::nullopt;
}

void append_encoded(std::string& out, char letter) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(letter);
  out += '%';
  out += kDigits[byte >> 4U];
  out += kDigits[byte & 15U];
}

std::optional<std::string> url_decoded(std::string_view text, Plus plus) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus == Plus::kIsSpace) {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      if (text.size() - i < 3) return std::nullopt;
      const auto high = hex_digit(text[i + 1]);
      const auto low = hex_digit(text[i + 2]);
      if (!high || !low) return std::nullopt;
      decoded += static_cast<char>(*high << 4U | *low);
      i += 2;
    }
  }
  return decoded;
}

/// Splits at the first `separator`; without one the second half is empty.
std::pair<std::string_view, std::string_view> cut(std::string_view text, char separator) {
  const size_t at = text.find(separator);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

std::optional<Query> parse_query(std::string_view text) {
  Query query;
  while (!text.empty()) {
    const auto [pair, rest] = cut(text, '&');
    const auto [raw_name, raw_value] = cut(pair, '=');
    const auto name = url_decoded(raw_name, Plus::kIsSpace);
    const auto value = url_decoded(raw_value, Plus::kIsSpace);
    if (!name || !value) return std::nullopt;
    if (!pair.empty()) query.add(*name, *value);
    text = rest;
  }
  return query;
}

bool is_control(unsigned char letter) {
  return letter < 0x20 || letter == 0x7F;
}

/// Whether the path is unambiguous: an encoded slash would become a separator, a dot segment would
/// lead upwards, and a NUL would end the name in C.
bool is_plain(std::string_view raw, std::string_view decoded) {
  for (const std::string_view slash : {"%2f", "%2F"}) {
    if (raw.find(slash) != std::string_view::npos) return false;
  }
  if (std::any_of(decoded.begin(), decoded.end(), is_control)) return false;
  while (!decoded.empty()) {
    const auto [segment, rest] = cut(decoded, '/');
    if (segment == "." || segment == "..") return false;
    decoded = rest;
  }
  return true;
}

bool has_nul(const Query& query) {
  return std::any_of(query.begin(), query.end(), [](const auto& pair) {
    return pair.first.find('\0') != std::string::npos ||
           pair.second.find('\0') != std::string::npos;
  });
}

/// Removes "http://host" from an absolute form.
std::string_view without_authority(std::string_view text) {
  const size_t scheme = text.find("://");
  if (text.starts_with('/') || scheme == std::string_view::npos) return text;
  const size_t path = text.find_first_of("/?#", scheme + 3);
  if (path == std::string_view::npos) return "/";
  return text.substr(path);
}

}  // namespace

std::string url_encoded(std::string_view text) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char letter : text) {
    if (is_unreserved(letter)) {
      encoded += letter;
    } else {
      append_encoded(encoded, letter);
    }
  }
  return encoded;
}

std::optional<Target> parse_target(std::string_view text) {
  const auto [raw_path, raw_query] = cut(cut(without_authority(text), '#').first, '?');
  if (!raw_path.starts_with('/')) return std::nullopt;
  auto path = url_decoded(raw_path, Plus::kIsItself);
  auto query = parse_query(raw_query);
  if (!path || !query || !is_plain(raw_path, *path) || has_nul(*query)) return std::nullopt;
  return Target{.path = *std::move(path), .query = *std::move(query)};
}

std::string format_target(std::string_view path, const Query& query) {
  std::string target = path.starts_with('/') ? "" : "/";
  for (const char letter : path) {
    if (is_unreserved(letter) || letter == '/') {
      target += letter;
    } else {
      append_encoded(target, letter);
    }
  }
  char separator = '?';
  for (const auto& [name, value] : query) {
    target += separator + url_encoded(name) + '=' + url_encoded(value);
    separator = '&';
  }
  return target;
}

}  // namespace muster::http
