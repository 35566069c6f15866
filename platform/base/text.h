// Small helpers on text that several layers share.
#pragma once

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

/// The words with `between` between each two.
std::string joined(const std::vector<std::string>& words, std::string_view between = ", ");

/// Splits at every `separator`; an empty text has no parts.
std::vector<std::string> split(std::string_view text, char separator);

}  // namespace muster::base
