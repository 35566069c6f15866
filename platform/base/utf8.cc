#include "base/utf8.h"

#include <cstdint>
#include <cstring>

namespace muster::base {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool in_range(char letter, unsigned low, unsigned high) {
  const unsigned byte = static_cast<unsigned char>(letter);
  return byte >= low && byte <= high;
}

/// The length of the well-formed sequence that `bytes` begins with; 0 where there is none.
/// The table is RFC 3629's: only the second byte's range depends on the first byte.
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

/// How many of the first bytes are ASCII, counted in steps of eight: nearly all logs are.
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
