// Small helpers on text that several layers share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace muster::base {

/// 2026-01-31T12:34:56.123456789Z; the fraction is cut to `digits` places (0 to 9).
std::string to_rfc3339(Time time, int digits = 3);

/// The candidate that is nearest to `word` by edit distance, or empty when none is near enough to
/// be what was meant (a third of its length at most).
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// `text` in single quotes as a POSIX shell reads it back.
std::string shell_quoted(std::string_view text);

/// The words of a command line as one would type them: quoted only where needed.
std::string shell_joined(const std::vector<std::string>& words);

/// The words of a container with `between` between each two.
template <typename Words = std::vector<std::string>>
std::string joined(const Words& words, std::string_view between = ", ") {
  std::string text;
  bool is_first = true;
  for (const auto& word : words) {
    if (!is_first) text += between;
    is_first = false;
    text += word;
  }
  return text;
}

/// "a", "a and b", "a, b and c".
template <typename Words>
std::string listed(const Words& words, std::string_view last = "and") {
  std::string text;
  size_t left = words.size();
  for (const auto& word : words) {
    text += word;
    if (--left > 1) text += ", ";
    if (left == 1) text.append(" ").append(last).append(" ");
  }
  return text;
}

/// "1 task", "2 tasks".
std::string count_text(int64_t count, std::string_view noun);

/// 'text', as it is. (std::quoted() is found beside a function named quoted() by its argument.)
std::string single_quoted(std::string_view text);

/// What a person typed, as a sentence repeats it: in quotes, as UTF-8, and cut where it is long.
std::string in_quotes(std::string_view text);

/// Without the blanks at both ends.
std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r\n");

/// The letters A to Z become a to z; every other byte stays, in every locale.
std::string lower_case(std::string_view text);

/// Whether two texts differ at most in the case of the letters A to Z.
bool same_but_for_case(std::string_view left, std::string_view right);

/// Splits at every `separator`; an empty text has no parts.
std::vector<std::string> split(std::string_view text, char separator);

// Whether bytes are text. JSON holds UTF-8 only, while what programs print and what argv carries
// may be anything.
//
// Pure; thread-safe.

/// As RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF.
bool is_utf8(std::string_view bytes);

/// Each byte that is no text becomes U+FFFD: for sentences that people read.
std::string as_utf8(std::string_view bytes);

/// At most `limit` bytes of a text, not cut within a character; "..." says that it was cut.
std::string shortened(std::string_view text, size_t limit = 60);

}  // namespace muster::base
