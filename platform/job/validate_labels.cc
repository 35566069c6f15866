// Labels, annotations, and the text that a line of a table can show.
#include <cstddef>
#include <string>
#include <string_view>

#include "base/text.h"
#include "job/checker.h"
#include "job/spec.h"
#include "job/validate.h"

namespace muster::job {

namespace {

constexpr size_t kLongestKey = 128;
constexpr size_t kLongestValue = 256;
constexpr size_t kMostAnnotations = 64 << 10;  // the sum over all annotations

bool is_key(std::string_view text) {
  return !text.empty() && text.size() <= kLongestKey && text.front() != ' ' && text.back() != ' ' &&
         is_shown(text);
}

void check_key(const std::string& key, const std::string& field, Checker& check) {
  if (is_key(key) || check.has_all_faults()) return;
  check.require(false, field,
                in_quotes(key) + " is not a valid name; use 1 to " + std::to_string(kLongestKey) +
                    " bytes of text without control characters, and no blank at its ends");
}

}  // namespace

bool is_shown(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (byte < 0x20 || byte == 0x7F || (byte == 0xC2 && next >= 0x80 && next <= 0x9F)) return false;
  }
  return base::is_utf8(text);
}

bool is_label_name(std::string_view text) {
  return is_key(text) && text.find('=') == std::string_view::npos;
}

bool is_label_value(std::string_view text) {
  return text.size() <= kLongestValue && is_shown(text);
}

void check_labels(const JobSpec& spec, Checker& check) {
  check.require(
      spec.labels.size() <= static_cast<size_t>(kMaxLabels), "labels",
      "are " + std::to_string(spec.labels.size()) + "; give at most " + std::to_string(kMaxLabels));
  for (const auto& [key, value] : spec.labels) {
    if (check.has_all_faults()) break;
    check_key(key, "labels", check);
    check.require(key.find('=') == std::string::npos, "labels",
                  in_quotes(key) + " contains '=', which separates name and value");
    check.require(is_label_value(value), "labels." + base::as_utf8(key),
                  "its value is not text of at most " + std::to_string(kLongestValue) +
                      " bytes without control characters");
  }
  size_t size = 0;
  for (const auto& [key, value] : spec.annotations) {
    check_key(key, "annotations", check);
    size += key.size() + value.size();
  }
  check.require(size <= kMostAnnotations, "annotations",
                "are " + std::to_string(size) + " bytes together; at most " +
                    std::to_string(kMostAnnotations) + " are kept");
}

}  // namespace muster::job
