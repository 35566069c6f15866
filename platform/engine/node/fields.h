// The CBOR of messages (messages.h): its fields, and the plans in them.
//
// A message may come from a hostile sender, so it is read field by field: each field must exist,
// have its type and stay within its bounds. Otherwise the whole message is rejected, by throwing
// BadField. Texts are byte strings, since paths and environments may contain any byte.
//
// Pure.
#pragma once

#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "launch/task_plan.h"

namespace muster::engine::node {

inline constexpr size_t kLongestName = 256;
inline constexpr size_t kLongestPath = 4096;
inline constexpr size_t kLongestFilter = 64 << 10;
inline constexpr size_t kLongestWords = 64 << 10;  ///< of an error
/// For fields without a bound of their own: the message is bounded.
inline constexpr size_t kAnyLength = std::numeric_limits<size_t>::max();

/// Thrown by the readers below, and caught where a whole message is read.
struct BadField : std::exception {
  const char* what() const noexcept override { return "a field of a message is wrong"; }
};

nlohmann::json binary(const std::string& text);
nlohmann::json binaries(const std::vector<std::string>& texts);
nlohmann::json binary_pairs(const std::map<std::string, std::string>& pairs);
nlohmann::json binary_pairs(const std::vector<std::pair<std::string, std::string>>& pairs);
/// Sentences longer than kLongestWords are cut.
nlohmann::json error_json(const base::Error& error);

/// REQUIRES: plain CBOR (plain_cbor.h) of an object; throws BadField otherwise.
nlohmann::json parse_fields(std::string_view text);

std::string text_of(const nlohmann::json& value, size_t most);
int64_t number_of(const nlohmann::json& value, int64_t least, int64_t most);

/// The fields of an object.
class Fields {
 public:
  explicit Fields(const nlohmann::json& object);

  const nlohmann::json& at(const char* name) const;
  bool has(const char* name) const;
  /// An array.
  const nlohmann::json& list(const char* name) const;

  std::string text(const char* name, size_t most = kAnyLength) const;
  std::vector<std::string> texts(const char* name, size_t most = kAnyLength) const;
  std::vector<std::pair<std::string, std::string>> pairs(const char* name) const;
  bool flag(const char* name) const;
  /// For numbers that are stored with a sign.
  template <class Number>
  Number number(const char* name, Number least = 0,
                Number most = std::numeric_limits<Number>::max()) const {
    return static_cast<Number>(number_of(at(name), least, most));
  }
  uint64_t count(const char* name) const;
  std::vector<int> numbers(const char* name) const;
  /// A value from 0 to `last`.
  template <class Enum>
  Enum one_of(const char* name, Enum last) const {
    return static_cast<Enum>(number_of(at(name), 0, static_cast<int>(last)));
  }
  /// Written by error_json().
  base::Error error(const char* name) const;
  std::optional<base::Error> error_if_any(const char* name) const;

 private:
  const nlohmann::json& object_;
};

// --- plans: what a task is started with, what changes in it while it runs, a program beside it

nlohmann::json to_json(const launch::TaskPlan& plan);
launch::TaskPlan task_plan_of(const nlohmann::json& value);

nlohmann::json to_json(const launch::FileChange& change);
launch::FileChange file_change_of(const nlohmann::json& value);

nlohmann::json to_json(const ExecPlan& plan);
ExecPlan exec_plan_of(const nlohmann::json& value);

nlohmann::json to_json(const launch::ImageFacts& facts);
launch::ImageFacts image_facts_of(const nlohmann::json& value);

}  // namespace muster::engine::node
