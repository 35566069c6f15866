#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <numeric>

namespace muster::base {

std::string to_rfc3339(Time time, int digits) {
  const auto nanoseconds = time.time_since_epoch().count();
  const std::time_t seconds = nanoseconds / 1'000'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 40> buffer{};
  std::strftime(buffer.data(), buffer.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::string text = buffer.data();
  if (digits > 0) {
    std::snprintf(buffer.data(), buffer.size(), ".%09lld",
                  static_cast<long long>(nanoseconds % 1'000'000'000));
    text += std::string_view(buffer.data(), static_cast<size_t>(digits) + 1);
  }
  return text + "Z";
}

namespace {

/// Levenshtein's distance, two rows of the table at a time.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string shell_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      quoted += "'\\''";
    } else {
      quoted += letter;
    }
  }
  return quoted + "'";
}

std::string shell_joined(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./:,@%^";
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    const bool plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
    line += plain ? word : shell_quoted(word);
  }
  return line;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

}  // namespace muster::base
