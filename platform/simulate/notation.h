// The small pieces that the notation of scenarios is read with: splitting, prefixes, numbers.
//
// Pure; for scenarios.cc alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text.h"

namespace muster::simulate::notation {

using base::single_quoted;
using base::trimmed;

base::Error fault(std::string what);

/// The parts of `text` between `separator`s, without blanks around them; none where it is blank.
std::vector<std::string_view> parts_of(std::string_view text, std::string_view separator);
/// As parts_of(), but a separator within brackets does not count.
std::vector<std::string_view> outer_parts_of(std::string_view text, char separator);
/// `text` before and after the first `separator`; nothing where there is none.
std::optional<std::pair<std::string_view, std::string_view>> cut(std::string_view text,
                                                                 std::string_view separator);
/// Takes it off, if it is there.
bool take_prefix(std::string_view& text, std::string_view prefix);
bool take_suffix(std::string_view& text, std::string_view suffix);

/// "12": from 0 to `most`.
base::Result<int64_t> whole(std::string_view text, int64_t most);
/// "2" or "0.5", in thousandths.
base::Result<int64_t> thousandths(std::string_view text);
/// "100", "100+1", "50-1".
base::Result<int> sum(std::string_view text);

}  // namespace muster::simulate::notation
