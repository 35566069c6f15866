// Text helpers for several layers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace muster::base {

/// 2026-01-31T12:34:56.123456789Z; the fraction is cut to `digits` places (0 to 9).
std::string to_rfc3339(Time time, int digits = 3);

/// The candidate of which one letter differs; else the shortest one that begins with `word`; else
/// the nearest by edit distance.
/// Empty if no candidate is within a third of the word's length. A word of one or two letters is
/// near to none.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// `text` in single quotes for a POSIX shell.
std::string shell_quoted(std::string_view text);

/// The words of a command line, quoted only if necessary.
std::string shell_joined(const std::vector<std::string>& words);

/// The words of a container, joined with `between`.
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

/// What is wrong with `subject`: "--workers is missing", but "--after: a job cannot wait for
/// itself" if the text is a sentence with a subject of its own.
std::string fault_message(std::string_view subject, std::string_view text);

/// 'text', unchanged. (std::quoted() would be found next to a function named quoted() by
/// argument-dependent lookup.)
std::string single_quoted(std::string_view text);

/// A user's text for a sentence: in quotes, as UTF-8, and shortened if it is long.
std::string in_quotes(std::string_view text);

/// Without the blanks at both ends.
std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r\n");

/// Changes A to Z to a to z, and no other byte, in every locale.
std::string lower_case(std::string_view text);

/// Whether two texts are equal apart from the case of the letters A to Z.
bool same_but_for_case(std::string_view left, std::string_view right);

/// Whether the text has only digits, after '-' or not: a number of any size.
bool is_whole_number(std::string_view text);

/// Splits at every `separator`; an empty text has no parts.
std::vector<std::string> split(std::string_view text, char separator);

// Whether bytes are UTF-8. JSON contains only UTF-8, while the output of programs and argv may
// contain any bytes.
//
// Pure; thread-safe.

/// According to RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view bytes);

/// Replaces each invalid byte by U+FFFD, for text that people read.
std::string as_utf8(std::string_view bytes);

/// At most `limit` bytes of a text, not cut within a character; a shortened text ends with "...".
std::string shortened(std::string_view text, size_t limit = 60);

}  // namespace muster::base
