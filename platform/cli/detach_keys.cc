#include "cli/detach_keys.h"

#include "base/text.h"

namespace muster::cli {

namespace {

constexpr std::string_view kControl = "ctrl-";
/// A control key is the letter with its upper bits cleared: '@' to '_', and small letters.
constexpr char kControlBits = 0x1f;

char key_of(std::string_view word) {
  if (word.size() == 1) return word.front();
  if (!word.starts_with(kControl) || word.size() != kControl.size() + 1) return '\0';
  const char letter = word.back();
  const bool has_control = (letter >= '@' && letter <= '_') || (letter >= 'a' && letter <= 'z');
  return has_control ? static_cast<char>(letter & kControlBits) : '\0';
}

}  // namespace

base::Result<std::string> parse_detach_keys(std::string_view text) {
  std::string keys;
  for (const std::string& word : base::split(std::string(text), ',')) {
    const char key = key_of(word);
    if (key == '\0' && word != "ctrl-@") {
      return base::Error{
          .code = base::ErrorCode::kInvalid,
          .what = "'" + word + "' is no key; write them as in ctrl-p,ctrl-q or ctrl-a,d"};
    }
    keys += key;
  }
  if (!keys.empty()) return keys;
  return base::Error{.code = base::ErrorCode::kInvalid, .what = "no keys are given"};
}

std::string words_of_detach_keys(std::string_view keys) {
  std::string words;
  for (const char key : keys) {
    words += words.empty() ? "" : " ";
    const bool is_control = static_cast<unsigned char>(key) <= kControlBits;
    if (!is_control) {
      words += key;
      continue;
    }
    const char letter = static_cast<char>(key | '@');
    words += std::string(kControl) +
             (letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter);
  }
  return words;
}

// After a mismatch only the last key can begin the sequence again, unless it repeats itself in
// itself ("a,a,b"); then the longest beginning that what was held back still ends with.
std::string DetachKeys::pass(std::string_view typed) {
  std::string passed;
  if (keys_.empty()) return std::string(typed);
  for (const char key : typed) {
    if (found_) break;
    std::string held = keys_.substr(0, matched_) + key;
    while (!held.empty() && !keys_.starts_with(held)) {
      passed += held.front();
      held.erase(0, 1);
    }
    matched_ = held.size();
    found_ = matched_ == keys_.size();
  }
  return passed;
}

}  // namespace muster::cli
