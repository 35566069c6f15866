// Walks over JSON of a known, flat shape from left to right: for what is read by the gigabyte.
//
// It may fail on JSON that is correct but not of the shape; the caller then reads it the slow way
// (fields.h), which also finds the words for what is wrong. It never takes what is not JSON.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::api {

class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : rest_(text) {}

  /// Takes `token` if it comes next.
  bool take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  /// Takes a string; its escapes are resolved.
  bool take_text(std::string& into);
  /// Takes a string without escapes, as it stands there.
  bool take_plain(std::string_view& into);
  bool take_int(int& into);
  bool at_end() const { return rest_.empty(); }

 private:
  bool take_escape(std::string& into);
  std::optional<uint32_t> take_hex4();

  std::string_view rest_;
};

}  // namespace muster::api
