// YAML as a small tree with the line of each value. yaml-cpp is used only in yaml.cc.
//
// The dangers of YAML are bounded: nesting, and the number of values after aliases are expanded.
//
// Pure; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::base {

struct YamlEntry;

struct YamlValue {
  enum class Type { kNull, kScalar, kList, kMap };
  Type type = Type::kNull;
  int line = 0;        ///< counts from 1
  std::string scalar;  ///< as written, without quotes: "yes" stays "yes"
  std::vector<YamlValue> list;
  std::vector<YamlEntry> map;  ///< in the order of the text; keys may be repeated
};

struct YamlEntry {
  std::string key;
  int line = 0;
  YamlValue value;
};

inline constexpr size_t kMaxYamlBytes = 1 << 20;
inline constexpr int kMaxYamlDepth = 32;
inline constexpr int kMaxYamlValues = 100'000;

/// Errors: kInvalid with one fault that has the line: a syntax error, more than one document, or
/// one of the limits above exceeded.
Result<YamlValue> parse_yaml(std::string_view text);

inline constexpr size_t kMaxYamlDocuments = 100;

/// The documents of a stream ("---" between them), without empty documents. The limits above apply to
/// the stream as a whole. Errors: as parse_yaml(); also more than kMaxYamlDocuments documents.
Result<std::vector<YamlValue>> parse_yaml_documents(std::string_view text);

}  // namespace muster::base
