// A value that is being read: its content, its place in the document, and the list that its faults
// are added to.
//
// There are two main forms of every document. The API and the store have the wire form: numbers are
// numbers, and a time of 30 seconds is "start_timeout_ms": 30000. Job files, the server's
// configuration, --set and flags have the human form, in which every scalar is text as a person
// types it: "start_timeout": "30s".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "record/value.h"

namespace muster::record {

/// The place of a value in a document: "tasks[0].exit.code". A chain of parts on the stack, which
/// becomes text only when a fault is noted. A Path refers to its parent and its name: both must
/// outlive it.
class Path {
 public:
  /// The document itself.
  Path() = default;
  explicit Path(std::string_view name) : name_(name) {}
  Path(const Path& parent, std::string_view name) : parent_(&parent), name_(name) {}
  Path(const Path& parent, size_t index) : parent_(&parent), index_(index), is_element_(true) {}

  bool empty() const { return parent_ == nullptr && name_.empty(); }
  std::string text() const;

 private:
  void append_to(std::string& out) const;

  const Path* parent_ = nullptr;
  std::string_view name_;
  size_t index_ = 0;
  bool is_element_ = false;
};

enum class Form {
  kWire,
  kHuman,
  kStore,  ///< the wire form, with fields that are only stored and without those only sent
};

struct Notes;

/// The largest number of faults that are reported for one document.
inline constexpr size_t kMostFaults = 100;

/// Refers to its parts, and lives on the stack while one value is read.
struct Input {
  const Value& value;
  const Path& path;
  std::vector<base::Fault>& faults;
  Form form = Form::kWire;
  /// Of the value's row, whose limits the fault of a number names; nullptr: it has no row.
  const Notes* notes = nullptr;

  /// Adds a fault of this value, unless the document has kMostFaults already.
  void note(std::string what) const;
  /// Whether note() drops further faults: then the readers of lists and maps skip the remaining
  /// elements, of which a request may have millions.
  bool has_all_faults() const;
  /// "must be a list, not text".
  void expected(std::string_view what) const;
  /// Of a list or map: how many elements are to be read. Notes a fault if there are more than its
  /// row permits.
  size_t items_to_read() const;
  /// Null in the wire form. In the human form null is a fault.
  bool is_null() const;
  /// Whether the value is this text in the human form.
  bool is_typed(std::string_view text) const;
  Input at(const Value& inner, const Path& inner_path) const {
    return {inner, inner_path, faults, form};
  }
  Input with(const Notes& of_row) const { return {value, path, faults, form, &of_row}; }
};

// Each of these returns nothing, and notes a fault, if the value is not of its type.

/// Text, or {"base64": "..."} for bytes that are not UTF-8.
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

/// Whether a field is `outer` itself or a part of it: "command[2]" is within "command".
bool is_within(std::string_view field, std::string_view outer);

/// "'trian' is invalid: expected one of train, build; did you mean 'train'?": the fault of a word
/// that is not one of `names`.
std::string not_a_choice(std::string_view word, const std::vector<std::string>& names);

/// "; did you mean 'workers'?", or nothing if no candidate is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace muster::record
