// Reads CBOR that may come from somebody hostile, field by field: each is there, is what it is said
// to be, and is within its bounds, or the whole message is none.
//
// Texts are byte strings: paths and environments may hold any byte.
#pragma once

#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace muster::engine::slurm {

inline constexpr size_t kLongestName = 256;
inline constexpr size_t kLongestPath = 4096;
inline constexpr size_t kLongestWords = 64 << 10;  ///< of an error
/// Of anything that has no bound of its own: whatever fits into a message.
inline constexpr size_t kAnyLength = std::numeric_limits<size_t>::max();

/// Thrown by what follows, and caught where a message is read.
struct BadField : std::exception {
  const char* what() const noexcept override { return "a field of a message is wrong"; }
};

nlohmann::json binary(const std::string& text);
nlohmann::json binaries(const std::vector<std::string>& texts);
nlohmann::json binary_pairs(const std::map<std::string, std::string>& pairs);
nlohmann::json binary_pairs(const std::vector<std::pair<std::string, std::string>>& pairs);
/// Cut where it is too long to be read back.
nlohmann::json error_json(const base::Error& error);

/// kInvalid where `text` is no plain CBOR (plain_cbor.h) of an object.
nlohmann::json parse_fields(std::string_view text);

std::string text_of(const nlohmann::json& value, size_t most);
int64_t number_of(const nlohmann::json& value, int64_t least, int64_t most);

/// The fields of an object.
class Fields {
 public:
  explicit Fields(const nlohmann::json& object);

  const nlohmann::json& at(const char* name) const;
  bool has(const char* name) const;
  /// Of an array.
  const nlohmann::json& list(const char* name) const;

  std::string text(const char* name, size_t most = kAnyLength) const;
  std::vector<std::string> texts(const char* name, size_t most = kAnyLength) const;
  std::vector<std::pair<std::string, std::string>> pairs(const char* name) const;
  bool flag(const char* name) const;
  /// Of numbers that are stored with a sign.
  template <class Number>
  Number number(const char* name, Number least = 0,
                Number most = std::numeric_limits<Number>::max()) const {
    return static_cast<Number>(number_of(at(name), least, most));
  }
  uint64_t count(const char* name) const;
  std::vector<int> numbers(const char* name) const;
  /// One of the values from 0 to `last`.
  template <class Enum>
  Enum one_of(const char* name, Enum last) const {
    return static_cast<Enum>(number_of(at(name), 0, static_cast<int>(last)));
  }
  /// That error_json() wrote.
  base::Error error(const char* name) const;
  std::optional<base::Error> error_if_any(const char* name) const;

 private:
  const nlohmann::json& object_;
};

}  // namespace muster::engine::slurm
