// A YAML text as a small tree that knows its lines. yaml-cpp stays inside yaml_document.cc and
// yaml_output.cc.
//
// What yaml-cpp lets pass is kept visible here (keys that are given twice), and what makes YAML
// dangerous is bounded: nesting, and the number of values once aliases are followed.
//
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::cli {

using base::Result;

struct YamlEntry;

struct YamlValue {
  enum class Type { kNull, kScalar, kList, kMap };
  Type type = Type::kNull;
  int line = 0;        ///< counts from 1
  std::string scalar;  ///< as it was written, without quotes: "yes" stays "yes"
  std::vector<YamlValue> list;
  std::vector<YamlEntry> map;  ///< in the order of the text; a key may stand there twice
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
/// one of the bounds above passed.
Result<YamlValue> parse_yaml(std::string_view text);

}  // namespace muster::cli
