#include "cli/log_text.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace muster::cli {

namespace {

constexpr char kEscape = '\x1b';
// The longest that programs print have five numbers (colours of 24 bits).
constexpr size_t kLongestSequence = 48;

bool is_between(char letter, char first, char last) {
  return letter >= first && letter <= last;
}

/// Of ESC [ ... LETTER (ECMA-48's control sequences).
bool lays_out(char last) {
  constexpr std::string_view kLayout = "ABCDEFGHJKSTdfhlnrsu";
  return kLayout.find(last) != std::string_view::npos;
}

/// Of ESC [ ... m: whether it makes text invisible (8). The numbers behind 38, 48 and 58 choose a
/// colour: 5 and its index, or 2 and three parts.
bool conceals(std::string_view sequence) {
  std::vector<std::string> numbers = base::split(sequence.substr(2, sequence.size() - 3), ';');
  for (size_t i = 0; i < numbers.size(); ++i) {
    const std::string& number = numbers[i];
    if (number.find_first_not_of('0') != std::string::npos &&
        number.substr(number.find_first_not_of('0')) == "8") {
      return true;
    }
    const bool chooses_colour = number == "38" || number == "48" || number == "58";
    if (chooses_colour && i + 1 < numbers.size()) i += numbers[i + 1] == "2" ? 4 : 2;
  }
  return false;
}

}  // namespace

/// Adds to the sequence, if it goes on with this letter.
LogText::Look LogText::take(char letter) {
  if (sequence_.size() == 1) {
    if (letter != '[') return Look::kBroken;
    sequence_ += letter;
    return Look::kPart;
  }
  if (sequence_.size() >= kLongestSequence) return Look::kBroken;
  // Parameters and intermediates, then one that ends it.
  if (!is_between(letter, ' ', '~')) return Look::kBroken;
  sequence_ += letter;
  return is_between(letter, '@', '~') ? Look::kWhole : Look::kPart;
}

void LogText::end_sequence(std::string& out) {
  const std::string sequence = std::exchange(sequence_, {});
  const char last = sequence.back();
  const bool is_plain = sequence.find_first_not_of("0123456789;:", 2) == sequence.size() - 1;
  if (last == 'm' && is_plain) {
    if (!colour_ || conceals(sequence)) return;
    out += sequence;
    coloured_ = true;
  } else if (!lays_out(last)) {
    filter_.append(sequence, out);
  }
}

void LogText::append(std::string_view text, std::string& out) {
  while (!text.empty()) {
    if (sequence_.empty()) {
      const size_t plain = std::min(text.find(kEscape), text.size());
      filter_.append(text.substr(0, plain), out);
      text.remove_prefix(plain);
      if (text.empty()) return;
      filter_.finish(out);
      sequence_ = kEscape;
      text.remove_prefix(1);
      continue;
    }
    switch (take(text.front())) {
      case Look::kWhole:
        text.remove_prefix(1);
        end_sequence(out);
        break;
      case Look::kPart:
        text.remove_prefix(1);
        break;
      case Look::kBroken:  // no sequence: what has come of it is shown
        filter_.append(std::exchange(sequence_, {}), out);
        break;
    }
  }
}

void LogText::finish(std::string& out) {
  filter_.append(std::exchange(sequence_, {}), out);
  filter_.finish(out);
  if (std::exchange(coloured_, false)) out += kNoColour;
}

}  // namespace muster::cli
