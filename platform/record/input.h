// A value that is being read: what it is, where it stands, and where its faults are noted.
//
// There are two main forms of every document. The API and the store have the wire form: numbers are
// numbers, and a time of 30 seconds is "start_timeout_ms": 30000. Job files, --set and flags have
// the human form, in which every scalar is text as somebody typed it: "start_timeout": "30s".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "record/path.h"
#include "record/value.h"

namespace muster::record {

enum class Form {
  kWire,
  kHuman,
  kStore,  ///< the wire form with what is kept and never told, and without what is only told
};

/// Refers to all that it is made of; lives on the stack while one value is read.
struct Input {
  const Value& value;
  const Path& path;
  std::vector<base::Fault>& faults;
  Form form = Form::kWire;

  /// Notes what is wrong with this value; past the hundredth fault of a document, nothing.
  void note(std::string what) const;
  /// "must be a list, not text".
  void expected(std::string_view what) const;
  /// Null that means nothing: in job files it is a fault.
  bool is_null() const;
  /// Whether it is this text in the human form.
  bool is_typed(std::string_view text) const;
  Input at(const Value& inner, const Path& inner_path) const {
    return {inner, inner_path, faults, form};
  }
};

/// Text, or {"base64": "..."} for bytes that are no UTF-8.
std::optional<std::string> read_text(const Input& input);
std::optional<std::string> read_base64(const Input& input);
std::optional<bool> read_flag(const Input& input);
std::optional<double> read_real(const Input& input);
std::optional<base::Time> read_time(const Input& input);
/// A whole number in this range.
std::optional<int64_t> read_integer(const Input& input, int64_t low, int64_t high);
/// A number with at most three decimals, in thousandths: 0.5 is 500.
std::optional<int64_t> read_milli(const Input& input, int64_t low, int64_t high);
/// The index of one of `names`.
std::optional<size_t> read_choice(const Input& input, const std::vector<std::string>& names);

/// "; did you mean 'workers'?", or nothing where no candidate is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace muster::record
