#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <numeric>
#include <utility>

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

/// The number of insertions, deletions, substitutions and swaps of neighbours that turn `a` into
/// `b` (optimal string alignment). A swap is the most common typing error and counts as one. If the
/// number is `limit` or more, the result is any number from `limit` on.
size_t edit_distance(std::string_view a, std::string_view b, size_t limit) {
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  size_t least_of_last = 0;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    // Every later number comes from one of these two rows, and is no smaller.
    const size_t least = *std::min_element(row.begin(), row.end());
    if (least >= limit && least_of_last >= limit) return limit;
    least_of_last = least;
    before_last.swap(last);
    last.swap(row);
  }
  return last.back();
}

char lower_letter(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  // A beginning more likely means this name than one of which two letters differ.
  constexpr size_t kShortestBeginning = 3;
  std::string best;
  size_t best_distance = word.size() / 3 + 1;
  for (const std::string& candidate : candidates) {
    if (word.size() < kShortestBeginning || !candidate.starts_with(word)) continue;
    if (best.empty() || candidate.size() < best.size()) best = candidate;
  }
  if (!best.empty()) best_distance = 2;
  for (const std::string& candidate : candidates) {
    // The distance is at least the difference of the lengths, so long words are not compared.
    const size_t apart =
        std::max(word.size(), candidate.size()) - std::min(word.size(), candidate.size());
    if (apart >= best_distance) continue;
    const size_t distance = edit_distance(word, candidate, best_distance);
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

std::string count_text(int64_t count, std::string_view noun) {
  std::string text = std::to_string(count);
  text.append(" ").append(noun);
  if (count != 1) text += 's';
  return text;
}

std::string fault_message(std::string_view subject, std::string_view text) {
  constexpr std::array<std::string_view, 11> kBeginnings{
      "a", "an", "the", "this", "there", "only", "give", "without", "method", "at", "its"};
  const std::string_view first = text.substr(0, text.find(' '));
  const bool is_sentence =
      std::find(kBeginnings.begin(), kBeginnings.end(), first) != kBeginnings.end() ||
      (subject.ends_with('\'') && !text.empty() && (text[0] < 'a' || text[0] > 'z'));
  std::string message(subject);
  message.append(is_sentence ? ": " : " ").append(text);
  return message;
}

std::string single_quoted(std::string_view text) {
  std::string quotation = "'";
  quotation.append(text).append("'");
  return quotation;
}

std::string in_quotes(std::string_view text) {
  return single_quoted(shortened(as_utf8(text)));
}

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), lower_letter);
  return lower;
}

bool same_but_for_case(std::string_view left, std::string_view right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](char a, char b) { return lower_letter(a) == lower_letter(b); });
}

bool is_whole_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
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

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool in_range(char letter, unsigned low, unsigned high) {
  const unsigned byte = static_cast<unsigned char>(letter);
  return byte >= low && byte <= high;
}

/// The length of the well-formed sequence at the beginning of `bytes`; 0 if there is none. The
/// table is RFC 3629's: only the second byte's range depends on the first byte.
size_t sequence_length(std::string_view bytes) {
  struct Form {
    unsigned first_low, first_high, second_low, second_high;
    size_t length;
  };
  static constexpr Form kForms[] = {{0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
                                    {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3},
                                    {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
                                    {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};
  if (in_range(bytes[0], 0, 0x7F)) return 1;
  for (const Form& form : kForms) {
    if (!in_range(bytes[0], form.first_low, form.first_high)) continue;
    if (bytes.size() < form.length) return 0;
    if (!in_range(bytes[1], form.second_low, form.second_high)) return 0;
    for (size_t i = 2; i < form.length; ++i) {
      if (!in_range(bytes[i], 0x80, 0xBF)) return 0;
    }
    return form.length;
  }
  return 0;
}

/// The number of ASCII bytes at the beginning, counted in steps of eight, because logs are almost
/// entirely ASCII.
size_t ascii_prefix(std::string_view bytes) {
  size_t length = 0;
  while (bytes.size() - length >= sizeof(uint64_t)) {
    uint64_t eight = 0;
    std::memcpy(&eight, bytes.data() + length, sizeof eight);
    if ((eight & 0x8080808080808080U) != 0) break;
    length += sizeof eight;
  }
  return length;
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  while (true) {
    bytes.remove_prefix(ascii_prefix(bytes));
    if (bytes.empty()) return true;
    const size_t length = sequence_length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
}

std::string as_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t length = sequence_length(bytes);
    text += length == 0 ? kReplacement : bytes.substr(0, length);
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return text;
}

std::string shortened(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  size_t end = limit;
  while (end > 0 && in_range(text[end], 0x80, 0xBF)) --end;
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace muster::base
